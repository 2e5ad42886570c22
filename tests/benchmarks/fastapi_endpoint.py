"""The same server with a FastAPI endpoint in place of `/mutate`, which allows every pod."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI
from starlette.types import ASGIApp

from tests.integration.serving import Certificates, Process
from webhook.serve import server
from webhook.serve.server import WebhookServer

_REPLACE = "from tests.benchmarks import fastapi_endpoint\nfastapi_endpoint.replace()\n"


class FastApiProcess(Process):
    """Such a server in its own process."""

    def __init__(
        self, tls: Certificates, config: Path, log: Path, environment: Mapping[str, str],
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(tls, config, log, environment, **options)
        interpreter, flag, program, given = self._command
        self._command = [interpreter, flag, _REPLACE + program, given]


def replace() -> None:
    """Have this process serve the endpoint."""
    server.WebhookServer = _FastApiServer  # type: ignore[misc]


class _FastApiServer(WebhookServer):
    def _applications(self) -> dict[str, ASGIApp]:
        return {**super()._applications(), "mutate": _endpoint()}


def _endpoint() -> FastAPI:
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
