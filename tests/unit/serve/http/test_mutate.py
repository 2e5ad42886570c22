from __future__ import annotations

import base64
import gc
import json
import weakref
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server_state import use
from tests.unit.serve.client import JSON, Answer, Lines, call
from webhook.admission.registration import NO_FABRICS_MESSAGE
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.model.decision import Decision, PatchOp, Reason
from webhook.model.fabric import Fabric, RdmaResource, build_configuration
from webhook.model.pod import PodManifest
from webhook.serve.http.asgi import MAX_BODY_BYTES
from webhook.serve.http.mutate import Mutate
from webhook.serve.http.review_body import MAX_DEPTH, MAX_OBJECTS, MAX_VALUES, SMALL, namespace_in
from webhook.serve.metrics import Metrics
from webhook.serve.state import ConfigurationMissing, State

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
SECRET = "hunter2-is-the-password"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CONFIGURATION = build_configuration(
    (
        Fabric(
            name="ib",
            gpu_resources=frozenset({"nvidia.com/gpu"}),
            resources=(RdmaResource(name="rdma/hca"),),
        ),
    )
)


class Server:
    """The application with its state, metrics and log."""

    def __init__(self, decide: Any = decide, *, configured: bool = True) -> None:
        self.lines = Lines()
        self.metrics = Metrics()
        self.state = State()
        if configured:
            use(self.state, CONFIGURATION)
        self.app = Mutate(self.state, self.metrics, self.lines.log, decide)

    def post(self, body: bytes, *headers: tuple[bytes, bytes]) -> Answer:
        """Post a body to /mutate."""
        length = (b"content-length", b"%d" % len(body))
        return call(self.app, "POST", "/mutate", body, headers=[*(headers or [JSON]), length])

    def count(self, name: str, **labels: str) -> float:
        """Read a metric."""
        return self.metrics.registry.get_sample_value(f"rdma_webhook_{name}", labels) or 0


def _pod(**annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "trainer-",
            "annotations": annotations or {"rdma.lab/enable": "true"},
        },
        "spec": {
            "containers": [
                {
                    "name": "trainer",
                    "env": [{"name": "PASSWORD", "value": SECRET}],
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                }
            ]
        },
    }


def _review(pod: Any = None, **request: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": UID,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "namespace": "lab",
            "object": pod or _pod(),
            **request,
        },
    }


def _body(pod: Any = None, **request: Any) -> bytes:
    return json.dumps(_review(pod, **request)).encode()


def _broken(_pod: PodManifest, _decision_input: DecisionInput) -> Decision:
    raise KeyError(SECRET)


def test_pod_is_decided_logged_and_counted() -> None:
    """One request gives a patch for the pod, one log line, and the metrics."""
    server = Server()
    answer = server.post(_body(dryRun=True), JSON, (b"traceparent", TRACE.encode()))
    patch = json.loads(base64.b64decode(answer.response["patch"]))
    (line,) = server.lines.read()

    assert (answer.status, answer.response["uid"], answer.response["allowed"]) == (200, UID, True)
    assert answer.headers["content-type"] == "application/json"
    assert any(op["path"].startswith("/spec/containers/0") for op in patch)
    assert (line.pop("ts")[-1], line.pop("duration_ms") > 0, "ipc-lock" in line.pop("applied")) == (
        "Z",
        True,
        True,
    )
    assert line == {
        "level": "info",
        "msg": "decided",
        "uid": UID,
        "namespace": "lab",
        "name": "trainer-*",
        "allowed": True,
        "reason": "Patched",
        "rdma": "yes",
        "because": "Equipped",
        "fabric": "ib",
        "dryRun": True,
        "traceparent": TRACE,
    }
    assert server.count("requests_total", endpoint="mutate", code="200") == 1
    assert (
        server.count("decisions_total", allowed="true", reason="Patched", rdma="yes", fabric="ib")
        == 1
    )
    assert server.count("request_duration_seconds_count", endpoint="mutate") == 1


def test_denied_pod_is_answered_with_200() -> None:
    """Denying a pod is a decision, not a failure of the call."""
    server = Server()
    answer = server.post(_body(_pod(**{"rdma.lab/enable": "yes"})))

    assert (answer.status, answer.response["allowed"]) == (200, False)
    assert answer.response["status"]["code"] == 403
    assert "rdma.lab/enable" in answer.response["status"]["message"]
    labels = {"allowed": "false", "reason": "InvalidAnnotation", "rdma": "no", "fabric": ""}
    assert server.count("decisions_total", **labels) == 1


