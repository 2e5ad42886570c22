"""`POST /validate`: the check of a new configuration of the cluster.

An AdmissionReview about a FabricConfiguration comes in, an AdmissionReview goes out. The rules
are the rules of `rdma-webhook check-config`. The worker applies them, since the largest object
takes a second; this process only reads the review.

    request                                    answer
    ----------------------------------------   ------------------------------------------
    an object to be created or updated         200: allowed, perhaps with warnings, or
                                               rejected with code 422, paths and remedies
    an object that is being deleted, or        200, allowed
    an update that leaves the spec as it is
    another kind or operation                  200, allowed, with a warning
    an invalid body                            as for /mutate
    a defect of the webhook                    500, a Status: failurePolicy decides
    no answer of the worker in time            503, a Status: failurePolicy decides
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import NamedTuple

import orjson
from starlette.types import Receive, Scope, Send

from webhook.admission.configuration_review import (
    ConfigurationErrors,
    ConfigurationRequest,
    configuration_answer,
    read_configuration_review,
)
from webhook.admission.expected_registration import VALIDATE_PATH
from webhook.admission.response import allow_unchanged, failure
from webhook.config.custom_resource import CONFIGURATION_NAME
from webhook.config.load import spec_too_large
from webhook.config.model import API_VERSION, KIND
from webhook.errors import RequestError, crash_summary
from webhook.model.pod import at
from webhook.serve.fair_queue import MAX_REST, FairQueue, Quota
from webhook.serve.http import asgi
from webhook.serve.http.asgi import (
    JSON,
    BodyReader,
    DisconnectedError,
    Headers,
    address_of,
    closable_turn,
    finished_once_begun,
    until_disconnect,
)
from webhook.serve.http.review_body import (
    MAX_NAME_LENGTH,
    ErrorAnswer,
    defect_answer,
    review_body,
    review_or_error,
    text_answer,
    traceparent,
)
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.state import PreparedConfiguration, State
from webhook.serve.worker_supervisor import WorkerAnswer, WorkerRequest, WorkerSupervisor

#: The time limit of a validation, including its wait for others: less than `timeoutSeconds` of our
#: ValidatingWebhookConfiguration.
SECONDS = 8.0
#: The longest pause before a new worker after the end of the last one.
MAX_PAUSE = 1.0
#: Validations that may wait or run, in total and from one address, and the bytes of their objects.
#: A valid object and the managers of its fields have fewer: etcd limits an object to 1.5 MiB.
PENDING, PENDING_PER_ADDRESS = 32, 8
BYTES, BYTES_PER_ADDRESS = 8 << 20, 4 << 20
#: The size of an object that an address with none may send even while others fill the queue: more
#: than the definition of the kind allows.
FIRST_BYTES = 256 << 10
#: A message for the user who applies the object, after "failed calling webhook …: ".
NOT_CHECKED = "rdma-webhook could not check the configuration: "
CROWDED = f"{NOT_CHECKED}too many requests at once; apply it again"
_GROUP = API_VERSION.partition("/")[0]
#: The unchecked fields, which may be large and come mostly from the API server.
_UNCHECKED = ("metadata", "status")


class ValidationAnswer(NamedTuple):
    """An HTTP answer, with details for the log and the metrics."""

    status: int
    body: bytes
    content_type: bytes = JSON
    #: The reason why no object could be checked.
    problem: str | None = None
    uid: str = ""
    error: Mapping[str, object] | None = None
    request: ConfigurationRequest | None = None
    #: The numbers of errors and warnings of the object; None if unchecked.
    counts: tuple[int, int] | None = None


class PendingValidation(NamedTuple):
    """A request that waits for the worker."""

    request: ConfigurationRequest
    #: The object to check, and its change, in JSON.
    written: bytes


class Validate:
    """The ASGI application of `/validate`."""

    def __init__(
        self, state: State, metrics: Metrics, log: Log, worker: WorkerSupervisor, queue: FairQueue
    ) -> None:
        self._state = state
        self._metrics = metrics
        self._log = log
        self._worker = worker
        self._queue = queue
        self._reading = FairQueue(MAX_REST)
        self._bodies = BodyReader()
        self._validation_quota = Quota("validations", PENDING, PENDING_PER_ADDRESS, first=1)
        self._byte_quota = Quota("large validations", BYTES, BYTES_PER_ADDRESS, first=FIRST_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        started = perf_counter()
        headers: Headers = dict(scope["headers"])
        try:
            body = await review_body(VALIDATE_PATH, scope, headers, self._bodies, receive)
            validation = await until_disconnect(self._read_and_answer(body, scope), receive)
            close = self._state.draining
        except RequestError as error:
            validation = _error_answer(text_answer(error.status, str(error)))
            close = self._state.draining or error.close
        except DisconnectedError:
            return
        await asgi.respond(
            send, validation.status, validation.body, validation.content_type, close=close
        )
        seconds = perf_counter() - started
        self._metrics.count_request("validate", validation.status, seconds)
        self._record(validation, headers, seconds)

    async def _read_and_answer(self, body: bytes, scope: Scope) -> ValidationAnswer:
        """Return the answer to any body; raise RequestError if its turn does not come in time."""
        deadline = asyncio.get_running_loop().time() + SECONDS
        try:
            # A large body takes a tenth of a second: others are answered between two of them.
            async with closable_turn(self._reading, scope, SECONDS):
                prepared = _read_body(body, self._state.snapshot.current_configuration)
        except TimeoutError:
            raise RequestError(503, CROWDED) from None
        return await self._answer(prepared, address_of(scope), deadline)

    async def _answer(
        self, prepared: ValidationAnswer | PendingValidation, client_address: str, deadline: float
    ) -> ValidationAnswer:
        """Return the answer to any request until the loop's time `deadline`; never raises."""
        if isinstance(prepared, ValidationAnswer):
            return prepared
        request, written = prepared
        try:
            return await self._judge(request, written, client_address, deadline)
        except Exception as error:  # noqa: BLE001 -- a defect must be answered, with the uid
            return _error_answer(defect_answer(request.uid, error))

    async def _judge(
        self, request: ConfigurationRequest, written: bytes, client_address: str, deadline: float
    ) -> ValidationAnswer:
        try:
            answer = await self._ask_worker(request, written, client_address, deadline)
        except TimeoutError:
            return _unchecked_answer(request, f"it took longer than {SECONDS:g} s; apply it again")
        except RequestError as error:
            return _unchecked_answer(request, str(error))
        return _of_worker(request, answer)

    async def _ask_worker(
        self, request: ConfigurationRequest, written: bytes, client_address: str, deadline: float
    ) -> WorkerAnswer:
        """Have the worker check the object; previews wait meanwhile."""
        parameters = {"uid": request.uid, "object_reference": _object_reference(request)}
        worker_request = WorkerRequest(
            operation="validate",
            parameters=parameters,
            body=written,
            noun="validation",
            advice="apply it again",
        )
        has_turn = asyncio.Event()

        async def ask_in_turn() -> WorkerAnswer:
            async with (
                asyncio.timeout_at(deadline),
                self._queue.turn(client_address, SECONDS, urgent=True),
            ):
                has_turn.set()
                return await self._worker.ask(worker_request, max_pause=MAX_PAUSE)

        with (
            self._validation_quota.take(client_address),
            self._byte_quota.take(client_address, len(written)),
        ):
            return await finished_once_begun(ask_in_turn(), has_turn, SECONDS)

    def _record(self, validation: ValidationAnswer, headers: Headers, seconds: float) -> None:
        """Count and log a sent answer."""
        request = validation.request
        fields: dict[str, object] = {
            "uid": (request.uid if request else validation.uid)[:MAX_NAME_LENGTH] or None
        }
        timing = {"duration_ms": round(seconds * 1000, 3), "traceparent": traceparent(headers)}
        if validation.error is not None:
            self._metrics.internal_errors.inc()
            self._log.write("error", "internal error", **fields, **timing, **validation.error)
        elif request is None or (validation.counts is None and not request.reason_to_accept):
            fields |= {"status": validation.status, "problem": validation.problem}
            self._log.write("warning", "not validated", **fields, **timing)
        else:
            errors, warnings = validation.counts or (0, 0)
            self._metrics.worker.count_validation(allowed=not errors)
            fields |= _log_fields(request) | {"allowed": not errors}
            fields |= {"errors": errors, "warnings": warnings}
            self._log.write("info", "validated", **fields, **timing)


