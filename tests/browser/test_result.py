"""One pod's result: verdict, warnings, lines before and after, outcomes and codes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import FilePayload, Locator, expect

from tests.browser.inputs import (
    CONFIG_MAP,
    DENIED,
    EQUIPPED,
    FOREIGN_DEVICE,
    FOREIGN_NIC,
    JOB_MISPLACED,
    METADATA_OF_OPERATOR,
    MISSPELLED,
    NOT_OPTED_IN,
    RDMA_OFF,
    REPLICA_SET,
    SEVERAL,
    many_changes,
    pod,
)
from tests.browser.visit import Visit

pytestmark = pytest.mark.browser


def _texts(rows: Locator, selector: str) -> list[str]:
    return [text.strip() for text in rows.locator(selector).all_inner_texts()]


@pytest.mark.parametrize(
    ("text", "sign", "headline", "reason"),
    [
        (EQUIPPED, "✔", "equipped for RDMA over v100-ib", "are right for RDMA"),
        (RDMA_OFF, "✘", "no RDMA", "Container trainer sets NCCL_IB_DISABLE=1"),
        (DENIED, "✘", "denied", "Annotation rdma.lab/fabric names 'nowhere'"),
        (NOT_OPTED_IN, "○", "no RDMA: not opted in", "The pod has no annotation rdma.lab/enable"),
    ],
    ids=["equipped", "rdma-off", "denied", "not-opted-in"],
)
def test_the_verdict_comes_first(
    visit: Visit, text: str, sign: str, headline: str, reason: str
) -> None:
    """The first thing in the result is the verdict: sign, headline and reason."""
    visit.preview(text)
    card = visit.result.locator(".parts > :first-child")
    expect(card.locator("h2")).to_have_text(headline)
    expect(card.locator(".sign")).to_have_text(sign)
    expect(card.locator(".reason")).to_contain_text(reason)


def test_a_screen_reader_hears_the_verdict(visit: Visit) -> None:
    """A live region names the pod and its verdict."""
    visit.preview(EQUIPPED)
    expect(visit.page.locator("#announcement")).to_have_text("Pod lab/equipped: equipped for RDMA")


def test_the_same_preview_again_leaves_open_what_is_open(visit: Visit) -> None:
    """Somebody presses the button after the page has shown the result by itself."""
    visit.preview(RDMA_OFF)
    meanings = visit.result.locator("details:has(dl)")
    meanings.evaluate("details => { details.open = true; }")
    number = len(visit.requests)
    with visit.page.expect_response(lambda response: "/preview" in response.url):
        visit.button("Preview").click()
    expect(visit.page.locator("#result")).to_have_attribute("aria-busy", "false")
    assert len(visit.requests) == number + 1
    assert meanings.evaluate("details => details.open") is True
    visit.preview(FOREIGN_NIC)
    expect(visit.result.locator("dt").first).to_have_text("ForeignNIC")
    assert meanings.evaluate("details => details.open") is False


def test_a_code_leads_to_its_explanation(visit: Visit) -> None:
    """The code of the verdict opens and focuses what it means, and leaves the address alone."""
    visit.preview(RDMA_OFF)
    visit.result.locator(".card").get_by_role("button", name="NcclIbDisabled").click()
    term = visit.page.locator("#code-NcclIbDisabled")
    expect(term).to_be_focused()
    expect(visit.result.locator("dd").first).to_contain_text("turns off RDMA for NCCL")
    assert visit.page.url == visit.address
    back = visit.button("Back to the verdict").first
    back.press("Enter")
    expect(visit.button("NcclIbDisabled").first).to_be_focused()
    visit.preview(FOREIGN_NIC)
    expect(visit.result.locator("dt").first).to_have_text("ForeignNIC")
    visit.result.locator("details:has(dl)").evaluate("details => { details.open = true; }")
    back.press("Enter")
    expect(visit.headline).to_be_focused()


def test_a_nic_of_no_fabric_has_its_code(visit: Visit) -> None:
    """A verdict that is not certain has a link to its code, although its reason says the same."""
    visit.preview(FOREIGN_NIC)
    visit.result.locator(".card").get_by_role("button", name="ForeignNIC").click()
    expect(visit.page.locator("#code-ForeignNIC")).to_be_focused()


@pytest.mark.parametrize(
    ("text", "line", "selected"),
    [
        (RDMA_OFF, 13, '    - {name: NCCL_IB_DISABLE, value: "1"}'),
        (f"{CONFIG_MAP}---\n{DENIED}", 10, DENIED.splitlines()[5]),
        (f"{RDMA_OFF}---\n{RDMA_OFF}", 13, '    - {name: NCCL_IB_DISABLE, value: "1"}'),
    ],
    ids=["variable", "annotation", "of-the-first-document"],
)
def test_the_line_of_the_reason_can_be_selected(
    visit: Visit, text: str, line: int, selected: str
) -> None:
    """A button of the card leads to the line of the pod's document with what the reason names."""
    visit.preview(text)
    visit.result.locator(".card").get_by_role("button", name=f"Go to line {line}").click()
    expect(visit.text_box).to_be_focused()
    assert visit.page.evaluate("getSelection().toString()") == selected


