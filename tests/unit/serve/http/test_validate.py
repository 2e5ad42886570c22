"""Tests of `/validate`, with the real worker where it answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from time import sleep
from typing import Any

import pytest

from tests.unit.serve.client import JSON, Answer, HeldWorker, Lines, request
from tests.virtual_time import run, virtual_loop, virtual_time
from webhook.config.load import MAX_SPEC_BYTES, FabricsText, parse_object
from webhook.errors import RequestError
from webhook.model.nodes import Node
from webhook.serve import fair_queue, worker_supervisor
from webhook.serve.fair_queue import MAX_REST, FairQueue
from webhook.serve.http import validate
from webhook.serve.http.review_body import MAX_DEPTH
from webhook.serve.http.validate import (
    BYTES_PER_ADDRESS,
    CROWDED,
    FIRST_BYTES,
    NOT_CHECKED,
    PENDING,
    PENDING_PER_ADDRESS,
    Validate,
    ValidationAnswer,
)
from webhook.serve.metrics import Metrics
from webhook.serve.state import ConfigurationApplied, PreparedConfiguration, State
from webhook.serve.worker_supervisor import WorkerAnswer, WorkerRequest, WorkerSupervisor

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
VALID: dict[str, Any] = {
    "name": "ib",
    "match": {"gpuResources": ["nvidia.com/gpu"]},
    "resources": [{"name": "rdma/hca"}],
    "hcas": ["mlx5_0"],
}


class Server:
    """The application; all share a worker and its event loop."""

    runner: asyncio.Runner
    worker: WorkerSupervisor

    def __init__(self, worker: Any = None, queue: FairQueue | None = None) -> None:
        self.lines = Lines()
        self.metrics = Metrics()
        self.state = State()
        self.queue = queue or FairQueue()
        self.app = Validate(
            self.state, self.metrics, self.lines.log, worker or self.worker, self.queue
        )

    def post(self, body: bytes, *headers: tuple[bytes, bytes]) -> Answer:
        """Post a body to /validate."""
        return self.runner.run(self.posted(body, *headers))

    async def posted(
        self, body: bytes, *headers: tuple[bytes, bytes], client: str = "10.0.0.1"
    ) -> Answer:
        """Post a body to /validate."""
        length = (b"content-length", b"%d" % len(body))
        given = [JSON, length, *headers]
        return await request(
            self.app, "POST", "/validate", body, headers=given, query="timeout=9s", client=client
        )

    def count(self, name: str, **labels: str) -> float:
        """Read a metric."""
        return self.metrics.registry.get_sample_value(f"rdma_webhook_{name}", labels) or 0


class Instead:
    """A worker with a prepared answer."""

    def __init__(self, answer: Callable[[], WorkerAnswer]) -> None:
        self._answer = answer

    async def ask(self, *_: Any, **__: Any) -> WorkerAnswer:
        """Answer at once."""
        return self._answer()


@pytest.fixture(scope="module", autouse=True)
def _work() -> Iterator[None]:
    """Start one worker for all tests of this module."""
    with asyncio.Runner() as Server.runner, pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_supervisor, "NICEST", 1)  # so that a busy machine does not starve it
        patch.setattr(validate, "SECONDS", 120.0)
        Server.worker = WorkerSupervisor(Metrics(), Lines().log, seconds=120.0)
        yield
        Server.runner.run(Server.worker.stop())


def item(*fabrics: Any, **spec: Any) -> dict[str, Any]:
    """Return an object as the API server sends it."""
    return {
        "apiVersion": "rdma.lab/v1alpha1",
        "kind": "FabricConfiguration",
        "metadata": {"name": "default", "managedFields": [{"manager": "kubectl"}]},
        "spec": {"fabrics": list(fabrics), **spec},
        "status": {"nodes": 1},
    }


def review(new: Any, **fields: Any) -> bytes:
    """Return the review of an object's creation, with changes."""
    complete = {
        "uid": UID,
        "kind": {"group": "rdma.lab", "version": "v1alpha1", "kind": "FabricConfiguration"},
        "operation": "CREATE",
        "name": "default",
        "object": new,
        **fields,
    }
    document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": complete}
    return json.dumps(document).encode()