def _read_body(
    body: bytes, current: PreparedConfiguration | None
) -> ValidationAnswer | PendingValidation:
    """Return the answer to a body, or the request for the worker; never raises.

    The parsed body is dropped: it may take a hundred times as much memory.
    """
    read = review_or_error(body, _review)
    if isinstance(read, ErrorAnswer):
        return _error_answer(read)
    request = read._replace(object={}, change=None)
    if request.ignore_reason:
        unchanged = orjson.dumps(allow_unchanged(request.uid, request.ignore_reason))
        return ValidationAnswer(200, unchanged, problem=request.ignore_reason, request=request)
    if request.reason_to_accept:
        accepted = orjson.dumps(configuration_answer(request.uid, {}, ConfigurationErrors()))
        return ValidationAnswer(200, accepted, request=request)
    return _pending(read, current)


def _pending(
    read: ConfigurationRequest, current: PreparedConfiguration | None
) -> ValidationAnswer | PendingValidation:
    """Return the request for the worker, or the answer to an object that is too deep or large."""
    request = read._replace(object={}, change=None)
    change = None
    if read.change is not None:
        removed = _count_nodes(read.change.removed, current)
        change = read.change._replace(removed=removed)._asdict()
    document = {"object": _checked_part(read.object), "change": change}
    written = orjson.dumps(document)
    size = len(written)
    return (
        PendingValidation(request, written)
        if size <= BYTES_PER_ADDRESS
        else _too_large(request, size)
    )


