"""What keeps the scheduler from a pending pod, or ended it: gates, no scheduler, preemption.

Sources, in Kubernetes 1.34 and 1.36: pkg/scheduler/framework/plugins/schedulinggates, and
pkg/scheduler/framework/preemption (prepareCandidate: the Event Preempted, the condition
DisruptionTarget). Each scheduler sets the condition PodScheduled once it has looked at a pod.
Since 1.35, it also names the node that it has chosen while volumes and claims are bound, without a
condition: https://www.kubernetes.dev/resources/keps/5278/
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from webhook.diagnose.why.evidence import PodEvidence
from webhook.kube.objects import PodRecord
from webhook.model.finding import Code, Finding
from webhook.model.names import shortened_list

SCHEDULING_GATED = Code(
    "SchedulingGated",
    "The pod is pending until its scheduling gates are removed.",
    "Find the controller that owns the gate, and the reason why it does not remove the gate (for "
    "Kueue, see `kubectl get workloads`). If the controller no longer exists, create the pod "
    "again without the gate.",
)
NO_SCHEDULER = Code(
    "NoScheduler",
    "The pod is pending: no scheduler has looked at it. Perhaps there is no scheduler with the "
    "name that schedulerName gives.",
    "If schedulerName is right, check that this scheduler is running. Otherwise, in the pod's "
    "manifest or, for a workload, in the pod template, correct schedulerName, or remove it to use "
    "the default scheduler; then create the pod again.",
)
PREEMPTING = Code(
    "Preempting",
    "The pod is pending: the scheduler is stopping pods of lower priority to make room for it.",
    "Wait until these pods have ended. If one of them does not end, check its "
    "terminationGracePeriodSeconds and its finalizers.",
)
PREEMPTED = Code(
    "Preempted",
    "The scheduler stopped the pod to make room for a pod of higher priority.",
    "If the pod has a controller, wait: the controller creates a new pod, which starts when there "
    "is room. Otherwise, create the pod again. To prevent another preemption, give the pod a "
    "PriorityClass whose priority is at least that of the other pod (kubectl get priorityclasses).",
)
WAITS_FOR_BINDING = Code(
    "WaitsForBinding",
    "The pod is pending: the scheduler has chosen a node for it, and is waiting for a volume or "
    "a claim.",
    "If the wait lasts, look at the Events of the pod's PersistentVolumeClaims and "
    "ResourceClaims: `kubectl describe pvc`, `kubectl describe resourceclaims`.",
)
CODES = (SCHEDULING_GATED, NO_SCHEDULER, PREEMPTING, PREEMPTED, WAITS_FOR_BINDING)

DEFAULT_SCHEDULER = "default-scheduler"
#: The reason of the scheduler's Event about a pod that it stopped.
PREEMPTED_EVENT = "Preempted"
#: `Preempted by pod UID on node NODE`
_PREEMPTOR = re.compile(r"by (?:a )?pod ([0-9a-f-]{36})")
#: The beginning of a gate's name → how to proceed.
_GATES = {
    "kueue.x-k8s.io/": "Kueue removes it once it admits the workload. `kubectl get workloads -n "
    "{0}` shows whether it waits for quota, `kubectl describe localqueues -n {0}` whether the "
    "queue exists. If Kueue is no longer installed, create the pod again without the gate.",
}


def gate_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield a finding for each scheduling gate of a pending pod."""
    pod = evidence.pod
    if not pod.waits_for_node:
        return
    for gate in pod.spec.scheduling_gates:
        text = f"The pod is pending until its scheduling gate {gate.name} is removed."
        yield SCHEDULING_GATED.finding("error", text, _gate_remedy(gate.name, evidence))


def _gate_remedy(gate: str, evidence: PodEvidence) -> str:
    for start, remedy in _GATES.items():
        if gate.startswith(start):
            return remedy.format(shlex.quote(evidence.namespace_name))
    return (
        f"Find the controller that owns {gate}, and the reason why it does not remove the gate. If "
        "no controller owns it, create the pod again without the gate."
    )


def scheduler_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield a finding on a pod that no scheduler has looked at."""
    pod = evidence.pod
    if not pod.waits_for_node or pod.status.condition("PodScheduled").status:
        return
    if is_being_bound(pod):
        yield WAITS_FOR_BINDING.finding("error", _binding_text(pod))
        return
    name = pod.spec.scheduler_name or DEFAULT_SCHEDULER
    start = f"The pod is pending: the scheduler {name} has not looked at it"
    if name == DEFAULT_SCHEDULER:
        remedy = "If this lasts, check that kube-scheduler is running, and read its log."
        yield NO_SCHEDULER.finding("error", f"{start}.", remedy)
        return
    others = evidence.unfinished_pods or ()
    served = [other.name for other in others if other.scheduler == name and other.node]
    if served:
        text = f"{start}, although it has placed other pods ({shortened_list(served)})."
        remedy = f"Check that {name} is running now, and read its log."
        yield NO_SCHEDULER.finding("error", text, remedy)
        return
    also = "" if evidence.unfinished_pods is None else ", nor placed any other pod"
    yield NO_SCHEDULER.finding("error", f"{start}{also}. There may be no such scheduler.")


def is_being_bound(pod: PodRecord) -> bool:
    """Return whether a pod's scheduler has chosen a node, and waits for a volume or a claim."""
    status = pod.status
    has_node = pod.waits_for_node and bool(status.nominated_node_name)
    return has_node and not status.condition("PodScheduled").status


def _binding_text(pod: PodRecord) -> str:
    return (
        f"The pod is pending: the scheduler has chosen node {pod.status.nominated_node_name} for "
        "it, and is waiting for a volume or a claim."
    )


def preemption_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield findings on pods that were stopped for this pod, or on the pod it was stopped for."""
    pod = evidence.pod
    node = pod.status.nominated_node_name
    if pod.waits_for_node and node and not is_being_bound(pod):
        text = (
            f"The pod is pending: the scheduler has chosen node {node} for it, and is stopping "
            "pods of lower priority there."
        )
        yield PREEMPTING.finding("error", text)
    target = pod.status.condition("DisruptionTarget")
    # The Event may be about an earlier pod with this name, as of a StatefulSet.
    is_over = pod.metadata.is_deleted or pod.status.phase == "Failed"
    has_event = is_over and bool(_preempted_message(evidence))
    if has_event or target.reason == "PreemptionByScheduler":
        yield PREEMPTED.finding("error", f"The scheduler stopped the pod{_for_whom(evidence)}.")


def _preempted_message(evidence: PodEvidence) -> str:
    """Return the newest message on the pod's preemption, "" without one."""
    messages = [
        event.text
        for event in evidence.events or ()
        if event.reason == PREEMPTED_EVENT and event.about.kind == "Pod"
    ]
    return messages[-1] if messages else ""


def preemptor_uid(evidence: PodEvidence) -> str:
    """Return the UID of the pod that this pod was stopped for; "" if unknown."""
    match = _PREEMPTOR.search(_preempted_message(evidence))
    return match[1] if match else ""


def _for_whom(evidence: PodEvidence) -> str:
    uid = preemptor_uid(evidence)
    for other in evidence.unfinished_pods or () if uid else ():
        if other.uid == uid:
            on_node = f" on node {other.node}" if other.node else ""
            return f" to make room for pod {other.name}{on_node}, which has a higher priority"
    suffix = f" (the one with the UID {uid})" if uid else ""
    return f" to make room for a pod of higher priority{suffix}"