def test_a_good_object_is_allowed_logged_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one line in the log, and the metrics of all endpoints."""
    monkeypatch.setattr(validate, "perf_counter", iter((5.0, 5.0123456)).__next__)
    server = Server()
    answer = server.post(review(item(VALID), dryRun=True), (b"traceparent", TRACE.encode()))
    (line,) = server.lines.read()
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.response == {"uid": UID, "allowed": True}
    assert line.pop("duration_ms") == 12.346
    assert line.pop("ts")
    assert line == {
        "level": "info",
        "msg": "validated",
        "uid": UID,
        "name": "default",
        "operation": "CREATE",
        "dryRun": True,
        "allowed": True,
        "errors": 0,
        "warnings": 0,
        "traceparent": TRACE,
    }
    assert server.count("validations_total", allowed="true") == 1
    assert server.count("requests_total", endpoint="validate", code="200") == 1
    assert server.count("request_duration_seconds_count", endpoint="validate") == 1


def test_errors_reject_it() -> None:
    """Each has its path and the remedy, with the nearest name of an unknown field."""
    server = Server()
    bad = {**VALID, "hcass": [], "rateGbps": 0}
    response = server.post(review(item(bad))).response
    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    details = response["status"]["details"]
    causes = {cause["field"]: cause["message"] for cause in details.pop("causes")}
    assert details == {"group": "rdma.lab", "kind": "FabricConfiguration", "name": "default"}
    assert causes == {
        "spec.fabrics[0].hcass": "unknown field (did you mean hcas?)",
        "spec.fabrics[0].rateGbps": "0 is too small; the minimum is 1",
    }
    (line,) = server.lines.read()
    assert (line["msg"], line["allowed"], line["errors"]) == ("validated", False, 2)
    assert server.count("validations_total", allowed="false") == 1


def test_warnings_allow_it() -> None:
    """The warnings of `check-config` come back as admission warnings."""
    server = Server()
    response = server.post(review(item({**VALID, "hcas": []}))).response
    assert response["allowed"] is True
    assert any(warning.startswith("spec.fabrics[0]") for warning in response["warnings"])
    (line,) = server.lines.read()
    assert (line["errors"], line["warnings"] > 0) == (0, True)


def test_a_field_next_to_spec_is_named() -> None:
    """The API server keeps it, since its schema preserves unknown fields."""
    response = Server().post(review({**item(VALID), "nvlink": {}})).response
    assert response["status"]["message"] == (
        "nvlink: is a field of spec; put it below `spec:`, indented"
    )


def test_an_object_of_another_name_is_rejected() -> None:
    """The definition has the same rule, unless somebody changed it."""
    other = {**item(VALID), "metadata": {"name": "lab"}}
    response = Server().post(review(other, name="lab")).response
    assert "metadata.name: must be default, not 'lab'" in response["status"]["message"]
    assert response["status"]["details"]["name"] == "lab"
    unnamed = Server().post(review(item({}), name="")).response
    assert unnamed["status"]["details"]["name"] == "default"


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (item({"name": 1}), "the spec is unchanged"),
        (
            {**item({"name": 2}), "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            "the object is being deleted",
        ),
    ],
    ids=["unchanged", "deleted"],
)
def test_an_object_that_need_not_be_valid_needs_no_worker(new: dict[str, Any], reason: str) -> None:
    """An invalid object can be deleted, finalizers included, and can get a label."""
    server = Server(Instead(lambda: pytest.fail("the worker is not needed")))
    body = review(new, operation="UPDATE", oldObject=item({"name": 1}))
    answer = server.post(body)
    assert (answer.status, answer.response) == (200, {"uid": UID, "allowed": True})
    (line,) = server.lines.read()
    assert (line["msg"], line["because"], line["allowed"]) == ("validated", reason, True)
    assert (line["errors"], line["warnings"]) == (0, 0)


def test_a_deletion_is_allowed_with_a_warning() -> None:
    """It should not come: the registration has only changes of the configuration."""
    server = Server()
    body = review(None, operation="DELETE", oldObject=item())
    response = server.post(body).response
    assert (response["uid"], response["allowed"]) == (UID, True)
    assert "request.operation is 'DELETE'" in response["warnings"][0]
    (line,) = server.lines.read()
    assert (line["msg"], line["status"], line["uid"]) == ("not validated", 200, UID)
    assert line["problem"] in response["warnings"][0]
    assert line["duration_ms"] > 0


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "the body is not JSON"),
        (review(item(VALID), uid=""), 400, "request.uid is"),
        (review(7), 200, "request.object is"),
        (
            review(item(VALID)).replace(b'"fabrics": [', b'"fabrics": [' + b"[" * 300, 1),
            200,
            "JSON",
        ),
    ],
    ids=["no JSON", "no uid", "no object", "broken, with a uid"],
)
def test_a_malformed_body_is_answered_like_by_mutate(
    body: bytes, status: int, message: str
) -> None:
    """The answer is one line of text, or a rejection with the uid."""
    server = Server()
    answer = server.post(body)
    assert (answer.status, message in answer.text) == (status, True)
    if status == 200:
        assert answer.response["status"]["code"] == 400
    assert server.lines.read()[0]["msg"] == "not validated"


def test_other_requests_are_refused() -> None:
    """A line of text has the reason; a client whose body is not read has to connect again."""
    server, body = Server(), review(item(VALID))
    length = (b"content-length", b"%d" % len(body))
    for method, headers, status, message, ends in (
        ("GET", [length], 405, "/validate accepts only POST\n", None),
        ("POST", [JSON], 411, "content-length is missing", "close"),
        ("POST", [(b"content-type", b"text/xml"), length], 415, "content-type is 'text/xml'", None),
    ):
        exchange = request(server.app, method, "/validate", body, headers=headers)
        answer = Server.runner.run(exchange)
        assert (answer.status, answer.headers.get("connection")) == (status, ends)
        assert answer.text.startswith(message)
        (line,) = server.lines.read()
        assert (line["msg"], line["status"]) == ("not validated", status)
        assert f"{line['problem']}\n" == answer.text


def test_a_deep_object_is_rejected() -> None:
    """No depth leads to an internal error."""
    deep: Any = 1
    for _ in range(MAX_DEPTH + 60):
        deep = [deep]
    answer = Server().post(review(item(deep)))
    assert (
        answer.response["status"]["message"] == f"the body is nested deeper than {MAX_DEPTH} levels"
    )
    less: Any = 1
    for _ in range(120):
        less = [less]
    assert "nested deeper than 100 levels" in Server().post(review(item(less))).text


def test_a_large_object_is_rejected() -> None:
    """Its spec has a maximum; an object far above it does not reach the worker."""
    for server, size in (
        (Server(), MAX_SPEC_BYTES),
        (Server(Instead(lambda: pytest.fail("too large"))), BYTES_PER_ADDRESS),
    ):
        answer = server.post(review(item("x" * size)))
        message = answer.response["status"]["message"]
        assert message.startswith("the object: the spec has ")
        assert f" bytes as JSON; the maximum is {MAX_SPEC_BYTES:,}, since the object" in message
        assert (answer.status, answer.response["uid"]) == (200, UID)
        (line,) = server.lines.read()
        assert (line["msg"], line["allowed"], line["name"]) == ("validated", False, "default")
        assert (line["errors"], line["warnings"]) == (1, 0)


def update(new: Any, old: Any, **fields: Any) -> bytes:
    """Return the review of an update."""
    return review(new, operation="UPDATE", oldObject=old, **fields)


def test_the_nodes_of_a_removed_fabric_are_counted() -> None:
    """They belong to the configuration in use; a node may fit several fabrics."""
    configuration = parse_object(item(VALID, {**VALID, "name": "roce"}), "f").compiled
    gpu = Node(labels={}, resources={"nvidia.com/gpu": 8})
    nodes = {"n1": gpu, "n2": gpu, "n3": Node(labels={}, resources={})}
    server = Server()
    server.state.send(
        ConfigurationApplied(PreparedConfiguration.of(configuration, nodes, FabricsText("")))
    )
    old = item(VALID, {**VALID, "name": "roce"}, {**VALID, "name": "unknown"})
    response = server.post(update(item({**VALID, "name": "other"}), old)).response
    assert response["allowed"] is True
    assert response["warnings"][0].startswith(
        "spec.fabrics: no longer has ib (2 nodes), roce (2 nodes), so new pods on these nodes "
        "get no"
    )
    (line,) = server.lines.read()
    assert line["warnings"] >= 1


def test_a_change_is_sent_to_the_worker() -> None:
    """With the managers of both objects, and the client's; without nodes, each count is zero."""
    worker = NotingWorker()
    owners = [{"manager": "kubectl"}]
    new = item()
    body = update(new, item(VALID), options={"fieldManager": "team"})
    assert Server(worker).post(body).status == 200
    ((worker_request, _),) = worker.requests
    assert json.loads(worker_request.body)["change"] == {
        "manager": "team",
        "is_empty": True,
        "removed": {"ib": 0},
        "before": owners,
        "after": owners,
    }


