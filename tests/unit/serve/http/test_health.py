from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.unit.serve.client import Answer, call, request
from webhook.serve.http.apps import Health
from webhook.serve.metrics import Metrics
from webhook.serve.state import State
from webhook.text.readiness import ReadinessCheck


def _health(*checks: ReadinessCheck, draining: bool = False) -> Health:
    state = State()
    state.probes.extend(partial(ReadinessCheck, *check) for check in checks)
    state.draining = draining
    return Health(state, Metrics())


CONFIGURATION = ReadinessCheck("configuration", True, "load 1 (ib)")
CERTIFICATE = ReadinessCheck("certificate", True, "valid until 2030-01-01T00:00:00Z")


def test_alive_whatever_the_checks_report() -> None:
    """Liveness is about the event loop only, since a restart does not repair a configuration."""
    answer = call(_health(ReadinessCheck("x", False, "broken"), draining=True), "GET", "/healthz")

    assert (answer.status, answer.text) == (200, "ok\n")


def test_ready_with_a_line_for_each_check() -> None:
    """The lines show what was checked, even if all is well."""
    answer = call(_health(CONFIGURATION, CERTIFICATE), "GET", "/readyz")

    assert (answer.status, answer.text) == (
        200,
        (
            "[+] configuration: load 1 (ib)\n"
            "[+] certificate: valid until 2030-01-01T00:00:00Z\n"
            "[+] serving: ok\n"
            "ready\n"
        ),
    )


def test_a_failing_check_makes_unready() -> None:
    """The line of that check has the reason."""
    answer = call(
        _health(CONFIGURATION, ReadinessCheck("certificate", False, "expired")), "GET", "/readyz"
    )

    assert answer.status == 503
    assert "[-] certificate: expired\n" in answer.text
    assert answer.text.endswith("not ready\n")


def test_draining_is_unready() -> None:
    """A server that shuts down gets no new connections from the Service."""
    answer = call(_health(draining=True), "GET", "/readyz")

    assert (answer.status, answer.text) == (503, "[-] serving: draining\nnot ready\n")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("POST", "/healthz", 405), ("HEAD", "/healthz", 200)],
)
def test_other_requests(method: str, path: str, status: int) -> None:
    """Only three paths exist, and only for reading."""
    assert call(_health(), method, path).status == status


def test_metrics_are_prometheus_text() -> None:
    """The content type is what Prometheus requests."""
    answer = call(_health(), "GET", "/metrics")

    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "rdma_webhook_build_info{" in answer.text


def test_metrics_are_written_once_for_requests_that_arrive_together() -> None:
    """Hundreds at once do not delay others, and a later request gets the latest numbers."""
    metrics = Metrics()
    app = Health(State(), metrics)

    async def scrape() -> tuple[list[Answer], Answer]:
        together = [asyncio.create_task(request(app, "GET", "/metrics")) for _ in range(3)]
        answers = [await answer for answer in together]
        metrics.internal_errors.inc()
        return answers, await request(app, "GET", "/metrics")

    written: list[bytes] = []
    write = metrics.text

    def text() -> bytes:
        written.append(write())
        return written[-1]

    metrics.text = text  # type: ignore[method-assign]
    answers, later = asyncio.run(scrape())
    assert [answer.body for answer in answers] == [written[0]] * 3
    assert "rdma_webhook_internal_errors_total 1.0" in later.text
    assert len(written) == 2
