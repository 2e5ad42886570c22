from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NoReturn, cast

import pytest

from tests.fabrics_file import single_fabric
from tests.server_state import learn, use
from tests.unit.serve.client import Answer, HeldWorker, Lines, request
from webhook.config.load import FabricsText, parse_fabrics
from webhook.model.facts import Facts
from webhook.serve import worker_supervisor
from webhook.serve.http import preview
from webhook.serve.http.preview import (
    BYTES,
    FIRST_BYTES,
    MAX_PODS,
    PENDING,
    PENDING_PER_ADDRESS,
    PreviewApp,
)
from webhook.serve.http.query import MAX_QUERY_LENGTH
from webhook.serve.metrics import Metrics
from webhook.serve.state import State
from webhook.serve.worker_supervisor import WorkerRequest, WorkerSupervisor

FABRICS = single_fabric("ib", "nvidia.com/gpu", "rdma/hca")
POD = b"""\
apiVersion: v1
kind: Pod
metadata:
  name: trainer  # a comment
  annotations: {rdma.lab/enable: "true"}
spec:
  containers:
  - name: trainer
    image: example.com/trainer
    resources: {limits: {nvidia.com/gpu: 1}}
"""
NODE = {
    "kind": "Node",
    "metadata": {"name": "secret-node", "labels": {}},
    "status": {"allocatable": {"nvidia.com/gpu": "8"}},
}
NAMESPACE = {
    "kind": "Namespace",
    "metadata": {"name": "lab", "labels": {"rdma.lab/enable": "true", "team": "secret-team"}},
}
QUOTA = {
    "kind": "ResourceQuota",
    "metadata": {"name": "secret-quota", "namespace": "lab"},
    "spec": {"hard": {"limits.memory": "1Ti"}},
}


class Server:
    """The application with its state, metrics and log; all share a worker and its event loop."""

    runner: asyncio.Runner
    worker: WorkerSupervisor

    def __init__(self, *, configured: bool = True, example: bool = False) -> None:
        self.lines = Lines()
        self.metrics = Metrics()
        self.state = State()
        if configured:
            facts = Facts.from_objects([NODE, NAMESPACE, QUOTA])
            configuration = parse_fabrics(FABRICS, "fabrics").compiled
            learn(self.state, facts)
            use(self.state, configuration, FabricsText(FABRICS))
        self.app = PreviewApp(
            self.state, self.metrics, self.lines.log, self.worker, example=example
        )

    def post(self, body: bytes = POD, query: str = "", accept: str = "") -> Answer:
        """Post a body to /preview."""
        headers = [(b"accept", accept.encode())] if accept else []
        return self.call("POST", "/preview", body, headers=headers, query=query)

    def call(self, method: str, path: str, *chunks: bytes | None, **options: Any) -> Answer:
        """Send a request."""
        return self.runner.run(request(self.app, method, path, *chunks, **options))


@pytest.fixture(scope="module", autouse=True)
def _work() -> Iterator[None]:
    """Start one worker for all tests of this module."""
    with asyncio.Runner() as Server.runner, pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_supervisor, "NICEST", 1)  # so that a busy machine does not starve it
        Server.worker = WorkerSupervisor(Metrics(), Lines().log, seconds=120.0)
        yield
        Server.runner.run(Server.worker.stop())


def _decision(answer: Answer) -> Any:
    assert answer.status == 200, answer.text
    (decision,) = json.loads(answer.body)["decisions"]
    return decision


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/fabrics"), ("GET", "/preview"), ("POST", "/preview")]
)
def test_a_query_longer_than_any_users_is_refused(method: str, path: str) -> None:
    """FastAPI parses it before a quota counts the request, so its length is limited."""
    server = Server()
    query = "output=json&".ljust(MAX_QUERY_LENGTH, "&")

    assert server.call(method, path, POD, query=query).status != 414
    answer = server.call(method, path, POD, query=f"{query}&")
    assert (answer.status, answer.text) == (414, "the query is longer than 4096 bytes\n")
    labels = {"endpoint": "preview", "code": "414"}
    assert server.metrics.registry.get_sample_value("rdma_webhook_requests_total", labels) == 1


def test_cookies_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """FastAPI would parse a long header before a quota counts the request."""

    def parse(_text: str) -> NoReturn:
        pytest.fail("cookies were parsed")

    monkeypatch.setattr("starlette.requests.cookie_parser", parse)
    headers = [(b"cookie", b"a=b"), (b"accept", b"application/yaml")]
    answer = Server().call("POST", "/preview", POD, headers=headers)

    assert (answer.status, answer.headers["content-type"]) == (200, "application/yaml")


