"""Changes of nodes, as by a device plugin that restarts on one node after another."""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tests.benchmarks.cluster.load import LoadError
from tests.benchmarks.cluster.many_objects import node_name
from tests.benchmarks.steady_load import PER_SECOND, SECONDS
from tests.cluster.binaries import binary
from tests.cluster.cluster import Cluster
from tests.cluster.controlplane import server

#: Longer than the load that it accompanies, which takes a second to start.
_LASTS = SECONDS + 4
_AT_ONCE = 16


class NodeChanges:
    """Changes the amount of an RDMA resource on 100 nodes a second, by vegeta."""

    def __init__(self, cluster: Cluster, folder: Path, nodes: int) -> None:
        self._cluster = cluster
        self._folder = folder
        self._nodes = nodes
        self._turns = count(1)

    @contextmanager
    def going_on(self) -> Iterator[Callable[[], float]]:
        """Change nodes during the block; yield a function that returns the changes a second."""
        turn = next(self._turns)
        results = self._folder / f"changes-{turn}.bin"
        ran = subprocess.Popen(self._command(turn, results), stderr=subprocess.PIPE, text=True)
        try:
            yield lambda: _rate(ran, results)
        finally:
            ran.wait(_LASTS + 60)

    def _command(self, turn: int, results: Path) -> list[str]:
        targets = results.with_suffix(".json")
        targets.write_text("".join(f"{target}\n" for target in self._targets(turn)))
        pki = self._cluster.directory / "pki"
        vegeta = [str(binary("vegeta")), "attack", "-format=json", f"-targets={targets}"]
        how = [f"-rate={PER_SECOND}/1s", f"-duration={_LASTS}s", f"-max-workers={_AT_ONCE}"]
        identity = [f"-cert={pki}/kubelet-client.crt", f"-key={pki}/kubelet-client.key"]
        trust = [f"-root-certs={pki}/ca.crt", f"-output={results}", "-max-body=0"]
        # Not with the priority of the replica and its clients.
        return ["chrt", "--other", "0", *vegeta, *how, *identity, *trust]

    def _targets(self, turn: int) -> Iterator[str]:
        """Yield a request for each change; none leaves its node unchanged."""
        url = f"{server(self._cluster.network)}/api/v1/nodes"
        for number in range(int(_LASTS * PER_SECOND)):
            amounts = {"rdma/hca": str(turn % 60 + 1 + number // self._nodes)}
            patch = {"status": {"allocatable": amounts, "capacity": amounts}}
            yield json.dumps(
                {
                    "method": "PATCH",
                    "url": f"{url}/{node_name(number % self._nodes)}/status",
                    "header": {"Content-Type": ["application/merge-patch+json"]},
                    "body": b64encode(json.dumps(patch).encode()).decode(),
                }
            )


def _rate(ran: subprocess.Popen[str], results: Path) -> float:
    """Return the nodes changed a second; raise LoadError if a change failed."""
    errors = ran.communicate()[1]
    if ran.returncode:
        raise LoadError(f"vegeta: {errors.strip()}")
    report = subprocess.run(
        [binary("vegeta"), "report", "-type=json", results],
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(report.stdout)
    if set(figures["status_codes"]) != {"200"}:
        raise LoadError(f"{figures['status_codes']}: {figures['errors'][:3]}")
    rate: float = figures["throughput"]
    return rate
