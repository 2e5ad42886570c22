"""A steady load: `/mutate` is called at a fixed rate, from a separate process.

Requests are sent whether or not answers keep up, and an answer's time counts from when its request
was due, so that a pause of the server costs all the requests that fell into it.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import time
from pathlib import Path
from statistics import quantiles
from typing import NamedTuple

import uvloop

from tests.benchmarks.answers import Asking
from tests.benchmarks.decide import TYPICAL
from tests.benchmarks.reviews import pod, review
from tests.integration.serving import Process

#: The largest growth of the 99th percentile while something else keeps the server busy.
GOAL = 2.0
PER_SECOND = 100
SECONDS = 8.0
_CLIENTS = 32
_ROOT = Path(__file__).parents[2]


class Turn(NamedTuple):
    """The 99th percentile of the answers' times in ms, and the number of answers."""

    p99: float
    answers: int


def load(server: Process, ca: Path) -> Turn:
    """Call `/mutate` at a steady pace from a separate process."""
    command = [sys.executable, "-m", "tests.benchmarks.steady_load"]
    given = [str(server.ports["mutate"]), str(ca)]
    done = subprocess.run([*command, *given], cwd=_ROOT, check=True, stdout=subprocess.PIPE)
    return Turn(*json.loads(done.stdout))


class _Client(Asking):
    """One connection, which is idle or waits for the answer to one request."""

    def __init__(self, idle: asyncio.Queue[_Client], took: list[float]) -> None:
        super().__init__()
        self._idle = idle
        self._took = took

    def ask(self, request: bytes, due: float) -> None:
        self._due = due
        self.send(request)

    def on_connection(self) -> None:
        self._idle.put_nowait(self)

    def on_answer(self) -> None:
        self._took.append(time.perf_counter() - self._due)
        self._idle.put_nowait(self)


async def _paced(port: int, ca: str) -> Turn:
    """Send requests at a steady pace; an answer's time counts from when its request was due."""
    body = json.dumps(review(pod(variables=TYPICAL)), separators=(",", ":")).encode()
    head = f"POST /mutate?timeout=5s HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n"
    request = head.encode() + body
    trust = ssl.create_default_context(cafile=ca)
    loop = asyncio.get_running_loop()
    idle: asyncio.Queue[_Client] = asyncio.Queue()
    took: list[float] = []
    for _ in range(_CLIENTS):
        await loop.create_connection(
            lambda: _Client(idle, took), "127.0.0.1", port, ssl=trust, server_hostname="localhost"
        )
    started = time.perf_counter()
    for number in range(int(PER_SECOND * SECONDS)):
        due = started + number / PER_SECOND
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        (await idle.get()).ask(request, due)
    for _ in range(_CLIENTS):
        await idle.get()  # then all are answered
    return Turn(quantiles(took, n=100)[98] * 1000, len(took))


if __name__ == "__main__":
    _, of_port, of_ca = sys.argv
    print(json.dumps(uvloop.run(_paced(int(of_port), of_ca))))
