"""What the cluster says about a pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import codes, event, explain, live, told
from webhook.diagnose.why.explanation import Sentence

SAID = (
    "0/3 nodes are available: 1 Insufficient nvidia.com/v100, 2 Insufficient rdma/rdma_v100. "
    "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
)


def pending(message: str = SAID, reason: str = "Unschedulable", **more: Any) -> dict[str, Any]:
    """Make a pod that is not scheduled."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return live(phase="Pending", conditions=[condition], spec={"nodeName": "", **more})


def node(name: str, **allocatable: str) -> dict[str, Any]:
    """Make a node that offers V100s, and these RDMA devices."""
    amounts = {
        "nvidia.com/v100": "8",
        **{f"rdma/{key}": value for key, value in allocatable.items()},
    }
    return {"metadata": {"name": name, "labels": {}}, "status": {"allocatable": amounts}}


def now(pod: dict[str, Any], **known: Any) -> list[Sentence]:
    """Return the sentences."""
    return told(explain(pod, **known), "now")


def test_each_lacking_resource_is_told() -> None:
    """Without the nodes, it is not known whether any of them offers it."""
    found = now(pending())
    assert [one.code for one in found] == ["Insufficient", "Insufficient"]
    assert "pending on nvidia.com/v100: no node has enough of it free, or none" in found[0].text
    assert "pending on rdma/rdma_v100:" in found[1].text
    assert "1 Insufficient nvidia.com/v100, 2 Insufficient rdma/rdma_v100." in found[1].text
    assert "kubectl get nodes -o yaml | grep rdma/rdma_v100" in found[1].remedy


def test_a_resource_that_no_node_offers() -> None:
    """With the nodes, the answer distinguishes that from a resource that is taken."""
    nodes = (node("a"), node("b", rdma_v100="0"), node("c", other="1"))
    first, second = now(pending(), nodes=nodes)
    assert first.code == "Insufficient"
    assert "a, b, c offer it, but have too little free" in first.text
    assert second.code == "OfferedNowhere"
    assert "no node of the cluster offers it" in second.text
    assert "device plugin" in second.remedy


def test_many_nodes_are_counted() -> None:
    """Three are named."""
    nodes = tuple(node(f"n{number}", rdma_v100="63") for number in range(5))
    assert "n0, n1, n2 and 2 more offer it" in now(pending(), nodes=nodes)[1].text


def test_other_reasons_of_the_scheduler() -> None:
    """They are quoted."""
    (found,) = now(pending("0/1 nodes are available: 1 node(s) didn't match node selector."))
    assert found.code == "Unschedulable"
    assert "didn't match node selector" in found.text
    assert "nodeSelector" in found.remedy


def test_scheduling_gates() -> None:
    """Whoever put a gate there removes it."""
    gates = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    (found,) = now(pending("gated", "SchedulingGated", **gates))
    assert found.code == "SchedulingGated"
    assert "kueue.x-k8s.io/admission" in found.text


@pytest.mark.parametrize(
    ("state", "code", "says"),
    [
        ({"phase": "Running"}, "Running", "running on node node-1"),
        ({"phase": "Succeeded"}, "Succeeded", "completed"),
        ({"phase": "Failed"}, "Failed", "failed on node node-1"),
        ({"phase": "Pending"}, "Starting", "pending on node node-1"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "Evicted", "low on"),
        ({"phase": ""}, "NoStatus", "not come from a cluster"),
    ],
    ids=str,
)
def test_phases(state: dict[str, Any], code: str, says: str) -> None:
    """Each phase has its sentence."""
    (found,) = now(live(**state))
    assert found.code == code
    assert says in found.text


def test_a_pod_that_is_deleted() -> None:
    """It is said first."""
    pod = live(metadata={"deletionTimestamp": "2026-11-22T10:00:00Z"})
    assert codes(explain(pod), "now") == ["Terminating", "Running"]


def of_main(**fields: Any) -> dict[str, Any]:
    """Make a pod whose container has this status."""
    return live(containerStatuses=[{"name": "main", **fields}])


def ended(code: int, reason: str = "Error", **more: Any) -> dict[str, Any]:
    """Write the state of a container that has ended."""
    return {"terminated": {"exitCode": code, "reason": reason, **more}}


