"""The listener for people: `/preview`, the webhook's changes to a pod, `/fabrics`, and the page.

Callers are anonymous, so answers contain only amounts of each fabric, and nothing else of the
cluster.
"""

from __future__ import annotations

import asyncio
from time import perf_counter

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from webhook.errors import RequestError
from webhook.model.inventory import build_inventory
from webhook.model.nodes import FabricIndex
from webhook.preview.fabrics.record import (
    FABRICS_FORMATS,
    FabricsDisplay,
    fabrics_output,
    fabrics_without_nodes,
)
from webhook.preview.formats import FOR_CLUSTER, HTTP_FORMATS, TEXT_TYPES
from webhook.serve.fair_queue import FairQueue, Quota
from webhook.serve.http.asgi import (
    BodyReader,
    DisconnectedError,
    PiecewiseResponse,
    address_of,
    finished_once_begun,
    refuse,
    until_disconnect,
)
from webhook.serve.http.page import page_files
from webhook.serve.http.query import (
    Query,
    check_query_length,
    negotiate,
    prefers_html,
    read_query,
    requested_format,
)
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.state import PreparedConfiguration, State
from webhook.serve.worker_supervisor import WorkerAnswer, WorkerRequest, WorkerSupervisor

# `/preview`: the webhook's changes to a pod or a workload, for people and their tools.
#
# The decision uses the fabrics and the caller's documents, never the facts. The worker, a separate
# process, makes it, so no document can end or block this process.

PATH = "/preview"
FABRICS_PATH = "/fabrics"
#: Previews that may wait or run, in total and from one address; others have to try again.
PENDING, PENDING_PER_ADDRESS = 16, 8
#: Bytes of request bodies and unsent answers in this process, in total and for one address.
BYTES, BYTES_PER_ADDRESS = 48 << 20, 24 << 20
#: The size of a body that an address with no preview may send even while others fill the queue.
FIRST_BYTES = 64 << 10
#: The time limit for a preview's wait for others.
WAIT_SECONDS = 30.0
#: Seconds for which a preview continues after its client has left: less than a new worker takes.
ABANDONED_SECONDS = 1.0
#: The maximum number of pods in a body: each answer takes up to 70 KiB of memory until it is sent.
MAX_PODS = 500

#: The remedy if the worker cannot compute a preview.
ADVICE = (
    "send fewer or smaller documents at a time; `rdma-webhook preview FILE` on your own machine "
    "has no such limit"
)
#: The methods with which a file or the usage can be read.
_READ = ["GET", "HEAD"]
#: A browser must take no answer for markup or a script.
_NOSNIFF = (b"x-content-type-options", b"nosniff")
_SINGLE_LINE = (
    "the body is one line and not YAML; curl -d removes the line breaks of a file, so send it "
    "with curl --data-binary"
)
_NOT_YOURS = (
    "output={} is for documents that are applied to a cluster, but this server has example "
    "fabrics; start it with -c FABRICS, or request text or json"
)
USAGE = """\
POST a pod, or anything with pod templates, as YAML or JSON (one or many documents):

  curl --data-binary @pod.yaml 'https://…/preview?namespace=lab'

Query parameters
  namespace=NAME        for objects without one (default: default)
  namespace-label=K=V   a label that the pods' namespaces have; may be repeated
  enable=true           decide as if every pod had opted in
  output=json|yaml|text instead of the Accept header

Accept
  application/json      the decisions (default)
  application/yaml      the documents after the patch
  text/plain            a report for people

In a browser, this address is a page that does the same.

GET /fabrics: the number of nodes of each fabric, and their total resources

  curl 'https://…/fabrics?output=text'

  output=json|text|wide instead of the Accept header: application/json (default) or text/plain
"""


