"""The holder of a Lease, among replicas that use a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from webhook.kube.client import Client
from webhook.kube.lease import LEASE_SECONDS, RENEW_SECONDS, Lease

NAME, SPACE = "held-in-tests", "default"
EMPTY = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": NAME, "namespace": SPACE},
}


class Replica:
    """A candidate for the Lease, with a clock that a test moves."""

    def __init__(self, cluster: Cluster, identity: str) -> None:
        self.now = 1000.0
        self.lease = Lease(
            Client(cluster.kubeconfig), SPACE, NAME, identity, clock=lambda: self.now
        )

    def held(self) -> bool:
        """Ask again, as if the time between two attempts had passed."""
        self.now += RENEW_SECONDS
        return self.lease.held()


pytestmark = pytest.mark.usefixtures("lease")


@pytest.fixture
def lease(cluster: Cluster) -> Iterator[None]:
    """Make a Lease as the manifests do: nobody holds it."""
    cluster.kubectl("apply", "--filename=-", input=json.dumps(EMPTY))
    yield
    cluster.kubectl("delete", "lease", NAME, f"--namespace={SPACE}", "--ignore-not-found")


def spec(cluster: Cluster) -> dict[str, Any]:
    """Return the spec of the Lease."""
    read = ("get", "lease", NAME, f"--namespace={SPACE}", "--output=json")
    lease_spec: dict[str, Any] = json.loads(cluster.kubectl(*read))["spec"]
    return lease_spec


def test_a_single_replica_holds_it(cluster: Cluster) -> None:
    """The first one, as long as it renews; after it has released it, another at once."""
    first, second = Replica(cluster, "first"), Replica(cluster, "second")
    assert [first.held(), second.held(), first.held(), second.held()] == [True, False, True, False]
    assert spec(cluster)["holderIdentity"] == "first"
    assert spec(cluster)["leaseDurationSeconds"] == LEASE_SECONDS
    first.lease.release()
    assert not spec(cluster).get("holderIdentity")
    assert second.held()
    assert not first.held()
    first.lease.release()  # it releases no Lease of another
    assert spec(cluster)["holderIdentity"] == "second"


def test_no_request_between_two_attempts(cluster: Cluster) -> None:
    """The answer is the last attempt's; the next attempt notices the changes."""
    first, second = Replica(cluster, "first"), Replica(cluster, "second")
    assert first.held()
    first.lease.release()
    assert second.held()
    assert second.lease.held()
    cluster.kubectl("delete", "lease", NAME, f"--namespace={SPACE}")
    assert second.lease.held()
    assert first.held()
    assert not second.held()


def test_applying_the_manifest_again_takes_it_from_nobody(cluster: Cluster) -> None:
    """An upgrade applies the manifests while a replica holds the Lease."""
    first = Replica(cluster, "first")
    assert first.held()
    cluster.kubectl("apply", "--filename=-", input=json.dumps(EMPTY))
    assert spec(cluster)["holderIdentity"] == "first"
    assert first.held()


def test_without_an_api_server_nobody_holds_it(cluster: Cluster) -> None:
    """If an attempt fails, the Lease is lost; the next attempt may succeed."""
    first = Replica(cluster, "first")
    assert first.held()
    host = first.lease._lock.api_instance.api_client.configuration.host
    first.lease._lock.api_instance.api_client.configuration.host = "https://127.0.0.1:1"
    assert not first.held()
    first.lease.release()
    first.lease._lock.api_instance.api_client.configuration.host = host
    assert first.held()
