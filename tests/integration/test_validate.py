"""`/validate` over TLS: configurations are checked by the worker, whatever previews do to it.

For a preview or a validation that is sure not to end, tests stop the worker (SIGSTOP).
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.serving import UID, Certificates, Process, Reply, Running, fabrics, pod
from tests.waiting import until
from webhook.serve.fair_queue import INTERRUPTED
from webhook.serve.http import validate
from webhook.serve.http.preview import PENDING
from webhook.serve.http.validate import NOT_CHECKED

POD = json.dumps(pod()).encode()
FABRIC: dict[str, Any] = {
    "name": "ib",
    "match": {"gpuResources": ["nvidia.com/gpu"]},
    "resources": [{"name": "rdma/hca"}],
    "hcas": ["mlx5_0"],
}


def configuration(*given: Any) -> dict[str, Any]:
    """Return an object."""
    return {
        "apiVersion": "rdma.lab/v1alpha1",
        "kind": "FabricConfiguration",
        "metadata": {"name": "default"},
        "spec": {"fabrics": list(given)},
    }


def review(item: Any = None, **fields: Any) -> bytes:
    """Write the AdmissionReview for the creation of an object."""
    request = {
        "uid": UID,
        "kind": {"group": "rdma.lab", "version": "v1alpha1", "kind": "FabricConfiguration"},
        "operation": "CREATE",
        "name": "default",
        "object": item or configuration(FABRIC),
        **fields,
    }
    document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(document).encode()


def validated(server: Process | Running, body: bytes | None = None) -> Reply:
    """Post a review as the API server does."""
    return server.post(body or review(), "/validate?timeout=10s")


@pytest.mark.parametrize("preview", ["on", "off"])
def test_configurations_are_checked(tls: Certificates, tmp_path: Path, preview: str) -> None:
    """A good one is allowed and a bad one rejected, also without previews or a configuration."""
    missing = tmp_path / "missing.yaml"
    with Running(tls, missing, preview=preview) as server:
        assert validated(server).response == {"uid": UID, "allowed": True}
        bad = validated(server, review(configuration({**FABRIC, "hcass": []}))).response
        assert bad["allowed"] is False
        assert bad["status"]["code"] == 422
        message = "spec.fabrics[0].hcass: unknown field (did you mean hcas?)"
        assert bad["status"]["message"] == message
        warned = validated(server, review(configuration({**FABRIC, "hcas": []}))).response
        assert warned["allowed"] is True
        assert warned["warnings"][0].startswith("spec.fabrics[0].hcas: is empty")
        assert validated(server, b"{").status == 400
        assert server.post(b"{}", "/other").status == 404


def _worker(process: Process) -> int:
    started = [line for line in process.lines() if line["msg"] == "preview worker started"]
    return int(started[-1]["pid"])


def _stopped(process: Process) -> int:
    """Stop the worker, so that nothing it does ends; return its PID."""
    assert validated(process).status == 200
    worker = _worker(process)
    os.kill(worker, signal.SIGSTOP)
    stat = Path(f"/proc/{worker}/stat")
    until(lambda: stat.read_text().rpartition(") ")[2].startswith("T"))
    return worker


@contextmanager
def _requesting(ask: Callable[[], Reply], count: int) -> Iterator[list[Reply]]:
    """Send requests in threads; the list has the answers once the block has ended."""
    replies: list[Reply] = []
    threads = [threading.Thread(target=lambda: replies.append(ask())) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield replies
    finally:
        for thread in threads:
            thread.join(120)


@pytest.mark.parametrize(
    ("field", "value"),
    [("uid", "u" * 66_000), ("uid", "€" * 12_000), ("name", "n" * 66_000), ("name", "€" * 12_000)],
)
def test_a_long_field_ends_no_work_of_others(process: Process, field: str, value: str) -> None:
    """66 kB ended the process that checks configurations and makes previews, as often as sent."""
    before = lost_workers(process)
    assert validated(process).response["allowed"] is True
    refused = validated(process, review(**{field: value}))
    message = refused.body.decode()
    assert f"request.{field} is a string" in message
    assert len(message) < 500
    assert validated(process).response["allowed"] is True
    assert lost_workers(process) == before


def lost_workers(process: Process) -> list[float | None]:
    """Count the workers that ended because of a request."""
    name = "rdma_webhook_worker_ends_total"
    return [process.metric(f'{name}{{reason="{reason}"}}') for reason in ("crash", "malformed")]


def test_a_flood_of_previews_delays_no_validation(process: Process) -> None:
    """The running preview is interrupted, and waiting ones come later.

    If the machine is so busy that a validation exceeds its limit, it is sent again, as its answer
    advises.
    """
    _stopped(process)
    answers: list[Reply] = []

    def valid() -> bool:
        answers.append(validated(process))
        return answers[-1].status == 200

    with _requesting(lambda: process.post(POD, "/preview"), PENDING // 2) as replies:
        until(lambda: process.metric("rdma_webhook_previews_pending") == PENDING // 2)
        until(valid)
        assert answers[-1].response["allowed"] is True
    interrupted = [reply for reply in replies if reply.status == 503]
    assert {reply.status for reply in replies} == {200, 503}
    assert {reply.text for reply in interrupted} == {f"{INTERRUPTED}\n"}
    assert 1 <= len(interrupted) <= len(answers)


def test_a_validation_that_does_not_end(
    tls: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is a Status before the API server gives up."""
    with Running(tls, fabrics(tmp_path)) as server:
        until(lambda: validated(server).status == 200)
        worker = server._server._worker._child
        assert worker is not None
        os.kill(worker.pid, signal.SIGSTOP)
        with monkeypatch.context() as patch:
            patch.setattr(validate, "SECONDS", 1.0)
            answer = validated(server)
        status = json.loads(answer.body)
        assert (answer.status, status["kind"], status["code"]) == (503, "Status", 503)
        assert status["message"] == f"{NOT_CHECKED}it took longer than 1 s; apply it again"
        until(lambda: validated(server).status == 200)  # by another worker
