"""What discover and verify write for a browser: looks, accessibility, print, hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.documents import DOCUMENTS
from tests.browser.scenes import SCHEMES, WIDTHS
from tests.browser.test_looks import violations
from tests.browser.visit import Scheme, Visit

pytestmark = pytest.mark.browser
#: The width of a sheet of A4 in landscape between its margins, at 96 dots per inch.
_SHEET = 1046
_OVERHANG = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write all documents."""
    folder = tmp_path_factory.mktemp("documents")
    for name, write in DOCUMENTS.items():
        (folder / f"{name}.html").write_text(write(), encoding="utf-8")
    return folder


def open_document(
    browser: Browser, folder: Path, name: str, scheme: Scheme = "light"
) -> Iterator[Visit]:
    """Open a document; the visit fails if the document asks for anything else."""
    with Visit.to(browser, (folder / f"{name}.html").as_uri(), scheme=scheme) as visit:
        yield visit


@pytest.fixture
def visit(browser: Browser, folder: Path, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """Open the document that the test names."""
    yield from open_document(browser, folder, request.param)


each_document = pytest.mark.parametrize("visit", DOCUMENTS, indirect=True)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_barrier(browser: Browser, folder: Path, name: str, scheme: Scheme) -> None:
    """No violation of axe's rules, in light and in dark."""
    for visit in open_document(browser, folder, name, scheme):
        assert violations(visit) == []


@each_document
def test_nothing_is_wider_than_the_window(visit: Visit) -> None:
    """At each width the document does not scroll to the side; its tables and pictures do."""
    for width in WIDTHS:
        visit.page.set_viewport_size({"width": width, "height": 800})
        assert visit.page.evaluate(_OVERHANG) == 0, width


@each_document
def test_nothing_runs_off_the_sheet(visit: Visit) -> None:
    """In print, tables and pictures fit the sheet, which is white also for dark screens."""
    visit.page.set_viewport_size({"width": _SHEET, "height": 700})
    visit.page.emulate_media(media="print", color_scheme="dark")
    assert visit.page.evaluate(_OVERHANG) == 0
    expect(visit.page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    for paper in visit.page.locator(".paper").all():
        expect(paper).to_have_css("fill", "rgb(255, 255, 255)")


@pytest.mark.parametrize("visit", ["discover-hostile", "verify-hostile"], indirect=True)
def test_hostile_text_is_text(visit: Visit) -> None:
    """Markup in names makes no element, and marks of direction are escaped."""
    expect(visit.page.locator("img, script, a[onclick]")).to_have_count(0)
    body = visit.page.locator("body")
    expect(body).to_contain_text('<img src=x onerror="alert(1)">\\u202e"&amp;0')
    assert "\u202e" not in (body.text_content() or "")


@pytest.mark.parametrize("visit", ["discover"], indirect=True)
def test_the_picture_follows_the_scheme(visit: Visit) -> None:
    """Its colors are those of the page around it, in light and in dark."""
    for scheme in SCHEMES:
        visit.page.emulate_media(color_scheme=scheme)
        back = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
        for paper in visit.page.locator(".paper").all():
            expect(paper).to_have_css("fill", back)


@pytest.mark.parametrize("visit", ["discover"], indirect=True)
def test_the_picture_marks_what_the_findings_name(visit: Visit) -> None:
    """A missing rail, odd firmware, counted errors, a slow port and one that is down."""
    texts = visit.page.locator("svg text").all_text_contents()
    marks = {"✘ missing", "! odd firmware", "! errors counted", "✘ Down", "✘ 200 Gb/s"}
    assert marks <= {*texts}
    findings = visit.page.get_by_role("heading", name="What to fix first")
    picture = visit.page.get_by_role("heading", name="Picture")
    above, below = findings.bounding_box(), picture.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] < below["y"]


@pytest.mark.parametrize("visit", ["verify"], indirect=True)
def test_a_cell_leads_to_its_finding(visit: Visit) -> None:
    """The link is within the document."""
    visit.page.get_by_role("link", name="error 12.5").first.click()
    expect(visit.page.locator("section:target")).to_contain_text("FarBelowRate")


@each_document
def test_the_text_is_as_wide_as_that_of_the_page(visit: Visit) -> None:
    """All documents have 75rem of text, centered in a wide window."""
    visit.page.set_viewport_size({"width": 1600, "height": 800})
    main = visit.page.locator("main").bounding_box()
    assert main is not None
    assert main["width"] == 75 * 16
    assert main["x"] == (1600 - main["width"]) / 2


@pytest.mark.parametrize("visit", ["verify"], indirect=True)
def test_tables_of_devices_are_side_by_side_where_they_fit(visit: Visit) -> None:
    """In a narrow window they are one below another."""

    def tops() -> list[float]:
        boxes = (table.bounding_box() for table in visit.page.locator(".devices .scroll").all())
        return [box["y"] for box in boxes if box]

    visit.page.set_viewport_size({"width": 1440, "height": 800})
    first, second, third = tops()
    assert first == second < third
    visit.page.set_viewport_size({"width": 800, "height": 800})
    first, second, third = tops()
    assert first < second < third


@pytest.mark.parametrize("visit", ["discover", "verify", "verify-ring"], indirect=True)
def test_the_first_column_stays(visit: Visit) -> None:
    """While a table scrolls to the side, also by keyboard."""
    visit.page.set_viewport_size({"width": 320, "height": 800})
    table = visit.page.locator(".scroll:has(table)").first
    head = table.locator("tbody th").first
    before = head.bounding_box()
    table.focus()
    table.evaluate("scroller => scroller.scrollTo(60, 0)")
    assert table.evaluate("scroller => scroller.scrollLeft") == 60
    after = head.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["x"] - after["x"]) <= 1


@pytest.mark.parametrize("visit", ["verify-many"], indirect=True)
def test_a_name_is_on_one_line(visit: Visit) -> None:
    """Also in a narrow window, unless the name alone is wider."""
    visit.page.set_viewport_size({"width": 320, "height": 800})
    for name in visit.page.locator(".findings .whole").all():
        box = name.bounding_box()
        assert box is not None
        assert box["height"] < 30


@pytest.mark.parametrize("visit", ["verify"], indirect=True)
def test_an_interrupted_run_says_so_first(visit: Visit) -> None:
    """With the number of pairs that were measured."""
    first = visit.page.locator("main li").first
    expect(first).to_contain_text("The run was interrupted after 20 of 24 pairs.")
