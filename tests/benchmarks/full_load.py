"""A full load: each of 16 connections always has one request in flight, in a separate process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

from tests.benchmarks.answers import Asking, connect
from tests.benchmarks.workloads import WORKLOADS
from tests.integration.serving import Process

IN_FLIGHT = 16
SECONDS = 2.0
_ROOT = Path(__file__).parents[2]


def rate(server: Process, ca: Path, pods: str) -> float:
    """Send the pods of WORKLOADS with this name for a while; return requests per second."""
    command = [sys.executable, "-m", "tests.benchmarks.full_load"]
    given = [str(server.ports["mutate"]), str(ca), pods]
    done = subprocess.run([*command, *given], cwd=_ROOT, check=True, stdout=subprocess.PIPE)
    return float(json.loads(done.stdout))


class _Client(Asking):
    """One connection that always has one request in flight."""

    def __init__(self, bodies: Iterator[bytes]) -> None:
        super().__init__()
        self.answered = 0
        self._bodies = bodies

    def on_connection(self) -> None:
        self.send(next(self._bodies))

    def on_answer(self) -> None:
        self.answered += 1
        self.send(next(self._bodies))


async def _load(port: int, ca: str, pods: str) -> float:
    bodies = WORKLOADS[pods]()
    clients = await connect(lambda: _Client(bodies), IN_FLIGHT, port, ca)
    started, before = time.perf_counter(), sum(client.answered for client in clients)
    await asyncio.sleep(SECONDS)
    answered = sum(client.answered for client in clients) - before
    return answered / (time.perf_counter() - started)


if __name__ == "__main__":
    _, of_port, of_ca, of_pods = sys.argv
    print(json.dumps(uvloop.run(_load(int(of_port), of_ca, of_pods))))
