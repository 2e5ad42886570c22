"""Pods created as fast as possible and at a fixed rate, and how long that took."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster.binaries import binary
from tests.cluster.cluster import Cluster
from tests.cluster.vegeta import Target

#: At full speed, how many requests are on their way at once.
IN_FLIGHT = 16
#: Pods per second at the fixed rate.
RATE = 100
_NANOSECONDS = 1e6  # in a millisecond


class LoadError(Exception):
    """A pod was not created; the message says what the API server answered."""


class Report(NamedTuple):
    """What a load was answered."""

    pods: int
    #: Per second.
    throughput: float
    #: Milliseconds.
    p50: float
    p99: float


@dataclass
class Load:
    """Creates pods, see `Target`; every name is generated."""

    cluster: Cluster
    #: Where targets and results go.
    folder: Path
    #: How many pods each namespace was asked to take.
    created: dict[str, int] = field(default_factory=dict)

    def full_speed(self, namespace: str, body: Path, seconds: float) -> Report:
        """Keep IN_FLIGHT requests on their way."""
        workers = (f"-workers={IN_FLIGHT}", f"-max-workers={IN_FLIGHT}")
        return self.report([self._attack(namespace, body, seconds, "-rate=0", *workers)])

    def fixed_rate(self, namespace: str, body: Path, seconds: float) -> Path:
        """Send RATE pods per second, however long they take; return the file of the results."""
        return self._attack(namespace, body, seconds, f"-rate={RATE}/1s")

    def report(self, results: Sequence[Path]) -> Report:
        """Report results, several as one; LoadError where a pod was not created."""
        said = _run([binary("vegeta"), "report", "-type=json", *results])
        report: dict[str, Any] = json.loads(said)
        if set(report["status_codes"]) != {"201"}:
            raise LoadError(f"{report['status_codes']}: {report['errors'][:3]}")
        took = report["latencies"]
        p50, p99 = took["50th"] / _NANOSECONDS, took["99th"] / _NANOSECONDS
        return Report(report["requests"], report["throughput"], p50, p99)

    def _attack(self, namespace: str, body: Path, seconds: float, *rate: str) -> Path:
        results = self.folder / f"{len(list(self.folder.glob('*.bin')))}.bin"
        target = Target(self.cluster, namespace, body)
        _run(target.attack(results, *rate, f"-duration={seconds}s", "-max-body=0"))
        pods = self.report([results]).pods
        self.created[namespace] = self.created.get(namespace, 0) + pods
        return results


def _run(command: Sequence[str | Path]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise LoadError(f"vegeta {command[1]}: {ran.stderr.strip()}")
    said: str = ran.stdout
    return said
