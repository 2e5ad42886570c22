"""What previews cost others: `/mutate` while the preview is attacked.

The server is a separate process, as in production; so is the client, which calls `/mutate` 100
times a second, whether or not answers keep up. The attackers represent other machines, so they
get only spare processor time. Quiet and attacked turns alternate, and the result is the median of
the turns' ratios.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple, cast

import uvloop

from tests.benchmarks.decide import FABRICS, TYPICAL, Row
from tests.benchmarks.reviews import pod, review
from tests.integration.serving import Process, certificates, fabrics

GOAL = 2.0
PER_SECOND = 100
SECONDS = 8.0
TURNS = 5
#: The number of attacking addresses, and of connections from each: more than may wait at once.
ATTACKERS, CONNECTIONS = 3, 6
_CLIENTS = 32
#: The number of typical previews that are timed.
USUAL = 50
_ROOT = Path(__file__).parents[2]


class Turn(NamedTuple):
    """The 99th percentile of the answers' times in ms, and the number of answers."""

    p99: float
    answers: int


def run() -> list[Row]:
    """Measure the rows of the table that need previews."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tls, config = certificates(folder), fabrics(folder, FABRICS)
        ca = folder / "ca.crt"
        ca.write_bytes(tls.ca.certificate)
        with Process(
            tls, config, folder / "log", os.environ, preview_seconds=10.0, nicest=19
        ) as server:
            usual = _usual(server)
            turns = [(load(server, ca), _attacked(server, ca)) for _ in range(TURNS + 1)][1:]
            memory = server.memory()
    quiet, attacked = (median(turn[which].p99 for turn in turns) for which in (0, 1))
    ratio = median(turn[1].p99 / turn[0].p99 for turn in turns)
    what = f"/mutate at {PER_SECOND}/s, p99, previews attacked / quiet"
    return [
        Row(
            f"{what} ({attacked:.1f} / {quiet:.1f} ms, {memory:.0f} MiB then)",
            f"{ratio:.2f}",
            f"<= {GOAL:g}",
            ratio <= GOAL,
        ),
        Row("a usual preview over HTTPS, median", f"{usual:.1f} ms", "none set", met=True),
    ]


def _usual(server: Process) -> float:
    """Return how long the preview of a typical manifest takes on an open connection."""
    body = json.dumps(pod(variables=TYPICAL)).encode()
    connection = server.connect("preview")
    took = []
    for _ in range(USUAL + 1):
        started = time.perf_counter()
        connection.request("POST", "/preview", body)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        took.append(time.perf_counter() - started)
    connection.close()
    return median(took[1:]) * 1000


def load(server: Process, ca: Path) -> Turn:
    """Call `/mutate` at a steady pace from a separate process."""
    command = [sys.executable, "-m", "tests.benchmarks.previews", "load"]
    given = [str(server.ports["mutate"]), str(ca)]
    done = subprocess.run([*command, *given], cwd=_ROOT, check=True, stdout=subprocess.PIPE)
    return Turn(*json.loads(done.stdout))


def _attacked(server: Process, ca: Path) -> Turn:
    with _attack(server, ca):
        return load(server, ca)


@contextmanager
def _attack(server: Process, ca: Path) -> Iterator[None]:
    command = ["nice", "-n", "19", sys.executable, "-m", "tests.benchmarks.previews", "attack"]
    given = [str(server.ports["preview"]), str(ca)]
    processes = [
        subprocess.Popen(
            [*command, *given, f"127.0.0.{number + 2}"], cwd=_ROOT, stdout=subprocess.PIPE
        )
        for number in range(ATTACKERS)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"attacking\n"
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def _bodies() -> list[bytes]:
    """Write bodies that take long, need much memory, or have long answers."""
    one = json.dumps(pod())
    return [
        b"\n---\n".join([one.encode()] * 400),
        b"a: [" + b"b, " * 190_000 + b"]\n",
        b"%TAG !a! tag:example.com,2000:\n" * 50_000 + one.encode(),
        b"a: &a " + b"x" * (1 << 20) + b"\nb: [" + b"*a," * 400 + b"]\n---\n" + one.encode(),
        one.encode() + b" " * (7 << 20),
    ]


async def _fire(port: int, ca: str, address: str) -> None:
    """Send the bodies over and over; every third time, leave before there is an answer."""
    context = ssl.create_default_context(cafile=ca)
    bodies = cycle(_bodies())
    context.check_hostname = False

    async def one(number: int) -> None:
        for turn in cycle(range(3)):
            with suppress(OSError, http.client.HTTPException, asyncio.IncompleteReadError):
                body = next(bodies)
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", port, ssl=context, local_addr=(address, 0)
                )
                writer.write(b"POST /preview HTTP/1.1\r\nHost: a\r\nConnection: close\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
                if (turn + number) % 3:
                    while await reader.read(1 << 16):
                        pass
                else:
                    await asyncio.sleep(0.5)
                writer.close()
            await asyncio.sleep(0.05)

    print("attacking", flush=True)
    await asyncio.gather(*(one(number) for number in range(CONNECTIONS)))


class _Client(asyncio.Protocol):
    """One connection, which is idle or waits for the answer to one request."""

    def __init__(self, idle: asyncio.Queue[_Client], took: list[float]) -> None:
        self._idle = idle
        self._took = took
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._idle.put_nowait(self)

    def ask(self, request: bytes, due: float) -> None:
        self._due = due
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        assert head.startswith(b"HTTP/1.1 200"), head
        self._received = b""
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


def main(arguments: list[str]) -> None:
    """Run one of the processes, or print the rows."""
    match arguments:
        case ["load", port, ca]:
            print(json.dumps(uvloop.run(_paced(int(port), ca))))
        case ["attack", port, ca, address]:
            uvloop.run(_fire(int(port), ca, address))
        case _:
            for row in run():
                print(*row)


if __name__ == "__main__":
    main(sys.argv[1:])
