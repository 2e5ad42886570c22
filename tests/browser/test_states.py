"""The states of the page before, without and instead of a verdict."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, FilePayload, Route, expect

from tests.browser.inputs import (
    CONFIG_MAP,
    EQUIPPED,
    FABRICS,
    INVALID,
    LIMIT_RANGE,
    NOT_OPTED_IN,
    RDMA_OFF,
)
from tests.browser.page_server import serve_page
from tests.browser.visit import Visit
from webhook.config import EXAMPLE

pytestmark = pytest.mark.browser
_PAUSE = 400  #: milliseconds after which a text is previewed
#: What an empty page requests.
_FILES = {
    "",
    "web_page.css",
    "page.css",
    "page.js",
    "input.js",
    "outcomes.js",
    "rows.js",
    "fabrics.js",
}


def test_an_empty_page_says_what_to_do(visit: Visit) -> None:
    """Without a text, two lines and an example; nothing is requested."""
    expect(visit.result).to_contain_text("Paste a pod")
    expect(visit.result).to_contain_text("The verdict appears here")
    assert set(visit.requests) == _FILES
    visit.button("See an example").click()
    expect(visit.headline).to_have_text("equipped for RDMA over v100-ib")


def test_a_text_that_is_deleted_empties_the_page(visit: Visit) -> None:
    """The result never belongs to another text than the one in the box."""
    visit.button("Try an example").click()
    expect(visit.headline).to_be_visible()
    visit.preview("")
    expect(visit.result).to_contain_text("Paste a pod")
    expect(visit.headline).to_have_count(0)


def test_a_text_is_previewed_once_after_a_pause(visit: Visit) -> None:
    """While someone types, nothing is sent; 400 ms later, the text is."""
    visit.page.clock.install(time=0)
    visit.page.clock.pause_at(1)  # second: else, time passes while a slow machine types
    visit.text_box.press_sequentially("kind: Pod")
    visit.page.clock.run_for(_PAUSE - 1)
    sent = [path for path in visit.requests if path.startswith("preview")]
    assert sent == []
    visit.page.clock.run_for(1)
    expect(visit.headline).to_be_visible()
    sent = [path for path in visit.requests if path.startswith("preview")]
    assert sent == [
        "preview?namespace=default&namespace-label=rdma.lab%2Fenable%3Dtrue&enable=false"
    ]


def test_a_later_text_replaces_an_earlier_request(visit: Visit) -> None:
    """The result is busy until the answer to the last text; an earlier request is abandoned."""
    pending: list[Route] = []

    def hold(route: Route) -> None:
        pending.append(route)

    visit.page.route("**/preview?*", hold)
    visit.request(INVALID)
    expect(visit.result).to_have_attribute("aria-busy", "true")
    with visit.page.expect_event("requestfailed"):
        visit.request(EQUIPPED)
    expect(visit.result).to_have_attribute("aria-busy", "true")
    expect(visit.headline).to_have_count(0)
    pending[-1].continue_()
    expect(visit.headline).to_have_text("equipped for RDMA over v100-ib")
    expect(visit.result).to_have_attribute("aria-busy", "false")


def test_a_mistake_in_yaml_has_its_place(visit: Visit) -> None:
    """The server's sentence, and a button that selects the line."""
    visit.preview(INVALID)
    expect(visit.headline).to_have_text("No preview")
    expect(visit.result.locator(".card .sign")).to_have_text("✘")
    expect(visit.result).to_contain_text("document 1, line 6, column 3: not YAML")
    visit.button("Go to line 6").click()
    expect(visit.text_box).to_be_focused()
    assert visit.page.evaluate("getSelection().toString()") == "- y"


def test_a_mistake_in_a_limit_range_has_its_place(visit: Visit) -> None:
    """Lines after those of the text are counted in the box of the LimitRange."""
    visit.page.get_by_label("LimitRange").fill("kind: LimitRange\nspec: [\n")
    visit.preview(EQUIPPED.rstrip())
    visit.button("Go to the LimitRange").click()
    expect(visit.page.get_by_label("LimitRange")).to_be_focused()


