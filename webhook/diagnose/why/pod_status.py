"""The current state of the pod: its phase, what it is waiting for, its containers and events."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from webhook.diagnose.why.attached_networks import network_findings
from webhook.diagnose.why.container_kills import DEADLINE, DEADLINE_REMEDY, event_messages
from webhook.diagnose.why.container_status import (
    container_findings,
    has_completed,
    log_commands,
    log_remedy,
)
from webhook.diagnose.why.ephemeral_containers import ephemeral_findings
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.init_containers import init_container_findings
from webhook.diagnose.why.messages import cut
from webhook.diagnose.why.node_setup import SETUP_EVENTS, node_problem, setup_findings
from webhook.diagnose.why.pending_claims import CLAIM_NOT_CREATED_EVENT, claim_findings
from webhook.diagnose.why.pending_nodes import node_findings
from webhook.diagnose.why.pending_scheduler import (
    PREEMPTED_EVENT,
    gate_findings,
    preemption_findings,
    scheduler_findings,
)
from webhook.diagnose.why.pending_volumes import volume_findings
from webhook.diagnose.why.pod_template import template_title, with_rollout
from webhook.kube.objects import Event, KubernetesObject
from webhook.model.finding import Code, Finding
from webhook.model.pod import at

TERMINATING = Code("Terminating", "The pod is being deleted.")
KEPT_BY_FINALIZERS = Code(
    "KeptByFinalizers",
    "The pod is being deleted and no longer runs, but its finalizers keep it from being removed.",
    "Find out why the controllers that own the finalizers do not remove them. If all of these "
    "controllers are gone, remove the finalizers: `kubectl patch pod POD --type merge --patch "
    '\'{"metadata":{"finalizers":null}}\'`.',
)
EVICTED = Code(
    "Evicted",
    "The kubelet evicted the pod, usually because the node ran short of memory or disk space.",
    "Request as much memory and disk space as the pod uses, and create the pod again.",
)
RUNNING = Code("Running", "The pod is running.")
SUCCEEDED = Code("Succeeded", "The pod has completed.")
FAILED = Code(
    "Failed",
    "The pod has failed.",
    "Search its log for known errors: `rdma-webhook why POD --logs`.",
)
UNREADY = Code(
    "Unready",
    "The pod is running, but not ready: a container is not ready, or a readiness gate is not met.",
    "Look at the conditions and Events of the pod: `kubectl describe pod`. Until the pod is "
    "ready, Services send it no traffic, unless they set publishNotReadyAddresses: true.",
)
STARTING = Code("Starting", "The pod has a node, but not all of its containers have started.")
NO_STATUS = Code(
    "NoStatus", "The manifest has no `status` field, so it does not come from a cluster."
)
NO_RDMA_EVENT = Code(
    "NoRdma",
    "An Event from the webhook reports that the pods of a controller get no RDMA.",
    "Change the controller's pod template as the Event says, and create the pods again.",
)
FAILED_CREATE = Code(
    "FailedCreate",
    "An Event reports that a controller could not create a pod.",
    "Correct the problem that the Event reports. Until then, the controller might have fewer pods "
    "than it needs.",
)
REJECTED_BY_NODE = Code(
    "RejectedByNode",
    "The kubelet refused the pod after the pod was assigned to a node, for example because a "
    "device was already taken.",
    "Create the pod again, unless its controller does. If the new pod is refused too, ask the "
    "cluster administrator about the node or, if the reason is UnexpectedAdmissionError, about "
    "the node's device plugins.",
)
OTHER_EVENT = Code(
    "Event",
    "There is an Event of type Warning about the pod or one of its controllers, with a reason "
    "other than FailedCreate and NoRDMA.",
)
CODES = (
    TERMINATING,
    KEPT_BY_FINALIZERS,
    EVICTED,
    RUNNING,
    UNREADY,
    SUCCEEDED,
    FAILED,
    STARTING,
    NO_STATUS,
    NO_RDMA_EVENT,
    FAILED_CREATE,
    REJECTED_BY_NODE,
    OTHER_EVENT,
)

#: Reason of the kubelet → remedy (kubernetes, pkg/kubelet/sysctl/allowlist.go and
#: pkg/kubelet/lifecycle/predicate.go).
_REJECTION_REMEDIES = {
    "SysctlForbidden": (
        "Remove the sysctl from securityContext.sysctls of the pod, or ask the cluster "
        "administrator to list it in allowedUnsafeSysctls of the kubelet. Then create the pod "
        "again."
    ),
    "NodeAffinity": (
        "The node does not have the labels that the pod's nodeSelector or affinity requires; "
        "correct these, or nodeName if the pod sets it. Then create the pod again."
    ),
}
#: Events that only repeat the pod's status, its claims or the log.
_REPEATED = frozenset(
    {
        "FailedScheduling",
        "BackOff",
        "Failed",
        "Killing",
        "Unhealthy",
        CLAIM_NOT_CREATED_EVENT,
        PREEMPTED_EVENT,
    }
)
_NO_RDMA = "NoRDMA"
_EVENTS = {_NO_RDMA: NO_RDMA_EVENT, "FailedCreate": FAILED_CREATE}
#: The number of events to show, the newest ones.
_MAX_EVENTS = 6


def status_findings(evidence: PodEvidence, verdict_remedy: str = "") -> Iterator[Finding]:
    """Yield findings on the pod's phase, its containers and its events.

    `verdict_remedy`: what to do about the verdict, if not what the webhook's Events say.
    """
    yield from _phase(evidence)
    yield from _scheduling(evidence)
    yield from init_container_findings(evidence)
    yield from network_findings(evidence)
    yield from container_findings(evidence)
    yield from ephemeral_findings(evidence.pod)
    yield from _events(evidence, verdict_remedy)


def _phase(evidence: PodEvidence) -> Iterator[Finding]:
    pod = evidence.pod
    phase, node = pod.status.phase, pod.spec.node_name
    on_node = f" on node {node}" if node else ""
    if pod.metadata.is_deleted:
        yield _deletion(evidence)
    if pod.status.reason == "Evicted":
        yield EVICTED.finding("error", f"The pod was evicted: {cut(pod.status.message)}")
    elif phase == "Running":
        yield RUNNING.finding("ok", f"The pod is running{on_node}.")
        yield from _unready(evidence)
    elif phase == "Succeeded":
        yield SUCCEEDED.finding("ok", f"The pod has completed{on_node}.")
    elif phase == "Failed":
        yield _failed(evidence, on_node)
    elif phase == "Pending" and node:
        yield STARTING.finding("info", f"The pod is pending{on_node}.")
        yield from filter(None, [node_problem(evidence)])
    elif not phase:
        yield NO_STATUS.finding("info", NO_STATUS.meaning)


def _deletion(evidence: PodEvidence) -> Finding:
    """Return the finding on a pod that is being deleted; without a process, finalizers keep it."""
    pod = evidence.pod
    finalizers = finalizers_clause(pod)
    text = f"The pod is being deleted{finalizers}."
    if not finalizers or not (pod.status.has_ended or pod.waits_for_node):
        return TERMINATING.finding("info", text)
    arguments = shlex.join([evidence.name, "-n", evidence.namespace_name])
    remedy = (
        "Find out why the controllers that own the finalizers do not remove them. If all of "
        f"these controllers are gone, remove the finalizers: `kubectl patch pod {arguments} --type "
        f"merge --patch {shlex.quote(_UNHELD)}`."
    )
    return KEPT_BY_FINALIZERS.finding("error", text, remedy)


_UNHELD = '{"metadata":{"finalizers":null}}'


def _unready(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield findings on a running pod that is not ready, except those on failed containers."""
    status = evidence.pod.status
    ready = status.condition("Ready")
    containers = (*status.init_container_statuses, *status.container_statuses)
    unready = [container for container in containers if not container.ready]
    running = [container.name for container in unready if container.state.is_running]
    if problem := node_problem(evidence):
        yield problem
    elif ready.status != "False" or evidence.pod.metadata.is_deleted:
        return
    elif running:
        yield from (_unready_container(evidence, name) for name in running)
    elif all(map(has_completed, unready)):
        reason = f": {cut(ready.message).rstrip('.')}" if ready.message else ""
        yield UNREADY.finding("unsure", f"It is not ready{reason}.")


