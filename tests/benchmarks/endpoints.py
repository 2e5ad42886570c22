"""The same server with another endpoint in place of `/mutate`, which allows every pod."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Body, FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.integration.serving import Certificates, Process
from webhook.serve import server
from webhook.serve.http import asgi
from webhook.serve.server import WebhookServer

Kind = Literal["fastapi", "bare"]
#: The API server writes the uid first.
_UID = re.compile(rb'"uid":"([^"]+)"')


class EndpointProcess(Process):
    """Such a server in its own process."""

    def __init__(
        self, kind: Kind, tls: Certificates, config: Path, log: Path,
        environment: Mapping[str, str],
    ) -> None:  # fmt: skip
        super().__init__(tls, config, log, environment)
        interpreter, flag, program, given = self._command
        replacing = f"from tests.benchmarks import endpoints\nendpoints.replace({kind!r})\n"
        self._command = [interpreter, flag, replacing + program, given]


def replace(kind: Kind) -> None:
    """Have this process serve the endpoint."""
    endpoint: ASGIApp = _fastapi() if kind == "fastapi" else _bare

    class _Server(WebhookServer):
        def _applications(self) -> dict[str, ASGIApp]:
            return {**super()._applications(), "mutate": endpoint}

    server.WebhookServer = _Server  # type: ignore[misc]


def _fastapi() -> FastAPI:
    """Make what a webhook in Python usually is."""
    app = FastAPI()

    @app.post("/mutate")
    async def answer(review: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        response = {"uid": review["request"]["uid"], "allowed": True}
        return {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": response,
        }

    return app


async def _bare(_scope: Scope, receive: Receive, send: Send) -> None:
    """Answer without parsing the review, so that only TLS and HTTP cost time."""
    message = await receive()
    body: bytes = message["body"]
    while message["more_body"]:
        message = await receive()
        body += message["body"]
    uid = _UID.search(body)
    assert uid is not None
    head = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"'
    await asgi.respond(send, 200, b"".join((head, uid[1], b'","allowed":true}}')), asgi.JSON)
