"""Ways to use the page: keyboard, files and hostile texts."""

from __future__ import annotations

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.inputs import CONFIG_MAP, EQUIPPED, RDMA_OFF, SEVERAL, hostile
from tests.browser.visit import Visit

pytestmark = pytest.mark.browser
_DROP = """
([name, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name));
  for (const type of ["dragover", "drop"]) {
    const event = new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: transfer });
    document.querySelector("#text").dispatchEvent(event);
    if (!event.defaultPrevented) throw new Error(`${type} would leave the page`);
  }
}
"""


def test_the_keyboard_is_enough(visit: Visit) -> None:
    """Without a mouse: enter a text, preview it, choose a pod, read a change and a code."""
    press = visit.page.keyboard.press
    press("Tab")
    expect(visit.text_box).to_be_focused()
    visit.page.evaluate("text => navigator.clipboard.writeText(text)", SEVERAL)
    press("Control+V")
    press("Control+Enter")
    expect(visit.headline).to_have_text("equipped for RDMA over v100-ib")
    while not visit.page.locator(".pods :checked").evaluate("box => box.matches(':focus')"):
        press("Tab")
    press("ArrowDown")
    press("ArrowDown")
    expect(visit.headline).to_have_text("no RDMA")
    press("Tab")
    expect(visit.button("NcclIbDisabled").first).to_be_focused()
    press("Enter")
    expect(visit.page.locator("#code-NcclIbDisabled")).to_be_focused()


def test_focus_can_be_seen(visit: Visit) -> None:
    """Whatever the keyboard reaches has an outline, except boxes that a caret marks."""
    visit.preview(EQUIPPED)
    expect(visit.headline).to_be_visible()
    visit.text_box.focus()
    for _ in range(12):
        visit.page.keyboard.press("Tab")
        outlines = visit.page.evaluate(
            "[document.activeElement, document.activeElement.closest('label') ?? document.body]"
            ".map((node) => getComputedStyle(node).outlineStyle)"
        )
        assert "solid" in outlines


def test_opened_unchanged_lines_get_the_focus(visit: Visit) -> None:
    """The button that disappears hands the focus to the first line that it showed."""
    visit.preview(EQUIPPED)
    visit.result.get_by_role("button", name="unchanged lines").first.press("Enter")
    expect(visit.result.get_by_role("row").first).to_be_focused()


def test_files_are_opened(visit: Visit) -> None:
    """The texts of chosen files become documents of one text."""
    files = [
        FilePayload(name=name, mimeType="text/yaml", buffer=text.encode())
        for name, text in (("a.yaml", CONFIG_MAP), ("b.yaml", EQUIPPED))
    ]
    visit.page.locator("#file").set_input_files(files)
    expect(visit.headline).to_have_text("equipped for RDMA over v100-ib")
    expect(visit.text_box).to_have_value(f"{CONFIG_MAP}\n---\n{EQUIPPED}")


def test_a_dropped_file_is_opened(visit: Visit) -> None:
    """A file that is dropped anywhere is previewed, and the browser does not leave the page."""
    visit.page.evaluate(_DROP, ["job.yaml", RDMA_OFF])
    expect(visit.headline).to_have_text("no RDMA")
    expect(visit.text_box).to_have_value(RDMA_OFF)


def test_a_hostile_text_is_only_text(visit: Visit) -> None:
    """1 MiB of markup and bidi marks: no element of it, no character that reorders or hides."""
    visit.paste(hostile(9000))
    expect(visit.headline).to_have_text("equipped for RDMA over v100-ib")
    gaps = visit.result.get_by_role("button", name="unchanged lines")
    gaps.first.click()
    gaps.last.click()
    expect(visit.result).to_contain_text("<img src=x onerror=alert(1)><script>alert(2)</script>")
    expect(visit.result).to_contain_text("\\u202egnp.exe\\u2066\\u200b&amp;")
    displayed = visit.result.evaluate("result => result.textContent")
    assert [mark for mark in "\u202e\u2066\u200b" if mark in displayed] == []
    assert visit.result.locator("img, script").count() == 0
    assert visit.page.locator("*").count() < 30_000


def test_escapes_are_those_of_the_command_line(visit: Visit) -> None:
    """A name with invisible characters reads as in a terminal."""
    name = "a\u00adb\u3164c\U000e0100\u0085\ufeff"
    visit.preview(EQUIPPED + f'    command: ["{name}"]\n')
    section = visit.section("Before and after")
    expect(section).to_contain_text("a\\xadb\\u3164c\\U000e0100\\x85\\ufeff")