def _review(document: object) -> ConfigurationRequest:
    return read_configuration_review(document, _GROUP, KIND)


def _error_answer(error_answer: ErrorAnswer) -> ValidationAnswer:
    error = None if error_answer.error is None else crash_summary(error_answer.error)
    return ValidationAnswer(*error_answer[:-1], error=error)


def _checked_part(configuration: dict[str, object]) -> dict[str, object]:
    """Return the checked part of an object: everything except the API server's additions."""
    checked = {key: value for key, value in configuration.items() if key not in _UNCHECKED}
    return {**checked, "metadata": {"name": at(configuration, ("metadata", "name"))}}


def _count_nodes(fabrics: Iterable[str], current: PreparedConfiguration | None) -> dict[str, int]:
    """Count the nodes that belong to these fabrics of the configuration in use."""
    counts = dict.fromkeys(fabrics, 0)
    if counts and current is not None:
        for node in current.nodes:
            for name in current.fabric_index.by_node.get(node, frozenset()) & counts.keys():
                counts[name] += 1
    return counts


def _object_reference(request: ConfigurationRequest) -> dict[str, str]:
    return {"group": _GROUP, "kind": KIND, "name": request.name or CONFIGURATION_NAME}


def _too_large(request: ConfigurationRequest, size: int) -> ValidationAnswer:
    faults = ConfigurationErrors(errors=[("the object", spec_too_large(size))])
    answer = configuration_answer(request.uid, _object_reference(request), faults)
    return ValidationAnswer(200, orjson.dumps(answer), request=request, counts=(1, 0))


def _unchecked_answer(request: ConfigurationRequest, reason: str) -> ValidationAnswer:
    problem = NOT_CHECKED + reason
    return ValidationAnswer(
        503, orjson.dumps(failure(503, problem)), problem=problem, request=request
    )


def _of_worker(request: ConfigurationRequest, answer: WorkerAnswer) -> ValidationAnswer:
    """Return the HTTP answer for the worker's answer."""
    match answer.status:
        case 200:
            counts = int(answer.head["errors"]), int(answer.head["warnings"])
            return ValidationAnswer(200, b"".join(answer.pieces), request=request, counts=counts)
        case 500:
            broken = defect_answer(request.uid, RuntimeError())
            return _error_answer(broken)._replace(error=answer.defect)
        case _:
            return _unchecked_answer(request, answer.sentence)


def _log_fields(request: ConfigurationRequest) -> dict[str, object]:
    return {
        "name": request.name[:MAX_NAME_LENGTH],
        "operation": request.operation,
        "because": request.reason_to_accept or None,
        "dryRun": request.dry_run or None,
    }
