"""Tests of the server's side of the worker.

Most children here run a test program that executes each request, since the real worker
does not crash, hang or send nonsense on demand; the last test uses the real one.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.server_state import prepared
from tests.unit.serve.client import Lines
from webhook.config.load import FabricsText, LoadedConfiguration, parse_fabrics, parse_object
from webhook.errors import RequestError
from webhook.preview.worker.frames import MAX_HEAD_BYTES
from webhook.serve import worker_supervisor
from webhook.serve.metrics import Metrics
from webhook.serve.state import PreparedConfiguration
from webhook.serve.worker_supervisor import (
    CRASHED,
    NICEST,
    NOT_STARTED,
    STOPPING,
    TOO_LONG,
    WorkerRequest,
    WorkerSupervisor,
)

FABRICS = """\
apiVersion: rdma.lab/v1alpha1
kind: FabricConfiguration
spec:
  fabrics:
  - name: %s
    match: {gpuResources: [nvidia.com/gpu]}
    resources: [{name: rdma/hca}]
    hcas: [mlx5_0]
"""
#: Reports that it is ready, accepts any configuration, and executes each request.
PROGRAM = """\
import hashlib, json, os, signal, sys, time
from webhook.preview.worker.frames import frame_start, read_frame
requests, answers = sys.stdin.buffer, sys.stdout.buffer
configured = []
def say(head, body=b""):
    answers.write(frame_start(head, len(body)) + body)
    answers.flush()
say({"status": 200})
while request := read_frame(requests.read, 1 << 30):
    if request[0]["operation"] == "configure":
        configured.append(request[1].decode())
        say({"status": 200, "config": configured[-1].partition("#")[2]})
    else:
        exec(request[1].partition(b"\\n# ")[0])
"""


def _request(program: str = "") -> WorkerRequest:
    return WorkerRequest(
        operation="preview",
        parameters={},
        body=program.encode(),
        noun="cake",
        advice="bake a smaller one",
    )


def _message(template: str, seconds: float = 0.0) -> str:
    return _request().message(template, seconds)


class Bench:
    """A worker, with its metrics and log."""

    def __init__(self) -> None:
        self.lines = Lines()
        self.metrics = Metrics()
        self.worker = WorkerSupervisor(self.metrics, self.lines.log, seconds=120.0)

    async def ask(self, program: str, configuration: PreparedConfiguration | None = None) -> bytes:
        """Have the child run a program, and return the body of the answer."""
        answer = await self.worker.ask(_request(program), configuration or _configuration())
        return b"".join(answer.pieces)

    async def refused(self, program: str) -> tuple[int, str]:
        """Have the child run a program that gives no answer; return the status and the message."""
        with pytest.raises(RequestError) as refused:
            await self.ask(program)
        return refused.value.status, str(refused.value)

    def ends(self, reason: str) -> float | None:
        """Return how often a child has ended for a reason."""
        name = "rdma_webhook_worker_ends_total"
        return self.metrics.registry.get_sample_value(name, {"reason": reason})

    async def ended(self) -> dict[str, Any]:
        """Wait for a child's end; return the log line about it."""
        assert self.worker._ending is not None
        await self.worker._ending
        return next(line for line in self.lines.read() if line["msg"] == "preview worker ended")


def _configuration(name: str = "ib") -> PreparedConfiguration:
    """Make a configuration whose last line has its hash for the program above."""
    text = FABRICS % name
    configuration = parse_fabrics(text, "fabrics").compiled
    return prepared(configuration, fabrics_text=FabricsText(f"{text}#{configuration.config_hash}"))


@asynccontextmanager
async def _bench() -> AsyncIterator[Bench]:
    bench = Bench()
    try:
        yield bench
    finally:
        await bench.worker.stop()


Test = Callable[[Bench], Coroutine[None, None, None]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Test], None]:
    """Run a test with a worker whose children execute requests."""
    monkeypatch.setattr(worker_supervisor, "COMMAND", (sys.executable, "-I", "-c", PROGRAM))
    monkeypatch.setattr(worker_supervisor, "NICEST", 1)  # so that a busy machine does not starve it

    def run(test: Test) -> None:
        async def with_bench() -> None:
            async with _bench() as bench:
                await test(bench)

        asyncio.run(with_bench())

    return run


LONG: dict[str, object] = {"namespace": "n" * MAX_HEAD_BYTES}
PID = 'say({"status": 200}, b"%d" % os.getpid())'


