"""`POST /mutate`: an AdmissionReview in, an AdmissionReview out.

This is a plain ASGI callable: FastAPI's routing takes longer than the decision, and a thread
pool would only add waiting, since nothing here does I/O.

    request                                    answer
    ----------------------------------------   ------------------------------------------
    a pod to be created                        200, with the decision
    another kind or operation                  200, allowed, unchanged, with a warning
    an invalid body with a readable uid        200, rejected with code 400 and the place
    an invalid body without a readable uid     400, one line of text
    too large or too many values, too slow,    413, 408, 411, 415
    no content-length, not of type JSON
    a defect of the webhook                    500, a Status: failurePolicy decides
    without a configuration that has fabrics   503, a Status: failurePolicy decides

If the watch has not delivered the pod's namespace yet, the request waits; see `namespace_waits`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import orjson

from webhook.admission.respond import answer, failure, leave, reject
from webhook.admission.review import AdmissionRequest, read_review, uid_of
from webhook.app.http import asgi
from webhook.app.http.asgi import JSON, TEXT, Bodies, DisconnectedError, Headers
from webhook.app.observe.log import Log
from webhook.app.observe.metrics import Metrics
from webhook.app.refusal import RequestError
from webhook.app.state import State
from webhook.app.writes.owners import TellOwner, tell_nobody
from webhook.decision.outcome import Decision
from webhook.decision.scope import Context
from webhook.defect import defect
from webhook.errors import ReviewError
from webhook.pod.manifest import PodManifest

PATH = "/mutate"
#: orjson reads up to a depth of 1024 and writes up to 254; no pod is a tenth as deep.
DEPTH = 200
#: A body larger than SMALL may have at most VALUES values, counted by its `,`, `[` and `{`, and
#: OBJECTS objects, counted by its `{`. Parsed, these take at most 100 MiB; 8 MiB of `{},` would
#: take 220 MiB. The densest pod that etcd accepts (1.5 MiB), of variables with three-letter names,
#: has 350,000 values and 175,000 objects. More numbers than that would fit, but the only list of
#: numbers in a pod is supplementalGroups, of which Linux allows 65,536 (NGROUPS_MAX).
SMALL = 256 * 1024
VALUES = 400_000
OBJECTS = 200_000
#: Memory that each of these characters stands for once it is parsed, for a request that waits.
VALUE_BYTES = 260
#: For whoever creates a pod without fabrics; it stands behind "failed calling webhook …: ", and the
#: reason follows.
NOT_CONFIGURED = "rdma-webhook has no fabrics, so pods with rdma.lab/enable cannot be created: "
_ABOVE_POD = 2  # `request.object`
#: The API server writes `request.uid` first, so it can be read even if the rest cannot be parsed.
#: This cannot match inside a JSON string, whose quotes are escaped.
_UID = re.compile(rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([A-Za-z0-9._-]{1,128})"')
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
#: Characters of a name in the log; Kubernetes allows at most 253.
_LONGEST_NAME = 256

Decide = Callable[[PodManifest, Context], Decision]


class Answer(NamedTuple):
    """An HTTP answer, and what the log and the metrics need to know about it."""

    status: int
    body: bytes
    content_type: bytes = JSON
    request: AdmissionRequest | None = None
    decision: Decision | None = None
    #: For the log: what was wrong with the request.
    problem: str | None = None
    uid: str = ""
    error: Exception | None = None


class Mutate:
    """The ASGI application of the admission listener."""

    def __init__(
        self,
        state: State,
        metrics: Metrics,
        log: Log,
        decide: Decide,
        tell_owner: TellOwner = tell_nobody,
    ) -> None:
        self._state = state
        self._metrics = metrics
        self._log = log
        self._decide = decide
        self._tell_owner = tell_owner
        self._bodies = Bodies()

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Answer one request."""
        started = perf_counter()
        headers: Headers = dict(scope["headers"])
        try:
            _check(scope, headers)
            body = await self._bodies.read(headers, receive)
            _check_density(body)
            result = await self._answer(body)
            close = self._state.draining
        except RequestError as error:
            result = _text(error.status, str(error))
            close = self._state.draining or error.close
        except DisconnectedError:
            return
        await asgi.respond(send, result.status, result.body, result.content_type, close=close)
        seconds = perf_counter() - started
        endpoint = "mutate" if scope["path"] == PATH else "other"
        self._metrics.answered(endpoint, result.status, seconds)
        self._tell(result, headers, seconds)

    async def _answer(self, body: bytes) -> Answer:
        """Answer any body, once its namespace is known or the wait for it is over."""
        read = _read(body)
        if isinstance(read, AdmissionRequest):
            if self._is_early(read):
                await self._arrival(read, body)
            return self._answer_to(read)
        return read

    def answer(self, body: bytes) -> Answer:
        """Answer any body with what is known now."""
        read = _read(body)
        return self._answer_to(read) if isinstance(read, AdmissionRequest) else read

    def _is_early(self, request: AdmissionRequest) -> bool:
        """Whether nothing is known about its namespace yet, but may be in a moment."""
        snapshot, arrivals = self._state.snapshot, self._state.arrivals
        if snapshot is None or arrivals is None or request.ignored:
            return False
        return not snapshot.facts.namespace(request.namespace).known

    async def _arrival(self, request: AdmissionRequest, body: bytes) -> None:
        """Wait until the watch has delivered the namespace, or for the longest wait allowed."""
        assert self._state.arrivals is not None
        held = len(body) + _signs(body) * VALUE_BYTES
        await self._state.arrivals.of(request.namespace, held)

    def _answer_to(self, request: AdmissionRequest) -> Answer:
        """Answer a request that could be read; never raises."""
        try:
            return self._decided(request)
        except Exception as error:  # noqa: BLE001 -- a defect must be answered, with the uid
            if _deeper_than(request.pod, DEPTH - _ABOVE_POD):
                return _too_deep(request.uid)
            return _broken(request.uid, error)

    def _decided(self, request: AdmissionRequest) -> Answer:
        if request.ignored:
            left = orjson.dumps(leave(request.uid, request.ignored))
            return Answer(200, left, request=request, problem=request.ignored)
        context = self._state.context_for(request.namespace, request.pod)
        if context is None:
            problem = f"{NOT_CONFIGURED}{self._state.lacking}"
            refusal = orjson.dumps(failure(503, problem))
            return Answer(503, refusal, request=request, problem=problem)
        decision = self._decide(request.pod, context)
        written = orjson.dumps(answer(request.uid, decision))
        return Answer(200, written, request=request, decision=decision)

    def _tell(self, result: Answer, headers: Headers, seconds: float) -> None:
        """Count and log an answer that has been sent."""
        took = round(seconds * 1000, 3)
        trace = _traceparent(headers)
        request, decision = result.request, result.decision
        if result.error is not None:
            self._metrics.internal_errors.inc()
            self._log.write(
                "error",
                "internal error",
                uid=result.uid[:_LONGEST_NAME],
                duration_ms=took,
                traceparent=trace,
                **defect(result.error),
            )
        elif request is None or decision is None:
            self._log.write(
                "warning",
                "not decided",
                uid=(request.uid if request else result.uid)[:_LONGEST_NAME] or None,
                status=result.status,
                problem=result.problem,
                duration_ms=took,
                traceparent=trace,
            )
        else:
            self._metrics.decided(decision)
            self._log.write(
                "info",
                "decided",
                **_described(request, decision),
                duration_ms=took,
                traceparent=trace,
            )
            self._tell_owner(request, decision)


