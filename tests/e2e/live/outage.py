"""An outage of the API server: its trace in `/readyz`, and the wait for its end."""

from __future__ import annotations

from dataclasses import replace

from tests.cluster.api import Api
from tests.cluster.cluster import Cluster
from tests.cluster.controlplane import server
from tests.e2e.live.replica import Replica


def cut_off(replica: Replica) -> bool:
    """Return whether a replica reports that it cannot reach the API server."""
    return "still in use (" in replica.get("/readyz")[1]


def wait_for_api_server(cluster: Cluster) -> None:
    """Wait until it answers, also at its address for pods, which kube-proxy has to restore."""
    for url in (server(cluster.network), f"https://{cluster.network.kubernetes}"):
        api = Api(replace(cluster.access, url=url))
        cluster.processes.until("API server ready", lambda api=api: api.text("/readyz") is not None)  # type: ignore[misc]
