"""The pictures of the docs."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.browser.animation import Frame, animation
from tests.browser.visit import Visit

pytestmark = pytest.mark.browser
#: Decodes WebP: of each frame, its duration in microseconds, width and height.
_DECODE = """
async (bytes) => {
  const decoder = new ImageDecoder({ data: new Uint8Array(bytes), type: "image/webp" });
  await decoder.tracks.ready;
  const frames = [];
  for (let index = 0; index < decoder.tracks.selectedTrack.frameCount; index++) {
    const { image } = await decoder.decode({ frameIndex: index });
    frames.push([image.duration, image.displayWidth, image.displayHeight]);
  }
  return [String(decoder.tracks.selectedTrack.repetitionCount), frames];
}
"""


def test_an_animation_is_what_a_browser_reads(browser: Browser, visit: Visit) -> None:
    """Frames keep their order, duration and size, repeat without end, and make the same bytes."""
    visit.page.set_viewport_size({"width": 301, "height": 200})
    frames = [Frame(visit.page.screenshot(), 2000), Frame(visit.page.screenshot(), 70)]
    written = animation(browser, frames)
    assert written == animation(browser, frames)
    repetitions, decoded = visit.page.evaluate(_DECODE, list(written))
    assert repetitions == "Infinity"
    assert decoded == [[2_000_000, 301, 200], [70_000, 301, 200]]
