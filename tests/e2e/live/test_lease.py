"""Which replica holds a Lease of a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from webhook.kube.client import Client
from webhook.kube.lease import LASTS, RENEWED, Lease

NAME, SPACE = "held-in-tests", "default"
EMPTY = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": NAME, "namespace": SPACE},
}


class Replica:
    """A process that wants the Lease, with a clock that a test moves."""

    def __init__(self, cluster: Cluster, identity: str) -> None:
        self.now = 1000.0
        self.lease = Lease(
            Client(cluster.kubeconfig), SPACE, NAME, identity, clock=lambda: self.now
        )

    def held(self) -> bool:
        """Ask again, as if the time between two attempts had passed."""
        self.now += RENEWED
        return self.lease.held()


pytestmark = pytest.mark.usefixtures("lease")


@pytest.fixture
def lease(cluster: Cluster) -> Iterator[None]:
    """Make a Lease as the manifests do: nobody holds it."""
    cluster.kubectl("apply", "--filename=-", input=json.dumps(EMPTY))
    yield
    cluster.kubectl("delete", "lease", NAME, f"--namespace={SPACE}", "--ignore-not-found")


def spec(cluster: Cluster) -> dict[str, Any]:
    """Return what the Lease says."""
    read = ("get", "lease", NAME, f"--namespace={SPACE}", "--output=json")
    found: dict[str, Any] = json.loads(cluster.kubectl(*read))["spec"]
    return found


def test_one_replica_holds_it(cluster: Cluster) -> None:
    """The first one, as long as it renews; after it has released it, another at once."""
    one, other = Replica(cluster, "one"), Replica(cluster, "other")
    assert [one.held(), other.held(), one.held(), other.held()] == [True, False, True, False]
    assert spec(cluster)["holderIdentity"] == "one"
    assert spec(cluster)["leaseDurationSeconds"] == LASTS
    one.lease.release()
    assert not spec(cluster).get("holderIdentity")
    assert other.held()
    assert not one.held()
    one.lease.release()  # it does not take away what it does not hold
    assert spec(cluster)["holderIdentity"] == "other"


def test_between_two_attempts_nothing_is_asked(cluster: Cluster) -> None:
    """The answer is that of the last attempt; the next one finds what has happened meanwhile."""
    one, other = Replica(cluster, "one"), Replica(cluster, "other")
    assert one.held()
    one.lease.release()
    assert other.held()
    assert other.lease.held()
    cluster.kubectl("delete", "lease", NAME, f"--namespace={SPACE}")
    assert other.lease.held()
    assert one.held()
    assert not other.held()


def test_applying_the_manifest_again_takes_it_from_nobody(cluster: Cluster) -> None:
    """An upgrade applies the manifests while a replica holds the Lease."""
    one = Replica(cluster, "one")
    assert one.held()
    cluster.kubectl("apply", "--filename=-", input=json.dumps(EMPTY))
    assert spec(cluster)["holderIdentity"] == "one"
    assert one.held()


def test_without_an_api_server_nobody_holds_it(cluster: Cluster) -> None:
    """An attempt that fails is a Lease that is lost; the next one may succeed."""
    one = Replica(cluster, "one")
    assert one.held()
    host = one.lease._lock.api_instance.api_client.configuration.host
    one.lease._lock.api_instance.api_client.configuration.host = "https://127.0.0.1:1"
    assert not one.held()
    one.lease.release()
    one.lease._lock.api_instance.api_client.configuration.host = host
    assert one.held()