async def _abandoned_preview() -> tuple[str, bool]:
    """Let a client leave during its turn, and the worker answer a moment later.

    Return how the request ended, and whether the turn is over.
    """
    server, worker = Server(), HeldWorker()
    app = PreviewApp(server.state, server.metrics, server.lines.log, cast("Any", worker))
    current = server.state.snapshot.current_configuration
    assert current is not None
    worker_request = WorkerRequest("preview", {}, POD, noun="preview", advice="")
    asking = asyncio.create_task(app._compute(worker_request, current, "10.0.0.1"))
    await worker.began.wait()
    asking.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    worker.may_answer.set()
    await asyncio.wait([asking])
    return worker.end, app._queue.is_free


def test_a_quick_preview_ends_although_its_client_has_left() -> None:
    """Otherwise the worker ends, and the next client waits until another one is ready."""
    assert Server.runner.run(_abandoned_preview()) == ("answered", True)


def test_a_slow_preview_ends_with_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take ten seconds, and nobody needs it any more."""
    monkeypatch.setattr(preview, "ABANDONED_SECONDS", 0.0)
    assert Server.runner.run(_abandoned_preview()) == ("cancelled", True)


def test_json_is_the_documented_form() -> None:
    """Without an Accept header, the answer has the JSON form."""
    server = Server()
    answer = server.post()
    decision = _decision(answer)

    assert answer.headers["content-type"] == "application/json"
    assert (decision["name"], decision["allowed"], decision["fabric"]) == ("trainer", True, "ib")
    assert decision["patch"]
    registry = server.metrics.registry
    labels = {"endpoint": "preview", "code": "200"}
    assert registry.get_sample_value("rdma_webhook_requests_total", labels) == 1


def test_yaml_is_the_patched_document() -> None:
    """The document is ready for `kubectl apply`, with its comments."""
    answer = Server().post(accept="application/yaml")

    assert answer.headers["content-type"].startswith("application/yaml")
    assert "# a comment" in answer.text
    assert "rdma/hca" in answer.text


def test_yaml_has_a_comment_on_a_denial() -> None:
    """A denied pod is returned unchanged, with a comment about the denial."""
    answer = Server().post(POD.replace(b'"true"', b'"yes"'), "output=yaml")

    assert answer.text.startswith("# denied: Pod default/trainer")


def test_text_is_for_reading() -> None:
    """The report is the same as on the command line."""
    answer = Server().post(accept="text/plain")

    assert answer.headers["content-type"].startswith("text/plain")
    assert "trainer" in answer.text
    assert "ipc-lock" in answer.text


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        (POD, "add ?namespace-label=rdma.lab/enable=true"),
        (POD.replace(b'"true"', b'"false"', 1), "as if it had opted in, use ?enable=true"),
    ],
)
def test_text_advises_query_parameters(body: bytes, advice: str) -> None:
    """The advice names query parameters, not options of the command."""
    text = " ".join(Server().post(body, accept="text/plain").text.split())

    assert advice in text
    assert "--" not in text


def test_output_wins_over_accept() -> None:
    """A user of a browser's address bar cannot set an Accept header."""
    answer = Server().post(query="output=text", accept="application/json")

    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("query", "called"),
    [
        ("", None),
        ("namespace-label=rdma.lab/enable=true", True),
        ("namespace-label=a=b&namespace-label=rdma.lab/enable=false", False),
        ("namespace=kube-system", False),
    ],
)
def test_called_depends_on_the_query(query: str, *, called: bool | None) -> None:
    """Only what the caller sends is known about namespaces."""
    assert _decision(Server().post(query=query))["called"] is called


def test_enable_supposes_the_opt_in() -> None:
    """A pod that did not opt in is decided as if it had."""
    plain = POD.replace(b'annotations: {rdma.lab/enable: "true"}', b"labels: {}")

    assert _decision(Server().post(plain))["reason"] == "NotOptedIn"
    assert _decision(Server().post(plain, "enable=true"))["reason"] == "Patched"


def test_answers_reveal_nothing_of_the_cluster() -> None:
    """Callers are anonymous, so they get nothing that the server has read of the cluster."""
    for accept in ("application/json", "application/yaml", "text/plain"):
        answer = Server().post(query="namespace=lab", accept=accept)
        assert answer.status == 200
        assert "secret" not in answer.text
    assert _decision(Server().post(query="namespace=lab"))["called"] is None


