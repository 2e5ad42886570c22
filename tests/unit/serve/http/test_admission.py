"""Tests of the admission listener: each path has its endpoint."""

from __future__ import annotations

import pytest
from starlette.types import Receive, Scope, Send

from tests.unit.serve.client import JSON, Lines, call
from webhook.serve.http import asgi
from webhook.serve.http.apps import AdmissionApp
from webhook.serve.metrics import Metrics
from webhook.serve.state import State


async def _endpoint(scope: Scope, _receive: Receive, send: Send) -> None:
    await asgi.respond(send, 200, scope["path"].encode())


class Server:
    """The application, with two endpoints that answer with their path."""

    def __init__(self) -> None:
        self.lines = Lines()
        self.metrics = Metrics()
        self.state = State()
        endpoints = {"/mutate": _endpoint, "/validate": _endpoint}
        self.app = AdmissionApp(endpoints, self.state, self.metrics, self.lines.log)


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_each_path_has_its_endpoint(path: str) -> None:
    """The query string does not matter."""
    answer = call(Server().app, "POST", path, query="timeout=5s")
    assert (answer.status, answer.text) == (200, path)


@pytest.mark.parametrize("path", ["/", "/mutate/", "/validate/x", "/preview"])
def test_another_path_is_answered_counted_and_logged(path: str) -> None:
    """The line names the paths that exist."""
    server = Server()
    answer = call(server.app, "POST", path, headers=[JSON])
    (line,) = server.lines.read()
    problem = "not found; POST an AdmissionReview to /mutate or /validate"
    assert (answer.status, answer.text, "connection" in answer.headers) == (
        404,
        f"{problem}\n",
        False,
    )
    assert (line["level"], line["msg"], line["status"]) == ("warning", "not decided", 404)
    assert line["problem"] == problem
    count = server.metrics.registry.get_sample_value
    assert count("rdma_webhook_requests_total", {"endpoint": "other", "code": "404"}) == 1


def test_a_draining_server_closes_connections() -> None:
    """The client then connects to another replica."""
    server = Server()
    server.state.draining = True
    assert call(server.app, "POST", "/").headers["connection"] == "close"