class PreviewApp:
    """The ASGI application of the preview listener: FastAPI inside, counters outside."""

    def __init__(
        self,
        state: State,
        metrics: Metrics,
        log: Log,
        worker: WorkerSupervisor,
        queue: FairQueue | None = None,
        *,
        example: bool = False,
    ) -> None:
        """Prepare the application.

        `queue`: the queue of all requests to the worker; `example`: whether the fabrics are an
        example, as answers then mention.
        """
        self._example = example
        self._state = state
        self._metrics = metrics
        self._log = log
        self._worker = worker
        self._bodies = BodyReader()
        self._preview_quota = Quota("previews", PENDING, PENDING_PER_ADDRESS, first=1)
        self._byte_quota = Quota("large previews", BYTES, BYTES_PER_ADDRESS, first=FIRST_BYTES)
        self._queue = queue or FairQueue()
        self._amounts = FabricAmounts(state)
        self._files = page_files()
        self._app = self._routes()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer and count a request."""
        started = perf_counter()
        code = 500

        async def record_and_send(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
                message["headers"] = [*message["headers"], *self._headers(code)]
            await send(message)

        try:
            check_query_length(scope["query_string"])
        except RequestError as error:
            await refuse(record_and_send, error)
        else:
            await self._app(_without_cookies(scope), receive, record_and_send)
        self._metrics.count_request("preview", code, perf_counter() - started)

    def _headers(self, code: int) -> list[tuple[bytes, bytes]]:
        """Return the headers of every answer with this status code."""
        if self._state.draining or code in (408, 503):
            return [_NOSNIFF, (b"connection", b"close")]
        return [_NOSNIFF]

    def _routes(self) -> FastAPI:
        app = FastAPI(
            title="rdma-webhook preview",
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            redirect_slashes=False,  # a redirect would go to the address in the Host header
        )
        for path, file in self._files.items():
            app.api_route(path, methods=_READ)(file.answer)
        app.api_route(PATH, methods=_READ)(self._usage)
        app.get(FABRICS_PATH)(self._fabrics)
        app.post(PATH)(self._preview)
        app.add_exception_handler(RequestError, _answer_request_error)
        app.add_exception_handler(DisconnectedError, _answer_disconnect)
        app.add_exception_handler(HTTPException, _answer_http_error)
        return app

    async def _usage(self, request: Request) -> Response:
        """Return the page to a browser, and text to everything else."""
        if prefers_html(_accept(request)):
            answer = await self._files["/"].answer(request)
        else:
            answer = Response(USAGE, media_type="text/plain")
        answer.headers["vary"] = "accept"
        return answer

    async def _fabrics(self, request: Request) -> Response:
        requested = requested_format(request.query_params.multi_items(), FABRICS_FORMATS)
        chosen = requested or negotiate(_accept(request), FABRICS_FORMATS)
        written = await self._amounts.output(chosen.name)
        return Response(written, media_type=(chosen.media_types or TEXT_TYPES)[0])

    async def _preview(self, request: Request) -> Response:
        query = read_query(request.query_params.multi_items())
        chosen = query.output or negotiate(_accept(request), HTTP_FORMATS)
        if self._example and chosen.name in FOR_CLUSTER:
            raise RequestError(409, _NOT_YOURS.format(chosen.name))
        current = self._state.snapshot.current_configuration
        if current is None:
            raise RequestError(
                503, "the webhook has no usable configuration; see /readyz on its health port"
            )
        parameters = self._parameters(query, chosen.name)
        body = await self._bodies.read(dict(request.scope["headers"]), request.receive)
        worker_request = WorkerRequest(
            operation="preview", parameters=parameters, body=body, noun="preview", advice=ADVICE
        )
        client_address = address_of(request.scope)
        computed = self._compute(worker_request, current, client_address)
        try:
            answer = await until_disconnect(computed, request.receive)
        except RequestError as error:
            raise _with_curl_hint(error, request, body) from None
        return PiecewiseResponse(
            answer.pieces, chosen.media_types[0], self._byte_quota, client_address
        )

    def _parameters(self, query: Query, output: str) -> dict[str, object]:
        """Return the worker's parameters besides the documents."""
        return {
            "namespace": query.namespace,
            "labels": query.labels,
            "enable": query.enable,
            "example": self._example,
            "max_pods": MAX_PODS,
            "format": output,
        }

    async def _compute(
        self, worker_request: WorkerRequest, current: PreparedConfiguration, client_address: str
    ) -> WorkerAnswer:
        has_turn = asyncio.Event()

        async def ask_in_turn() -> WorkerAnswer:
            try:
                async with self._queue.turn(client_address, WAIT_SECONDS):
                    has_turn.set()
                    return await self._worker.ask(worker_request, current)
            except TimeoutError:
                raise RequestError(503, "earlier previews took too long; try again") from None

        pending = self._metrics.worker.previews_pending.track_inprogress()
        with (
            self._preview_quota.take(client_address),
            self._byte_quota.take(client_address, len(worker_request.body)),
            pending,
        ):
            answer = await finished_once_begun(ask_in_turn(), has_turn, ABANDONED_SECONDS)
        if answer.status == 500:  # noqa: PLR2004
            self._metrics.internal_errors.inc()
            self._log.write("error", "internal error", endpoint="preview", **answer.defect)
            raise RequestError(500, "internal error of rdma-webhook; its log has the details")
        if answer.status != 200:  # noqa: PLR2004
            raise RequestError(answer.status, answer.sentence)
        return answer