@pytest.mark.parametrize(
    ("body", "query", "accept", "status", "message"),
    [
        (b"", "", "", 400, "the body contains no documents"),
        (b"a: [", "", "", 400, "body: "),
        (b"\xff\xff", "", "", 400, "body: "),
        (b"[" * 100_000, "", "", 400, "body: "),
        (b"- x", "", "", 400, "body: "),
        (POD, "namespace-label=x", "", 400, "namespace-label='x': write KEY=VALUE"),
        (POD, "enable=perhaps", "", 400, "enable='perhaps': write true or false"),
        (POD, "enabel=true", "", 400, "'enabel' is not a parameter (did you mean enable?); use"),
        (
            POD,
            "",
            "image/png",
            406,
            "accept: use one of application/json, application/yaml,",
        ),
        (
            FABRICS.encode(),
            "",
            "",
            400,
            (
                "body: line 1: this is a fabrics file, not a workload; this server has its own; "
                "send a pod or a workload"
            ),
        ),
        (b"x" * (9 << 20), "", "", 413, "the body is larger than 8388608 bytes"),
    ],
)
def test_bad_input_is_a_single_clear_line(
    body: bytes, query: str, accept: str, status: int, message: str
) -> None:
    """Each mistake of the caller gives one line of text."""
    answer = Server().post(body, query, accept)

    assert (answer.status, answer.text.count("\n")) == (status, 1), answer.text
    assert answer.text.startswith(message)


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/x", 404), ("PUT", "/preview", 405)]
)
def test_other_requests(method: str, path: str, status: int) -> None:
    """The answer to an unknown path or method names the usage."""
    answer = Server().call(method, path)

    assert (answer.status, "GET /preview shows how to use this server" in answer.text) == (
        status,
        True,
    )


def test_a_browser_gets_text() -> None:
    """It accepts text/html, and shows plain text as well."""
    answer = Server().post(accept="text/html,application/xhtml+xml")

    assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    ("content_type", "body", "hinted"),
    [
        (b"application/x-www-form-urlencoded", POD.replace(b"\n", b""), True),
        (b"application/x-www-form-urlencoded", b"a: [\n", False),
        (b"application/yaml", POD.replace(b"\n", b""), False),
    ],
)
def test_a_file_without_line_breaks_from_curl(
    content_type: bytes, body: bytes, *, hinted: bool
) -> None:
    """`curl -d @pod.yaml` sends the file as one line, which is not YAML."""
    answer = Server().call("POST", "/preview", body, headers=[(b"content-type", content_type)])

    assert answer.status == 400
    hint = (
        "the body is one line and not YAML; curl -d removes the line breaks of a file, so send "
        "it with curl --data-binary\n"
    )
    assert (answer.text == hint) is hinted


def test_a_server_with_example_fabrics_marks_its_answers() -> None:
    """Its text and JSON are marked; documents to apply are refused."""
    server = Server(example=True)

    assert server.post(accept="text/plain").text.startswith(
        "! EXAMPLE: these are example fabrics (ib), not yours; this server was started without "
        "fabrics\n"
    )
    assert json.loads(server.post().body)["example"] is True
    refused = server.post(accept="application/yaml")
    assert (refused.status, refused.text.count("\n")) == (409, 1)
    assert "this server has example fabrics" in refused.text
    assert json.loads(Server().post().body)["example"] is False


def test_objects_of_the_cluster_in_the_body_are_facts() -> None:
    """A caller may send what the server does not reveal: the namespace and its rules."""
    space = (
        b"apiVersion: v1\nkind: Namespace\nmetadata: {name: lab, labels: {rdma.lab/enable: 'true'}}"
        b"\n---\n"
    )
    decision = _decision(Server().post(space + POD, "namespace=lab"))

    assert decision["called"] is True


def test_usage() -> None:
    """A GET request shows how to use the endpoint."""
    answer = Server().call("GET", "/preview")

    assert (answer.status, "curl --data-binary @pod.yaml" in answer.text) == (200, True)


@pytest.mark.parametrize(
    ("query", "accept", "status", "media_type", "begins"),
    [
        ("", "", 200, "application/json", "{"),
        ("", "text/html,*/*;q=0.8", 200, "text/plain; charset=utf-8", "fabric  nodes"),
        ("output=text", "application/json", 200, "text/plain; charset=utf-8", "fabric  nodes"),
        ("output=wide", "", 200, "text/plain; charset=utf-8", "fabric  nodes"),
        ("output=yaml", "", 400, "text/plain; charset=utf-8", "output='yaml': use one of json"),
        ("namespace=lab", "", 400, "text/plain; charset=utf-8", "'namespace' is not a parameter"),
        ("", "image/png", 406, "text/plain; charset=utf-8", "accept: use one of application/json,"),
    ],
    ids=[
        "default",
        "browser",
        "text",
        "wide",
        "no such format",
        "no such parameter",
        "no such type",
    ],
)
def test_the_formats_of_fabrics(
    query: str, accept: str, status: int, media_type: str, begins: str
) -> None:
    """They are requested like a preview's formats, and other formats are refused alike."""
    headers = [(b"accept", accept.encode())] if accept else []
    answer = Server().call("GET", "/fabrics", query=query, headers=headers)
    assert (answer.status, answer.headers["content-type"]) == (status, media_type)
    assert answer.text.startswith(begins)
    assert "secret" not in answer.text


