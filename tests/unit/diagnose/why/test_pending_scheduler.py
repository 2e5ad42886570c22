"""Gates, schedulers that do not exist, and preemption."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import chapter_findings, event, explain, pod_in_cluster
from tests.unit.diagnose.why.test_pod_status import pending
from webhook.diagnose.why.evidence import UnfinishedPod, UnmountableClaim
from webhook.model.finding import Finding

UID = "8b8f5a46-8f4d-4a0e-9e5c-0123456789ab"


def unseen_by_scheduler(scheduler: str = "", **fields: Any) -> dict[str, Any]:
    """Return a pending pod without the condition PodScheduled."""
    spec = {"nodeName": "", "schedulerName": scheduler, **fields}
    return pod_in_cluster(phase="Pending", spec=spec)


def now(pod: dict[str, Any], **evidence_fields: Any) -> list[Finding]:
    """Return the findings on the state of a pod, which is then not well."""
    explanation = explain(pod, **evidence_fields)
    assert not explanation.well
    return chapter_findings(explanation, "podStatus")


@pytest.mark.parametrize("is_seen", [False, True], ids=["without condition", "with condition"])
def test_each_gate_has_its_remedy(is_seen: bool) -> None:
    """A gate of Kueue has the commands for its queues; the pod is not well, so exit code 1."""
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "lab/ready"}]
    pod = (
        pending("gated", "SchedulingGated", schedulingGates=gates)
        if is_seen
        else unseen_by_scheduler(schedulingGates=gates)
    )
    first, second = now(pod)
    assert (first.code, first.level) == ("SchedulingGated", "error")
    assert "its scheduling gate kueue.x-k8s.io/admission is removed" in first.text
    assert "kubectl get workloads -n lab" in first.remedy
    assert second.remedy.startswith("Find the controller that owns lab/ready")


def test_gates_of_a_pod_with_a_node() -> None:
    """They are history."""
    pod = pod_in_cluster(spec={"schedulingGates": [{"name": "a/b"}]})
    assert [finding.code for finding in chapter_findings(explain(pod), "podStatus")] == ["Running"]


def test_a_scheduler_that_does_not_exist() -> None:
    """Without the condition PodScheduled, no scheduler has looked at the pod: it is named."""
    (finding,) = now(unseen_by_scheduler("volcano"))
    assert (finding.code, finding.level) == ("NoScheduler", "error")
    assert finding.text == (
        "The pod is pending: the scheduler volcano has not looked at it. There may be no such "
        "scheduler."
    )
    assert "correct schedulerName" in finding.remedy
    strangers = (
        UnfinishedPod("lab/a", node="n", scheduler="other"),
        UnfinishedPod("lab/b", "", "", "volcano"),
    )
    (finding,) = now(unseen_by_scheduler("volcano"), unfinished_pods=strangers)
    assert "has not looked at it, nor placed any other pod." in finding.text


def test_a_scheduler_that_has_placed_other_pods() -> None:
    """It exists, so the question is whether it runs now."""
    served = (UnfinishedPod("lab/a", node="n", scheduler="volcano"),)
    (finding,) = now(unseen_by_scheduler("volcano"), unfinished_pods=served)
    assert "although it has placed other pods (lab/a)" in finding.text
    assert finding.remedy == "Check that volcano is running now, and read its log."


@pytest.mark.parametrize("name", ["", "default-scheduler"])
def test_the_scheduler_of_kubernetes(name: str) -> None:
    """It exists everywhere."""
    (finding,) = now(unseen_by_scheduler(name))
    assert finding.text == (
        "The pod is pending: the scheduler default-scheduler has not looked at it."
    )
    assert "check that kube-scheduler is running" in finding.remedy


def test_pods_are_stopped_for_this_pod() -> None:
    """The nominated node is named."""
    pod = pending("0/1 nodes are available: 1 Insufficient a/b.")
    pod["status"]["nominatedNodeName"] = "node-7"
    finding = now(pod)[0]
    assert finding.code == "Preempting"
    assert "has chosen node node-7" in finding.text
    running = pod_in_cluster()
    running["status"]["nominatedNodeName"] = "node-7"
    assert len(chapter_findings(explain(running), "podStatus")) == 1


@pytest.mark.parametrize(
    ("placed", "whom"),
    [
        ((), f"a pod of higher priority (the one with the UID {UID})"),
        (
            (UnfinishedPod("lab/x", "other", "n"), UnfinishedPod("prod/big", UID, "n1")),
            "pod prod/big on node n1, which has a higher priority",
        ),
        ((UnfinishedPod("prod/big", UID),), "pod prod/big, which has a higher priority"),
    ],
)
def test_by_whom_a_pod_was_preempted(placed: tuple[UnfinishedPod, ...], whom: str) -> None:
    """The Event has the UID of the other pod, and the pods its name."""
    earlier = event("Preempted", f"Preempted by pod {UID.replace('8', '9')} on node n0")
    events = [earlier, event("Preempted", f"Preempted by pod {UID} on node n1")]
    finding = now(pod_in_cluster(phase="Failed"), events=events, unfinished_pods=placed)[1]
    assert (finding.code, finding.text) == (
        "Preempted",
        f"The scheduler stopped the pod to make room for {whom}.",
    )


def test_a_preempted_pod_without_its_event() -> None:
    """The condition remains when the Event has gone."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    finding = now(pod_in_cluster(phase="Failed", conditions=[condition]))[1]
    assert (
        finding.text == "The scheduler stopped the pod to make room for a pod of higher priority."
    )


def test_an_event_about_another_object() -> None:
    """The preemption of another pod of the Job is not this pod's."""
    events = [event("Preempted", f"Preempted by pod {UID}", "Job", "train")]
    explanation = explain(pod_in_cluster(phase="Failed"), events=events)
    assert "Preempted" not in [f.code for f in chapter_findings(explanation, "podStatus")]


def test_an_event_about_an_earlier_pod() -> None:
    """A StatefulSet creates a pod of the same name again; it counts for one that ends."""
    events = [event("Preempted", f"Preempted by pod {UID} on node n1")]
    ending = pod_in_cluster(metadata={"deletionTimestamp": "2026-11-22T10:00:00Z"})
    for pod, is_preempted in ((pod_in_cluster(), False), (ending, True)):
        codes = [f.code for f in chapter_findings(explain(pod, events=events), "podStatus")]
        assert ("Preempted" in codes) is is_preempted


def _nominated(*conditions: dict[str, Any]) -> dict[str, Any]:
    """Return a pending pod for which the scheduler has named a node."""
    spec = {"nodeName": "", "volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}
    return pod_in_cluster(
        phase="Pending", spec=spec, nominatedNodeName="node-7", conditions=list(conditions)
    )


def test_a_pod_that_waits_for_its_volume() -> None:
    """The scheduler names the node before it binds the pod; nothing is preempted."""
    unbound = UnmountableClaim("data", "unbound", "lustre")
    waiting = explain(_nominated(), unmountable_claims=(unbound,))
    (finding,) = chapter_findings(waiting, "podStatus")
    assert finding.code == "VolumeClaimUnbound"
    assert "provisioner of the StorageClass lustre is running" in finding.remedy
    (finding,) = chapter_findings(explain(_nominated()), "podStatus")
    assert (finding.code, finding.level) == ("WaitsForBinding", "error")
    assert finding.text == (
        "The pod is pending: the scheduler has chosen node node-7 for it, and is waiting for a "
        "volume or a claim."
    )
    full = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: x."}
    preempting = chapter_findings(explain(_nominated(full)), "podStatus")
    assert [finding.code for finding in preempting] == ["Preempting", "Unschedulable"]
