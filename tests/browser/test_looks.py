"""Widths, colors, print and assistive technology, in each scene."""

from __future__ import annotations

from itertools import pairwise

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, expect

from tests.browser.inputs import SEVERAL
from tests.browser.scenes import SCENES, SCHEMES, WIDTHS
from tests.browser.visit import Scheme, Visit

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("scene", SCENES)
def test_no_barrier(browser: Browser, address: str, scene: str, scheme: Scheme) -> None:
    """No violation of axe's rules, such as a low contrast, in light and in dark."""
    with Visit.to(browser, address, scheme=scheme) as visit:
        SCENES[scene](visit)
        assert violations(visit) == []


def violations(visit: Visit) -> list[tuple[str, str]]:
    """Return each rule of axe that the page violates, with the first element; leave the page."""
    visit.check()
    broken = Axe().run(visit.page).response["violations"]
    visit.page.goto("about:blank")  # axe itself may break the page's policy
    visit.page.evaluate("window.violations = []")
    return [(violation["id"], violation["nodes"][0]["html"]) for violation in broken]


@pytest.mark.parametrize("scene", SCENES)
def test_nothing_is_wider_than_the_window(browser: Browser, address: str, scene: str) -> None:
    """At 320, 768 and 1440 pixels, the page does not scroll to the side."""
    with Visit.to(browser, address) as visit:
        SCENES[scene](visit)
        for width in WIDTHS:
            visit.page.set_viewport_size({"width": width, "height": 800})
            root = "document.documentElement"
            assert visit.page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0, width


@pytest.mark.parametrize(("width", "columns"), [(768, 1), (1280, 2)])
def test_lines_stand_side_by_side_where_there_is_room(
    browser: Browser, address: str, width: int, columns: int
) -> None:
    """From 800 pixels on, a changed line has two columns; below, the new line is below the old."""
    with Visit.to(browser, address, width=width) as visit:
        SCENES["several"](visit)
        row = visit.section("Before and after").locator(".row.changed").first
        before, after = (cell.bounding_box() for cell in row.locator(".cell").all())
        assert before is not None
        assert after is not None
        assert (after["x"] > before["x"]) is (columns == 2)
        assert (after["y"] > before["y"]) is (columns == 1)


def test_signs_and_not_only_colors(visit: Visit) -> None:
    """A line that was added, removed or changed has a sign."""
    SCENES["several"](visit)
    mark = "cell => getComputedStyle(cell.querySelector('.mark'), '::before').content"
    rows = visit.section("Before and after")
    assert rows.locator(".row.added .after").first.evaluate(mark) == '"+"'
    assert rows.locator(".row.changed .before").first.evaluate(mark) == '"~"'
    visit.page.set_viewport_size({"width": 600, "height": 800})
    assert rows.locator(".row.changed .before").first.evaluate(mark) == '"\N{MINUS SIGN}"'
    assert rows.locator(".row.changed .after").first.evaluate(mark) == '"+"'


def test_headings_are_in_order(visit: Visit) -> None:
    """No level of heading is skipped."""
    SCENES["several"](visit)
    headings = visit.page.locator("h1, h2, h3, h4").all()
    levels = [int(heading.evaluate("heading => heading.tagName[1]")) for heading in headings]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_print(visit: Visit) -> None:
    """On paper there is no form, and everything is unfolded."""
    visit.preview(SEVERAL)
    skipped = visit.result.get_by_text("the fabric has no network to attach")
    expect(skipped).to_be_hidden()
    visit.page.emulate_media(media="print")
    expect(skipped).to_be_visible()
    expect(visit.text_box).to_be_hidden()
