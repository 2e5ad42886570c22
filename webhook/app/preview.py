"""`/preview`: what the webhook would do with a pod or a workload, for people and their tools.

Callers are anonymous, so nothing of the cluster goes into an answer: the decision gets
the fabrics and what the caller sent, never the facts. The work is done in threads, few of
them, so that previews cannot keep `/mutate` waiting.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import assert_never

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from webhook.app import asgi
from webhook.app.asgi import Bodies, DisconnectedError, RequestError
from webhook.app.log import Log, defect
from webhook.app.negotiate import FORMS, MEDIA_TYPES, Form, negotiate
from webhook.app.observe import Metrics
from webhook.app.query import read_query
from webhook.app.state import State
from webhook.documents.read import joined, read_documents
from webhook.errors import DocumentError
from webhook.preview import PreviewOptions, preview_documents, rewrite
from webhook.render.form import form_text
from webhook.render.report import Report, asides
from webhook.render.text import PARAMETERS, text

PATH = "/preview"
THREADS = 2
#: Previews that wait or run; more are told to come back.
PENDING = 16
#: Pods in one body: the answer to one takes up to 70 KiB of memory until it is sent.
PODS = 500

USAGE = """\
POST a pod, or anything that holds pod templates, as YAML or JSON (one or many documents):

  curl --data-binary @pod.yaml 'https://…/preview?namespace=lab'

Query parameters
  namespace=NAME        of objects that name none (default: default)
  namespace-label=K=V   a label of the namespaces; may be repeated
  enable=true           decide as if every pod had opted in
  output=json|yaml|text instead of the Accept header

Accept
  application/json      the decisions (default)
  application/yaml      the documents after the patch
  text/plain            for reading
"""


class Preview:
    """The ASGI application of the preview listener: FastAPI inside, counted outside."""

    def __init__(self, state: State, metrics: Metrics, log: Log) -> None:
        self._state = state
        self._metrics = metrics
        self._log = log
        self._bodies = Bodies()
        self._pending = 0
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="preview")
        self._app = self._routes()

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Answer one request, and count it."""
        started = perf_counter()
        code = 500

        async def counted(message: asgi.Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
                if self._state.draining or code in (408, 503):
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        await self._app(scope, receive, counted)
        self._metrics.answered("preview", code, perf_counter() - started)

    def _routes(self) -> FastAPI:
        app = FastAPI(
            title="rdma-webhook preview",
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            redirect_slashes=False,  # it would send the caller to whatever the Host header says
        )

        @app.get(PATH)
        async def usage() -> Response:
            return Response(USAGE, media_type="text/plain")

        @app.post(PATH)
        async def preview(request: Request) -> Response:
            query = read_query(request.query_params.multi_items())
            form = query.output or negotiate(request.headers.get("accept", ""))
            if form is None:
                known = ", ".join(MEDIA_TYPES[one][0] for one in FORMS)
                raise RequestError(406, f"accept: one of {known} is sent")
            snapshot = self._state.snapshot
            if snapshot is None:
                raise RequestError(503, "there has been no valid configuration since start")
            options = PreviewOptions(
                fabrics=snapshot.fabrics,
                namespace=query.namespace,
                namespace_labels=query.labels,
                enable=query.enable,
                most=PODS,
            )
            body = await self._bodies.read(dict(request.scope["headers"]), request.receive)
            rendered = await self._compute(body, options, form)
            return Response(rendered, media_type=MEDIA_TYPES[form][0])

        app.add_exception_handler(RequestError, _refused)
        app.add_exception_handler(DisconnectedError, _broken_off)
        app.add_exception_handler(DocumentError, _unreadable)
        app.add_exception_handler(HTTPException, _elsewhere)
        return app

    async def _compute(self, body: bytes, options: PreviewOptions, form: Form) -> bytes:
        if self._pending >= PENDING:
            raise RequestError(503, "too many previews at once: try again")
        self._pending += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, _render, body, options, form)
        except DocumentError:
            raise
        except Exception as error:  # noqa: BLE001 -- a defect is counted, logged and told in one line
            self._metrics.internal_errors.inc()
            self._log.write("error", "internal error", endpoint="preview", **defect(error))
            raise RequestError(500, "internal error of rdma-webhook; its log tells more") from None
        finally:
            self._pending -= 1


def _render(body: bytes, options: PreviewOptions, form: Form) -> bytes:
    """Decide and write the answer; runs in a thread."""
    documents = read_documents(body, "body")
    if not documents:
        msg = "body: there is no document in it; send a pod or a workload as YAML or JSON"
        raise DocumentError(msg)
    report = preview_documents(documents, options)
    for preview in report.previews:
        if preview.decision.error is not None:
            raise preview.decision.error
    match form:
        case "json":
            written = form_text(report)
        case "yaml":
            texts = [one.text for one in rewrite(documents, report)]
            written = _remarks(report) + joined(texts)
        case "text":
            written = text(report, ways=PARAMETERS)
        case _:
            assert_never(form)
    return written.encode(errors="replace")


def _remarks(report: Report) -> str:
    """Say as comments what the documents alone do not: what is denied or warned."""
    return "".join(
        f"# {label}: {' '.join(sentence.split())}\n" for label, sentence in asides(report)
    )


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return _line(error.status, str(error))


async def _broken_off(_request: Request, _error: Exception) -> Response:
    return _line(400, "the body broke off")  # to nobody, and counted


async def _unreadable(_request: Request, error: Exception) -> Response:
    return _line(400, str(error))


async def _elsewhere(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _line(error.status_code, f"{error.detail}; GET {PATH} tells what is served here")


def _line(status: int, message: str) -> Response:
    line = f"{message}\n".encode(errors="replace")
    return Response(line, status, media_type="text/plain")