@pytest.mark.parametrize(
    ("request_fields", "reason"),
    [
        ({"operation": "DELETE", "object": None}, "request.operation is 'DELETE'"),
        ({"operation": "UPDATE"}, "request.operation is 'UPDATE'"),
        ({"kind": {"group": "apps", "kind": "Deployment"}}, "request.kind is 'Deployment'"),
    ],
)
def test_other_requests_pass_unchanged(request_fields: dict[str, Any], reason: str) -> None:
    """A wrong registration does no harm: allowed, no patch, and a warning with the place."""
    server = Server()
    answer = server.post(json.dumps(_review(**request_fields)).encode())

    assert (answer.status, answer.response["allowed"]) == (200, True)
    assert "patch" not in answer.response
    assert reason in answer.response["warnings"][0]
    assert reason in server.lines.read()[0]["problem"]


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def _annotated(value: bytes) -> bytes:
    """Make a review of a pod whose opt-in has this value, which need not be valid."""
    return _body().replace(b'"true"', value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (_body().replace(b"v1", b"v1beta1"), "apiVersion is a string ('admission.k8s.io/v1beta1')"),
        (_body()[:-20], "the body is not JSON: unexpected end of data: line 1 column"),
        (_body(object=["x"]), "request.object is a list, but it must be a Pod"),
        (_body(object=float("nan")), "the body is not JSON: unexpected character"),
        (_body().replace(b"trainer-", b"\xff"), "the body is not UTF-8: byte"),
        (_body().replace(b"trainer-", b"\\ud800"), "the body is not JSON: "),
        (_body(object=5).replace(b": 5", b": " + _nested(5000)), "depth limit exceeded"),
        (_annotated(_nested(1020)), "depth limit exceeded"),
    ],
)
def test_bad_bodies_with_a_legible_uid_are_answered_with_it(body: bytes, message: str) -> None:
    """The answer is an AdmissionReview with the uid and the place, however broken the body is."""
    answer = Server().post(body)

    assert (answer.status, answer.response["uid"], answer.response["allowed"]) == (200, UID, False)
    assert answer.response["status"]["code"] == 400
    assert message in answer.response["status"]["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON: "),
        (b"hello", "the body is not JSON: "),
        (b"\xff\xfe", "the body is not UTF-8: byte 0 is 0xff"),
        (b"[" * 100_000, "the body is not JSON: depth limit exceeded"),
        (_nested(900), "the body is nested deeper than 200 levels"),
        (_nested(200), "the body is a list, but it must be an AdmissionReview"),
        (b"null", "the body is missing, but it must be an AdmissionReview"),
        (_body(uid=None), "request.uid is missing, but it must be a string of 1 to 128 characters"),
        (
            _body(uid=5),
            "request.uid is a number (5), but it must be a string of 1 to 128 characters",
        ),
    ],
)
def test_bad_bodies_without_a_uid_are_a_400(body: bytes, message: str) -> None:
    """Without a uid an AdmissionReview is impossible, so the answer is one line of text."""
    answer = Server().post(body)

    assert (answer.status, answer.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert message in answer.text
    assert answer.text.count("\n") == 1


def test_uid_inside_a_string_is_not_the_requests() -> None:
    """Text in a pod that looks like a review must not determine the answer's uid."""
    fake = json.dumps(json.dumps({"request": {"uid": "fake"}})).encode()

    assert Server().post(b'{"object": ' + fake).status == 400


@pytest.mark.parametrize(
    ("body", "namespace"),
    [
        (b'{"request":{"uid":"u","namespace":"lab-1","object":{"namespace":"other"}}}', "lab-1"),
        (b'{"request":{"name":"\\"namespace\\":\\"x\\"","namespace" : "lab"}}', "lab"),
        (b'{"request":{"namespace":"Lab"}}', ""),
        (b'{"request":{"namespace":"' + b"n" * 64 + b'"}}', ""),
        (b" " * 4096 + b'{"namespace":"late"}', ""),
        (b"\xff", ""),
    ],
)
def test_namespace_of_an_unread_body(body: bytes, namespace: str) -> None:
    """The API server writes it before the object; strings are not searched."""
    assert namespace_in(body) == namespace


def test_names_in_other_scripts_are_logged_unchanged() -> None:
    """A name is text, so it is neither rejected nor changed."""
    server = Server()
    pod = _pod()
    pod["metadata"]["name"] = "训练-тренер-\u202e\n"
    answer = server.post(_body(pod))

    assert answer.status == 200
    assert server.lines.read()[0]["name"] == "训练-тренер-\u202e\n"


def test_last_of_duplicate_keys_counts() -> None:
    """The API server's JSON decoder does the same, and the API server never sends duplicates."""
    body = _body().replace(b'"uid": "', b'"uid": "x", "uid": "', 1)

    assert Server().post(body).response["uid"] == UID


LENGTH = (b"content-length", b"%d" % len(_body()))


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/mutate", [], 405),
        ("POST", "/mutate", [(b"content-type", b"application/x-www-form-urlencoded")], 415),
        ("POST", "/mutate", [(b"content-type", b"application/vnd.kubernetes.protobuf")], 415),
        ("POST", "/mutate", [JSON, (b"content-encoding", b"gzip")], 415),
        ("POST", "/mutate", [JSON, (b"content-length", b"10485760")], 413),
        ("POST", "/mutate", [JSON], 411),
        ("POST", "/mutate", [JSON, (b"transfer-encoding", b"chunked")], 411),
        ("POST", "/mutate", [LENGTH], 200),
        ("POST", "/mutate", [LENGTH, (b"content-type", b"application/json; charset=utf-8")], 200),
    ],
)
def test_heads(method: str, path: str, headers: list[tuple[bytes, bytes]], status: int) -> None:
    """A request that is clearly not a review is refused by its head alone, with one line."""
    server = Server()
    answer = call(server.app, method, path, _body(), headers=headers, query="timeout=5s")

    assert (answer.status, answer.body.count(b"\n") <= 1) == (status, True)


