"""Create pods as fast as possible or at a fixed rate, and measure how long that takes."""

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

#: The number of requests in flight at full speed.
IN_FLIGHT = 16
#: Pods per second at the fixed rate.
RATE = 100
_NANOSECONDS = 1e6  # in a millisecond


class LoadError(Exception):
    """A pod was not created; the message has the API server's answer."""


class Report(NamedTuple):
    """The result of a load."""

    pods: int
    #: Per second.
    throughput: float
    #: Milliseconds.
    p50: float
    p99: float


@dataclass
class Load:
    """Creates pods with generated names, see `Target`."""

    cluster: Cluster
    #: The folder of targets and results.
    folder: Path
    #: The number of pods that were created in each namespace.
    created: dict[str, int] = field(default_factory=dict)

    def full_speed(self, namespace: str, pods: Sequence[Path], seconds: float) -> Report:
        """Keep IN_FLIGHT requests in flight."""
        workers = (f"-workers={IN_FLIGHT}", f"-max-workers={IN_FLIGHT}")
        return self.report([self._attack(namespace, pods, seconds, "-rate=0", *workers)])

    def fixed_rate(self, namespace: str, pods: Sequence[Path], seconds: float) -> Path:
        """Send RATE pods per second, however long they take; return the file with the results."""
        return self._attack(namespace, pods, seconds, f"-rate={RATE}/1s")

    def report(self, results: Sequence[Path]) -> Report:
        """Combine results into one report; raise LoadError if a pod was not created."""
        text = _run([binary("vegeta"), "report", "-type=json", *results])
        report: dict[str, Any] = json.loads(text)
        if set(report["status_codes"]) != {"201"}:
            raise LoadError(f"{report['status_codes']}: {report['errors'][:3]}")
        took = report["latencies"]
        p50, p99 = took["50th"] / _NANOSECONDS, took["99th"] / _NANOSECONDS
        return Report(report["requests"], report["throughput"], p50, p99)

    def _attack(self, namespace: str, pods: Sequence[Path], seconds: float, *rate: str) -> Path:
        results = self.folder / f"{len(list(self.folder.glob('*.bin')))}.bin"
        target = Target(self.cluster, namespace, pods)
        _run(target.attack(results, *rate, f"-duration={seconds}s", "-max-body=0"))
        created = self.report([results]).pods
        self.created[namespace] = self.created.get(namespace, 0) + created
        return results


def _run(command: Sequence[str | Path]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise LoadError(f"vegeta {command[1]}: {ran.stderr.strip()}")
    printed: str = ran.stdout
    return printed
