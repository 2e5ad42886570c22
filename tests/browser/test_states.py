"""The states of the page before, without and instead of a verdict."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, FilePayload, Route, expect

from tests.browser.inputs import CONFIG_MAP, EQUIPPED, FABRICS, INVALID, LIMIT_RANGE, NOT_OPTED_IN
from tests.browser.page_server import serve_page
from tests.browser.visit import Visit

pytestmark = pytest.mark.browser
_PAUSE = 400  #: milliseconds after which a text is previewed


def test_an_empty_page_says_what_to_do(visit: Visit) -> None:
    """Without a text, two lines and an example; nothing is requested."""
    expect(visit.result).to_contain_text("Paste a pod")
    expect(visit.result).to_contain_text("The verdict appears here")
    assert visit.requests == ["", "web_page.css", "page.css", "page.js", "rows.js"]
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
    visit.page.clock.install()
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
    visit.preview(INVALID)
    expect(visit.result).to_have_attribute("aria-busy", "true")
    with visit.page.expect_event("requestfailed"):
        visit.preview(EQUIPPED)
    expect(visit.result).to_have_attribute("aria-busy", "true")
    expect(visit.headline).to_have_count(0)
    pending[-1].continue_()
    expect(visit.headline).to_have_text("equipped for RDMA over v100-ib")
    expect(visit.result).to_have_attribute("aria-busy", "false")


def test_a_mistake_in_yaml_has_its_place(visit: Visit) -> None:
    """The server's sentence, and a button that selects the line."""
    visit.preview(INVALID)
    expect(visit.headline).to_have_text("No preview")
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
    """More than 8 MiB of UTF-8 are refused before they are sent, also from a file."""
    first = FilePayload(name="a.yaml", mimeType="text/yaml", buffer="ä".encode() * (2 << 20))
    second = FilePayload(name="b.yaml", mimeType="text/yaml", buffer=b"x" * ((4 << 20) + 1))
    visit.page.locator("#file").set_input_files([first, second])
    expect(visit.result).to_contain_text("larger than 8 MiB")
    assert visit.requests == ["", "web_page.css", "page.css", "page.js", "rows.js"]


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


def test_example_fabrics_are_not_taken_for_real_ones(browser: Browser) -> None:
    """A server without fabrics says with each verdict that its fabrics are an example."""
    with serve_page() as server, Visit.to(browser, server.address) as visit:
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
    expect(visit.page.locator("#amounts")).to_contain_text("The nodes are unknown: this server")
    assert visit.requests[-1] == "fabrics?output=text"


def test_the_fabrics_of_a_server_with_nodes(visit: Visit) -> None:
    """The server's table is shown as it is; it is made up here, where there are no nodes."""
    table = "fabric   nodes\nv100-ib      4\n"
    visit.page.route("**/fabrics?*", lambda route: route.fulfill(body=table))
    visit.page.get_by_text("Fabrics of this server").click()
    expect(visit.page.locator("#amounts")).to_have_text(table, use_inner_text=True)


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
    expect(visit.result).to_contain_text("lacks the label rdma.lab/enable")
    command = "kubectl label namespace lab rdma.lab/enable=true"
    expect(visit.result.locator(".card pre")).to_have_text(command)
    expect(visit.result.locator(".card .remedy")).to_have_count(1)
    warning = visit.section("Warnings").get_by_role("listitem")
    expect(warning).to_contain_text(
        "if the webhook were called, the pod would be equipped for RDMA, assuming that the image"
    )


def test_a_missing_annotation_and_a_missing_label_are_named_at_once(visit: Visit) -> None:
    """Otherwise a user would add the annotation, and learn of the label only then."""
    visit.page.get_by_label("The namespace has the label").uncheck()
    visit.preview(NOT_OPTED_IN)
    expect(visit.result.locator(".card .reason")).to_have_text(
        'the pod has no annotation rdma.lab/enable: "true"; and namespace lab lacks the label '
        "rdma.lab/enable=true"
    )
    expect(visit.result.locator(".card .remedy")).to_have_count(2)
    expect(visit.result.locator(".card pre")).to_have_count(2)


def test_an_example_that_lacks_something(visit: Visit) -> None:
    """Who has no manifest at hand can see what a failure looks like."""
    visit.button("one that lacks something").click()
    expect(visit.headline).to_have_text("no RDMA: not opted in")
    expect(visit.result.locator(".card .reason")).to_contain_text("where it reaches no pod")
