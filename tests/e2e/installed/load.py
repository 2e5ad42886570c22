"""Create pods at a fixed rate over several connections, while something happens."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.binaries import binary
from tests.cluster.vegeta import Target
from tests.e2e.documents import Document
from tests.e2e.installed.space import Space
from tests.waiting import PATIENCE, until

#: Pods a second by default.
RATE = 25


@dataclass
class Creations:
    """The outcomes of the pods, complete at the end of the load."""

    begun: float = field(default_factory=time.monotonic)
    #: The number of answers by status code; 0 for no answer.
    codes: Counter[int] = field(default_factory=Counter)
    #: The number of created pods that have the webhook's status.
    patched: int = 0
    #: The messages about the other pods.
    refusals: Counter[str] = field(default_factory=Counter)
    #: Seconds between the first and the last rejection.
    blocked: float = 0.0
    #: Seconds from the request to the answer, for each pod that was created.
    latencies: list[float] = field(default_factory=list)

    @property
    def created(self) -> int:
        """The number of pods that would have been created."""
        return self.codes[201]

    @property
    def p99(self) -> float:
        """Seconds within which 99% of the created pods were answered."""
        return sorted(self.latencies)[int(len(self.latencies) * 0.99)]

    def continue_for(self, seconds: float) -> None:
        """Wait until the load has lasted for `seconds`."""
        time.sleep(max(0.0, self.begun + seconds - time.monotonic()))


@contextmanager
def creating(
    space: Space, pod: Document, folder: Path, rate: int = RATE, at_once: int = 64
) -> Iterator[Creations]:
    """Create the pod again and again, `rate` times a second, while the block runs.

    At most `at_once` at a time; with a rate of 0 always that many, which begin together. The block
    begins after the first answer: vegeta may start slowly, and a short block would get none.
    """
    body, results = folder / "pod.json", folder / "results.bin"
    body.write_text(json.dumps(pod))
    results.unlink(missing_ok=True)
    command = Target(space.cluster, space.name, [body]).attack(
        results,
        *(f"-rate={rate}", "-duration=0", "-timeout=30s"),
        # Over one HTTP/2 connection, all requests would wait for each other.
        *("-http2=false", f"-workers={min(16, at_once)}", f"-max-workers={at_once}"),
    )
    with subprocess.Popen(command) as attack:
        try:
            until(lambda: results.stat().st_size)
            creations = Creations()
            yield creations
        finally:
            attack.send_signal(signal.SIGINT)  # it waits for requests under way
            attack.wait(PATIENCE)
    _read(results, creations)


def _read(results: Path, creations: Creations) -> None:
    encode: tuple[str | Path, ...] = (binary("vegeta"), "encode", "-to=json", results)
    text = subprocess.run(encode, capture_output=True, text=True, check=True).stdout
    refused = []
    for line in text.splitlines():
        hit = json.loads(line)
        body = base64.b64decode(hit["body"] or "").decode()
        creations.codes[hit["code"]] += 1
        if hit["code"] == 201:
            creations.patched += '"rdma.lab/status"' in body
            creations.latencies.append(hit["latency"] / 1e9)
        else:
            refused.append(hit["timestamp"])
            creations.refusals[_message(body) or hit["error"]] += 1
    creations.blocked = _span(refused)


def _message(body: str) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError):
        return body


def _span(timestamps: list[str]) -> float:
    """Return the seconds between the first and the last; vegeta writes nine decimals."""
    if not timestamps:
        return 0.0
    first, last = (
        time.mktime(time.strptime(timestamp[:19], "%Y-%m-%dT%H:%M:%S"))
        + float(f"0{timestamp[19:23]}")
        for timestamp in (min(timestamps), max(timestamps))
    )
    return last - first