def test_deep_managed_fields_are_rejected() -> None:
    """No depth of the object before an update leads to an internal error."""
    deep: Any = 1
    for _ in range(MAX_DEPTH + 60):
        deep = [deep]
    old = {**item(VALID), "metadata": {"managedFields": [deep]}}
    answer = Server().post(update(item(), old))
    assert "nested deeper than" in answer.response["status"]["message"]


def _raiser(error: Exception) -> Callable[[], WorkerAnswer]:
    def answer() -> WorkerAnswer:
        raise error

    return answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (_raiser(RequestError(504, "it took long")), "it took long"),
        (lambda: WorkerAnswer(413, {"sentence": "no memory"}), "no memory"),
        (_raiser(TimeoutError()), "it took longer than 120 s; apply it again"),
    ],
    ids=["no answer", "no memory", "late"],
)
def test_without_an_answer_failure_policy_decides(
    answer: Callable[[], WorkerAnswer], message: str
) -> None:
    """The answer is a Status with 503; the user reads its message."""
    server = Server(Instead(answer))
    got = server.post(review(item(VALID)))
    status = json.loads(got.body)
    assert (got.status, status["kind"], status["code"]) == (503, "Status", 503)
    assert status["message"] == NOT_CHECKED + message
    (line,) = server.lines.read()
    assert (line["msg"], line["status"], line["uid"]) == ("not validated", 503, UID)
    assert line["problem"] == status["message"]
    assert server.count("validations_total", allowed="true") == 0