def test_a_reason_in_several_lines_has_no_button(visit: Visit) -> None:
    """A button could lead to the wrong one; a longer name is another one."""
    visit.preview(f'{RDMA_OFF}    - {{name: NCCL_IB_DISABLE_OTHER, value: "1"}}\n')
    expect(visit.result.get_by_role("button", name="Go to line")).to_have_count(1)
    visit.preview(f"{RDMA_OFF}# NCCL_IB_DISABLE\n")
    expect(visit.headline).to_have_text("no RDMA")
    expect(visit.result.get_by_role("button", name="Go to line")).to_have_count(0)
    expect(visit.result.locator(".card")).to_contain_text(
        "The lines that the webhook would add do not help until this reason is removed."
    )


def test_a_remedy_follows_the_reason(visit: Visit) -> None:
    """A pod without RDMA shows what to do; an equipped one shows neither remedy nor code."""
    visit.preview(RDMA_OFF)
    expect(visit.result.locator(".card .remedy")).to_contain_text("remove NCCL_IB_DISABLE")
    visit.preview(EQUIPPED)
    expect(visit.headline).to_contain_text("equipped")
    expect(visit.result.locator(".card").locator(".remedy, button")).to_have_count(0)
    expect(visit.result.locator(".card")).not_to_contain_text("do not help")


def test_a_pod_can_be_shown_as_if_it_had_opted_in(visit: Visit) -> None:
    """A button checks the assumption and previews again."""
    visit.preview(NOT_OPTED_IN)
    visit.button("Preview as if it had opted in").click()
    expect(visit.headline).to_have_text("equipped for RDMA over v100-ib")
    expect(visit.page.get_by_label("As if every pod")).to_be_checked()
    expect(visit.headline).to_be_focused()  # the button is gone
    expect(visit.result.locator(".card .assumed")).to_have_text(
        'As if it had the annotation rdma.lab/enable: "true", which it lacks.'
    )
    visit.preview(EQUIPPED)
    expect(visit.result.locator(".card .who")).to_have_text("Pod lab/equipped")
    expect(visit.result.locator(".card .assumed")).to_have_count(0)


@pytest.mark.parametrize("way", ["paste", "file", "example"])
def test_another_text_is_not_taken_to_have_opted_in(visit: Visit, way: str) -> None:
    """The assumption was about the text before; someone who typed on would keep it."""
    visit.text_box.fill(EQUIPPED)
    visit.page.get_by_label("As if every pod").check()
    visit.text_box.press_sequentially("#")
    expect(visit.page.get_by_label("As if every pod")).to_be_checked()
    if way == "paste":
        visit.paste(NOT_OPTED_IN)
    elif way == "file":
        file = FilePayload(name="a.yaml", mimeType="text/yaml", buffer=NOT_OPTED_IN.encode())
        visit.page.locator("#file").set_input_files(file)
    else:
        visit.button("Faulty example").click()
    expect(visit.headline).to_have_text("no RDMA: not opted in")
    expect(visit.page.get_by_label("As if every pod")).not_to_be_checked()


