"""`rdma-webhook why` names what keeps real pods pending, and why real controllers have no pods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.node import NAME as REAL
from tests.e2e.documents import Document, ask, once, workload
from tests.e2e.installed.space import Space
from tests.e2e.installed.test_why import V100, explained, job, pod_of, run_why, texts
from tests.waiting import until

POOL = {"key": "pool", "operator": "In", "values": ["of-nobody"]}
TERMS = {"nodeSelectorTerms": [{"matchExpressions": [POOL]}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": TERMS}}
MOUNT: dict[str, Any] = {
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "of-nobody"}}]
}
HUNDRED = {"resources": {"limits": {V100: "100", "memory": "64Mi"}}}


@pytest.fixture(scope="module")
def pods(space: Space) -> Iterator[dict[str, str]]:
    """Let Jobs make a pod for each cause; return the pods' names."""
    pods = {
        "affinity": space.pod("x", V100, affinity=AFFINITY),
        "selector": space.pod("x", V100, nodeSelector={"pool": "of-nobody"}),
        "large": space.pod("x", V100, container=HUNDRED),
        "no-claim": space.pod("x", V100, **MOUNT),
        "no-scheduler": space.pod("x", V100, schedulerName="of-nobody"),
        "gated": space.pod("x", V100, schedulingGates=[{"name": "lab/ready"}]),
    }
    space.create(*(job(space, name, pod) for name, pod in pods.items()))
    yield {name: pod_of(space, name) for name in pods}
    space.kubectl("delete", "jobs", "--all", "--wait=false")


@pytest.mark.parametrize(
    ("cause", "code", "says"),
    [
        ("affinity", "BlockedBySelection", ["do not match its affinity for the label pool; none"]),
        ("selector", "BlockedBySelection", ["do not have the label pool=of-nobody"]),
        ("large", "TooLarge", [f"it requests {V100}: 100, and the largest node ({REAL}) has"]),
        ("no-claim", "VolumeClaimMissing", ["PersistentVolumeClaim of-nobody does not exist."]),
        ("no-scheduler", "NoScheduler", ["the scheduler of-nobody has not looked at it"]),
        ("gated", "SchedulingGated", ["until its scheduling gate lab/ready is removed."]),
    ],
)
def test_causes(space: Space, pods: dict[str, str], cause: str, code: str, says: list[str]) -> None:
    """Each is named, nothing advises to wait for another job, and the pod is not well."""
    until(lambda: f"{code}: " in texts(explained(space, pods[cause]), "podStatus"))
    explanation = explained(space, pods[cause])
    assert explanation["well"] is False
    for sentence in says:
        assert sentence in texts(explanation, "podStatus")
    assert "ends, or request" not in texts(explanation, "podStatus")


def test_a_taint_and_a_cordon(space: Space) -> None:
    """Both are named with their node; after the remedy, the pod is placed."""
    cluster = space.cluster
    cluster.kubectl("taint", "node", REAL, "team=vision:NoSchedule")
    try:
        space.create(job(space, "tainted", space.pod("x", V100)))
        pod = pod_of(space, "tainted")
        until(lambda: "BlockedByTaint: " in texts(explained(space, pod), "podStatus"))
        report = texts(explained(space, pod), "podStatus")
        assert (
            f"have the taint team=vision:NoSchedule, which it does not tolerate ({REAL})" in report
        )
        remedy = f"`kubectl taint node {REAL} team:NoSchedule-`."
        assert remedy in report
        cluster.kubectl("cordon", REAL)
        until(lambda: "BlockedByCordon: " in texts(explained(space, pod), "podStatus"))
        assert f"`kubectl uncordon {REAL}`." in texts(explained(space, pod), "podStatus")
    finally:
        cluster.kubectl("uncordon", REAL)
        cluster.kubectl("taint", "node", REAL, "team:NoSchedule-")
    until(lambda: bool(space.get(pod)["spec"].get("nodeName")))
    explanation = explained(space, pod)
    assert "BlockedBy" not in texts(explanation, "podStatus")
    # Whatever admission said about the nodes, the pod is on one of the fabric by now.
    assert (explanation["rdma"], explanation["answer"]["code"]) == ("yes", "Equipped")
    space.kubectl("delete", "job", "tainted", "--wait=false")


