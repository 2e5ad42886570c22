"""`POST /mutate`: an AdmissionReview comes in, an AdmissionReview goes out.

This is a plain ASGI callable: FastAPI's routing takes longer than the decision, and a thread
pool would only add waiting, since nothing here does I/O.

    request                                    answer
    ----------------------------------------   ------------------------------------------
    a pod to be created                        200, with the decision
    another kind or operation                  200, allowed, unchanged, with a warning
    an invalid body with a readable uid        200, rejected with code 400 and the place
    an invalid body without a readable uid     400, one line of text
    too large or too many values, too slow,    413, 408, 411, 415, 405
    no content-length, not JSON, not POST
    a defect of the webhook                    500, a Status: failurePolicy decides
    without a configuration that has fabrics   503, a Status: failurePolicy decides
    too many requests at once                  503, a Status: failurePolicy decides

Large requests are decided one at a time, with rests in between: one with a pod of 1.4 MB can take
half a second, and others must not wait for many of them. Other requests take turns, too, while
many arrive at once: one with a hundred containers can take 40 ms.

If a watch has not delivered the pod's namespace yet, or a ResourceClaim that the pod names, the
request waits; see `WaitingRequests`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from time import perf_counter
from typing import NamedTuple, TypeVar

import orjson
from starlette.types import Receive, Scope, Send

from webhook.admission.expected_registration import MUTATE_PATH
from webhook.admission.registration import NO_FABRICS_MESSAGE
from webhook.admission.response import allow_unchanged, failure
from webhook.admission.review import AdmissionRequest, read_review
from webhook.errors import RequestError, crash_summary
from webhook.model.annotations import asks_for_rdma
from webhook.model.claims import unknown_claims
from webhook.model.decision import Decision
from webhook.serve.events import NotifyOwner, notify_nobody
from webhook.serve.fair_queue import MAX_REST, FairQueue
from webhook.serve.http import asgi
from webhook.serve.http.asgi import (
    JSON,
    BodyReader,
    DisconnectedError,
    Headers,
    closable_turn,
    until_disconnect,
)
from webhook.serve.http.decision_cache import MAX_DECISIONS, Decide, DecisionCache
from webhook.serve.http.review_body import (
    MAX_NAME_LENGTH,
    count_structural_characters,
    defect_answer,
    namespace_in,
    review_body,
    review_or_error,
    text_answer,
    traceparent,
)
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.state import State
from webhook.serve.waiting_requests import claim_key

#: Bytes of memory for each structural character of a parsed request that waits.
VALUE_BYTES = 260
#: The size in bytes of a large request; a request with an ordinary pod has a few kilobytes.
LARGE = 64 * 1024
#: Seconds of decisions in one iteration of the event loop; the requests after them take turns. That
#: takes more time for each, so a burst of two hundred ordinary pods needs none.
MAX_BURST = 0.25
#: Seconds that a request waits for its turn: `timeoutSeconds` of our webhook configuration.
MAX_TURN_WAIT = 5.0
#: The message for a request whose turn does not come in time.
CROWDED = "rdma-webhook has too many requests at once; try again"


_Result = TypeVar("_Result")


class Answer(NamedTuple):
    """An HTTP answer, with details for the log and the metrics."""

    status: int
    body: bytes
    content_type: bytes = JSON
    #: The problem of the request.
    problem: str | None = None
    uid: str = ""
    error: Exception | None = None
    request: AdmissionRequest | None = None
    decision: Decision | None = None


class Mutate:
    """The ASGI application of `/mutate`."""

    def __init__(
        self,
        state: State,
        metrics: Metrics,
        log: Log,
        decide: Decide,
        notify_owner: NotifyOwner = notify_nobody,
        *,
        max_decisions: int = MAX_DECISIONS,
    ) -> None:
        """Prepare the application; it keeps up to `max_decisions` decisions."""
        self._state = state
        self._metrics = metrics
        self._log = log
        self._decisions = DecisionCache(decide, metrics.decision_cache, log, max_decisions)
        self._notify_owner = notify_owner
        self._bodies = BodyReader()
        self._large_requests = FairQueue(MAX_REST)
        self._other_requests = FairQueue()
        #: The seconds of decisions in this iteration of the event loop.
        self._burst = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        started = perf_counter()
        headers: Headers = dict(scope["headers"])
        try:
            body = await review_body(MUTATE_PATH, scope, headers, self._bodies, receive)
            answer = await self._answer(body, scope, receive)
            close = self._state.draining
        except RequestError as error:
            answer = Answer(*text_answer(error.status, str(error)))
            close = self._state.draining or error.close
        except DisconnectedError:
            return
        await asgi.respond(send, answer.status, answer.body, answer.content_type, close=close)
        seconds = perf_counter() - started
        self._metrics.count_request("mutate", answer.status, seconds)
        self._record(answer, headers, seconds, asgi.address_of(scope))

    async def _answer(self, body: bytes, scope: Scope, receive: Receive) -> Answer:
        """Answer any body, after its facts have arrived or the wait for them is over."""
        try:
            answer = await self._in_turn(self._answer_or_missing, body, scope, receive)
            if isinstance(answer, Answer):
                return answer
            await self._wait_for(answer, body)
            return await self._in_turn(self.answer, body, scope, receive)
        except TimeoutError:
            refusal = orjson.dumps(failure(503, CROWDED))
            return Answer(503, refusal, problem=CROWDED)

    async def _in_turn(
        self,
        answer_to: Callable[[bytes], _Result],
        body: bytes,
        scope: Scope,
        receive: Receive,
    ) -> _Result:
        """Call `answer_to`: at once if there is no crowd, and otherwise in its turn.

        Raises TimeoutError if the turn does not come in time.
        """
        if len(body) <= LARGE and self._other_requests.is_free and self._burst < MAX_BURST:
            return self._in_burst(answer_to, body)

        async def wait_and_answer() -> _Result:
            async with self._turn(body, scope):
                return answer_to(body)

        return await until_disconnect(wait_and_answer(), receive)

    def _in_burst(self, answer_to: Callable[[bytes], _Result], body: bytes) -> _Result:
        """Call `answer_to`, and count its time."""
        began = perf_counter()
        result = answer_to(body)
        if not self._burst:
            asyncio.get_running_loop().call_soon(self._end_burst)
        self._burst += perf_counter() - began
        return result

    def _end_burst(self) -> None:
        self._burst = 0.0

    def _turn(self, body: bytes, scope: Scope) -> AbstractAsyncContextManager[None]:
        """Wait for a turn, and keep it until the end of the block; raises TimeoutError."""
        queue = self._large_requests if len(body) > LARGE else self._other_requests
        return closable_turn(queue, scope, MAX_TURN_WAIT, namespace=namespace_in(body))

    def _answer_or_missing(self, body: bytes) -> Answer | list[str]:
        """Answer any body, or return the keys of its missing facts."""
        match review_or_error(body, read_review):
            case AdmissionRequest() as request:
                return self._missing_facts(request) or self._answer_to(request)
            case error:
                return Answer(*error)

    def answer(self, body: bytes) -> Answer:
        """Answer any body with the latest facts."""
        match review_or_error(body, read_review):
            case AdmissionRequest() as request:
                return self._answer_to(request)
            case error:
                return Answer(*error)

    def _missing_facts(self, request: AdmissionRequest) -> list[str]:
        """Return the keys of missing facts that a watch may still deliver."""
        snapshot, waiting = self._state.snapshot, self._state.waiting_requests
        if snapshot.current_configuration is None or waiting is None or request.ignore_reason:
            return []
        namespace, claims = request.namespace, snapshot.claims
        missing = [] if snapshot.facts.namespace(namespace).is_loaded else [namespace]
        if claims is not None and claims.are_watched and asks_for_rdma(request.pod):
            unknown = unknown_claims(request.pod, claims.of(namespace))
            missing += [claim_key(namespace, name) for name in unknown]
        return missing

    async def _wait_for(self, missing: list[str], body: bytes) -> None:
        """Wait until the watches have delivered these facts, or for the longest wait allowed."""
        assert self._state.waiting_requests is not None
        octets = len(body) + count_structural_characters(body) * VALUE_BYTES
        await self._state.waiting_requests.wait_for(missing, octets)

    def _answer_to(self, request: AdmissionRequest) -> Answer:
        """Return the answer to a readable request; never raises."""
        try:
            return self._decision_answer(request)
        except Exception as error:  # noqa: BLE001 -- a defect must be answered, with the uid
            return Answer(*defect_answer(request.uid, error))

    def _decision_answer(self, request: AdmissionRequest) -> Answer:
        if request.ignore_reason:
            unchanged = orjson.dumps(allow_unchanged(request.uid, request.ignore_reason))
            return Answer(200, unchanged, request=request, problem=request.ignore_reason)
        decision_input = self._state.decision_input_for(request.namespace, request.pod)
        if decision_input is None:
            problem = f"{NO_FABRICS_MESSAGE}{self._state.snapshot.reason_without_fabrics}"
            refusal = orjson.dumps(failure(503, problem))
            return Answer(503, refusal, request=request, problem=problem)
        answered = self._decisions.answer(request, decision_input)
        body = answered.body(request.uid)
        return Answer(200, body, request=request, decision=answered.decision)

    def _record(
        self, answer: Answer, headers: Headers, seconds: float, client_address: str
    ) -> None:
        """Count and log a sent answer."""
        took = round(seconds * 1000, 3)
        trace = traceparent(headers)
        request, decision = answer.request, answer.decision
        if answer.error is not None:
            self._metrics.internal_errors.inc()
            self._log.write(
                "error",
                "internal error",
                uid=answer.uid[:MAX_NAME_LENGTH],
                duration_ms=took,
                traceparent=trace,
                **crash_summary(answer.error),
            )
        elif request is None or decision is None:
            self._log.write(
                "warning",
                "not decided",
                uid=(request.uid if request else answer.uid)[:MAX_NAME_LENGTH] or None,
                status=answer.status,
                problem=answer.problem,
                duration_ms=took,
                traceparent=trace,
            )
        else:
            self._metrics.count_decision(decision)
            self._log.write(
                "info",
                "decided",
                **_log_fields(request, decision),
                duration_ms=took,
                traceparent=trace,
            )
            self._notify_owner(request, decision, client_address)


def _log_fields(request: AdmissionRequest, decision: Decision) -> dict[str, object]:
    """Return the log fields of a decision: names and codes, but no message and no value."""
    applied = {
        outcome.mutation: None for outcome in decision.outcomes if outcome.status == "applied"
    }
    return {
        "uid": request.uid[:MAX_NAME_LENGTH],
        "namespace": request.namespace[:MAX_NAME_LENGTH],
        "name": request.name[:MAX_NAME_LENGTH],
        "allowed": decision.allowed,
        "reason": decision.reason.code,
        "rdma": decision.verdict.rdma if decision.verdict else None,
        "because": decision.verdict.because.code if decision.verdict else None,
        "fabric": decision.fabric,
        "applied": list(applied),
        "dryRun": request.dry_run or None,
    }