def test_a_paste_scrolls_to_the_verdict(visit: Visit) -> None:
    """In a low window, the verdict would be below its edge."""
    visit.page.set_viewport_size({"width": 1280, "height": 400})
    visit.paste(EQUIPPED)
    expect(visit.headline).to_be_in_viewport(ratio=1)


def test_a_preview_leaves_the_focus_where_it_was(visit: Visit) -> None:
    """The verdict comes into view, and Tab goes on from the button that was pressed."""
    visit.page.set_viewport_size({"width": 1280, "height": 400})
    visit.preview(EQUIPPED)
    expect(visit.result.locator(".card .reason")).to_be_in_viewport(ratio=1)
    expect(visit.button("Preview")).to_be_focused()


@pytest.mark.parametrize(
    ("text", "reason", "place", "lines"),
    [
        (
            pod("typo", annotations='{rdma.lab/enabled: "true"}'),
            "'rdma.lab/enabled' in metadata.annotations has no effect",
            "metadata.annotations,",
            'metadata:\n  annotations:\n    rdma.lab/enable: "true"',
        ),
        (
            NOT_OPTED_IN.replace("annotations: {}", "annotation: {rdma.lab/enable: x}"),
            "metadata.annotation is not a field",
            "metadata.annotations,",
            'metadata:\n  annotations:\n    rdma.lab/enable: "true"',
        ),
        (
            JOB_MISPLACED,
            "rdma.lab/enable is in metadata.annotations of Job trainer, where it reaches no pod",
            "spec.template.metadata.annotations,",
            (
                "spec:\n  template:\n    metadata:\n      annotations:\n"
                '        rdma.lab/enable: "true"'
            ),
        ),
        (
            REPLICA_SET,
            'The pod has no annotation rdma.lab/enable: "true"',
            "metadata.annotations in the pod template of Deployment web,",
            'metadata:\n  annotations:\n    rdma.lab/enable: "true"',
        ),
    ],
    ids=["misspelled", "unknown-field", "misplaced", "template-elsewhere"],
)
def test_a_pod_that_has_not_opted_in_shows_why_and_where(
    visit: Visit, text: str, reason: str, place: str, lines: str
) -> None:
    """The card names the attempt that failed, the right place, and the lines to copy."""
    visit.preview(text)
    card = visit.result.locator(".card")
    expect(card.locator(".reason")).to_contain_text(reason)
    expect(card.locator(".remedy")).to_contain_text(f"Add the annotation to {place}")
    expect(card.locator("pre")).to_have_text(lines, use_inner_text=True)
    expect(visit.section("Warnings")).to_have_count(0)


def test_an_operator_that_writes_the_metadata_has_no_place_for_the_annotation(
    visit: Visit,
) -> None:
    """Then the card says what to do instead, and has no lines to copy."""
    visit.preview(METADATA_OF_OPERATOR)
    expect(visit.headline).to_have_text("no RDMA: not opted in")
    expect(visit.result.locator(".card .remedy")).to_contain_text("KServe copies no annotations")
    expect(visit.result.locator(".card pre")).to_have_count(0)


def test_a_verdict_names_its_fabric(visit: Visit) -> None:
    """Below the reason: the fabric, and why the pod has this one."""
    visit.preview(EQUIPPED)
    expect(visit.result.locator(".card .soft").first).to_have_text(
        "Fabric v100-ib, because of nvidia.com/v100 in container trainer"
    )


def test_no_line_breaks_inside_a_name(visit: Visit) -> None:
    """A name such as rdma.lab/enable stays on a line, but one too long for a phone may break."""
    visit.preview(EQUIPPED)
    expect(visit.result.locator(".card h2 .name")).to_have_text(["v100-ib"])
    white_space = "name => getComputedStyle(name).whiteSpace"
    assert visit.result.locator(".card .name").first.evaluate(white_space) == "nowrap"
    visit.preview(EQUIPPED.replace("nvidia.com/v100", f"nvidia.com/{'x' * 30}"))
    expect(visit.headline).to_have_text("no RDMA")
    assert f"nvidia.com/{'x' * 30}" not in _texts(visit.result.locator(".card"), ".name")