def test_an_answer_without_pods(visit: Visit) -> None:
    """A text without any pod gets a sentence and the notes of the server."""
    visit.preview(CONFIG_MAP)
    expect(visit.headline).to_have_text("no pods")
    expect(visit.section("Notes")).to_contain_text("ConfigMap settings: no pod template")


def test_a_text_that_is_too_large_is_not_sent(visit: Visit) -> None:
    """More than 8 MiB of UTF-8 are refused before they are sent, also from a file.

    The sentence stays: the preview that would follow an input of text does not replace it.
    """
    first = FilePayload(name="a.yaml", mimeType="text/yaml", buffer="ä".encode() * (2 << 20))
    second = FilePayload(name="b.yaml", mimeType="text/yaml", buffer=b"x" * ((4 << 20) + 1))
    visit.page.locator("#file").set_input_files([first, second])
    expect(visit.result).to_contain_text("larger than 8 MiB")
    visit.page.evaluate("() => new Promise((resolve) => setTimeout(resolve, 2000))")
    expect(visit.result).to_contain_text("larger than 8 MiB")
    assert set(visit.requests) == _FILES


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (413, "the body is larger than 8388608 bytes"),
        (503, "the webhook has no usable configuration; see /readyz on its health port"),
    ],
)
def test_a_refusal_is_the_servers_sentence(visit: Visit, status: int, sentence: str) -> None:
    """Whatever a server refuses, its sentence is shown; this server would not refuse these."""
    visit.page.route(
        "**/preview?*",
        lambda route: route.fulfill(status=status, content_type="text/plain", body=f"{sentence}\n"),
    )
    visit.preview(EQUIPPED)
    expect(visit.result.locator(".reason")).to_have_text(sentence)


def test_an_answer_of_another_program_is_not_taken_for_the_servers(visit: Visit) -> None:
    """A proxy's HTML is not shown; a sentence says what to check."""
    visit.page.route(
        "**/preview?*", lambda route: route.fulfill(content_type="text/html", body="<b>log in</b>")
    )
    visit.preview(EQUIPPED)
    expect(visit.result).to_contain_text("The answer is not from rdma-webhook")


def test_a_server_that_is_gone(browser: Browser) -> None:
    """If nothing answers, a sentence names the cause, and a button tries again."""
    with serve_page("-c", FABRICS) as server, Visit.to(browser, server.address) as visit:
        server.stop()
        visit.preview(EQUIPPED)
        expect(visit.result).to_contain_text("The server does not answer")
        requests = len(visit.requests)
        with visit.page.expect_request("**/preview?*"):
            visit.button("Try again").click()
        assert len(visit.requests) == requests + 1


@pytest.mark.parametrize("options", [(), ("-c", EXAMPLE)], ids=["by-default", "given"])
def test_example_fabrics_are_not_taken_for_real_ones(
    browser: Browser, options: tuple[object, ...]
) -> None:
    """A server with an example's fabrics marks each verdict, also if they were given."""
    with serve_page(*options) as server, Visit.to(browser, server.address) as visit:
        visit.preview(EQUIPPED)
        problem = visit.result.locator(".problem")
        expect(problem).to_contain_text("These are example fabrics (v100-ib, a100-ib), not yours")
        expect(problem).to_contain_text("A fabric is an RDMA network with its nodes")
        expect(problem).to_contain_text("rdma-webhook preview --page -c fabrics.yaml")
        for resource in ("nvidia.com/gpu", "nvidia.com/h999"):
            visit.preview(EQUIPPED.replace("nvidia.com/v100", resource))
            expect(visit.result.locator(".card .reason")).to_contain_text(
                f"requests {resource}, which none of these example fabrics lists"
            )


def test_real_fabrics_have_no_such_warning(visit: Visit) -> None:
    """A server with fabrics shows no warning about an example."""
    visit.preview(EQUIPPED)
    expect(visit.headline).to_be_visible()
    expect(visit.page.get_by_text("example fabrics")).to_have_count(0)


