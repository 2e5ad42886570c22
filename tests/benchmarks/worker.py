"""The cost of the worker's clients: `/mutate` while previews or validations keep coming.

The server is a separate process, as in production; so is the client, which calls `/mutate`. The
attackers represent other machines, so they get only spare processor time. Quiet and attacked turns
alternate, and a result is the median of the turns' ratios.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import NamedTuple

import uvloop

from tests.benchmarks.decide import FABRICS, TYPICAL
from tests.benchmarks.figures import Row, figure_text
from tests.benchmarks.hostile import files
from tests.benchmarks.reviews import pod
from tests.benchmarks.steady_load import PER_SECOND, Turn, load
from tests.integration.serving import Process, certificates, fabrics
from webhook.text.yaml.documents import read_documents

#: The largest growth of the 99th percentile during an attack.
GOAL = 2.5
TURNS = 5
#: The number of attacking addresses, and of connections from each: more than may wait at once.
ATTACKERS, CONNECTIONS = 3, 6
#: The number of typical previews that are timed.
USUAL = 50
_ROOT = Path(__file__).parents[2]


class Attack(NamedTuple):
    """Requests to the worker that come faster than it can answer."""

    listener: str
    path: str
    bodies: Callable[[], list[bytes]]


def run() -> list[Row]:
    """Measure the rows of the table that need the worker."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tls, config = certificates(folder), fabrics(folder, FABRICS)
        ca = folder / "ca.crt"
        ca.write_bytes(tls.ca.certificate)
        with Process(
            tls, config, folder / "log", os.environ, preview_seconds=10.0, nicest=19
        ) as server:
            usual = _usual(server)
            rows = [_compared(attack, server, ca) for attack in ATTACKS]
    row = Row("a typical preview over HTTPS, median", f"{usual:.1f} ms")
    return [*rows, row]


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


def _compared(attack: str, server: Process, ca: Path) -> Row:
    """Compare `/mutate` during an attack with `/mutate` at rest."""
    turns = [(load(server, ca), _attacked(attack, server, ca)) for _ in range(TURNS + 1)][1:]
    quiet, attacked = (median(turn[column].p99 for turn in turns) for column in (0, 1))
    ratio = median(turn[1].p99 / turn[0].p99 for turn in turns)
    figures = f"{attacked:.1f} / {quiet:.1f} ms, {server.memory():.0f} MiB afterwards"
    return Row(
        f"/mutate at {PER_SECOND}/s, p99, {attack} attacked / quiet ({figures})",
        figure_text(ratio, GOAL),
        f"<= {GOAL:g}",
        ratio <= GOAL,
    )


def _attacked(attack: str, server: Process, ca: Path) -> Turn:
    with _attack(attack, server, ca):
        return load(server, ca)


@contextmanager
def _attack(attack: str, server: Process, ca: Path) -> Iterator[None]:
    command = ["nice", "-n", "19", sys.executable, "-m", "tests.benchmarks.worker", attack]
    given = [str(server.ports[ATTACKS[attack].listener]), str(ca)]
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


def _previews() -> list[bytes]:
    """Write bodies that take long, need much memory, or have long answers."""
    manifest = json.dumps(pod())
    return [
        b"\n---\n".join([manifest.encode()] * 400),
        b"a: [" + b"b, " * 190_000 + b"]\n",
        b"%TAG !a! tag:example.com,2000:\n" * 50_000 + manifest.encode(),
        b"a: &a " + b"x" * (1 << 20) + b"\nb: [" + b"*a," * 400 + b"]\n---\n" + manifest.encode(),
        manifest.encode() + b" " * (7 << 20),
    ]


def _validations() -> list[bytes]:
    """Write reviews of the largest objects, in the shapes that take long to check."""
    shapes = dict(files())
    return [_review(shapes[name]) for name in _SLOW]


def _review(text: str) -> bytes:
    (document,) = read_documents(text.encode())
    kind = {"group": "rdma.lab", "version": "v1alpha1", "kind": "FabricConfiguration"}
    request = {"uid": "1", "kind": kind, "operation": "CREATE", "object": document.value}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review).encode()


#: Shapes of `tests.unit.config.hostile`.
_SLOW = ("missing names", "almost devices", "wrong words", "prefixes of one fabric", "networks")
ATTACKS = {
    "previews": Attack("preview", "/preview", _previews),
    "validations": Attack("mutate", "/validate", _validations),
}


async def _fire(attack: Attack, port: int, ca: str, address: str) -> None:
    """Send the bodies over and over; every third time, leave before there is an answer."""
    context = ssl.create_default_context(cafile=ca)
    bodies = cycle(attack.bodies())
    context.check_hostname = False
    head = f"POST {attack.path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n".encode()

    async def client(number: int) -> None:
        for turn in cycle(range(3)):
            with suppress(OSError, http.client.HTTPException, asyncio.IncompleteReadError):
                body = next(bodies)
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", port, ssl=context, local_addr=(address, 0)
                )
                writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
                if (turn + number) % 3:
                    while await reader.read(1 << 16):
                        pass
                else:
                    await asyncio.sleep(0.5)
                writer.close()
            await asyncio.sleep(0.05)

    print("attacking", flush=True)
    await asyncio.gather(*(client(number) for number in range(CONNECTIONS)))


def main(arguments: list[str]) -> None:
    """Be an attacker, or print the rows."""
    match arguments:
        case [attack, port, ca, address]:
            uvloop.run(_fire(ATTACKS[attack], int(port), ca, address))
        case _:
            for row in run():
                print(*row)


if __name__ == "__main__":
    main(sys.argv[1:])