def test_warnings_and_mistakes(visit: Visit) -> None:
    """Misspelled fields and warnings of mutations are listed with their codes."""
    visit.preview(MISSPELLED)
    warnings = visit.section("Warnings").get_by_role("listitem")
    expect(warnings).to_have_text(
        ["spec.containers[0].resource is not a field of a container (did you mean resources?)"]
    )
    visit.preview(FOREIGN_DEVICE)
    expect(warnings).to_have_count(1)
    expect(warnings).to_contain_text("env, container trainer: ")
    expect(warnings).to_contain_text("NCCL_IB_HCA")


def test_no_warning_repeats_the_verdict(visit: Visit) -> None:
    """The mutation env warns of the variable that the verdict names already."""
    visit.preview(RDMA_OFF)
    expect(visit.headline).to_have_text("no RDMA")
    expect(visit.section("Warnings")).to_have_count(0)


def test_what_is_between_backquotes_is_code(visit: Visit) -> None:
    """As the command line quotes what people may type or read in a file."""
    visit.preview(EQUIPPED)
    visit.result.get_by_text("Nothing to do or skipped").click()
    skipped = visit.result.get_by_role("listitem").filter(has_text="placement")
    expect(skipped.locator("code").last).to_have_text("pin: never")
    expect(skipped).not_to_contain_text("`")


def test_a_meaning_is_not_repeated(visit: Visit) -> None:
    """Two mutations give NcclIbDisabled, with the same meaning."""
    visit.preview(RDMA_OFF)
    visit.result.get_by_text("What the codes mean").click()
    meaning = visit.result.locator("dt", has_text="NcclIbDisabled").locator("+ dd")
    expect(meaning).to_have_text(re.compile("^The container's(?!.*The container's)"))


def test_a_verdict_that_says_all_has_no_link_to_its_code(visit: Visit) -> None:
    """The meaning of NotOptedIn has no word that the reason lacks."""
    visit.preview(NOT_OPTED_IN)
    expect(visit.headline).to_contain_text("not opted in")
    expect(visit.button("NotOptedIn")).to_have_count(0)
    expect(visit.result.get_by_text("What the codes mean")).to_have_count(0)


def test_lines_before_and_after(visit: Visit) -> None:
    """Each line has its number on its side, and the name of what changed it."""
    visit.preview(f"{CONFIG_MAP}---\n{EQUIPPED}")
    rows = visit.section("Before and after").get_by_role("row")
    changed = rows.filter(has=visit.page.locator("del"))
    expect(changed).to_have_count(1)
    expect(changed.locator(".number")).to_have_text(["15", "15"])
    expect(changed.locator("del")).to_have_text(
        "    resources: {limits: {nvidia.com/v100: 8, memory: 64Gi}}", use_inner_text=True
    )
    expect(changed.locator("ins")).to_contain_text('rdma/rdma_v100: "1"')
    assert _texts(changed, ".chip > button") == ["rdma-resources", "memory-limit"]
    added = rows.filter(has=visit.page.locator("ins"), has_not=visit.page.locator("del"))
    expect(added.first.locator(".number")).to_have_text(["16"])
    expect(added.first.locator("ins")).to_have_text("securityContext:")
    assert _texts(added, ".chip > button") == ["ipc-lock", "env", "hcoll"]


def test_a_line_that_moves_has_the_name_of_its_mutation(visit: Visit) -> None:
    """A line that is removed has the name on its own side, where no other line is."""
    visit.button("Try an example").click()
    removed = visit.section("Before and after").locator(".row.removed")
    expect(removed.locator("del")).to_have_text("memory: 128Gi")
    assert _texts(removed, ".before .chip > button") == ["memory-limit"]


#: Scroll, and wait until the browser notices that the pointer is over another element.
_SCROLL_BELOW_POINTER = """() => new Promise((resolve) => {
  addEventListener("mouseover", resolve, { once: true });
  scrollBy(0, 200);
})"""