def test_the_fabrics_of_a_server_without_nodes(visit: Visit) -> None:
    """Fabrics are requested when they are opened; without nodes, they have resources alone."""
    visit.page.get_by_text("Fabrics of this server").click()
    amounts = visit.page.locator("#amounts")
    expect(amounts.locator("th")).to_have_text(
        ["fabric", "nodes", "GPUs", "RDMA resources", "v100-ib", "a100-ib"]
    )
    v100 = ["unknown", "nvidia.com/v100", "rdma/rdma_v100"]
    expect(amounts.locator("tbody tr").first.locator("td")).to_have_text(v100)
    expect(amounts.locator("p")).to_have_text("The nodes are unknown: this server has read none.")
    assert visit.requests[-1] == "fabrics?output=text"


def test_the_fabrics_of_a_server_with_nodes(visit: Visit) -> None:
    """Wrapped cells are joined, and findings follow; made up here, where there are no nodes."""
    table = "fabric   nodes  GPUs\nv100-ib  4      a,\n                b\n"
    text = f"{table}! v100-ib: a node is not ready\n"
    visit.page.route("**/fabrics?*", lambda route: route.fulfill(body=text))
    visit.page.get_by_text("Fabrics of this server").click()
    expect(visit.page.locator("#amounts tbody tr")).to_have_count(1)
    expect(visit.page.locator("#amounts td")).to_have_text(["4", "a, b"])
    expect(visit.page.locator("#amounts p")).to_have_text("! v100-ib: a node is not ready")


@pytest.mark.parametrize("text", ["fabric v100-ib\n  nodes 4\n", "fabric   nodes\nv100-ib: 4\n"])
def test_fabrics_without_columns_stay_as_they_are(visit: Visit, text: str) -> None:
    """A narrow table is paragraphs, which are shown as the server wrote them."""
    visit.page.route("**/fabrics?*", lambda route: route.fulfill(body=text))
    visit.page.get_by_text("Fabrics of this server").click()
    expect(visit.page.locator("#amounts pre")).to_have_text(text, use_inner_text=True)


def test_the_assumptions_reach_the_server(visit: Visit) -> None:
    """Namespace, labels, opt-in and LimitRange are sent, and the verdict depends on them."""
    visit.page.get_by_label("Namespace", exact=False).first.fill("other")
    visit.page.get_by_label("Pod Security").select_option("restricted")
    visit.page.get_by_label("LimitRange").fill(LIMIT_RANGE)
    visit.page.get_by_label("As if every pod").check()
    visit.preview(EQUIPPED)
    expect(visit.headline).to_have_text("RDMA not certain over v100-ib")
    expect(visit.result).to_contain_text("Pod Security restricted of the namespace forbids it")
    expect(visit.section("Notes")).to_contain_text("LimitRange lab/limits: taken into account")
    assert visit.requests[-1] == (
        "preview?namespace=other&namespace-label=rdma.lab%2Fenable%3Dtrue"
        "&namespace-label=pod-security.kubernetes.io%2Fenforce%3Drestricted&enable=true"
    )


def test_a_namespace_without_the_label(visit: Visit) -> None:
    """Without the label, the webhook would not be called; a warning says what it would do."""
    visit.page.get_by_label("The namespace has the label").uncheck()
    visit.preview(EQUIPPED)
    expect(visit.headline).to_have_text("no RDMA")
    card = visit.result.locator(".card")
    expect(card).to_contain_text("namespace lab is assumed to lack the label rdma.lab/enable")
    command = "kubectl label namespace lab rdma.lab/enable=true"
    expect(card.locator("pre")).to_have_text(command)
    expect(card.locator(".remedy")).to_have_count(1)
    expect(card.locator(".remedy")).to_contain_text("or ask your cluster administrator to run:")
    expect(card).to_contain_text("Pods that exist already must be created again.")
    expect(card).to_contain_text(
        "If the webhook were called, the pod would be equipped for RDMA, assuming that the image"
    )
    expect(visit.section("Warnings")).to_have_count(0)
    expect(visit.result.get_by_role("button", name="Go to line")).to_have_count(0)


