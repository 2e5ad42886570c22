"""Findings from the status and the events of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.why.pods import (
    CREATED,
    EARLIER,
    LATER,
    OWNED,
    chapter_findings,
    codes,
    event,
    explain,
    pod_in_cluster,
    status,
)
from webhook.diagnose.why.file_collector import collect_from_objects
from webhook.diagnose.why.pod_status import status_findings
from webhook.model.finding import Finding

SCHEDULER_MESSAGE = (
    "0/3 nodes are available: 1 Insufficient nvidia.com/v100, 2 Insufficient rdma/rdma_v100. "
    "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
)


def pending(
    message: str = SCHEDULER_MESSAGE, reason: str = "Unschedulable", **fields: Any
) -> dict[str, Any]:
    """Return a pod that is not scheduled."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return pod_in_cluster(phase="Pending", conditions=[condition], spec={"nodeName": "", **fields})


def node(name: str, **allocatable: str) -> dict[str, Any]:
    """Return a node that offers V100s, and these RDMA devices."""
    amounts = {
        "nvidia.com/v100": "8",
        **{f"rdma/{key}": value for key, value in allocatable.items()},
    }
    return {"metadata": {"name": name, "labels": {}}, "status": {"allocatable": amounts}}


def now(pod: dict[str, Any], **evidence_fields: Any) -> list[Finding]:
    """Return the sentences."""
    return chapter_findings(explain(pod, **evidence_fields), "podStatus")


def test_each_lacking_resource_is_reported() -> None:
    """Without the nodes, it is unknown whether any of them offers it."""
    findings = now(pending())
    assert [finding.code for finding in findings] == ["Insufficient", "Insufficient"]
    assert "waiting for nvidia.com/v100: no node that the pod may use has" in findings[0].text
    assert "waiting for rdma/rdma_v100:" in findings[1].text
    assert "1 Insufficient nvidia.com/v100, 2 Insufficient rdma/rdma_v100." in findings[1].text
    assert "kubectl get nodes -o yaml | grep rdma/rdma_v100" in findings[1].remedy


@pytest.mark.parametrize(
    ("state", "code", "says"),
    [
        ({"phase": "Running"}, "Running", "running on node node-1"),
        ({"phase": "Succeeded"}, "Succeeded", "completed"),
        ({"phase": "Failed"}, "Failed", "failed on node node-1"),
        ({"phase": "Pending"}, "Starting", "pending on node node-1"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}, "Evicted", "low on"),
        ({"phase": ""}, "NoStatus", "does not come from a cluster"),
    ],
    ids=str,
)
def test_phases(state: dict[str, Any], code: str, says: str) -> None:
    """Each phase has its sentence."""
    (finding,) = now(pod_in_cluster(**state))
    assert finding.code == code
    assert says in finding.text


def test_a_pod_that_is_deleted() -> None:
    """The deletion comes first."""
    pod = pod_in_cluster(metadata={"deletionTimestamp": "2026-11-22T10:00:00Z"})
    assert codes(explain(pod), "podStatus") == ["Terminating", "Running"]


def of_main(**fields: Any) -> dict[str, Any]:
    """Return a pod whose container has this status."""
    return pod_in_cluster(containerStatuses=[{"name": "main", **fields}])


def ended(code: int, reason: str = "Error", **fields: Any) -> dict[str, Any]:
    """Return the state of a container that has ended."""
    return {"terminated": {"exitCode": code, "reason": reason, **fields}}