def test_a_chip_explains_a_change(visit: Visit) -> None:
    """The name of a mutation shows on focus and on hover what it did, until Escape.

    Escape holds when the page scrolls below a pointer at rest.
    """
    visit.preview(EQUIPPED)
    chip = visit.button("rdma-resources").first
    expect(chip).to_have_accessible_description("requested rdma/rdma_v100: 1")
    tip = visit.page.locator(".tip", has_text="requested rdma/rdma_v100: 1").first
    expect(tip).to_be_hidden()
    chip.focus()
    expect(tip).to_be_visible()
    visit.page.keyboard.press("Escape")
    visit.page.evaluate(_SCROLL_BELOW_POINTER)
    expect(tip).to_be_hidden()
    visit.text_box.focus()
    chip.hover()
    expect(tip).to_be_visible()


def test_unchanged_lines_are_hidden_until_asked_for(visit: Visit) -> None:
    """A button shows the lines between the changes, with their numbers on both sides."""
    visit.preview(EQUIPPED + "# end\n" * 8)
    section = visit.section("Before and after")
    section.get_by_role("button", name="… 5 unchanged lines").click()
    last = section.get_by_role("row").last
    expect(last.locator("code")).to_have_text(["# end", "# end"])
    before, after = (int(number) for number in _texts(last, ".number"))
    assert before == 19
    assert after > before


def test_outcomes(visit: Visit) -> None:
    """What was applied has a line with its reason; what was skipped is folded up."""
    visit.preview(EQUIPPED)
    section = visit.section("What the webhook would do")
    expect(section.get_by_role("listitem").first).to_have_text(
        "would applyipc-lockadded capability IPC_LOCK, so that memory can be registered · trainer"
    )
    skipped = section.get_by_text("the fabric has no network to attach")
    expect(skipped).to_be_hidden()
    section.get_by_text("Nothing to do or skipped").click()
    expect(skipped).to_be_visible()


def test_several_pods(visit: Visit) -> None:
    """A summary, a list with each verdict, and the chosen pod with its own changes only."""
    visit.preview(SEVERAL)
    expect(visit.result.locator("h2").first).to_have_text("1 of 4 pods equipped for RDMA")
    labels = visit.result.locator(".pods label")
    expect(labels).to_have_text(
        [
            "✔Pod lab/equipped · line 1equipped for RDMA",
            "○Pod lab/silent · line 13no RDMA: not opted in",
            "✘Pod lab/tcp · line 25no RDMA",
            "✘Pod lab/denied · line 39denied",
        ]
    )
    expect(visit.headline).to_have_text("equipped for RDMA over v100-ib")
    labels.nth(2).click()
    expect(visit.headline).to_have_text("no RDMA")
    section = visit.section("Before and after")
    expect(section.get_by_role("button", name="other lines")).to_be_visible()
    expect(section.get_by_role("button", name="ipc-lock")).to_have_count(1)
    section.get_by_role("button", name="other lines").click()
    expect(section.get_by_role("row").first.locator(".number")).to_have_text(["1", ""])
    expect(visit.page.locator("#announcement")).to_have_text("Pod lab/tcp: no RDMA")
    expect(visit.section("Notes")).to_contain_text("ConfigMap settings")


def test_long_lines_and_gaps_are_shown_in_parts(visit: Visit) -> None:
    """At most 2,000 unchanged lines appear at once, and 2,000 characters of a line."""
    pod = EQUIPPED.replace("spec:\n", "spec:\n" + "  #\n" * 5000)
    visit.paste(pod.replace("containers:", f"containers: # {'x' * 3000}"))
    section = visit.section("Before and after")
    expect(section).to_contain_text("… 1,016 more characters")
    section.get_by_role("button", name="… 5,007 unchanged lines").click()
    expect(section.get_by_role("button", name="… 3,007 unchanged lines")).to_be_visible()


def test_more_rows_on_request(visit: Visit) -> None:
    """If a pod changes in more rows than are shown at once, a button appends the others."""
    visit.paste(many_changes(99))
    section = visit.section("Before and after")
    expect(section.get_by_role("row")).to_have_count(2000)
    section.get_by_role("button", name="Show more").click()
    expect(section.get_by_role("button", name="Show more")).to_have_count(0)
    assert section.get_by_role("row").count() > 2000
