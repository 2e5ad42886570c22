"""vegeta, a load generator in Go, which creates pods through the API server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.binaries import binary
from tests.cluster.cluster import Cluster
from tests.cluster.controlplane import server


@dataclass(frozen=True)
class Target:
    """Pods, created in turn, again and again, by a member of `system:masters`, never throttled.

    With `dryRun=All` the API server does everything that it does for a pod, webhooks included, but
    does not store it, so the node does not have to handle thousands of pods.
    """

    cluster: Cluster
    namespace: str
    pods: Sequence[Path]
    """JSON files."""

    def attack(self, results: Path, *how: str) -> Sequence[str | Path]:
        """Return the command; the answers go to `results`, and the target to a file next to it."""
        url = f"{server(self.cluster.network)}/api/v1/namespaces/{self.namespace}/pods?dryRun=All"
        targets = results.with_suffix(".txt")
        head = f"POST {url}\nContent-Type: application/json\n"
        targets.write_text("\n".join(f"{head}@{pod}\n" for pod in self.pods))
        pki = self.cluster.directory / "pki"
        return (
            *(binary("vegeta"), "attack", f"-targets={targets}", f"-output={results}"),
            *(f"-cert={pki}/kubelet-client.crt", f"-key={pki}/kubelet-client.key"),
            *(f"-root-certs={pki}/ca.crt", *how),
        )
