"""Links, which have the text in the fragment of the address."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.inputs import EQUIPPED, LIMIT_RANGE
from tests.browser.visit import Visit

pytestmark = pytest.mark.browser
_TEXT = f"{EQUIPPED}# ü→🚀\u202e<b>\n"


def test_a_link_fills_in_the_form_of_someone_else(browser: Browser, visit: Visit) -> None:
    """Text and assumptions arrive, the fragment is never sent, and the preview starts."""
    visit.page.get_by_label("Namespace", exact=False).first.fill("other")
    visit.page.get_by_label("The namespace has the label").uncheck()
    visit.page.get_by_label("As if every pod").check()
    visit.page.get_by_label("Pod Security").select_option("baseline")
    visit.page.get_by_label("LimitRange").fill(LIMIT_RANGE)
    visit.preview(_TEXT)
    visit.button("Copy link").click()
    expect(visit.page.locator("#remark")).to_contain_text("The link is copied")
    link = visit.page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{visit.address}#input=")
    assert link == visit.page.url
    with Visit.to(browser, link) as guest:
        expect(guest.headline).to_be_visible()
        assert guest.text_box.input_value() == _TEXT
        assert guest.page.get_by_label("LimitRange").input_value() == LIMIT_RANGE
        assert guest.page.get_by_label("Pod Security").input_value() == "baseline"
        expect(guest.page.get_by_label("As if every pod")).to_be_checked()
        expect(guest.page.get_by_label("The namespace has the label")).not_to_be_checked()
        address = (
            "preview?namespace=other&namespace-label=kubernetes.io%2Fmetadata.name%3Dother"
            "&namespace-label=pod-security.kubernetes.io%2Fenforce%3Dbaseline&enable=true"
        )
        assert guest.requests[-1].endswith(address)


@pytest.mark.parametrize("code", ["", "%", "bm90IGRlZmxhdGVk", "q1YqSS0uAQA", "x" * 200_000])
def test_a_damaged_link_is_a_sentence(browser: Browser, address: str, code: str) -> None:
    """A link that cannot be read leaves an empty form and a sentence."""
    with Visit.to(browser, f"{address}#input={code}") as visit:
        expect(visit.page.locator("#remark")).to_contain_text("damaged or incomplete")
        expect(visit.text_box).to_have_value("")
        expect(visit.result).to_contain_text("Paste a pod")


def test_a_changed_text_has_another_link(visit: Visit) -> None:
    """Once the text changes, the address no longer has the link to the old one."""
    visit.preview(EQUIPPED)
    visit.button("Copy link").click()
    expect(visit.page.locator("#remark")).to_contain_text("The link is copied")
    visit.text_box.press_sequentially("#")
    assert visit.page.url == visit.address
    expect(visit.page.locator("#remark")).to_have_text("")


def test_a_text_too_long_for_a_link(visit: Visit) -> None:
    """A link longer than 64 KiB would be cut on its way, so there is none."""
    visit.page.evaluate(
        "() => { document.querySelector('#text').value ="
        " Array.from({length: 40000}, () => Math.random()).join(); }"
    )
    visit.button("Copy link").click()
    expect(visit.page.locator("#remark")).to_contain_text("too long for a link")
    assert visit.page.url == visit.address


def test_a_link_without_a_clipboard(visit: Visit) -> None:
    """Where the clipboard is forbidden, the link is in the address bar."""
    visit.page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(new Error()); }"
    )
    visit.preview(EQUIPPED)
    visit.button("Copy link").click()
    expect(visit.page.locator("#remark")).to_contain_text("The link is in the address bar")
    assert "#input=" in visit.page.url