@pytest.mark.parametrize(
    ("fields", "code", "says", "remedy"),
    [
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}},
            "ImagePullBackOff",
            "Container main cannot start: its image cannot be pulled (ImagePullBackOff): no such",
            "name and tag",
        ),
        (
            {"state": {"waiting": {"reason": "CreateContainerConfigError", "message": "no key"}}},
            "CreateContainerConfigError",
            "a ConfigMap, a Secret or a key that it names is missing",
            "Create",
        ),
        (
            {"state": ended(1, message="boom"), "restartCount": 0},
            "ContainerFailed",
            "Container main ended with exit code 1. boom",
            "--logs",
        ),
        (
            {"state": ended(139), "restartCount": 0},
            "ContainerFailed",
            "exit code 139 (a segmentation fault)",
            "",
        ),
        (
            {"lastState": ended(137), "restartCount": 2},
            "Killed",
            "was killed (exit code 137), and has restarted 2 times",
            "",
        ),
        (
            {"lastState": ended(137, "OOMKilled"), "restartCount": 1, "state": {"running": {}}},
            "OOMKilled",
            "the node ran out of memory (OOMKilled), and has restarted once",
            "Request as much memory",
        ),
        ({"restartCount": 3}, "Restarted", "has restarted 3 times", "--logs"),
    ],
    ids=str,
)
def test_containers(fields: dict[str, Any], code: str, says: str, remedy: str) -> None:
    """The answer says what keeps a container from running, and what to do."""
    _, found = now(of_main(**fields))
    assert found.code == code
    assert says in found.text
    assert remedy in found.remedy


def test_where_the_log_is_searched() -> None:
    """A log that was searched is not named as something to do; a restart has an older log."""
    first = of_main(state=ended(1), restartCount=0)
    again = of_main(state=ended(1), restartCount=1)
    assert now(first)[1].remedy.startswith("Search its log for known errors")
    assert now(again)[1].remedy.startswith("Read the log from before the restart")
    for pod in (first, again, live(phase="Failed")):
        assert now(pod, logs=())[-1].remedy.startswith("The section on its log below")


def test_a_container_that_exceeded_its_limit() -> None:
    """The limit is named, and that registered memory counts."""
    pod = of_main(state=ended(137, "OOMKilled"))
    pod["spec"]["containers"][0]["resources"] = {"limits": {"memory": "16Gi"}}
    _, found = now(pod)
    assert "used more memory than its limit of 16Gi" in found.text
    assert "Registered memory counts" in found.text
    assert "rdma.lab/memory-limit" in found.remedy


def test_an_init_container_that_exceeded_its_limit() -> None:
    """Its limit is found where init containers are; one that has none is not given another's."""
    ends = [{"name": "setup", "state": ended(137, "OOMKilled")}]
    for limit, says in (("1Gi", "its limit of 1Gi"), ("", "the node ran out of memory")):
        setup = {"name": "setup", "resources": {"limits": {"memory": limit} if limit else {}}}
        pod = live(initContainerStatuses=ends)
        pod["spec"]["initContainers"] = [{"name": "other"}, setup]
        _, found = now(pod)
        assert says in found.text


def test_the_status_of_a_container_without_a_name() -> None:
    """It is given the limit of no container, even if one in the spec has no name either."""
    pod = live(containerStatuses=[{"state": ended(137, "OOMKilled")}])
    pod["spec"]["containers"] = [{"resources": {"limits": {"memory": "16Gi"}}}]
    _, found = now(pod)
    assert "the node ran out of memory" in found.text


def test_a_container_that_completed() -> None:
    """It is not a problem."""
    pod = live(phase="Succeeded", containerStatuses=[{"name": "main", "state": ended(0)}])
    assert codes(explain(pod), "now") == ["Succeeded"]


def test_events() -> None:
    """The newest of each reason, of the pod and of its owners; no repetitions of the status."""
    events = (
        event("FailedMount", "old"),
        event("FailedMount", "new"),
        event("BackOff", "again"),
        event("Pulled", "fine", type="Normal"),
        event("FailedCreate", "denied", "Job", "train"),
        event("NoRDMA", "no fabric", "Job", "train"),
    )
    _, *found = now(live(), events=events)
    assert [one.text for one in found] == [
        "Event of the pod: FailedMount: new",
        "Event of Job train: FailedCreate: denied",
        "Event of Job train: NoRDMA: no fabric",
    ]
    assert [one.remedy[:10] for one in found] == ["", "Correct wh", "Change the"]


def test_many_events() -> None:
    """The answer has the newest six."""
    events = tuple(event(f"Reason{number}", "x") for number in range(8))
    assert codes(explain(live(), events=events), "now")[1:] == [
        f"Reason{number}" for number in range(2, 8)
    ]


@pytest.mark.parametrize("message", ["", " \n"], ids=repr)
def test_an_end_without_a_message(message: str) -> None:
    """The sentence ends at its full stop."""
    _, found = now(of_main(state=ended(1, message=message)))
    assert found.text == "Container main ended with exit code 1."


def test_the_last_end_counts() -> None:
    """The answer says how a container ended now, not how it ended before its restart."""
    _, found = now(of_main(state=ended(1), lastState=ended(137, "OOMKilled"), restartCount=1))
    assert found.code == "ContainerFailed"


@pytest.mark.parametrize("status", [None, [], "x", {"conditions": "x", "containerStatuses": [1]}])
def test_any_shape(status: object) -> None:
    """A file may contain anything."""
    pod = live()
    pod["status"] = status
    assert codes(explain(pod), "now") == ["NoStatus"]
