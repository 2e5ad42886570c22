"""Quality of service: a pod's class without its memory limit, and how to keep it."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.admission.conftest import Webhooks
from tests.e2e.admission.pods import create, pod, trainer
from tests.e2e.documents import Document

ALL = {"cpu": "4", "memory": "64Gi"}
LOST = "without a memory limit, the pod is not Guaranteed and gets no exclusive CPUs"
KEEP = {"rdma.lab/memory-limit": "keep"}
SIDECAR: Document = {"name": "sidecar", "image": "example.com/sidecar"}


def test_a_guaranteed_pod_becomes_burstable(cluster: Cluster, webhooks: Webhooks) -> None:
    """By default the limit is removed, and a warning states the price."""
    assert webhooks
    answer = create(cluster, pod("plain", trainer(ALL)))
    assert answer.qos == "Burstable"
    assert answer.memory() == ("64Gi", None)
    assert answer.warnings == [f"memory-limit trainer: {LOST}"]


@pytest.mark.parametrize(("place", "annotations"), [("plain-strict", {}), ("plain", KEEP)])
def test_a_guaranteed_pod_can_stay_so(
    cluster: Cluster, webhooks: Webhooks, place: str, annotations: Document
) -> None:
    """The configuration's `keep-guaranteed` or the pod's own annotation keeps it Guaranteed."""
    assert webhooks
    answer = create(cluster, pod(place, trainer(ALL), annotations=annotations))
    assert answer.qos == "Guaranteed"
    assert answer.memory() == ("64Gi", "64Gi")
    assert answer.warnings == []
    assert answer.containers[0]["resources"]["limits"]["rdma/rdma_v100"] == "1"


def test_keep_guaranteed_keeps_no_other_limit(cluster: Cluster, webhooks: Webhooks) -> None:
    """A pod that is Burstable anyway loses its limit under `keep-guaranteed` too."""
    assert webhooks
    answer = create(cluster, pod("plain-strict", trainer({"memory": "64Gi"})))
    assert (answer.qos, answer.memory()) == ("Burstable", ("64Gi", None))


# Resources of the pod as a whole: a container without its own limit is bounded by the pod's.


def test_the_limit_of_the_pod_goes(cluster: Cluster, webhooks: Webhooks) -> None:
    """The pod's limit is removed if it bounds only targets; the request defaulted from it stays."""
    assert webhooks
    answer = create(cluster, pod("plain", trainer(), resources={"limits": ALL}))
    assert answer.pod_memory == ("64Gi", None)
    assert answer.qos == "Burstable"
    assert answer.warnings == [f"memory-limit: {LOST}"]


def test_the_limit_of_the_pod_stays_for_the_others(cluster: Cluster, webhooks: Webhooks) -> None:
    """A container that is not a target would have no limit at all without it."""
    assert webhooks
    answer = create(cluster, pod("plain", trainer(), SIDECAR, resources={"limits": ALL}))
    assert answer.pod_memory == ("64Gi", "64Gi")
    assert answer.qos == "Guaranteed"
    assert answer.status["skipped"] == ["PodLimitShared"]


def test_keep_guaranteed_keeps_the_limit_of_the_pod(cluster: Cluster, webhooks: Webhooks) -> None:
    """If a pod has its own resources, these alone decide its class."""
    assert webhooks
    answer = create(cluster, pod("plain-strict", trainer(), resources={"limits": ALL}))
    assert (answer.qos, answer.pod_memory) == ("Guaranteed", ("64Gi", "64Gi"))


def test_a_default_limit_comes_under_the_limit_of_the_pod(
    cluster: Cluster, webhooks: Webhooks
) -> None:
    """LimitRanger still gives containers its default: targets lose it, the others keep it."""
    assert webhooks
    resources = {"limits": {"memory": "64Gi"}}
    answer = create(cluster, pod("default", trainer(), SIDECAR, resources=resources))
    assert answer.pod_memory == ("64Gi", None)
    assert answer.memory(0) == ("1Gi", None)
    assert answer.memory(1) == ("1Gi", "1Gi")


def test_a_quota_asks_no_limits_of_a_pod_with_resources(
    cluster: Cluster, webhooks: Webhooks
) -> None:
    """The quota admits a pod even without its limit, but with facts the webhook keeps the limit."""
    assert webhooks
    resources = {"limits": {"memory": "64Gi"}}
    blind = create(cluster, pod("quota-uninformed", trainer(), resources=resources))
    assert blind.pod_memory == ("64Gi", None)
    informed = create(cluster, pod("quota", trainer(), resources=resources))
    assert informed.pod_memory == ("64Gi", "64Gi")
    says = "memory-limit: memory limit kept, since ResourceQuota lab counts limits.memory"
    assert informed.warnings == [says]