def test_changes_that_depend_on_the_label_are_not_promised(visit: Visit) -> None:
    """Without a call, lines and outcomes have a condition in their heading, and no color."""
    visit.page.get_by_label("The namespace has the label").uncheck()
    visit.preview(EQUIPPED)
    headings = visit.result.locator(".muted h3")
    expect(headings).to_have_text(
        [
            "If the namespace had the label: before and after",
            "If the namespace had the label: what the webhook would do",
        ]
    )
    color = "node => getComputedStyle(node).color"
    applied = visit.result.locator(".muted .applied").first
    assert applied.evaluate(color) == visit.result.locator(".soft").first.evaluate(color)
    visit.page.get_by_label("The namespace has the label").check()
    expect(visit.headline).to_contain_text("equipped for RDMA")
    expect(headings).to_have_count(0)


def test_a_pod_that_would_fail_if_called_keeps_its_warning(visit: Visit) -> None:
    """If somebody adds the label, the next obstacle follows."""
    visit.page.get_by_label("The namespace has the label").uncheck()
    visit.preview(RDMA_OFF)
    expect(visit.section("Warnings").get_by_role("listitem").first).to_contain_text(
        "If the webhook were called, the pod would have no RDMA: container trainer sets"
    )


def test_a_label_in_the_text_is_no_assumption(visit: Visit) -> None:
    """If the text has the namespace, its labels are known."""
    visit.page.get_by_label("The namespace has the label").uncheck()
    visit.preview(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: lab}}\n---\n{EQUIPPED}")
    expect(visit.result.locator(".card .reason")).to_contain_text("namespace lab lacks the label")


def test_the_verdict_names_its_assumptions(visit: Visit) -> None:
    """Each thing that nobody checked is listed, until the user sets it."""
    visit.preview(EQUIPPED)
    assumed = visit.result.locator(".card .assumptions li")
    label = (
        "Namespace lab has the label rdma.lab/enable=true. "
        "To check, run kubectl get namespace lab -L rdma.lab/enable"
    )
    security = "The namespace does not enforce Pod Security."
    limits = "The namespace has no LimitRange or quota."
    nodes = "The nodes have what the fabrics say, and room for the pod."
    expect(assumed).to_have_text([label, security, limits, nodes])
    visit.page.get_by_label("Pod Security").select_option("baseline")
    visit.page.get_by_label("LimitRange").fill(LIMIT_RANGE)
    expect(assumed).to_have_text([label, nodes])
    visit.page.get_by_label("LimitRange").fill("")
    visit.preview(f"{EQUIPPED}---\n{LIMIT_RANGE}")
    expect(assumed).to_have_text([label, nodes])


def test_the_box_of_the_namespace_follows_the_pod(visit: Visit) -> None:
    """It shows the pod's namespace until somebody types one; requests keep the default."""
    box = visit.page.get_by_label("Namespace", exact=False).first
    visit.preview(EQUIPPED)
    expect(box).to_have_value("lab")
    visit.preview(EQUIPPED.replace("namespace: lab", ""))
    expect(visit.result.locator(".card .who")).to_have_text("Pod default/equipped")
    expect(box).to_have_value("default")
    box.fill("mine")
    expect(visit.result.locator(".card .who")).to_have_text("Pod mine/equipped")
    visit.preview(EQUIPPED)
    expect(visit.result.locator(".card .who")).to_have_text("Pod lab/equipped")
    expect(box).to_have_value("mine")


def test_a_missing_annotation_and_a_missing_label_are_named_at_once(visit: Visit) -> None:
    """Otherwise a user would add the annotation, and learn of the label only then."""
    visit.page.get_by_label("The namespace has the label").uncheck()
    visit.preview(NOT_OPTED_IN)
    expect(visit.result.locator(".card .reason")).to_have_text(
        'The pod has no annotation rdma.lab/enable: "true"; and namespace lab is assumed to lack '
        "the label rdma.lab/enable=true"
    )
    expect(visit.result.locator(".card .remedy")).to_have_count(2)
    expect(visit.result.locator(".card pre")).to_have_count(2)


def test_an_example_that_lacks_something(visit: Visit) -> None:
    """Who has no manifest at hand can see what a failure looks like."""
    visit.button("one that lacks something").click()
    expect(visit.headline).to_have_text("no RDMA: not opted in")
    expect(visit.result.locator(".card .reason")).to_contain_text("where it reaches no pod")
