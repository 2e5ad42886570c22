"""A steady load: `/mutate` is called at a fixed rate, from a separate process.

Requests are sent whether or not answers keep up, and an answer's time counts from when its request
was due, so that a pause of the server costs all the requests that fell into it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import uvloop

from tests.benchmarks.answers import Asking, connect
from tests.benchmarks.workloads import WORKLOADS
from tests.integration.serving import Process

#: The largest growth of the 99th percentile while something else keeps the server busy.
GOAL = 2.0
PER_SECOND = 100
SECONDS = 8.0
_CLIENTS = 32
_ROOT = Path(__file__).parents[2]


class Turn(NamedTuple):
    """The result of a load."""

    #: The 99th percentile of the answers' times, in ms.
    p99: float
    #: The number of answers.
    answers: int
    #: The server's processor time for each, in microseconds.
    processor: float


def load(server: Process, ca: Path, pods: str = "new-pods") -> Turn:
    """Call `/mutate` at a steady pace with the pods of WORKLOADS that have this name."""
    command = [sys.executable, "-m", "tests.benchmarks.steady_load"]
    given = [str(server.ports["mutate"]), str(ca), pods, str(server.process.pid)]
    done = subprocess.run([*command, *given], cwd=_ROOT, check=True, stdout=subprocess.PIPE)
    return Turn(*json.loads(done.stdout))


class _Client(Asking):
    """One connection, which is idle or waits for the answer to one request."""

    def __init__(self, idle: asyncio.Queue[_Client], took: list[float]) -> None:
        super().__init__()
        self._idle = idle
        self._took = took

    def ask(self, body: bytes, due: float) -> None:
        self._due = due
        self.send(body)

    def on_connection(self) -> None:
        self._idle.put_nowait(self)

    def on_answer(self) -> None:
        self._took.append(time.perf_counter() - self._due)
        self._idle.put_nowait(self)


async def _paced(port: int, ca: str, pods: str, pid: int) -> Turn:
    """Send requests at a steady pace; an answer's time counts from when its request was due."""
    bodies = WORKLOADS[pods]()
    idle: asyncio.Queue[_Client] = asyncio.Queue()
    took: list[float] = []
    await connect(lambda: _Client(idle, took), _CLIENTS, port, ca)
    started, before = time.perf_counter(), _processor_time(pid)
    for number in range(int(PER_SECOND * SECONDS)):
        due = started + number / PER_SECOND
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        (await idle.get()).ask(next(bodies), due)
    for _ in range(_CLIENTS):
        await idle.get()  # then all are answered
    processor = (_processor_time(pid) - before) / len(took)
    return Turn(quantiles(took, n=100)[98] * 1000, len(took), processor)


def _processor_time(pid: int) -> float:
    """Return the microseconds that the scheduler gave to all threads of a process.

    Source: Linux, Documentation/scheduler/sched-stats.rst (nanoseconds, the first field).
    """
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1000


if __name__ == "__main__":
    _, of_port, of_ca, of_pods, of_pid = sys.argv
    print(json.dumps(uvloop.run(_paced(int(of_port), of_ca, of_pods, int(of_pid)))))