@pytest.mark.parametrize(
    ("fields", "code", "says", "remedy"),
    [
        (
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}},
            "ImagePullBackOff",
            "Container main cannot start, since its image cannot be pulled: no such",
            "name and tag",
        ),
        (
            {"state": {"waiting": {"reason": "CreateContainerConfigError", "message": "no key"}}},
            "CreateContainerConfigError",
            "a ConfigMap, a Secret or a key that it refers to does not exist",
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
    """The finding has the problem of the container, and its remedy."""
    _, finding = now(of_main(**fields))
    assert finding.code == code
    assert says in finding.text
    assert remedy in finding.remedy


def test_where_the_log_is_searched() -> None:
    """The remedy does not repeat a search of the log; a restart has an older log."""
    first = of_main(state=ended(1), restartCount=0)
    restarted = of_main(state=ended(1), restartCount=1)
    command = "kubectl logs train-0 -n lab -c main"
    assert now(first)[1].remedy.startswith(f"Read its log: `{command}`. `rdma-webhook why ")
    assert now(restarted)[1].remedy.startswith(f"Read its log: `{command} --previous`. `rdma-")
    assert now(pod_in_cluster(phase="Failed"))[0].remedy == (
        "Search the log for known errors: `rdma-webhook why train-0 -n lab --logs`."
    )
    for pod in (first, restarted, pod_in_cluster(phase="Failed")):
        assert now(pod, logs=())[-1].remedy.startswith("The cause, if known, is below")


def test_a_container_that_exceeded_its_limit() -> None:
    """The finding names the limit, and mentions that registered memory counts."""
    pod = of_main(state=ended(137, "OOMKilled"))
    pod["spec"]["containers"][0]["resources"] = {"limits": {"memory": "16Gi"}}
    _, finding = now(pod)
    assert "used more memory than its limit of 16Gi" in finding.text
    assert "Registered memory counts" in finding.text
    assert finding.remedy == "Raise limits.memory."
    pod["metadata"]["annotations"] = {"rdma.lab/memory-limit": "keep"}
    _, finding = now(pod)
    assert finding.remedy == (
        "Raise limits.memory. Or let the webhook remove the limit: delete the annotation "
        "rdma.lab/memory-limit: keep."
    )
    pod["metadata"]["annotations"] = status(skipped=["LimitRequired"])
    _, finding = now(pod)
    assert finding.remedy == (
        "Raise limits.memory. Or let the webhook remove the limit: use a namespace that does not "
        "require a limit."
    )


def test_an_init_container_that_exceeded_its_limit() -> None:
    """Its limit comes from the init container with its name, not from another container."""
    ends = [{"name": "setup", "state": ended(137, "OOMKilled")}]
    for limit, says in (("1Gi", "its limit of 1Gi"), ("", "the node ran out of memory")):
        setup = {"name": "setup", "resources": {"limits": {"memory": limit} if limit else {}}}
        pod = pod_in_cluster(initContainerStatuses=ends)
        pod["spec"]["initContainers"] = [{"name": "other"}, setup]
        pod["metadata"]["annotations"]["rdma.lab/memory-limit"] = "keep"
        _, finding = now(pod)
        assert says in finding.text
        assert "webhook" not in finding.remedy


def test_the_status_of_a_container_without_a_name() -> None:
    """It gets no limit, even if a container in the spec has no name either."""
    pod = pod_in_cluster(containerStatuses=[{"state": ended(137, "OOMKilled")}])
    pod["spec"]["containers"] = [{"resources": {"limits": {"memory": "16Gi"}}}]
    _, finding = now(pod)
    assert "the node ran out of memory" in finding.text


def test_a_container_that_completed() -> None:
    """It is not a problem."""
    pod = pod_in_cluster(phase="Succeeded", containerStatuses=[{"name": "main", "state": ended(0)}])
    assert codes(explain(pod), "podStatus") == ["Succeeded"]


@pytest.mark.parametrize(
    ("state", "level"), [({"running": {}}, "unsure"), ({"waiting": {"reason": "x"}}, "error")]
)
def test_a_container_that_completes_again_and_again(state: dict[str, Any], level: str) -> None:
    """A Deployment restarts a command that is meant to end; the remedy is a Job."""
    _, finding = now(of_main(state=state, lastState=ended(0), restartCount=3))
    assert (finding.code, finding.level) == ("Restarted", level)
    assert finding.text == (
        "Container main ended with exit code 0, and has restarted 3 times: with restartPolicy "
        "Always, it always does."
    )
    assert finding.remedy.startswith(
        "If its command is meant to end, run it in a Job. Otherwise, read its log: `kubectl logs "
    )
    init = {"name": "fetch", "lastState": ended(0), "restartCount": 2, "state": ended(0)}
    _, finding = now(pod_in_cluster(initContainerStatuses=[init]))
    assert finding.text == "Init container fetch has restarted 2 times."


def test_an_init_container() -> None:
    """It is called so, since kubectl logs needs its name."""
    pod = pod_in_cluster(
        initContainerStatuses=[{"name": "fetch", "state": ended(3), "restartCount": 1}]
    )
    _, finding = now(pod)
    assert finding.text == "Init container fetch ended with exit code 3, and has restarted once."
    assert "kubectl logs train-0 -n lab -c fetch --previous" in finding.remedy
    pod = pod_in_cluster(initContainerStatuses=[{"name": "fetch", "restartCount": 2}])
    _, finding = now(pod)
    assert finding.text == "Init container fetch has restarted 2 times."
    assert "kubectl logs train-0 -n lab -c fetch --previous" in finding.remedy


REFUSED: dict[str, Any] = {
    "phase": "Failed",
    "reason": "UnexpectedAdmissionError",
    "message": "no device is free",
}


def test_a_pod_that_its_node_refused() -> None:
    """It has no log; the kubelet's message is the reason."""
    (finding,) = now(pod_in_cluster(**REFUSED))
    assert (finding.code, finding.level) == ("RejectedByNode", "error")
    assert finding.text == (
        "The pod was refused on node node-1 (UnexpectedAdmissionError): no device is free"
    )
    started: dict[str, Any] = {"containerStatuses": [{"name": "main", "state": ended(0)}]}
    for state in ({**REFUSED, **started}, {**REFUSED, "message": ""}, {**REFUSED, "reason": ""}):
        assert now(pod_in_cluster(**state))[0].code == "Failed"


@pytest.mark.parametrize(
    "reason", ["FailedCreatePodSandBox", "FailedMount", "FailedAttachVolume", "FailedMapVolume"]
)
def test_a_pod_that_its_node_cannot_set_up(reason: str) -> None:
    """That keeps it from running, until it runs: then the Event is over."""
    events = (event(reason, 'configmap "train-config" not found'), event("Other", "x"))
    pod = pod_in_cluster(phase="Pending")
    starting, finding, other = now(pod, events=events)
    assert (starting.code, other.code) == ("Starting", "Event")
    assert (finding.code, finding.level) == ("NotSetUp", "error")
    assert finding.text == (
        "The node cannot set up the pod, since ConfigMap train-config does not exist "
        f'(Event {reason}): configmap "train-config" not found'
    )
    assert not explain(pod, events=events).well
    for phase in ("Running", "Succeeded"):
        assert "NotSetUp" not in codes(
            explain(pod_in_cluster(phase=phase), events=events), "podStatus"
        )
        assert [finding.code for finding in now(pod_in_cluster(phase=phase), events=events)][
            1:
        ] == ["Event"]
    unplaced = now(pod_in_cluster(phase="Pending", spec={"nodeName": ""}), events=events)
    assert "NotSetUp" not in [finding.code for finding in unplaced]
    prepared = {"type": "PodReadyToStartContainers", "status": "True"}
    assert "NotSetUp" not in codes(
        explain(pod_in_cluster(phase="Pending", conditions=[prepared]), events=events), "podStatus"
    )
    failed = now(pod_in_cluster(phase="Failed"), events=events)
    assert [finding.code for finding in failed] == ["Failed", "Event", "Event"]
    of_owner = (event(reason, "x", "Job", "train"),)
    assert [finding.code for finding in now(pod, events=of_owner)] == ["Starting", "Event"]


@pytest.mark.parametrize(
    ("time", "is_shown"), [(EARLIER, False), (CREATED, True), (LATER, True), ("", False)]
)
def test_a_refusal_before_the_pod_was_created(time: str, is_shown: bool) -> None:
    """The controller could not create a pod at first, and then created this one."""
    refused = event("FailedCreate", "no service account", "Job", "train", lastTimestamp=time)
    other = event("Other", "x", "Job", "train", lastTimestamp=EARLIER)
    reasons = [finding.code for finding in now(pod_in_cluster(), events=(refused, other))[1:]]
    assert reasons == (["FailedCreate"] if is_shown else []) + ["Event"]


def node_record(status: str = "True", **fields: str) -> dict[str, Any]:
    """Return a node with this condition Ready."""
    condition = {"type": "Ready", "status": status, **fields}
    return {"metadata": {"name": "node-1"}, "status": {"conditions": [condition]}}


def test_the_node_of_a_pod_that_starts() -> None:
    """A node that is not ready, or does not exist, starts no pod."""
    pod = pod_in_cluster(phase="Pending")
    lost = node_record("Unknown", reason="NodeStatusUnknown", message="Kubelet stopped posting.")
    for readiness in ("Unknown", "False"):
        lost["status"]["conditions"][0]["status"] = readiness
        _, finding = now(pod, nodes=[node_record() | {"metadata": {"name": "b"}}, lost])
        assert (finding.code, finding.level) == ("NodeNotReady", "error")
        assert finding.text == (
            "Node node-1 is not ready (NodeStatusUnknown): Kubelet stopped posting."
        )
        assert not explain(pod, nodes=[lost]).well
    _, finding = now(pod, nodes=[])
    assert finding.text == "There is no node node-1."
    assert finding.remedy.startswith("Correct or remove nodeName")
    for nodes in (None, [node_record()], [{"metadata": {"name": "node-1"}}]):
        assert [finding.code for finding in now(pod, nodes=nodes)] == ["Starting"]


UNREADY = {"type": "Ready", "status": "False"}


def test_the_node_of_a_running_pod() -> None:
    """The node controller sets the condition Ready to False, and gives no reason there."""
    marked = pod_in_cluster(conditions=[UNREADY])
    lost = node_record("Unknown", reason="NodeStatusUnknown", message="Kubelet stopped posting.")
    _, finding = now(marked, nodes=[lost])
    assert (finding.code, finding.level) == ("NodeNotReady", "error")
    assert finding.text == "Node node-1 is not ready (NodeStatusUnknown): Kubelet stopped posting."
    _, finding = now(marked, nodes=[])
    assert (finding.code, finding.text) == ("NodeNotReady", "There is no node node-1.")
    _, finding = now(marked, nodes=[node_record()])
    assert (finding.code, finding.text) == ("Unready", "It is not ready.")


def test_the_node_of_a_running_pod_without_the_right_to_read_it() -> None:
    """The Event of the node controller counts if the pod's own condition gives no other cause."""
    reported = [event("NodeNotReady", "Node is not ready")]
    marked = pod_in_cluster(conditions=[UNREADY])
    _, finding, _ = now(marked, events=reported)
    assert (finding.code, finding.level) == ("NodeNotReady", "error")
    assert finding.text == "Node node-1 is not ready: it has not reported for a while."
    assert not explain(marked, events=reported).well
    probe = pod_in_cluster(
        conditions=[{**UNREADY, "message": "containers with unready status: [main]"}]
    )
    ready = pod_in_cluster(conditions=[{"type": "Ready", "status": "True"}])
    for pod in (probe, ready):
        assert "NodeNotReady" not in codes(explain(pod, events=reported), "podStatus")
    assert [finding.code for finding in now(marked, events=[event("B", "x")])][1] == "Unready"


def test_a_node_that_a_file_lacks() -> None:
    """A file need not have all nodes, so the pod's own may exist."""
    other: dict[str, Any] = {"kind": "Node", "metadata": {"name": "node-2"}}
    (evidence,) = collect_from_objects([pod_in_cluster(phase="Pending"), other], "lab", None)
    assert [finding.code for finding in status_findings(evidence)] == ["Starting"]


@pytest.mark.parametrize(
    ("message", "clause", "remedy"),
    [
        (
            'MountVolume.SetUp failed for volume "k" : secret "ssh-keys" not found',
            ", since Secret ssh-keys does not exist",
            (
                "Create Secret ssh-keys in namespace lab, or correct the volume in the pod. The "
                "kubelet then starts the pod automatically."
            ),
        ),
        (
            "hostPath type check failed: /mnt/lustre is not a directory",
            ", since its volume needs /mnt/lustre on the node",
            (
                "Mount or create /mnt/lustre on node node-1, or correct hostPath in the pod. The "
                "kubelet then starts the pod automatically."
            ),
        ),
        (
            'failed to get sandbox runtime: no runtime for "nvidia" is configured',
            ", since its runtime has no handler nvidia",
            (
                "Ask the cluster administrator to configure the runtime handler nvidia on node "
                "node-1. The kubelet then starts the pod automatically. Or correct "
                "runtimeClassName in the pod: `kubectl get runtimeclasses`."
            ),
        ),
        (
            "failed to find runtime handler kata from runtime list map[crun:0x1]",
            ", since its runtime has no handler kata",
            "runtime handler kata on node node-1",
        ),
        (
            "plugin type failed",
            "",
            "If the kubelet's message blames the pod, correct the pod.",
        ),
    ],
    ids=["secret", "hostPath", "containerd", "CRI-O", "other"],
)
def test_what_the_set_up_lacks(message: str, clause: str, remedy: str) -> None:
    """The object, path or handler that the kubelet's message names has its remedy."""
    pod = pod_in_cluster(phase="Pending")
    _, finding = now(pod, events=[event("FailedMount", "old"), event("FailedMount", message)])
    assert finding.text == (
        f"The node cannot set up the pod{clause} (Event FailedMount): {message}"
    )
    assert remedy in finding.remedy


def test_a_set_up_that_fails_beside_many_events() -> None:
    """It keeps the pod from running, so it is shown, whatever else is."""
    warnings = [event(name, "x") for name in "ABCDEFGH"]
    explanation = explain(
        pod_in_cluster(phase="Pending"), events=[event("FailedMount", "x"), *warnings]
    )
    assert "NotSetUp" in codes(explanation, "podStatus")


def test_the_cause_of_a_kill() -> None:
    """The kubelet kills with the exit code of the kernel; memory is not the cause then."""
    late = of_main(state=ended(137))
    late["status"] |= {"phase": "Failed", "reason": "DeadlineExceeded", "message": "too long"}
    _, finding = now(late)
    assert finding.text == (
        "Container main was killed (exit code 137), since the pod ran longer than its "
        "activeDeadlineSeconds."
    )
    assert finding.remedy == "Raise activeDeadlineSeconds, or remove it."
    hooks = [event("FailedPostStartHook", "PostStartHook failed"), event("X", "y")]
    for part, clause in (
        ("spec.containers{main}", ", since its postStart hook failed (PostStartHook failed)"),
        ("spec.containers{other}", ""),
    ):
        hooks[0]["involvedObject"]["fieldPath"] = part
        hooks[1]["involvedObject"]["fieldPath"] = "spec.containers{main}"
        _, finding, *_ = now(of_main(state=ended(137), restartCount=2), events=hooks)
        text = f"Container main was killed (exit code 137){clause}, and has restarted 2 times."
        assert finding.text == text
        assert ("lifecycle.postStart" in finding.remedy) is bool(clause)


def test_a_hook_that_fails_at_the_start() -> None:
    """The kubelet names it as the reason why the container waits."""
    waiting = {"reason": "PostStartHookError", "message": "exit status 1"}
    _, finding = now(of_main(state={"waiting": waiting}))
    assert (finding.code, finding.level) == ("PostStartHookError", "error")
    assert finding.text == (
        "Container main cannot start, since its postStart hook failed, so the kubelet killed it: "
        "exit status 1"
    )


def test_the_reason_of_a_failed_pod() -> None:
    """What the pod's status says about its end is shown."""
    for reason, message, end in (
        ("Terminated", "node shutdown", " (Terminated): node shutdown"),
        ("Terminated", "", " (Terminated)."),
        ("", "node shutdown", ": node shutdown"),
        ("", "", "."),
    ):
        pod = of_main(state=ended(0))
        pod["status"] |= {"phase": "Failed", "reason": reason, "message": message}
        (finding,) = now(pod)
        assert finding.text == f"The pod has failed on node node-1{end}"


def test_events_of_an_earlier_object_in_a_file() -> None:
    """An object may have the name of one that was deleted: the UID decides."""
    old, new = event("Old", "x"), event("New", "x")
    old["involvedObject"]["uid"], new["involvedObject"]["uid"] = "before", "u"
    (evidence,) = collect_from_objects([pod_in_cluster(), old, new], "lab", None)
    assert [event.reason for event in evidence.events or ()] == ["New"]


@pytest.mark.parametrize(
    ("finalizers", "clause"),
    [
        (
            ["a.example/x", "b"],
            ", and is waiting for the removal of its finalizers (a.example/x, b).",
        ),
        ([], "."),
        ([5], "."),
        (5, "."),
        (None, "."),
    ],
)
def test_finalizers(finalizers: object, clause: str) -> None:
    """They keep a deleted pod, so they are named."""
    metadata = {"deletionTimestamp": LATER, "finalizers": finalizers}
    assert now(pod_in_cluster(metadata=metadata))[0].text == f"The pod is being deleted{clause}"


@pytest.mark.parametrize(
    ("state", "is_kept"),
    [
        ({"phase": "Failed"}, True),
        ({"phase": "Succeeded"}, True),
        ({"phase": "Pending", "spec": {"nodeName": ""}}, True),
        ({"phase": "Pending"}, False),
        ({"phase": "Running"}, False),
    ],
    ids=str,
)
def test_finalizers_of_a_pod_without_processes(state: dict[str, Any], is_kept: bool) -> None:
    """Nothing else keeps it: that is the answer, not how it ended."""
    metadata = {"deletionTimestamp": LATER, "finalizers": ["a.example/x"]}
    pod = pod_in_cluster(metadata=metadata, **state)
    finding = now(pod)[0]
    assert (finding.code, finding.level) == (
        ("KeptByFinalizers", "error") if is_kept else ("Terminating", "info")
    )
    if is_kept:
        assert (
            "The pod is being deleted, and is waiting for the removal" in explain(pod).answer.text
        )
        assert finding.remedy == (
            "Find out why the controllers that own the finalizers do not remove them. If all "
            "of these controllers are gone, remove the finalizers: `kubectl patch pod train-0 -n "
            """lab --type merge --patch '{"metadata":{"finalizers":null}}'`."""
        )
    unkept = pod_in_cluster(metadata={"deletionTimestamp": LATER}, **state)
    assert now(unkept)[0].code == "Terminating"


@pytest.mark.parametrize("exit_code", [137, 143])
def test_a_container_that_the_deletion_stopped(exit_code: int) -> None:
    """Its end is no failure, unless it ended before, or for another reason."""
    stop = event("Killing", "Stopping container main", lastTimestamp=LATER, type="Normal")
    stop["involvedObject"]["fieldPath"] = "spec.containers{main}"
    end = ended(exit_code, startedAt=EARLIER, finishedAt=LATER)
    pod = of_main(state=end)
    pod["metadata"]["deletionTimestamp"] = LATER
    assert "Killed" in codes(explain(of_main(state=ended(137)), events=[stop]), "podStatus")
    assert [finding.code for finding in now(pod, events=[stop])] == ["Terminating", "Running"]
    for other in (
        {**end["terminated"], "finishedAt": CREATED},
        {**end["terminated"], "reason": "OOMKilled"},
        {**end["terminated"], "exitCode": 1},
    ):
        pod["status"]["containerStatuses"][0]["state"] = {"terminated": other}
        assert now(pod, events=[stop])[-1].level == "error"
    pod["status"]["containerStatuses"][0]["state"] = end
    assert now(pod, events=[{**stop, "message": "Container main failed"}])[-1].level == "error"


def test_the_node_of_a_pod_that_is_being_deleted() -> None:
    """Only the kubelet ends its deletion, so a pod of a lost node must be deleted by force."""
    deleted = pod_in_cluster(metadata={"deletionTimestamp": LATER})
    lost = node_record("Unknown", reason="NodeStatusUnknown", message="Kubelet stopped posting.")
    _, _, finding = now(deleted, nodes=[lost])
    assert (finding.code, finding.level) == ("NodeNotReady", "error")
    assert finding.remedy == (
        "The deletion waits for the node. If its machine is off, run `kubectl delete pod train-0 "
        "-n lab --force`. A process that still runs there would keep running alongside the next "
        "pod."
    )
    marked = pod_in_cluster(conditions=[UNREADY], metadata={"deletionTimestamp": LATER})
    reported = [event("NodeNotReady", "Node is not ready")]
    assert now(marked, events=reported)[2].remedy == finding.remedy
    assert not explain(deleted, nodes=[lost]).well
    assert explain(deleted, nodes=[node_record()]).well


def test_a_deadline() -> None:
    """The pod's own limit ended it, whatever its log says."""
    reached = pod_in_cluster(
        phase="Failed", reason="DeadlineExceeded", message="Pod was active too long"
    )
    reached["status"]["containerStatuses"] = [{"name": "main", "state": ended(0)}]
    (finding,) = now(reached)
    assert (finding.code, finding.remedy) == (
        "Failed",
        "Raise activeDeadlineSeconds, or remove it.",
    )
    assert finding.text == (
        "The pod has failed on node node-1 (DeadlineExceeded): Pod was active too long"
    )


def test_a_user_against_run_as_non_root() -> None:
    """No object is missing then."""
    for message in (
        "container's runAsUser breaks non-root policy (pod: ...)",
        "container has runAsNonRoot and image will run as root",
    ):
        waiting = {"reason": "CreateContainerConfigError", "message": message}
        _, finding = now(of_main(state={"waiting": waiting}))
        assert finding.text == (
            f"Container main cannot start, since its user contradicts runAsNonRoot: {message}"
        )
        assert finding.remedy.startswith("Remove runAsNonRoot from the securityContext")


def test_a_sidecar_that_does_not_start() -> None:
    """The containers of the pod wait for its startupProbe."""
    states: list[dict[str, Any]] = [{"name": "proxy", "state": {"running": {}}}]
    sidecars = [{"name": "proxy", "restartPolicy": "Always"}, {"name": "fetch"}]
    pod = pod_in_cluster(
        phase="Pending", initContainerStatuses=states, spec={"initContainers": sidecars}
    )
    _, finding = now(pod)
    assert (finding.code, finding.level) == ("WaitsForSidecar", "error")
    assert finding.text == "The pod's containers wait for the startupProbe of its sidecar proxy."
    assert finding.remedy.startswith("Read its log: `kubectl logs train-0 -n lab -c proxy`. ")
    assert finding.remedy.endswith(" Correct the sidecar or its startupProbe.")
    refused = event("Unhealthy", "Startup probe failed: connection refused")
    for part, end in (
        ("spec.initContainers{proxy}", ": Startup probe failed: connection refused"),
        ("spec.initContainers{fetch}", "."),
    ):
        refused["involvedObject"]["fieldPath"] = part
        _, finding = now(pod, events=[event("Unhealthy", "x"), refused])
        assert finding.text.endswith(f"startupProbe of its sidecar proxy{end}")
    states[0]["started"] = True
    assert codes(explain(pod), "podStatus") == ["Starting"]
    states[0] |= {"started": False, "state": {"waiting": {}}}
    assert codes(explain(pod), "podStatus") == ["Starting"]
    states[0] |= {"state": {"running": {}}}
    pod["status"]["phase"] = "Running"
    assert codes(explain(pod), "podStatus") == ["Running"]


def test_an_init_container_that_runs() -> None:
    """The containers of the pod wait for its end, perhaps in vain."""
    running = {"name": "wait", "state": {"running": {"startedAt": EARLIER}}}
    done = {"name": "fetch", "state": ended(0)}
    spec = {"initContainers": [{"name": "fetch"}, {"name": "wait"}]}
    pod = pod_in_cluster(phase="Pending", initContainerStatuses=[done, running], spec=spec)
    _, finding = now(pod)
    assert (finding.code, finding.level) == ("WaitsForInitContainer", "error")
    assert finding.text == (
        "The pod's containers wait for its init container wait, which has been running since "
        f"{EARLIER}."
    )
    assert finding.remedy.startswith("Read its log: `kubectl logs train-0 -n lab -c wait`. ")
    assert finding.remedy.endswith(" run `rdma-webhook why` for that pod.")
    assert not explain(pod).well
    assert "RDMA. But it does not run yet: The pod's containers wait" in explain(pod).answer.text
    running["state"] = {"running": {}}
    assert now(pod)[1].text == "The pod's containers wait for its init container wait."


@pytest.mark.parametrize("kind", ["liveness", "startup"])
@pytest.mark.parametrize("exit_code", [137, 143])
def test_a_probe_that_ends_a_container(kind: str, exit_code: int) -> None:
    """The kubelet sends SIGTERM first, so the exit code may be any."""
    messages = {
        "Unhealthy": [
            f"{kind.capitalize()} probe failed: cat: /alive",
            "Readiness probe failed: x",
        ],
        "Killing": [f"Container main failed {kind} probe, will be restarted", "Stopping container"],
    }
    events = [event(reason, text) for reason, texts in messages.items() for text in texts]
    for item in events:
        item["involvedObject"]["fieldPath"] = "spec.containers{main}"
    pod = of_main(lastState=ended(exit_code), restartCount=2)
    _, finding = now(pod, events=events)
    assert finding.code == "Killed"
    assert finding.text == (
        f"Container main was killed (exit code {exit_code}), since its {kind}Probe failed "
        f"({kind.capitalize()} probe failed: cat: /alive), and has restarted 2 times."
    )
    assert finding.remedy == f"Correct {kind}Probe of the container, or what it checks."
    _, finding = now(pod, events=events[2:])
    assert f", since its {kind}Probe failed, and" in finding.text
    crashed = of_main(lastState=ended(139), restartCount=2)
    assert now(crashed, events=events)[1].code == "ContainerFailed"
    late = of_main(lastState=ended(1), restartCount=2)
    late["status"]["reason"] = "DeadlineExceeded"
    assert "Deadline" not in now(late)[1].text
    _, finding = now(pod, events=[events[0], events[3]])
    assert finding.code == ("Killed" if exit_code == 137 else "ContainerFailed")
    assert "Probe" not in finding.text


@pytest.mark.parametrize(
    ("started", "finished", "is_cause"),
    [
        (EARLIER, LATER, True),
        (CREATED, CREATED, True),
        (EARLIER, "", True),
        ("", LATER, True),
        (EARLIER, EARLIER, False),
        (LATER, LATER, False),
    ],
)
def test_events_of_another_run(started: str, finished: str, is_cause: bool) -> None:
    """Events stay for an hour; the container may have ended again since, and for another reason."""
    killing = event("Killing", "Container main failed liveness probe, will be restarted")
    unhealthy = event("Unhealthy", "Liveness probe failed: x")
    old = event("Unhealthy", "Liveness probe failed: old", lastTimestamp="2020-01-01T00:00:00Z")
    hook = event("FailedPostStartHook", "PostStartHook failed")
    for item in (killing, unhealthy, old, hook):
        item["involvedObject"]["fieldPath"] = "spec.containers{main}"
    pod = of_main(lastState=ended(137, startedAt=started, finishedAt=finished), restartCount=2)
    text = now(pod, events=[unhealthy, old, killing])[1].text
    assert ("livenessProbe failed" in text) is is_cause
    if started and is_cause:
        assert "(Liveness probe failed: x)" in text
    assert ("its postStart hook failed" in now(pod, events=[hook])[1].text) is is_cause


def test_a_sysctl_that_the_kubelet_forbids() -> None:
    """To create the pod again changes nothing; the Event repeats the status."""
    pod = pod_in_cluster(phase="Failed", reason="SysctlForbidden", message='forbidden sysctl: "a"')
    (finding,) = now(pod, events=[event("SysctlForbidden", 'forbidden sysctl: "a"')])
    assert finding.code == "RejectedByNode"
    assert finding.remedy.startswith("Remove the sysctl from securityContext.sysctls")
    other = pod_in_cluster(phase="Failed", reason="UnexpectedAdmissionError", message="x")
    findings = now(other, events=[event("SysctlForbidden", "y")])
    assert [finding.code for finding in findings] == ["RejectedByNode", "Event"]
    assert findings[0].remedy.startswith("Create the pod again")


def test_a_node_without_the_labels_that_the_pod_requires() -> None:
    """A pod with nodeName has no scheduler that would choose another node."""
    pod = pod_in_cluster(phase="Failed", reason="NodeAffinity", message="Pod was rejected")
    (finding,) = now(pod)
    assert finding.code == "RejectedByNode"
    assert finding.remedy.startswith("The node does not have the labels that")


def test_a_failed_pod_with_a_failed_container() -> None:
    """The answer names the container: how it ended says more than that the pod has failed."""
    failed = of_main(state=ended(1))
    failed["status"]["phase"] = "Failed"
    assert "as it should: Container main ended with exit code 1." in explain(failed).answer.text
    alone = explain(pod_in_cluster(phase="Failed")).answer.text
    assert alone.endswith("as it should: The pod has failed on node node-1.")


def test_a_pod_that_is_not_ready() -> None:
    """It runs, but no Service sends anything to it."""
    message = "containers with unready status: [main]"
    condition = {"type": "Ready", "status": "False", "message": message}
    running, finding = now(pod_in_cluster(conditions=[condition]))
    assert (running.code, finding.code, finding.level) == ("Running", "Unready", "unsure")
    assert finding.text == f"It is not ready: {message}."
    assert explain(pod_in_cluster(conditions=[condition])).well
    ready = {**condition, "status": "True"}
    assert codes(explain(pod_in_cluster(conditions=[ready])), "podStatus") == ["Running"]


def _container_status(name: str, *, ready: bool = False, state: str = "running") -> dict[str, Any]:
    return {"name": name, "ready": ready, "state": {state: {"exitCode": 0}}}


def test_a_container_that_is_not_ready() -> None:
    """The message of its probe, and its log, show why; also for a sidecar."""
    place = {"fieldPath": "spec.containers{server}"}
    probe = event("Unhealthy", "Readiness probe failed: connection refused")
    probe["involvedObject"] |= place
    pod = pod_in_cluster(
        conditions=[{"type": "Ready", "status": "False", "message": "containers: [server]"}],
        initContainerStatuses=[
            _container_status("fetch", ready=True, state="terminated"),
            _container_status("proxy"),
        ],
        containerStatuses=[
            _container_status("server"),
            _container_status("trainer", ready=True),
        ],
    )
    _, proxy, server = now(pod, events=[event("Unhealthy", "other"), probe])
    assert (proxy.code, proxy.text) == ("Unready", "Container proxy is not ready.")
    assert (server.code, server.level) == ("Unready", "unsure")
    assert server.text == (
        "Container server is not ready: Readiness probe failed: connection refused"
    )
    assert server.remedy == (
        "Read its log: `kubectl logs train-0 -n lab -c server`. `rdma-webhook why train-0 -n lab "
        "--logs` searches it for known errors of RDMA. Until the container is ready, Services send "
        "the pod no traffic, unless they set publishNotReadyAddresses: true."
    )


def test_a_container_that_has_ended_is_not_ready_either() -> None:
    """The finding on its end suffices; only one that has completed has none."""
    condition = {"type": "Ready", "status": "False", "message": "containers: [main]"}
    completed = _container_status("main", state="terminated")
    failed = {"name": "server", "state": ended(1)}
    waiting = {"name": "server", "state": {"waiting": {"reason": "ErrImagePull"}}}
    for statuses, code in (
        ([completed], "Unready"),
        ([completed, _container_status("helper", ready=True)], "Unready"),
        ([completed, failed], "ContainerFailed"),
        ([completed, waiting], "ErrImagePull"),
    ):
        pod = pod_in_cluster(conditions=[condition], containerStatuses=statuses)
        assert codes(explain(pod), "podStatus") == ["Running", code]
    _, finding = now(pod_in_cluster(conditions=[condition], containerStatuses=[completed]))
    assert finding.text == "It is not ready: containers: [main]."


def test_a_readiness_gate() -> None:
    """All containers are ready, but the pod is not: its condition has the reason."""
    message = 'corresponding condition of pod readiness gate "lb" does not exist'
    condition = {"type": "Ready", "status": "False", "message": message}
    statuses = [_container_status("main", ready=True)]
    _, finding = now(pod_in_cluster(conditions=[condition], containerStatuses=statuses))
    assert finding.text == f"It is not ready: {message}."
    condition["message"] += "."
    _, finding = now(pod_in_cluster(conditions=[condition], containerStatuses=statuses))
    assert finding.text == f"It is not ready: {message}."
    deleted = pod_in_cluster(conditions=[condition], metadata={"deletionTimestamp": LATER})
    assert codes(explain(deleted), "podStatus") == ["Terminating", "Running"]
    done = pod_in_cluster(conditions=[condition], phase="Succeeded")
    assert codes(explain(done), "podStatus") == ["Succeeded"]


def test_events() -> None:
    """The newest event of each reason, from pod and owners, without repeating the status."""
    events = (
        event("FailedKillPod", "old"),
        event("FailedKillPod", "new"),
        event("BackOff", "again"),
        event("Pulled", "fine", type="Normal"),
        event("FailedCreate", "denied", "Job", "train"),
        event("NoRDMA", "no fabric", "Job", "train"),
    )
    without_rdma = pod_in_cluster(status("no", "NcclIbDisabled"))
    _, *findings = now(without_rdma, events=events)
    assert [finding.text for finding in findings] == [
        "Event FailedKillPod about the pod: new",
        "Event FailedCreate about Job train: denied",
        "Event NoRDMA about Job train: no fabric",
    ]
    assert [finding.remedy[:10] for finding in findings] == ["", "Correct th", "Change the"]
    assert codes(explain(pod_in_cluster(), events=events[-1:]), "podStatus") == ["Running"]
    denied = event("FailedCreate", "before the pod", "Job", "train", lastTimestamp=EARLIER)
    assert codes(explain(without_rdma, events=[denied]), "podStatus") == ["Running"]
    owned = pod_in_cluster(status("no", "NcclIbDisabled"), metadata=OWNED)
    (finding,) = now(owned, events=events[-1:])[1:]
    assert finding.remedy == (
        "Change the pod template of Job train as the message says, and create the pod again."
    )


def test_many_events() -> None:
    """The answer has the newest six; a reason without a code of its own is only in the text."""
    events = tuple(event(f"Reason{number}", "x") for number in range(8))
    findings = now(pod_in_cluster(), events=events)[1:]
    assert [(finding.code, finding.text) for finding in findings] == [
        ("Event", f"Event Reason{number} about the pod: x") for number in range(2, 8)
    ]


@pytest.mark.parametrize("message", ["", " \n"], ids=repr)
def test_an_end_without_a_message(message: str) -> None:
    """The sentence ends at its full stop."""
    _, finding = now(of_main(state=ended(1, message=message)))
    assert finding.text == "Container main ended with exit code 1."


def test_the_last_end_counts() -> None:
    """The finding describes the current end of a container, not the end before its restart."""
    _, finding = now(of_main(state=ended(1), lastState=ended(137, "OOMKilled"), restartCount=1))
    assert finding.code == "ContainerFailed"


@pytest.mark.parametrize("status", [None, [], "x", {"conditions": "x", "containerStatuses": [1]}])
def test_any_shape(status: object) -> None:
    """A file may contain anything."""
    pod = pod_in_cluster()
    pod["status"] = status
    assert codes(explain(pod), "podStatus") == ["NoStatus"]