def _check(scope: asgi.Scope, headers: Headers) -> None:
    """Reject what cannot be a review by its headers; ignore the query string (`?timeout=5s`)."""
    if scope["path"] != PATH:
        raise RequestError(404, f"there is nothing at this path: POST an AdmissionReview to {PATH}")
    if scope["method"] != "POST":
        raise RequestError(405, f"{PATH} accepts only POST")
    content_type = headers.get(b"content-type", JSON)
    if b"json" not in content_type.lower():
        shown = content_type.decode("latin-1")
        raise RequestError(415, f"content-type is {shown!r:.80}: it must be application/json")
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise RequestError(415, "content-encoding is not supported: send plain JSON")
    if b"content-length" not in headers:  # the API server always sends one
        raise RequestError(
            411, "content-length is missing: chunked bodies are not accepted here", close=True
        )


def _check_density(body: bytes) -> None:
    """Reject a body that would take too much memory once it is parsed."""
    if len(body) <= SMALL:
        return
    if _signs(body) > VALUES:
        raise RequestError(413, f"the body contains more than {VALUES} values, the maximum")
    if body.count(b"{") > OBJECTS:
        raise RequestError(413, f"the body contains more than {OBJECTS} objects, the maximum")


def _signs(body: bytes) -> int:
    """Count the `,`, `[` and `{` in one pass: three calls of `count` take twice as long each."""
    return len(body) - len(body.translate(None, b",[{"))