def test_without_configuration_nothing_is_previewed() -> None:
    """Without a configuration there are no fabrics to decide with."""
    answer = Server(configured=False).post()

    assert (answer.status, answer.headers["connection"]) == (503, "close")


def test_too_many_at_once_are_sent_away() -> None:
    """Previews wait in a bounded queue, so that they cannot take memory or time from /mutate."""
    server = Server()

    async def flood() -> list[int]:
        requests = (
            request(server.app, "POST", "/preview", POD, client=f"192.0.2.{number % 3}")
            for number in range(PENDING + 5)
        )
        return sorted(answer.status for answer in await asyncio.gather(*requests))

    statuses = server.runner.run(flood())

    assert statuses == [200] * PENDING + [503] * 5


@pytest.mark.parametrize(("size", "status"), [(FIRST_BYTES, 200), (FIRST_BYTES + 1, 503)])
def test_many_of_a_few_addresses_leave_room_for_a_small_one(size: int, status: int) -> None:
    """A few clients cannot take all places in the queue, or all of its memory, either."""
    server = Server()
    small = POD + b" " * (size - len(POD))
    taken = BYTES - FIRST_BYTES // 2

    async def flood() -> int:
        async with server.app._queue.turn("192.0.2.9", 60):
            with (
                server.app._byte_quota.take("192.0.2.1", taken // 2),
                server.app._byte_quota.take("192.0.2.2", taken // 2),
            ):
                posted = [
                    asyncio.create_task(
                        request(server.app, "POST", "/preview", POD, client=f"192.0.2.{number % 2}")
                    )
                    for number in range(PENDING)
                ]
                await asyncio.wait(posted, timeout=0.1)
                posted.append(
                    asyncio.create_task(
                        request(server.app, "POST", "/preview", small, client="192.0.2.3")
                    )
                )
                await asyncio.wait(posted, timeout=0.1)
        return (await asyncio.gather(*posted))[-1].status

    assert server.runner.run(flood()) == status


def test_too_many_of_an_address_leave_room_for_others() -> None:
    """One client cannot take all places in the queue."""
    server = Server()

    async def flood() -> list[Answer]:
        addresses = ["192.0.2.1"] * (PENDING_PER_ADDRESS + 1) + ["192.0.2.2"]
        requests = (
            request(server.app, "POST", "/preview", POD, client=address) for address in addresses
        )
        return await asyncio.gather(*requests)

    answers = server.runner.run(flood())

    assert [answer.status for answer in answers] == [200] * PENDING_PER_ADDRESS + [429, 200]
    assert (
        "from your address; wait until one of them is answered" in answers[PENDING_PER_ADDRESS].text
    )


def test_draining_makes_clients_connect_again() -> None:
    """The connection is closed, as on the other listeners."""
    server = Server()
    server.state.draining = True

    assert server.post().headers["connection"] == "close"


def test_client_that_goes_away_is_not_a_defect() -> None:
    """A body that broke off is not logged as an error."""
    server = Server()

    assert server.call("POST", "/preview", b"x", None).status == 400
    assert server.lines.read() == []


def test_a_body_holds_a_bounded_number_of_pods() -> None:
    """An answer's memory grows with the pods, so at most MAX_PODS are accepted."""
    server = Server()
    allowed, refused = (b"---\n".join([POD] * number) for number in (MAX_PODS, MAX_PODS + 1))
    assert server.post(allowed).status == 200
    answer = server.post(refused)
    assert (answer.status, answer.text) == (
        400,
        "body: more than 500 pods; send fewer in one request\n",
    )


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_redirect_to_the_host_header(method: str) -> None:
    """A redirect would use that header, so another path is a 404."""
    headers = [(b"host", b"elsewhere.example")]
    answer = Server().call(method, "/preview/", POD, headers=headers)

    assert answer.status == 404
    assert "location" not in answer.headers
    assert "elsewhere" not in answer.text
