"""Previews are computed in a separate process; whatever happens to it, `/mutate` answers.

For a preview that is sure not to end, tests stop the process that computes it (SIGSTOP).
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.serving import (
    FABRICS,
    Process,
    Reply,
    fabrics,
    mount,
    pod,
    review,
    send,
)
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from tests.integration.serving import Certificates


@pytest.fixture(scope="module")
def shared(tls: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """Run one server for all tests that do not end it."""
    folder = tmp_path_factory.mktemp("server")
    with Process(tls, fabrics(folder), folder / "log", os.environ) as running:
        yield running


POD = json.dumps(pod()).encode()
PENDING = "rdma_webhook_previews_pending"
MIB = 1 << 20


def _worker(process: Process) -> int:
    """Return the PID of the process that computes previews; there must be one."""
    started = [line for line in process.lines() if line["msg"] == "preview worker started"]
    return int(started[-1]["pid"])


def _children(process: Process) -> str:
    number = process.process.pid
    return Path(f"/proc/{number}/task/{number}/children").read_text()


def _status(number: int) -> dict[str, str]:
    """Read /proc/NUMBER/status; return {} if there is no such process."""
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _state(number: int) -> str:
    return _status(number).get("State", "gone")[:1]


@contextmanager
def _requesting(process: Process, body: bytes = POD) -> Iterator[Callable[[], Reply]]:
    """Request a preview in a thread; yield a function that waits for the answer."""
    replies: list[Reply] = []

    def ask() -> None:
        with suppress(OSError, http.client.HTTPException):  # the server may be killed
            replies.append(process.post(body, "/preview"))

    def reply() -> Reply:
        thread.join(PATIENCE)
        assert not thread.is_alive()
        return replies[0]

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield reply
    finally:
        thread.join(PATIENCE)


def _stopped(process: Process) -> int:
    """Stop the process that computes previews, so that none ends; return its PID."""
    assert process.post(POD, "/preview").status == 200
    worker = _worker(process)
    os.kill(worker, signal.SIGSTOP)
    until(lambda: _state(worker) == "T")  # the signal takes effect when the process is scheduled
    return worker


@contextmanager
def _stuck(process: Process) -> Iterator[tuple[int, Callable[[], Reply]]]:
    """Keep a preview running that does not end."""
    worker = _stopped(process)
    with _requesting(process) as reply:
        try:
            until(lambda: process.metric(PENDING) == 1)
            yield worker, reply
        finally:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGCONT)


def test_no_worker_starts_before_it_is_needed(process: Process) -> None:
    """A replica has no second process before somebody requests a preview."""
    assert process.post(review()).status == 200
    assert _children(process) == ""
    assert process.post(POD, "/preview").status == 200
    assert _children(process).split() == [str(_worker(process))]


def test_no_worker_starts_without_previews(tls: Certificates, tmp_path: Path) -> None:
    """With `--preview off` there is no second process, and no port for previews."""
    with Process(tls, fabrics(tmp_path), tmp_path / "log", os.environ, preview="off") as process:
        assert sorted(process.ports) == ["health", "mutate"]
        assert process.post(review()).status == 200
        assert _children(process) == ""
        assert process.stop() == 0


def test_previews_alone(tls: Certificates, tmp_path: Path) -> None:
    """With `--preview only` there are previews and no /mutate, also while the server drains."""
    options = {"preview": "only", "drain_seconds": 0.2}
    with Process(tls, fabrics(tmp_path), tmp_path / "log", os.environ, **options) as process:
        assert sorted(process.ports) == ["health", "preview"]
        assert process.post(POD, "/preview").status == 200
        connection = process.connect("preview")
        assert send(connection, review(), "/mutate").status == 404
        connection.close()
        assert process.stop() == 0
    lines = process.lines()
    assert lines[-1]["msg"] == "stopped"
    assert "draining" in {line["msg"] for line in lines}
    assert "error" not in {line["level"] for line in lines}


def test_mutate_answers_while_a_preview_does_not(shared: Process) -> None:
    """Reviews are answered while the worker is stopped; the preview is once it continues."""
    with _stuck(shared) as (worker, reply):
        answers = [shared.post(review()) for _ in range(20)]
        assert (shared.metric(PENDING), _state(worker)) == (1, "T")
        os.kill(worker, signal.SIGCONT)
        assert reply().status == 200
    assert all(answer.response["allowed"] for answer in answers)


@pytest.mark.parametrize(
    "body",
    [
        b"%TAG !a! tag:example.com,2000:\n" * 50_000 + POD,
        b"a: &a [" + b"b, " * 150_000 + b"]\n",
    ],
    ids=["50,000 %TAG", "20,000 values"],
)
def test_no_document_holds_up_mutate(shared: Process, body: bytes) -> None:
    """`/mutate` answers meanwhile, whatever the preview's answer is and however long it takes."""
    with _requesting(shared, body) as reply:
        answered = 0
        while shared.metric(PENDING) or not answered:
            assert shared.post(review()).response["allowed"]
            answered += 1
        assert reply().status in (200, 400, 413, 504)
    assert shared.post(POD, "/preview").status == 200