def test_the_pods_that_hold_a_resource(space: Space) -> None:
    """The pod that has all of it is named."""
    size = int(space.cluster.kubectl("get", "node", REAL, f"--output=jsonpath={_ALLOCATABLE}"))
    every = {"resources": {"limits": {V100: str(size), "memory": "64Mi"}}}
    # It ends at once, so that later tests have room.
    greedy = space.pod("x", V100, container=every, terminationGracePeriodSeconds=0)
    space.create(job(space, "holder", greedy))
    holder = pod_of(space, "holder")
    until(lambda: bool(space.get(holder)["spec"].get("nodeName")))
    space.create(job(space, "waiting", space.pod("x", V100)))
    pod = pod_of(space, "waiting")
    until(lambda: "Insufficient: " in texts(explained(space, pod), "podStatus"))
    report = texts(explained(space, pod), "podStatus")
    assert f"It is held by {space.name}/{holder} ({size} on {REAL})." in report
    space.kubectl("delete", "job", "holder", "waiting", "--cascade=foreground")


_ALLOCATABLE = "{.status.allocatable.nvidia\\.com/v100}"


def deployment(space: Space, name: str) -> Document:
    """Return a Deployment of a pod with a GPU."""
    pod = space.pod("x", V100)
    template: dict[str, Any] = {
        "metadata": {"annotations": pod["metadata"]["annotations"], "labels": {"app": name}},
        "spec": pod["spec"],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": space.name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


def test_a_quota_on_the_rdma_resource(space: Space) -> None:
    """The Event is on the ReplicaSet; `why deployment/NAME` has it, and the quota's remedy."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "nics", "namespace": space.name},
        "spec": {"hard": {"requests.rdma/rdma_v100": "0"}},
    }
    space.create(quota)
    until(lambda: "exceeded quota: nics" in ask(space.cluster, space.pod("x", V100)).refusal)
    try:
        space.create(deployment(space, "server"))

        def is_named() -> bool:
            return "QuotaExceeded" in run_why(space, "deploy", "server").out

        until(is_named)
        answer = run_why(space, "deployment/server")
        assert answer.code == 1
        assert answer.out.startswith(f"Deployment {space.name}/server\n")
        text = " ".join(answer.out.split())
        assert "Deployment server has no pods; ReplicaSet server-" in text
        assert "the ResourceQuota nics is used up: requested: requests.rdma/rdma_v100=1" in text
        assert f"kubectl describe quota nics -n {space.name}" in text
    finally:
        space.kubectl("delete", "resourcequota", "nics")
        space.kubectl("delete", "deployment", "server", "--ignore-not-found", "--wait=false")


def test_a_controller_with_pods(space: Space) -> None:
    """Its pods are explained, as if they were named."""
    space.create(deployment(space, "served"))
    until(lambda: run_why(space, "deploy/served").out.startswith(f"Pod {space.name}/served-"))
    explanation = explained(space, "deployment", "served")
    assert explanation["owners"][-1] == "Deployment served"
    space.kubectl("delete", "deployment", "served", "--wait=false")


def test_a_suspended_job(space: Space) -> None:
    """It has no pods by design."""
    template = {"metadata": {}, "spec": space.pod("x", V100)["spec"]}
    document = workload("Job", space.name, once(template), name="paused")
    document["spec"]["suspend"] = True
    space.create(document)
    answer = run_why(space, "job/paused")
    assert answer.code == 1
    assert "Job paused has no pods, since it is suspended (spec.suspend: true)" in " ".join(
        answer.out.split()
    )
    missing = run_why(space, "job", "of-nobody")
    assert missing.code == 2
    assert f"there is no Job of-nobody in namespace {space.name}" in missing.err
