"""Scenes: the states of the page that are looked at, in each width and color scheme."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.inputs import EQUIPPED, INVALID, NOT_OPTED_IN, SEVERAL
from tests.browser.visit import Scheme, Visit

WIDTHS = (320, 768, 1440)
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


def _show_empty(visit: Visit) -> None:
    expect(visit.result).to_contain_text("Paste a pod")


def _show_equipped(visit: Visit) -> None:
    visit.button("Try an example").click()
    visit.result.get_by_text("Nothing to do or skipped").click()
    visit.button("env").first.focus()


def _show_several(visit: Visit) -> None:
    visit.preview(SEVERAL)
    visit.result.locator(".pods label", has_text="lab/tcp").click()
    visit.result.get_by_text("What the codes mean").click()


def _show_not_called(visit: Visit) -> None:
    visit.page.locator("#options").evaluate("options => { options.open = true; }")
    visit.page.get_by_label("The namespace has the label").uncheck()
    visit.preview(EQUIPPED)
    expect(visit.result).to_contain_text("If the webhook were called, the pod would be equipped")


def _show_not_opted_in(visit: Visit) -> None:
    visit.preview(NOT_OPTED_IN)
    expect(visit.headline).to_have_text("no RDMA: not opted in")
    visit.page.get_by_text("Fabrics of this server").click()
    expect(visit.page.locator("#amounts")).to_contain_text("The nodes are unknown")


def _show_problem(visit: Visit) -> None:
    visit.preview(INVALID)
    visit.button("Go to line 6").click()


def _show_link(visit: Visit) -> None:
    visit.text_box.fill(EQUIPPED)
    expect(visit.headline).to_be_visible()
    visit.button("Copy link").click()
    expect(visit.page.locator("#remark")).to_contain_text("The link is copied")


#: What leads from an empty page to each scene, by name.
SCENES: dict[str, Callable[[Visit], None]] = {
    "empty": _show_empty,
    "equipped": _show_equipped,
    "several": _show_several,
    "not-called": _show_not_called,
    "not-opted-in": _show_not_opted_in,
    "problem": _show_problem,
    "link": _show_link,
}
