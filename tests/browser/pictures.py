"""The pictures of the page in the docs: a still, and an animation for the README.

The same chromium with the same fonts writes the same bytes: the inputs are fixed, nothing moves,
and no file has the time of its making.
"""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Browser, expect

from tests.browser.animation import Frame, animation
from tests.browser.visit import Visit

_STILL_WIDTH, _STILL_HEIGHT = 1440, 1180
_WIDTH, _HEIGHT = 1000, 720
_LONG, _SHORT = 4000, 2000  #: milliseconds


def still(browser: Browser, address: str) -> bytes:
    """Return a PNG of a Job that is equipped for RDMA."""
    with Visit.to(browser, address, width=_STILL_WIDTH, height=_STILL_HEIGHT) as visit:
        visit.button("Try an example").click()
        expect(visit.headline).to_contain_text("equipped for RDMA")
        visit.page.evaluate("scrollTo(0, 0)")
        visit.page.mouse.move(0, 0)
        return visit.page.screenshot()


def moving(browser: Browser, address: str) -> bytes:
    """Return a WebP of a Job without RDMA, what it lacks, and what it gets once it has that."""
    with Visit.to(browser, address, width=_WIDTH, height=_HEIGHT) as visit:
        return animation(browser, list(_frames(visit)))


def _frames(visit: Visit) -> Iterator[Frame]:
    def frame(milliseconds: int) -> Frame:
        visit.page.mouse.move(0, 0)  # nothing is highlighted below the pointer
        return Frame(visit.page.screenshot(), milliseconds)

    yield frame(_SHORT)
    visit.button("Faulty example").click()
    expect(visit.headline).to_have_text("no RDMA: not opted in")
    visit.page.evaluate("scrollTo(0, 0)")
    yield frame(_SHORT)
    visit.result.evaluate("result => result.scrollIntoView()")
    yield frame(_LONG)
    visit.button("Try an example").click()
    expect(visit.headline).to_contain_text("equipped for RDMA")
    visit.result.evaluate("result => result.scrollIntoView()")
    yield frame(_LONG)
    visit.section("Before and after").evaluate("section => section.scrollIntoView()")
    yield frame(_LONG)