def test_chunks_are_refused_unread() -> None:
    """The API server sends a length; an unread body ends the connection."""
    answer = call(Server().app, "POST", "/mutate", _body(), None, headers=[JSON])

    assert (answer.status, answer.headers["connection"]) == (411, "close")
    assert answer.text == "content-length is missing; chunked bodies are not accepted here\n"


def _list(value: bytes, count: int) -> bytes:
    return b"[" + b",".join([value] * count) + b"]"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (
            _list(b"1", MAX_VALUES + 1),
            f"the body contains more than the maximum of {MAX_VALUES} values\n",
        ),
        (
            _list(b"[]", MAX_VALUES // 2 + 1),
            f"the body contains more than the maximum of {MAX_VALUES} values\n",
        ),
        (
            _list(b"{}", MAX_BODY_BYTES // 3 - 1),
            f"the body contains more than the maximum of {MAX_VALUES} values\n",
        ),
        (
            b'{"a":' * (MAX_OBJECTS + 1),
            f"the body contains more than the maximum of {MAX_OBJECTS} objects\n",
        ),
    ],
)
def test_body_that_is_too_dense_is_not_parsed(body: bytes, problem: str) -> None:
    """Each `{}` takes 64 bytes of memory, so 8 MiB of them are refused by counting characters."""
    answer = Server().post(body)

    assert (answer.status, answer.text) == (413, problem)


@pytest.mark.parametrize(
    "body", [_list(b"1", MAX_VALUES), b'{"a":' * MAX_OBJECTS, b"{" * SMALL, b" " * MAX_BODY_BYTES]
)
def test_body_up_to_these_bounds_is_parsed(body: bytes) -> None:
    """It is parsed, but is not a review; a small body may have any density."""
    assert Server().post(body).status == 400


def test_densest_pod_in_etcd_is_not_too_dense() -> None:
    """Of 1.5 MiB in etcd, each variable takes 9 bytes: a three-letter name, no value, in protobuf.

    Such a pod is parsed, since it did not opt in; with the opt-in it would have too many entries.
    """
    variables = (3 << 19) // 9
    pod = _pod()
    del pod["metadata"]["annotations"]
    pod["spec"]["containers"][0]["env"] = [{"name": "AAA"}] * variables
    body = _body(pod)

    assert len(body) < MAX_BODY_BYTES
    assert Server().post(body).response["allowed"] is True


def test_defect_is_a_500_with_the_uid_and_no_review() -> None:
    """The failurePolicy decides; log and metric record it without any value of the pod."""
    server = Server(_broken)
    answer = server.post(_body())
    (line,) = server.lines.read()

    assert (answer.status, json.loads(answer.body)) == (
        500,
        {
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "code": 500,
            "reason": "InternalError",
            "message": (
                f"internal error of rdma-webhook; its log has the details, with the uid {UID}"
            ),
        },
    )
    assert (line["level"], line["msg"], line["uid"]) == ("error", "internal error", UID)
    assert line["error"] == "KeyError"
    assert line["trace"][0].startswith("mutate.py:")
    assert server.count("internal_errors_total") == 1
    assert server.count("requests_total", endpoint="mutate", code="500") == 1


