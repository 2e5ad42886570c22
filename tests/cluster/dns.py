"""CoreDNS: the names of Services and of the pods behind them."""

from __future__ import annotations

from pathlib import Path

from tests.cluster.binaries import binary
from tests.cluster.namespaces import INSIDE
from tests.cluster.network import Network
from tests.cluster.node import render
from tests.cluster.processes import Processes


def start_dns(processes: Processes, network: Network, directory: Path) -> None:
    """Start CoreDNS on the node's address, which is the pods' name server."""
    values = {
        "gateway": network.gateway,
        # The bootstrap policy has no role for DNS.
        "kubeconfig": f"{INSIDE}/kubeconfig",
    }
    (directory / "Corefile").write_text(render("Corefile", values))
    processes.start("coredns", [binary("coredns"), "-conf", INSIDE / "Corefile"])
