"""The applications of the admission and the health listener."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import perf_counter

from starlette.types import ASGIApp, Receive, Scope, Send

from webhook.errors import RequestError
from webhook.serve.http import asgi
from webhook.serve.http.review_body import traceparent
from webhook.serve.log import Log
from webhook.serve.metrics import CONTENT_TYPE, Metrics
from webhook.serve.state import State
from webhook.text.readiness import readiness_text

# The admission listener: it passes each request to the endpoint of its path.


class AdmissionApp:
    """The ASGI application of the admission listener."""

    def __init__(
        self, endpoints: Mapping[str, ASGIApp], state: State, metrics: Metrics, log: Log
    ) -> None:
        """Prepare the application; `endpoints` has the endpoints by path."""
        self._endpoints = endpoints
        self._state = state
        self._metrics = metrics
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        endpoint = self._endpoints.get(scope["path"])
        if endpoint is not None:
            await endpoint(scope, receive, send)
        else:
            await self._refuse(scope, send)

    async def _refuse(self, scope: Scope, send: Send) -> None:
        started = perf_counter()
        paths = " or ".join(self._endpoints)
        message = f"not found; POST an AdmissionReview to {paths}"
        error = RequestError(404, message)
        await asgi.refuse(send, error, close=self._state.draining)
        seconds = perf_counter() - started
        self._metrics.count_request("other", error.status, seconds)
        self._log.write(
            "warning",
            "not decided",
            status=error.status,
            problem=message,
            duration_ms=round(seconds * 1000, 3),
            traceparent=traceparent(dict(scope["headers"])),
        )


# Health, readiness and metrics: plain HTTP, for the kubelet and Prometheus.
#
# A replica is unready until its configuration and its facts have been read, while it has no valid
# certificate, and while it drains. A fabrics file must have been valid once. If the configuration
# comes from the cluster, a replica is ready even if the object is missing or invalid: no other
# replica could do better. If the object was written just before the start, the replica waits until
# all use it. A failed reload does not change readiness: the configuration's line shows the error,
# and the last good configuration stays in use.


class Health:
    """The ASGI application of the health listener."""

    def __init__(self, state: State, metrics: Metrics) -> None:
        self._state = state
        self._metrics = metrics
        #: The text of the metrics in this iteration of the event loop.
        self._text: bytes | None = None

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["method"] not in ("GET", "HEAD"):
            await asgi.refuse(send, RequestError(405, "only GET is supported here"))
            return
        match scope["path"]:
            case "/healthz":
                await asgi.respond(send, 200, b"ok\n")
            case "/readyz":
                status, lines = self.readiness()
                await asgi.respond(send, status, lines.encode(errors="replace"))
            case "/metrics":
                await asgi.respond(send, 200, self._metrics_text(), CONTENT_TYPE.encode())
            case _:
                message = "not found; GET /healthz, /readyz or /metrics"
                await asgi.refuse(send, RequestError(404, message))

    def _metrics_text(self) -> bytes:
        """Return the metrics, written once for requests that arrive together."""
        if self._text is None:
            self._text = self._metrics.text()
            asyncio.get_running_loop().call_soon(self._forget_text)
        return self._text

    def _forget_text(self) -> None:
        self._text = None

    def readiness(self) -> tuple[int, str]:
        """Return the status code of `/readyz` and its lines, one for each check."""
        checks = self._state.checks()
        ready = all(check.ready for check in checks)
        return 200 if ready else 503, readiness_text(checks, ready=ready)