@pytest.mark.parametrize(
    "answer",
    [
        lambda: WorkerAnswer(500, {"error": "KeyError", "trace": ["a.py:1 b"]}),
        _raiser(KeyError("a secret")),
        lambda: WorkerAnswer(200, {}),
    ],
    ids=["in the worker", "here", "a malformed answer"],
)
def test_a_defect_is_logged_and_counted(answer: Callable[[], WorkerAnswer]) -> None:
    """The answer names the log, and nothing else."""
    server = Server(Instead(answer))
    got = server.post(review(item(VALID)), (b"traceparent", TRACE.encode()))
    status = json.loads(got.body)
    assert (got.status, status["kind"]) == (500, "Status")
    assert UID in status["message"]
    assert "secret" not in got.text
    (line,) = server.lines.read()
    assert (line["level"], line["msg"], line["error"]) == ("error", "internal error", "KeyError")
    assert (line["uid"], line["traceparent"], bool(line["trace"])) == (UID, TRACE, True)
    assert server.count("internal_errors_total") == 1


def test_a_flood_from_an_address_ends() -> None:
    """Each address may have a few validations at once; the others are answered with a 503."""

    async def flood() -> list[Answer]:
        server = Server()
        async with server.queue.turn("preview", 60, urgent=True):
            tasks = [
                asyncio.create_task(server.posted(review(item(VALID))))
                for _ in range(PENDING_PER_ADDRESS + 1)
            ]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(tasks)
        assert len(done) == 1
        return [task.result() for task in tasks]

    answers = Server.runner.run(flood())
    assert sorted(answer.status for answer in answers) == [200] * PENDING_PER_ADDRESS + [503]
    (refused,) = (answer.text for answer in answers if answer.status == 503)
    assert "too many validations at once from your address" in refused
    assert BYTES_PER_ADDRESS >= 2 * 1_572_864  # of an object and its managers


def _during_a_flood(flooders: list[str], flood: bytes, honest: dict[str, bytes]) -> list[Answer]:
    """Let these addresses send one body, and then others theirs; return the answers to those."""

    async def answers() -> list[Answer]:
        server = Server(NotingWorker())

        async def send(bodies: Iterable[tuple[str, bytes]]) -> list[asyncio.Task[Answer]]:
            """Send them, and wait until all are read."""
            sent = [asyncio.create_task(server.posted(body, client=name)) for name, body in bodies]
            await asyncio.wait(sent, timeout=validate.SECONDS / 4)
            return sent

        async with server.queue.turn("preview", 60, urgent=True):
            flooding = await send((client, flood) for client in flooders)
            honest_answers = await send(honest.items())
        await asyncio.wait(flooding)
        return [await answer for answer in honest_answers]

    return run(answers())