def _without_cookies(scope: Scope) -> Scope:
    """Return a request without its cookies: FastAPI parses them, and nothing reads them."""
    return {**scope, "headers": [field for field in scope["headers"] if field[0] != b"cookie"]}


def _accept(request: Request) -> str:
    return request.headers.get("accept", "")


def _with_curl_hint(error: RequestError, request: Request, body: bytes) -> RequestError:
    """Return the error for an unreadable body, with a hint for one changed by `curl -d`."""
    is_form = request.headers.get("content-type", "").startswith(
        "application/x-www-form-urlencoded"
    )
    if error.status != 400 or not is_form or b"\n" in body:  # noqa: PLR2004
        return error
    return RequestError(400, _SINGLE_LINE)


async def _answer_request_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return _line(error.status, str(error))


async def _answer_disconnect(_request: Request, _error: Exception) -> Response:
    return _line(400, "the client disconnected")  # nobody receives it, but it is counted


async def _answer_http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _line(error.status_code, f"{error.detail}; GET {PATH} shows how to use this server")


def _line(status: int, message: str) -> Response:
    line = f"{message}\n".encode(errors="replace")
    return Response(line, status, media_type="text/plain")


# `GET /fabrics`: the total resources of the nodes of each fabric, for people without rights.
#
# Callers are anonymous, so an answer has amounts of each fabric and names no node. A thread
# computes it once for each inventory and format.

_ANYBODY = FabricsDisplay(anonymous=True)


class FabricAmounts:
    """The amounts of the state's nodes, cached for each inventory."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._lock = asyncio.Lock()
        self._cached_index: FabricIndex | None = None
        self._outputs: dict[str, bytes] = {}

    async def output(self, name: str) -> bytes:
        """Return the amounts in a format; raise RequestError without fabrics.

        Without nodes, people get the fabrics alone, and programs would take them for empty.
        """
        current = self._state.snapshot.current_configuration
        if current is None:
            raise RequestError(
                503, "the webhook has no usable configuration; see /readyz on its health port"
            )
        if not current.nodes:
            if name == "json":
                raise RequestError(503, "the webhook has read no nodes")
            return fabrics_without_nodes(current.compiled, _ANYBODY).encode()
        async with self._lock:
            if current.fabric_index is not self._cached_index:
                self._outputs = await asyncio.to_thread(_outputs, current)
                self._cached_index = current.fabric_index
            return self._outputs[name]


def _outputs(current: PreparedConfiguration) -> dict[str, bytes]:
    """Return the amounts in each format; formatting is cheap next to the sums."""
    inventory = build_inventory(current.nodes, current.compiled)
    return {
        output_format.name: fabrics_output(inventory, output_format.name, _ANYBODY).encode()
        for output_format in FABRICS_FORMATS
    }