def _read(body: bytes) -> AdmissionRequest | Answer:
    """Read a body as a review, or return the answer to an invalid one; never raises."""
    document: Any = None
    try:
        document = _parse(body)
        return read_review(document)
    except ReviewError as error:
        return _refused(uid_of(document) or _legible_uid(body), str(error))
    except Exception as error:  # noqa: BLE001 -- a defect must be answered, with the uid
        if _deeper_than(document, DEPTH):
            return _too_deep(uid_of(document))
        return _broken(uid_of(document), error)


def _parse(body: bytes) -> Any:
    """Parse JSON strictly: no NaN, no lone surrogates, UTF-8 only. ReviewError says where."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ReviewError(_not_json(body, error)) from None


def _not_json(body: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        body.decode()
    except UnicodeDecodeError as wrong:
        return f"the body is not UTF-8: byte {wrong.start} is 0x{body[wrong.start]:02x}"
    return f"the body is not JSON: {error}"


def _legible_uid(body: bytes) -> str:
    found = _UID.search(body)
    return found[1].decode() if found else ""


def _refused(uid: str, problem: str) -> Answer:
    if not uid:
        return _text(400, problem)
    return Answer(200, orjson.dumps(reject(uid, 400, problem)), problem=problem, uid=uid)


def _too_deep(uid: str) -> Answer:
    return _refused(uid, f"the body is nested deeper than {DEPTH} levels")


def _broken(uid: str, error: Exception) -> Answer:
    message = (
        "internal error of rdma-webhook; its log has the details, with the uid "
        f"{uid[:_LONGEST_NAME]}"
    )
    body = orjson.dumps(failure(500, message))
    return Answer(500, body, uid=uid, error=error)


def _text(status: int, problem: str) -> Answer:
    return Answer(status, f"{problem}\n".encode(errors="replace"), TEXT, problem=problem)


def _deeper_than(document: Any, depth: int) -> bool:
    level: list[Any] = [[document]]
    for _ in range(depth + 1):
        level = [
            child
            for one in level
            for child in (one.values() if isinstance(one, dict) else one)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True


def _traceparent(headers: Headers) -> str | None:
    """Return the W3C trace context, which the API server sends if tracing is enabled."""
    value = headers.get(b"traceparent")
    return value.decode() if value and _TRACEPARENT.fullmatch(value) else None


def _described(request: AdmissionRequest, decision: Decision) -> dict[str, Any]:
    """Return what the log says about a decision: names and codes, but no message and no value."""
    applied = {one.mutation: None for one in decision.outcomes if one.status == "applied"}
    return {
        "uid": request.uid[:_LONGEST_NAME],
        "namespace": request.namespace[:_LONGEST_NAME],
        "name": request.name[:_LONGEST_NAME],
        "allowed": decision.allowed,
        "reason": decision.reason.code,
        "rdma": decision.verdict.rdma if decision.verdict else None,
        "because": decision.verdict.because.code if decision.verdict else None,
        "fabric": decision.fabric,
        "applied": list(applied),
        "dryRun": request.dry_run or None,
    }