def test_many_from_a_few_addresses_leave_room_for_one_more() -> None:
    """An API server has one validation at a time, and others may not fill the queue before it."""
    flooders = [f"192.0.2.{number % 4}" for number in range(PENDING)]
    (answer,) = _during_a_flood(flooders, review(item(VALID)), {"10.0.0.1": review(item(VALID))})
    assert answer.status == 200


def test_large_ones_from_a_few_addresses_leave_room_for_a_usual_one() -> None:
    """An object as large as the kind allows is checked, and none that is much larger."""
    body = review(item("x" * (BYTES_PER_ADDRESS - 4096)))
    honest = {
        "10.0.0.1": review(item("y" * (FIRST_BYTES - 4096))),
        "10.0.0.2": review(item("y" * FIRST_BYTES)),
    }
    usual, large = _during_a_flood(["192.0.2.1", "192.0.2.2"], body, honest)
    assert usual.status == 200
    assert large.status == 503
    assert "too many large validations at once; try again" in large.text
    assert FIRST_BYTES > MAX_SPEC_BYTES


def test_bodies_are_read_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large one takes a tenth of a second: another address waits for one of many."""
    read: list[str] = []

    def note(body: bytes, _current: PreparedConfiguration | None) -> ValidationAnswer:
        read.append(body.decode())
        sleep(0.002)  # an address that has used no time may come before others
        return ValidationAnswer(200, b"{}")

    monkeypatch.setattr(validate, "_read_body", note)

    async def flood() -> None:
        server = Server()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(20):
                tasks.create_task(server.posted(b"flood", client="192.0.2.1"))
            tasks.create_task(server.posted(b"honest", client="10.0.0.1"))

    Server.runner.run(flood())
    assert len(read) == 21
    assert "honest" in read[:3]


def test_reading_rests_after_each_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading takes half of the loop's time at most, and no rest is longer than MAX_REST."""
    began: list[float] = []

    def read(body: bytes, _current: PreparedConfiguration | None) -> ValidationAnswer:
        began.append(virtual_time())
        virtual_loop().advance(float(body))
        return ValidationAnswer(200, b"{}")

    monkeypatch.setattr(validate, "_read_body", read)
    monkeypatch.setattr(fair_queue, "perf_counter", virtual_time)

    async def crowd() -> None:
        server = Server(Instead(lambda: pytest.fail("the worker is not needed")))
        seconds = b"0.25", b"1", b"1"
        await asyncio.gather(*(server.posted(body) for body in seconds))

    run(crowd())
    first, second, third = began
    assert (second - first, third - second) == (0.5, 1 + MAX_REST)


def test_the_wait_for_reading_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server does not wait for long; nothing has been checked then."""
    monkeypatch.setattr(validate, "SECONDS", 0.01)

    async def crowd() -> Answer:
        server = Server()
        async with server.app._reading.turn("192.0.2.1", 60):
            return await server.posted(review(item(VALID)))

    answer = Server.runner.run(crowd())
    assert (answer.status, CROWDED in answer.text) == (503, True)


def test_other_addresses_are_not_concerned_by_a_flood() -> None:
    """Each API server of a cluster has its own address."""

    async def flood() -> list[Answer]:
        server = Server()
        async with server.queue.turn("preview", 60, urgent=True):
            body = review(item("x" * (BYTES_PER_ADDRESS // 2)))
            posted = [
                asyncio.create_task(server.posted(body, client=client))
                for client in ("10.0.0.1", "10.0.0.1", "10.0.0.2")
            ]
            done, _ = await asyncio.wait(posted, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(posted)
        assert len(done) == 1
        return [task.result() for task in posted]

    first, second, other = Server.runner.run(flood())
    assert "too many large validations at once from your address" in second.text
    assert (first.status, second.status, other.status) == (200, 503, 200)


class NotingTurns(FairQueue):
    """Turns that record the requests for them."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[tuple[str, float, bool]] = []

    @asynccontextmanager
    async def turn(
        self, client_address: str, seconds: float, *, namespace: str = "", urgent: bool = False
    ) -> AsyncIterator[None]:
        """Record it, and wait for a turn."""
        self.requests.append((client_address, seconds, urgent))
        async with super().turn(client_address, seconds, namespace=namespace, urgent=urgent):
            yield