def test_parameters_over_the_limit_do_not_reach_the_child(run: Callable[[Test], None]) -> None:
    """The child would end, and with it the work of everybody."""

    async def test(bench: Bench) -> None:
        first = await bench.ask(PID)
        with pytest.raises(RequestError, match="the parameters are larger than 64 KiB") as refused:
            await bench.worker.ask(_request(PID)._replace(parameters=LONG))
        assert refused.value.status == 413
        assert await bench.ask(PID) == first

    run(test)


def test_a_child_answers_requests_in_sequence(run: Callable[[Test], None]) -> None:
    """The child is started when it is first needed, and kept."""

    async def test(bench: Bench) -> None:
        assert bench.lines.read() == []
        first, second = await bench.ask(PID), await bench.ask(PID)
        assert first == second
        (line,) = bench.lines.read()
        assert (line["msg"], line["pid"]) == ("preview worker started", int(first))

    run(test)


def test_a_child_has_nothing_of_the_server(
    run: Callable[[Test], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no variables, descriptors or folder of the server, and the lowest priority."""
    facts = 'os.listdir("/proc/self/fd"), os.getcwd(), os.nice(0), os.getpgrp() == os.getpid()'
    program = f'say({{"status": 200}}, json.dumps([dict(os.environ), {facts}]).encode())'
    monkeypatch.setattr(worker_supervisor, "NICEST", NICEST)
    descriptor = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(descriptor, True)

    async def test(bench: Bench) -> None:
        variables, descriptors, *state = json.loads(await bench.ask(program))
        assert variables.keys() - {"LC_CTYPE"} == {"MALLOC_ARENA_MAX"}
        # The last descriptor is that of the listing itself.
        assert sorted(map(int, descriptors))[:3] == [0, 1, 2]
        assert len(descriptors) == 4
        assert state == ["/", 19, True]

    try:
        run(test)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("program", "how"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", {"signal": "SIGSEGV"}),
        ("sys.exit(7)", {"exit": 7}),
        ("raise ValueError('hunter2')", {"exit": 1}),
        # An incomplete answer is worthless.
        (
            "answers.write(frame_start({'status': 200}, 10) + b'12'); answers.flush(); os._exit(0)",
            {},
        ),
    ],
)
def test_a_crash_costs_a_single_request(
    run: Callable[[Test], None],
    program: str,
    how: dict[str, Any],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The message has the remedy, the log the child's end; another child answers the next."""

    async def test(bench: Bench) -> None:
        before = await bench.ask(PID)
        assert await bench.refused(program) == (503, _message(CRASHED))
        line = await bench.ended()
        assert (line["level"], line["reason"], line["pid"]) == ("warning", "crash", int(before))
        assert how.items() <= line.items()
        assert await bench.ask(PID) != before
        assert bench.ends("crash") == 1

    run(test)
    assert capfd.readouterr() == ("", "")


def test_a_crash_between_requests_costs_none(run: Callable[[Test], None]) -> None:
    """The next request finds that the child is gone, and starts another one."""

    async def test(bench: Bench) -> None:
        before = await bench.ask(PID)
        os.kill(int(before), signal.SIGSEGV)
        await _until(lambda: _state(int(before)) == "Z")
        assert await bench.ask(PID) != before
        assert bench.ends("crash") == 1

    run(test)


async def _until(condition: Callable[[], bool]) -> None:
    for _ in range(30_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize(
    "program",
    [
        'answers.write(b"Traceback (most recent call last)"); answers.flush()',
        "say([])",
        'say({"status": 302})',
        'say({"status": "200"})',
        'answers.write((2).to_bytes(4) + (0).to_bytes(4) + b"{]"); answers.flush()',
        f"answers.write(({MAX_HEAD_BYTES} + 1).to_bytes(4) + (0).to_bytes(4)); answers.flush()",
        'answers.write((2).to_bytes(4) + (1 << 30).to_bytes(4) + b"{}"); answers.flush()',
    ],
)
def test_nonsense_ends_the_child(run: Callable[[Test], None], program: str) -> None:
    """Other bytes, and answers that are larger than allowed, are not accepted."""

    async def test(bench: Bench) -> None:
        assert await bench.refused(program) == (503, _message(CRASHED))
        assert (await bench.ended())["reason"] == "malformed"

    run(test)


def test_a_child_that_takes_too_long_is_ended(run: Callable[[Test], None]) -> None:
    """The child is killed; the answer has the remedy, and another child answers the next."""

    async def test(bench: Bench) -> None:
        before = await bench.ask(PID)
        bench.worker._seconds = 0.05
        assert await bench.refused("time.sleep(1000)") == (
            504,
            _message(TOO_LONG, 0.05),
        )
        bench.worker._seconds = 120.0
        line = await bench.ended()
        assert (line["reason"], line["signal"], line["pid"]) == ("timeout", "SIGKILL", int(before))
        assert await bench.ask(PID) != before

    run(test)


def test_a_cancelled_request_ends_the_child(run: Callable[[Test], None]) -> None:
    """The client has left, and another one must not get the answer."""

    async def test(bench: Bench) -> None:
        before = await bench.ask(PID)
        task = asyncio.create_task(bench.ask("time.sleep(1000)"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        line = await bench.ended()
        assert (line["level"], line["reason"], line["pid"]) == ("info", "client", int(before))
        assert await bench.ask(PID) != before

    run(test)


def test_stopping_ends_the_child_and_waiting_requests(run: Callable[[Test], None]) -> None:
    """Waiting requests are answered at once, and no other child is started."""

    async def test(bench: Bench) -> None:
        before = int(await bench.ask(PID))
        task = asyncio.create_task(bench.refused("time.sleep(1000)"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await bench.worker.stop()
        assert await task == (503, STOPPING)
        with pytest.raises(ProcessLookupError):
            os.kill(before, 0)
        assert await bench.refused(PID) == (503, STOPPING)
        assert (bench.ends("stop"), bench.ends("crash")) == (1, 0)

    run(test)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 10])
def test_a_child_that_starts_is_not_wasted(
    steps: int, run: Callable[[Test], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the client leaves meanwhile, at any moment, the next gets the same child."""
    slow = PROGRAM.replace('say({"status": 200})\n', 'time.sleep(0.2)\nsay({"status": 200})\n', 1)
    monkeypatch.setattr(worker_supervisor, "COMMAND", (sys.executable, "-I", "-c", slow))

    async def test(bench: Bench) -> None:
        asking = asyncio.create_task(bench.ask(PID))
        while bench.worker._child is None:  # noqa: ASYNC110 -- no event signals it
            await asyncio.sleep(0)  # one turn of the event loop
        for _ in range(steps):
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        starting = bench.worker._child
        assert starting is not None
        assert await bench.ask(PID) == b"%d" % starting.pid
        assert bench.ends("client") == 0

    run(test)


def test_a_request_may_need_no_configuration(run: Callable[[Test], None]) -> None:
    """A validation does not depend on the fabrics in use."""

    async def test(bench: Bench) -> None:
        program = 'say({"status": 200}, b"%d" % len(configured))'
        answer = await bench.worker.ask(_request(program))
        assert b"".join(answer.pieces) == b"0"

    run(test)


def test_a_pause_has_a_limit(run: Callable[[Test], None]) -> None:
    """A request whose client waits does not wait for a pause of any length."""

    async def test(bench: Bench) -> None:
        bench.worker._not_before = asyncio.get_running_loop().time() + 1000
        answer = await bench.worker.ask(_request(PID), max_pause=0.01)
        assert answer.status == 200

    run(test)


def test_stopping_ends_a_pause(run: Callable[[Test], None]) -> None:
    """A request that waits between restarts after crashes is answered at once, too."""

    async def test(bench: Bench) -> None:
        bench.worker._not_before = asyncio.get_running_loop().time() + 1000
        task = asyncio.create_task(bench.refused(PID))
        await asyncio.sleep(0)
        await bench.worker.stop()
        assert await task == (503, STOPPING)

    run(test)


def test_failing_starts_are_paced(
    run: Callable[[Test], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pauses between starts grow until there is an answer; each request gets a message."""
    paused: list[float] = []

    def delays() -> Iterator[float]:
        for seconds in (0.01, 0.02, 0.03):
            paused.append(seconds)
            yield seconds

    monkeypatch.setattr(worker_supervisor, "delays", delays)

    async def test(bench: Bench) -> None:
        monkeypatch.setattr(
            worker_supervisor, "COMMAND", (sys.executable, "-I", "-c", "raise SystemExit(3)")
        )
        for number in range(3):
            assert await bench.refused(PID) == (503, _message(NOT_STARTED))
            assert len(paused) == number + 1
        assert (await bench.ended())["exit"] == 3
        monkeypatch.setattr(worker_supervisor, "COMMAND", (sys.executable, "-I", "-c", PROGRAM))
        await bench.ask(PID)
        await bench.refused("sys.exit()")
        assert paused == [0.01, 0.02, 0.03, 0.01]

    run(test)


def test_a_program_that_cannot_start_has_a_message(
    run: Callable[[Test], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing program, or no memory for another process, gives the same message."""

    async def test(bench: Bench) -> None:
        monkeypatch.setattr(worker_supervisor, "COMMAND", ("/nonexistent",))
        assert await bench.refused(PID) == (503, _message(NOT_STARTED))

    run(test)


def test_a_child_that_starts_too_slowly_is_ended(
    run: Callable[[Test], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start has its own time limit, since it takes long on a busy node."""

    async def test(bench: Bench) -> None:
        bench.worker._seconds = 0.01
        hangs = "import time; time.sleep(1000)"
        monkeypatch.setattr(worker_supervisor, "COMMAND", (sys.executable, "-I", "-c", hangs))
        assert await bench.refused(PID) == (503, _message(NOT_STARTED))
        assert (await bench.ended())["reason"] == "timeout"

    run(test)


def test_the_configuration_is_sent_when_it_has_changed(run: Callable[[Test], None]) -> None:
    """Each child gets a configuration once, and the next one when it changes."""
    names = 'json.dumps([text.split("name: ")[1][:2] for text in configured])'
    program = f'say({{"status": 200}}, {names}.encode())'

    async def test(bench: Bench) -> None:
        assert await bench.ask(program, _configuration("aa")) == b'["aa"]'
        assert await bench.ask(program, _configuration("aa")) == b'["aa"]'
        assert await bench.ask(program, _configuration("bb")) == b'["aa", "bb"]'
        await bench.refused("sys.exit()")
        assert await bench.ask(program, _configuration("bb")) == b'["bb"]'

    run(test)


def test_another_configuration_than_the_servers_is_not_used(run: Callable[[Test], None]) -> None:
    """A child that computes another hash decides nothing, and the server records a defect."""

    async def test(bench: Bench) -> None:
        mismatched = prepared(_configuration().compiled, fabrics_text=FabricsText("#000000000000"))
        with pytest.raises(RequestError, match="cannot use the configuration"):
            await bench.ask(PID, mismatched)
        messages = [line["msg"] for line in bench.lines.read()]
        assert messages[-1] == "preview worker not configured"
        assert bench.metrics.registry.get_sample_value("rdma_webhook_internal_errors_total") == 1

    run(test)


def test_large_bodies_go_both_ways(run: Callable[[Test], None]) -> None:
    """Several megabytes arrive unchanged, byte for byte."""
    program = 'say({"status": 200}, request[1][::-1])\n# ' + "ab" * (3 << 20)

    async def test(bench: Bench) -> None:
        assert await bench.ask(program) == program.encode()[::-1]

    run(test)


def _loaded(*, is_object: bool) -> LoadedConfiguration:
    """Load fabrics of a file, or of an object with a character that YAML would not allow."""
    text = FABRICS % "ib"
    if not is_object:
        return parse_fabrics(text, "fabrics")
    written = yaml.safe_load(text)
    written["metadata"] = {"name": "default"}
    written["spec"]["fabrics"][0]["env"] = {"SITE": "a\x81b"}
    return parse_object(written, "fabrics")


@pytest.mark.parametrize("is_object", [False, True], ids=["file", "object"])
def test_the_real_child_makes_the_same_hash(
    monkeypatch: pytest.MonkeyPatch, is_object: bool
) -> None:
    """The real child parses the text with the same code; otherwise every preview would fail."""
    monkeypatch.setattr(worker_supervisor, "NICEST", 1)  # so that a busy machine does not starve it

    async def ask() -> None:
        loaded = _loaded(is_object=is_object)
        configuration = prepared(loaded.compiled, fabrics_text=loaded.fabrics_text)
        async with _bench() as bench:
            parameters = {
                "namespace": "a",
                "labels": {},
                "enable": True,
                "max_pods": 9,
                "example": False,
                "format": "json",
            }
            body = b"{kind: Pod, metadata: {name: a}, spec: {containers: [{name: a}]}}"
            request = WorkerRequest(
                operation="preview", parameters=parameters, body=body, noun="preview", advice=""
            )
            answer = await bench.worker.ask(request, configuration)
            assert answer.status == 200
            assert configuration.config_hash.encode() in b"".join(answer.pieces)

    asyncio.run(ask())