def _unready_container(evidence: PodEvidence, name: str) -> Finding:
    """Return the finding on a container that runs, but is not ready."""
    messages = event_messages(evidence, "Unhealthy", name)
    reason = f": {cut(messages[-1])}" if messages else "."
    remedy = f"{log_commands(evidence, name, previous=False)} {_UNTIL_READY}"
    return UNREADY.finding("unsure", f"Container {name} is not ready{reason}", remedy)


_UNTIL_READY = (
    "Until the container is ready, Services send the pod no traffic, unless they set "
    "publishNotReadyAddresses: true."
)


def finalizers_clause(subject: KubernetesObject) -> str:
    """Return a clause on what keeps a deleted object, or ""."""
    finalizers = at(subject.manifest, ("metadata", "finalizers"))
    written = finalizers if isinstance(finalizers, list) else []
    names = [name for name in written if isinstance(name, str)]
    if not names:
        return ""
    return f", and is waiting for the removal of its finalizers ({', '.join(names)})"


def _failed(evidence: PodEvidence, on_node: str) -> Finding:
    """Return the finding on a failed pod: one that its node refused has run no container."""
    status = evidence.pod.status
    if status.reason and status.message and not status.container_statuses:
        text = f"The pod was refused{on_node} ({status.reason}): {cut(status.message)}"
        remedy = _REJECTION_REMEDIES.get(status.reason, REJECTED_BY_NODE.remedy)
        return REJECTED_BY_NODE.finding("error", text, remedy)
    if status.reason == DEADLINE:
        text = f"The pod has failed{on_node} ({status.reason}): {cut(status.message)}"
        return FAILED.finding("error", text, DEADLINE_REMEDY)
    reason = f" ({status.reason})" if status.reason else ""
    message = f": {cut(status.message)}" if status.message else "."
    text = f"The pod has failed{on_node}{reason}{message}"
    return FAILED.finding("error", text, log_remedy(evidence))