class NotingWorker:
    """A worker that records its requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[WorkerRequest, float]] = []

    async def ask(self, worker_request: WorkerRequest, *, max_pause: float) -> WorkerAnswer:
        """Answer in two pieces."""
        self.requests.append((worker_request, max_pause))
        return WorkerAnswer(200, {"errors": 0, "warnings": 0}, (b'{"response":', b'"whole"}'))


def test_the_worker_gets_only_the_parts_to_check() -> None:
    """The API server's additions are left out. A validation is urgent, since its client waits."""
    worker, queue = NotingWorker(), NotingTurns()
    server = Server(worker, queue)
    assert server.post(review(item(VALID))).response == "whole"
    ((worker_request, max_pause),) = worker.requests
    checked = {**item(VALID), "metadata": {"name": "default"}}
    del checked["status"]
    assert json.loads(worker_request.body) == {"object": checked, "change": None}
    reference = {"group": "rdma.lab", "kind": "FabricConfiguration", "name": "default"}
    assert (worker_request.operation, worker_request.parameters) == (
        "validate",
        {"uid": UID, "object_reference": reference},
    )
    assert worker_request.message("{noun}; {advice}") == "validation; apply it again"
    assert max_pause == validate.MAX_PAUSE
    assert queue.requests == [("10.0.0.1", validate.SECONDS, True)]


def test_a_worker_that_never_answers_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn has come, but the time is over nevertheless."""
    monkeypatch.setattr(validate, "SECONDS", 0.01)

    class Silent:
        async def ask(self, *_: Any, **__: Any) -> WorkerAnswer:
            await asyncio.Event().wait()
            raise AssertionError

    assert "it took longer than 0.01 s" in Server(Silent()).post(review(item(VALID))).text


def test_the_wait_for_the_worker_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends before the API server's own timeout, so that the user reads our message."""
    monkeypatch.setattr(validate, "SECONDS", 0.01)

    async def late() -> Answer:
        server = Server()
        async with server.queue.turn("other", 60, urgent=True):
            return await server.posted(review(item(VALID)))

    answer = Server.runner.run(late())
    assert "it took longer than 0.01 s" in answer.text


def test_a_client_that_leaves_costs_no_turn() -> None:
    """The API server leaves when its timeout is over."""

    async def leave() -> Answer:
        server = Server()
        body = review(item(VALID))
        headers = [JSON, (b"content-length", b"%d" % len(body))]
        async with server.queue.turn("other", 60, urgent=True):
            return await request(server.app, "POST", "/validate", body, None, headers=headers)

    assert Server.runner.run(leave()).status == 0


async def _abandoned(server: Server, worker: HeldWorker) -> asyncio.Task[ValidationAnswer]:
    """Return a validation whose client has left during its turn."""
    scope = {"client": ("10.0.0.1", 1)}
    asking = asyncio.create_task(server.app._read_and_answer(review(item(VALID)), scope))
    await worker.began.wait()
    asking.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    return asking


def test_a_validation_ends_although_its_client_has_left() -> None:
    """Otherwise the worker ends, and the next client waits until another one is ready."""

    async def leave() -> None:
        worker = HeldWorker()
        server = Server(worker)
        asking = await _abandoned(server, worker)
        assert (asking.done(), server.queue.is_free) == (False, False)
        worker.may_answer.set()
        await asyncio.wait([asking])
        assert (asking.cancelled(), worker.end, server.queue.is_free) == (True, "answered", True)

    Server.runner.run(leave())


def test_a_validation_without_a_turn_ends_with_its_client() -> None:
    """It is not computed for nobody, and makes room for others."""

    async def leave() -> None:
        worker = HeldWorker()
        server = Server(worker)
        scope = {"client": ("10.0.0.1", 1)}
        async with server.queue.turn("other", 60, urgent=True):
            asking = asyncio.create_task(server.app._read_and_answer(review(item(VALID)), scope))
            while not server.queue._urgent:  # noqa: ASYNC110 -- no event signals it
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
            assert not server.queue._urgent
        assert (worker.end, server.queue.is_free) == ("", True)

    Server.runner.run(leave())


def test_an_abandoned_validation_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that does not answer is ended, as always."""
    monkeypatch.setattr(validate, "SECONDS", 0.01)

    async def leave() -> None:
        worker = HeldWorker()
        server = Server(worker)
        asking = await _abandoned(server, worker)
        await asyncio.wait([asking])
        assert (worker.end, server.queue.is_free) == ("cancelled", True)

    Server.runner.run(leave())


def test_a_draining_server_closes_connections() -> None:
    """The API server then connects to another replica."""
    server = Server()
    server.state.draining = True
    assert server.post(review(item(VALID))).headers["connection"] == "close"