def test_a_client_that_leaves_ends_its_preview(shared: Process) -> None:
    """If the client leaves, its process is killed, and the next preview gets a new one."""
    ends = 'rdma_webhook_worker_ends_total{reason="client"}'
    before = shared.metric(ends)
    worker = _stopped(shared)
    with _connected(shared, "preview") as client:
        client.sendall(b"POST /preview HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(POD) + POD)
        until(lambda: shared.metric(PENDING) == 1)
        assert _state(worker) == "T"
    until(lambda: _state(worker) == "g")

    assert shared.post(POD, "/preview").status == 200
    assert _worker(shared) != worker
    assert before is not None
    assert shared.metric(ends) == before + 1


@contextmanager
def _connected(process: Process, port: str) -> Iterator[ssl.SSLSocket]:
    address = ("127.0.0.1", process.ports[port])
    context = process.tls.client
    with (
        socket.create_connection(address, 60) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as client,
    ):
        yield client


def test_stopping_does_not_wait_for_a_preview(process: Process) -> None:
    """On SIGTERM, a waiting preview gets an answer with the reason, and both processes end."""
    with _stuck(process) as (worker, reply):
        assert process.stop() == 0
        assert (reply().status, reply().text) == (503, "the server is stopping; try again\n")
        assert _state(worker) == "g"
    assert process.lines()[-1]["msg"] == "stopped"


def test_previews_go_on_while_it_drains(tls: Certificates, tmp_path: Path) -> None:
    """Previews are answered while it drains, too: endpoints disappear only after a while."""
    config = fabrics(tmp_path)
    with Process(tls, config, tmp_path / "log", os.environ, drain_seconds=30.0) as process:
        process.process.send_signal(signal.SIGTERM)
        until(lambda: process.get("/readyz").status == 503)
        assert process.post(POD, "/preview").status == 200
        assert process.stop() == 0


def test_the_worker_dies_with_a_server_that_is_killed(process: Process) -> None:
    """The worker ends with the server, even while it is stopped and cannot see its input end."""
    with _stuck(process) as (worker, _):
        process.process.kill()
        process.process.wait()
        until(lambda: _state(worker) in "gZ")  # its new parent may reap it late


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_worker_that_dies_is_replaced(shared: Process, number: signal.Signals) -> None:
    """The preview of a worker that dies fails, and the log has the signal, but nothing else."""
    with _stuck(shared) as (worker, reply):
        os.kill(worker, number)
        with suppress(ProcessLookupError):  # SIGKILL ends even a stopped process
            os.kill(worker, signal.SIGCONT)
        assert reply().status == 503
        assert "send fewer or smaller documents at a time" in reply().text
    assert shared.post(POD, "/preview").status == 200
    ended = [line for line in shared.lines() if line.get("pid") == worker][-1]
    assert (ended["msg"], ended["signal"], ended["reason"]) == (
        "preview worker ended",
        number.name,
        "crash",
    )
    assert shared.process.poll() is None


def test_a_preview_beyond_the_memory_is_refused(shared: Process) -> None:
    """The server's memory does not grow, and it answers the next reviews and previews."""
    assert shared.post(POD, "/preview").status == 200
    before = shared.memory()
    text = json.dumps("\U0001f600" * MIB, ensure_ascii=False).encode()
    bomb = b"a: &a " + text + b"\nb: [" + b"*a," * 400 + b"]\n" + b"---\n" + POD
    for output in ("json", "yaml", "text"):
        answer = shared.post(bomb, f"/preview?output={output}")
        assert answer.status in (400, 413, 503), answer.text
        assert answer.text.count("\n") == 1
    assert shared.memory() - before < 64
    assert shared.post(POD, "/preview").status == 200
    assert shared.post(review()).response["allowed"]


def test_a_preview_uses_the_configuration_of_the_server(shared: Process) -> None:
    """Previews use the server's configuration, even after a change: the hash is that of the log."""
    for name in ("roce", "ib"):
        mount(shared.config.parent, FABRICS.replace("name: ib", f"name: {name}"))
        until(lambda: f"({name})" in shared.get("/readyz").text)  # noqa: B023 -- at once
        loaded = [line for line in shared.lines() if line["msg"] == "configuration loaded"]
        (decision,) = json.loads(shared.post(POD, "/preview").body)["decisions"]
        status = json.loads(decision["object"]["metadata"]["annotations"]["rdma.lab/status"])
        assert (decision["fabric"], status["config"]) == (name, loaded[-1]["config"])


@pytest.mark.skipif(os.geteuid() != 0, reason="the worker shows itself to root only")
def test_the_worker_has_nothing_of_the_server(shared: Process) -> None:
    """The worker has no key, token or variable: only a socket, its program and few rights."""
    assert shared.post(POD, "/preview").status == 200
    worker = Path(f"/proc/{_worker(shared)}")
    command = (worker / "cmdline").read_text().split("\0")
    variables = (worker / "environ").read_text().split("\0")
    status = _status(_worker(shared))
    limits = (worker / "limits").read_text()
    maps = (worker / "maps").read_text()

    assert command[1:-1] == ["-I", "-B", "-X", "utf8", "-m", "webhook.preview.worker"]
    assert variables == ["MALLOC_ARENA_MAX=1", ""]
    lines = {file.name: str(file.readlink()) for file in (worker / "fd").iterdir()}
    assert lines.keys() == {"0", "1", "2"}
    assert lines["0"] == lines["1"]
    assert (lines["0"][:7], lines["2"]) == ("socket:", "/dev/null")
    assert (worker / "cwd").readlink() == Path("/")
    assert (status["NoNewPrivs"], status["Threads"]) == ("1", "1")
    assert "Max open files            0                    0" in limits
    for library in ("libssl", "_ssl.", "uvloop", "cryptography"):
        assert library not in maps


def test_the_log_holds_no_value_of_a_preview(process: Process) -> None:
    """The log has no value of a preview, neither of an invalid one nor of one that crashes."""
    secret = "hunter2-is-the-password"
    for body in (f"a: [{secret}", f"kind: Pod\nspec: {{containers: {secret}}}"):
        process.post(body.encode(), "/preview")
    with _stuck(process) as (worker, reply):
        os.kill(worker, signal.SIGABRT)
        os.kill(worker, signal.SIGCONT)
        reply()
    assert process.stop() == 0
    assert secret not in json.dumps(process.lines())