def test_a_defect_keeps_no_value_of_the_decision() -> None:
    """Its frames can have hundreds of megabytes, and garbage is collected rarely."""
    values = list[weakref.ref[State]]()

    def broken(_pod: PodManifest, _decision_input: DecisionInput) -> Decision:
        value = State()
        values.append(weakref.ref(value))
        raise KeyError

    gc.disable()
    try:
        assert Server(broken).post(_body()).status == 500
        assert values[0]() is None
    finally:
        gc.enable()


def test_decision_that_raises_is_a_500_too() -> None:
    """A defect of any type is answered here, and not left to the server."""

    def explode(_pod: PodManifest, _decision_input: DecisionInput) -> Decision:
        raise RuntimeError(SECRET)

    assert Server(explode).post(_body()).status == 500


def test_without_configuration_failure_policy_decides() -> None:
    """Without fabrics nothing can be decided: the answer is a 503 with the reason."""
    server = Server(configured=False)
    server.state.send(ConfigurationMissing("apply them"))
    answer = server.post(_body())

    status = json.loads(answer.body)
    assert (answer.status, status["kind"], status["reason"], status["message"]) == (
        503,
        "Status",
        "ServiceUnavailable",
        f"{NO_FABRICS_MESSAGE}apply them",
    )
    assert "retry-after" not in answer.headers


def test_no_line_holds_a_value_of_the_pod() -> None:
    """Bodies, values of variables, and messages that quote them stay out of the log."""
    server = Server()
    invalid = _pod()
    invalid["spec"]["containers"][0]["env"] = SECRET
    for body in (_body(), _body(invalid), _body(object=[SECRET]), _body() + SECRET.encode()):
        server.post(body)
    server.app = Mutate(server.state, server.metrics, server.lines.log, _broken)
    server.post(_body())
    lines = server.lines.read()

    assert len(lines) == 5
    assert SECRET not in json.dumps(lines)


def test_the_owner_is_notified_of_a_decision_with_the_clients_address() -> None:
    """Events are shared fairly between addresses; nobody is notified of anything else."""
    notices = list[tuple[str, bool, str]]()
    server = Server()
    server.app = Mutate(
        server.state,
        server.metrics,
        server.lines.log,
        decide,
        lambda request, decision, address: notices.append(
            (request.namespace, decision.allowed, address)
        ),
    )
    server.post(_body(namespace="lab"))
    server.post(_body(object=[]))
    assert notices == [("lab", True, "127.0.0.1")]


def test_draining_makes_clients_connect_again() -> None:
    """Connections outlive readiness, so the answer itself closes them."""
    server = Server()
    server.state.draining = True

    assert server.post(_body()).headers["connection"] == "close"
    assert server.post(b"", (b"content-type", b"text/html")).headers["connection"] == "close"


def test_client_that_goes_away_is_not_answered() -> None:
    """There is no client to answer, and nothing to count."""
    server = Server()

    assert call(server.app, "POST", "/mutate", b"{", None, headers=[JSON, LENGTH]).status == 0
    assert server.lines.read() == []


def test_malformed_traceparent_is_left_out() -> None:
    """What a client writes into that header is logged only if it is valid."""
    server = Server()
    server.post(_body(), JSON, (b"traceparent", b"evil\r\nvalue"))

    assert "traceparent" not in server.lines.read()[0]


def test_long_names_are_cut_in_the_log() -> None:
    """One request must not write megabytes into a line of the log."""
    server = Server()
    server.post(_body(name="n" * 10_000))
    (line,) = server.lines.read()

    assert len(line["name"]) == 256


def test_metrics_can_be_parsed() -> None:
    """Prometheus' own parser can read a scrape."""
    server = Server()
    server.post(_body())
    families = {
        family.name for family in text_string_to_metric_families(server.metrics.text().decode())
    }

    assert {"rdma_webhook_requests", "rdma_webhook_mutations"} <= families


def _echo(pod: PodManifest, _decision_input: DecisionInput) -> Decision:
    """Decide to add a copy of the pod's content, so that the answer contains it."""
    reason = Reason("Patched", "", "")
    op: PatchOp = {"op": "add", "path": "/copy", "value": pod["deep"]}
    return Decision(allowed=True, reason=reason, pod=pod, patch=(op,))


@pytest.mark.parametrize(
    ("depth", "allowed"), [(MAX_DEPTH - 3, True), (MAX_DEPTH - 2, False), (900, False)]
)
def test_a_deeper_body_than_any_pod_is_refused(depth: int, *, allowed: bool) -> None:
    """The parser reads five times the depth for which the rest of the code is made."""
    response = (
        Server(_echo).post(_body(object={"deep": 5}).replace(b"5}", _nested(depth) + b"}")).response
    )

    assert (response["uid"], response["allowed"]) == (UID, allowed)
    assert allowed or response["status"]["message"] == "the body is nested deeper than 200 levels"
