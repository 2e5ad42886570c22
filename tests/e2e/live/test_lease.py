"""The holder of a Lease, among replicas that use a real API server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.cluster import progress
from tests.cluster.cluster import Cluster
from tests.cluster.fabrics import PATH, stored
from tests.cluster.install import A100, PRODUCT, Webhook, site
from tests.cluster.install import NAME as INSTALLED
from tests.cluster.namespaces import NamespaceError
from tests.e2e.configuration_events import delete_events, event_created
from tests.e2e.fabrics_bypass import MERGE
from tests.e2e.wire import send
from tests.faults.replicas import kill, processes, settled
from tests.waiting import until
from webhook.kube.client import Client
from webhook.kube.lease import LEASE_SECONDS, Lease

NAME, SPACE = "held-in-tests", "default"
EMPTY = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": NAME, "namespace": SPACE},
}


class Replica:
    """A candidate for the Lease."""

    def __init__(self, cluster: Cluster, identity: str) -> None:
        self.lease = Lease(Client(cluster.kubeconfig), SPACE, NAME, identity)

    def held(self) -> bool:
        """Make an attempt, and return whether it holds the Lease."""
        self.lease.attempt()
        return self.lease.held


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


@pytest.mark.usefixtures("lease")
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


@pytest.mark.usefixtures("lease")
def test_applying_the_manifest_again_takes_it_from_nobody(cluster: Cluster) -> None:
    """An upgrade applies the manifests while a replica holds the Lease."""
    first = Replica(cluster, "first")
    assert first.held()
    cluster.kubectl("apply", "--filename=-", input=json.dumps(EMPTY))
    assert spec(cluster)["holderIdentity"] == "first"
    assert first.held()


@pytest.mark.usefixtures("lease")
def test_without_an_api_server_nobody_holds_it(cluster: Cluster) -> None:
    """If an attempt fails, the Lease is lost; the next attempt may succeed."""
    first = Replica(cluster, "first")
    assert first.held()
    configuration = first.lease._client.api.configuration
    host, configuration.host = configuration.host, "https://127.0.0.1:1"
    assert not first.held()
    assert first.lease.problem.startswith("cannot reach the API server https://127.0.0.1:1: ")
    first.lease.release()
    configuration.host = host
    assert first.held()


@pytest.mark.usefixtures("lease")
def test_a_lease_that_is_gone_is_a_problem(cluster: Cluster) -> None:
    """It is not created, and is held again once it has been applied."""
    first = Replica(cluster, "first")
    assert first.held()
    cluster.kubectl("delete", "lease", NAME, f"--namespace={SPACE}")
    assert not first.held()
    assert first.lease.missing
    assert first.lease.problem.startswith(f"the Lease {SPACE}/{NAME} does not exist; apply ")
    cluster.kubectl("apply", "--filename=-", input=json.dumps(EMPTY))
    assert first.held()
    assert (first.lease.missing, first.lease.problem) == (False, "")


@pytest.mark.usefixtures("lease")
def test_a_right_that_is_missing_is_a_problem(cluster: Cluster) -> None:
    """The sentence has the API server's own."""
    other = Replica(cluster, "other")
    other.lease._client.api.default_headers["Impersonate-User"] = "nobody"
    assert not other.held()
    assert not other.lease.missing
    words = f"cannot read the Lease {SPACE}/{NAME}: the API server answered 403: "
    assert other.lease.problem.startswith(words)


UNREADABLE = {
    "the year 0": {"renewTime": "0000-01-01T00:00:00.000000Z"},
    "the far future": {"renewTime": "9999-12-31T23:59:59.000000Z"},
    "a holder of other elections": {"strategy": "OldestEmulationVersion"},
}


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.usefixtures("lease")
def test_any_lease_of_others_expires(cluster: Cluster, name: str) -> None:
    """Others may write what this program never does; only a change of it delays a replica."""
    stranger = {
        "holderIdentity": "stranger",
        "leaseDurationSeconds": 100_000_000,
        "acquireTime": "1999-01-01T00:00:00.000000Z",
        **UNREADABLE[name],
    }
    patch = json.dumps({"spec": stranger})
    at = (f"--namespace={SPACE}", "--type=merge", f"--patch={patch}")
    cluster.kubectl("patch", "lease", NAME, *at)
    first, began = Replica(cluster, "first"), time.monotonic()
    assert (first.held(), first.lease.problem) == (False, "")
    until(first.held)
    assert time.monotonic() - began >= LEASE_SECONDS
    assert "strategy" not in spec(cluster)


# The Lease of the installation.

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{INSTALLED}/leases/{INSTALLED}"
SUCCESSFUL = "rdma_webhook_lease_last_check_successful"


def holder(webhook: Webhook) -> str:
    """Return the replica that holds the Lease."""
    identity: str = json.loads(webhook.read(LEASE))["spec"].get("holderIdentity", "")
    return identity


def test_another_replica_takes_over(webhook: Webhook) -> None:
    """After the holder's pod is lost, the Lease has another holder; the test says how soon."""
    webhook.cluster.skip_if_existing("a replica that can be killed")
    until(lambda: holder(webhook) in webhook.replicas())
    lost = holder(webhook)
    container = processes(webhook)[lost]
    webhook.kubectl("delete", "pod", lost, "--force", "--grace-period=0", "--wait=false")
    with suppress(NamespaceError):  # the kubelet may have been faster
        kill(webhook, container)
    took = until(lambda: holder(webhook) not in ("", lost))
    progress.say(f"another replica took over after {took:.1f} s")
    settled(webhook)
    until(lambda: webhook.counted("rdma_webhook_lease_held") == {(): 1})


def test_a_deleted_lease_is_reported(webhook: Webhook) -> None:
    """By every replica, in a metric and an Event; meanwhile each of them writes the status.

    It recovers when the manifests are applied again.
    """
    webhook.cluster.skip_if_existing("nodes with GPUs of two kinds, made up")
    delete_events(webhook.cluster)
    until(lambda: webhook.counted(SUCCESSFUL) == {(): len(webhook.replicas())})
    webhook.kubectl("delete", "lease", INSTALLED)
    took = until(lambda: webhook.counted(SUCCESSFUL) == {(): 0})
    progress.say(f"reported after {took:.1f} s")
    event = event_created(webhook.cluster, "NoLease", f"the Lease {INSTALLED}/{INSTALLED} does not")
    assert (event["type"], event["involvedObject"]["name"]) == ("Warning", "default")
    send(webhook.cluster, "PATCH", f"{PATH}/status", {"status": {"fabricNames": "old"}}, MERGE)
    node = webhook.cluster.fake_nodes(1, PRODUCT, A100)[0]
    until(lambda: stored(webhook)["status"]["fabricNames"] != "old")
    webhook.cluster.kubectl("delete", "node", node)
    with site(webhook.image) as folder:
        webhook.cluster.kubectl("apply", "-k", str(folder))
    until(lambda: holder(webhook) in webhook.replicas())
    until(lambda: webhook.counted(SUCCESSFUL) == {(): len(webhook.replicas())})
