"""ResourceQuota: it counts last, after everything that webhooks did."""

from __future__ import annotations

import json

from tests.cluster.cluster import Cluster
from tests.e2e.admission.conftest import Webhooks
from tests.e2e.admission.places import named
from tests.e2e.admission.pods import create, pod, trainer

LARGE = {"memory": "64Gi"}
MUST = "failed quota: lab: must specify limits.memory for: trainer"


def test_a_limit_that_a_quota_counts_is_kept(cluster: Cluster, webhooks: Webhooks) -> None:
    """A quota on limits.memory rejects pods without the limit, so it stays, with a warning."""
    assert webhooks
    answer = create(cluster, pod("quota", trainer(LARGE)))
    assert answer.memory() == ("64Gi", "64Gi")
    says = "memory-limit trainer: memory limit kept, since ResourceQuota lab counts limits.memory"
    assert answer.warnings == [says]


def test_without_facts_of_the_quota_the_pod_is_refused(
    cluster: Cluster, webhooks: Webhooks
) -> None:
    """Without facts, the webhook drops a required limit, and the quota rejects the pod."""
    assert webhooks
    assert MUST in create(cluster, pod("quota-uninformed", trainer(LARGE))).refusal


def test_a_pod_that_never_had_the_limit_is_refused_anyway(
    cluster: Cluster, webhooks: Webhooks
) -> None:
    """The author set no limit, and no webhook adds one, so the pod is rejected."""
    assert webhooks
    assert MUST in create(cluster, pod("quota", trainer())).refusal


def test_requested_devices_are_counted(cluster: Cluster, webhooks: Webhooks) -> None:
    """A quota on requests.rdma/… applies to the devices that the webhook requests."""
    assert webhooks
    first = create(cluster, pod("devices", trainer()))
    assert first.containers[0]["resources"]["requests"]["rdma/rdma_v100"] == "1"
    second = create(cluster, pod("devices", trainer(), annotations={"rdma.lab/devices": "2"}))
    assert "exceeded quota: lab, requested: requests.rdma/rdma_v100=2" in second.refusal


def test_devices_of_a_gated_pod_are_counted_at_its_creation(
    cluster: Cluster, webhooks: Webhooks
) -> None:
    """A queue's scheduling gate keeps a pod from its node, but not from the quota."""
    assert webhooks
    gated = pod("gated", trainer(), schedulingGates=[{"name": "example.com/queue"}])
    waiting = create(cluster, gated, stored=True)
    assert waiting.containers[0]["resources"]["requests"]["rdma/rdma_v100"] == "1"
    assert waiting.object["spec"]["schedulingGates"] == [{"name": "example.com/queue"}]
    assert _used(cluster, "gated") == {"requests.rdma/rdma_v100": "1"}
    second = create(cluster, pod("gated", trainer(), schedulingGates=[{"name": "lab/other"}]))
    says = "requested: {0}=1, used: {0}=1, limited: {0}=1".format("requests.rdma/rdma_v100")
    assert second.refusal.endswith(f'pods "probe" is forbidden: exceeded quota: lab, {says}')


def _used(cluster: Cluster, place: str) -> object:
    """Return what the quota of this namespace has counted."""
    quota = cluster.kubectl("get", "quota", "lab", f"--namespace={named(place)}", "-o", "json")
    return json.loads(quota)["status"]["used"]
