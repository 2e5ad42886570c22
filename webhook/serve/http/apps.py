"""The admission listener: it passes each request to the endpoint of its path."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

from webhook.refusal import RequestError
from webhook.serve.http import asgi
from webhook.serve.http.asgi import App
from webhook.serve.http.review_body import traceparent
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.state import State


class AdmissionApp:
    """The ASGI application of the admission listener."""

    def __init__(
        self, endpoints: Mapping[str, App], state: State, metrics: Metrics, log: Log
    ) -> None:
        """Prepare the application; `endpoints` has them by path."""
        self._endpoints = endpoints
        self._state = state
        self._metrics = metrics
        self._log = log

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Answer one request."""
        endpoint = self._endpoints.get(scope["path"])
        if endpoint is not None:
            await endpoint(scope, receive, send)
        else:
            await self._refuse(scope, send)

    async def _refuse(self, scope: asgi.Scope, send: asgi.Send) -> None:
        started = perf_counter()
        known = " or ".join(self._endpoints)
        said = f"there is nothing at this path: POST an AdmissionReview to {known}"
        error = RequestError(404, said)
        await asgi.refuse(send, error, close=self._state.draining)
        seconds = perf_counter() - started
        self._metrics.answered("other", error.status, seconds)
        self._log.write(
            "warning",
            "not decided",
            status=error.status,
            problem=said,
            duration_ms=round(seconds * 1000, 3),
            traceparent=traceparent(dict(scope["headers"])),
        )