def _scheduling(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield what keeps the pod from getting a node; the nodes only if nothing else does."""
    scheduled = evidence.pod.status.condition("PodScheduled")
    message = " ".join(scheduled.message.split())
    gates = [*gate_findings(evidence)]
    yield from gates
    claims = [*claim_findings(evidence, message), *volume_findings(evidence, message)]
    yield from claims
    yield from preemption_findings(evidence)
    if not gates and not claims:
        yield from scheduler_findings(evidence)
    if scheduled.status == "False" and scheduled.reason != "SchedulingGated":
        yield from node_findings(evidence, message, has_cause=bool(claims))


def _events(evidence: PodEvidence, verdict_remedy: str) -> Iterator[Finding]:
    """Yield the newest event with each reason, from the pod and from its owners."""
    yield from setup_findings(evidence)
    newest: dict[tuple[str, str], Event] = {}
    for event in evidence.events or ():
        if event.type == "Warning" and not _is_over(event, evidence):
            newest[_about(event), event.reason] = event
    warnings = [
        (about, reason, event)
        for (about, reason), event in newest.items()
        if not (about == "the pod" and reason in (*_REPEATED, evidence.pod.status.reason))
    ]
    for about, reason, event in warnings[-_MAX_EVENTS:]:
        text = f"Event {reason} about {about}: {cut(event.text)}"
        code = _EVENTS.get(reason, OTHER_EVENT)
        remedy = verdict_remedy if code is NO_RDMA_EVENT else ""
        yield code.finding("unsure", text, remedy or _event_remedy(code, evidence))


def _is_over(event: Event, evidence: PodEvidence) -> bool:
    """Return whether an Event is about another pod, or about the time before this one started.

    While the pod starts, `setup_findings` reports what keeps its node from setting it up.
    """
    pod = evidence.pod
    if event.about.kind == "Pod":
        return event.reason in SETUP_EVENTS and pod.status.phase != "Failed"
    if event.reason == _NO_RDMA:  # the webhook creates it only for a pod whose verdict is no
        return evidence.status is not None and evidence.status.rdma != "no"
    return event.reason in _EVENTS and event.time < pod.metadata.creation_timestamp


def _event_remedy(code: Code, evidence: PodEvidence) -> str:
    if code is NO_RDMA_EVENT:
        return with_rollout(f"Change {template_title(evidence)} as the message says", evidence)
    return code.remedy


def _about(event: Event) -> str:
    return "the pod" if event.about.kind == "Pod" else event.about.title
