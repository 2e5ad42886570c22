"""The current state of the pod: its phase, what it is waiting for, its containers and events."""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.diagnose.why.container_status import container_findings, cut, log_remedy
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.pending_claims import NOT_CREATED, claim_findings
from webhook.diagnose.why.pod_template import template_title
from webhook.kube.objects import Event, NodeRecord
from webhook.model.finding import Code, Finding
from webhook.model.names import shortened_list

TERMINATING = Code("Terminating", "The pod is being deleted.")
EVICTED = Code(
    "Evicted",
    "The kubelet evicted the pod, since the node ran short of memory or disk space.",
    "Request as much memory and disk space as the job uses, and create the pod again.",
)
RUNNING = Code("Running", "The pod is running.")
SUCCEEDED = Code("Succeeded", "The pod has completed.")
FAILED = Code(
    "Failed", "The pod has failed.", "Search its log for known errors: rdma-webhook why POD --logs."
)
STARTING = Code("Starting", "The pod has a node, but not all of its containers have started.")
NO_STATUS = Code("NoStatus", "The manifest has no status, so it does not come from a cluster.")
SCHEDULING_GATED = Code(
    "SchedulingGated",
    "The pod is pending until its scheduling gates are removed.",
    "Ask the administrator of the queue that set them.",
)
UNSCHEDULABLE = Code(
    "Unschedulable",
    "The pod is pending, but for another reason than missing resources or claims.",
    "Compare the pod's nodeSelector, affinity and tolerations with the nodes.",
)
INSUFFICIENT = Code(
    "Insufficient",
    "The pod is pending: no node that it may use has enough of a resource free.",
    "Wait until another job ends, or request a smaller amount.",
)
OFFERED_NOWHERE = Code(
    "OfferedNowhere",
    "The pod is pending: it requests a resource that no node of the cluster offers.",
    "Check the resource's name. If it is right, ask the cluster administrator whether the device "
    "plugin is running on the nodes.",
)
NO_RDMA_EVENT = Code(
    "NoRdma",
    "An Event of the webhook reports that the pods of a controller get no RDMA.",
    "Change the template as the message says, and create the pod again.",
)
FAILED_CREATE = Code(
    "FailedCreate",
    "An Event reports that a controller could not create a pod.",
    "Correct what the message names. Until then, the controller cannot create pods.",
)
OTHER_EVENT = Code(
    "Event", "Another Event of type Warning is about the pod or one of its controllers."
)
CODES = (
    TERMINATING,
    EVICTED,
    RUNNING,
    SUCCEEDED,
    FAILED,
    STARTING,
    NO_STATUS,
    SCHEDULING_GATED,
    UNSCHEDULABLE,
    INSUFFICIENT,
    OFFERED_NOWHERE,
    NO_RDMA_EVENT,
    FAILED_CREATE,
    OTHER_EVENT,
)

_INSUFFICIENT = re.compile(r"Insufficient ([^\s,.]+(?:\.[^\s,.]+)*)")
#: Events that only repeat the pod's status, its claims or the log.
_REPEATED = frozenset(
    {"FailedScheduling", "BackOff", "Failed", "Killing", "Unhealthy", NOT_CREATED}
)
_EVENTS = {"NoRDMA": NO_RDMA_EVENT, "FailedCreate": FAILED_CREATE}
#: The number of events to show, the newest ones.
_MAX_EVENTS = 6


def status_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield findings on the pod's phase, its containers and its events."""
    yield from _phase(evidence)
    yield from _scheduling(evidence)
    yield from container_findings(evidence)
    yield from _events(evidence)


def _phase(evidence: PodEvidence) -> Iterator[Finding]:
    pod = evidence.pod
    phase, node = pod.status.phase, pod.spec.node_name
    on_node = f" on node {node}" if node else ""
    if pod.metadata.is_deleted:
        yield TERMINATING.finding("info", "The pod is being deleted.")
    if pod.status.reason == "Evicted":
        yield EVICTED.finding("error", f"The pod was evicted: {cut(pod.status.message)}")
    elif phase == "Running":
        yield RUNNING.finding("ok", f"The pod is running{on_node}.")
    elif phase == "Succeeded":
        yield SUCCEEDED.finding("ok", f"The pod has completed{on_node}.")
    elif phase == "Failed":
        yield FAILED.finding("error", f"The pod has failed{on_node}.", log_remedy(evidence))
    elif phase == "Pending" and node:
        yield STARTING.finding("info", f"The pod is pending{on_node}.")
    elif not phase:
        yield NO_STATUS.finding("info", NO_STATUS.meaning)


def _scheduling(evidence: PodEvidence) -> Iterator[Finding]:
    scheduled = evidence.pod.status.condition("PodScheduled")
    message = cut(scheduled.message)
    claims = [*claim_findings(evidence, message)]
    yield from claims
    if scheduled.status != "False":
        return
    if scheduled.reason == "SchedulingGated":
        gates = ", ".join(gate.name for gate in evidence.pod.spec.scheduling_gates)
        text = f"The pod is pending until its scheduling gates are removed: {gates}."
        yield SCHEDULING_GATED.finding("unsure", text)
        return
    lacking = list(dict.fromkeys(_INSUFFICIENT.findall(message)))
    for name in lacking:
        yield _insufficient(evidence, name, message)
    if not lacking and not claims:
        yield UNSCHEDULABLE.finding(
            "error", f"The pod is pending. The scheduler reports: {message}"
        )


def _insufficient(evidence: PodEvidence, name: str, message: str) -> Finding:
    """Return the finding on a missing resource: whether any node offers it."""
    start = f"The pod is waiting for {name}"
    report = f" The scheduler reports: {message}"
    if evidence.nodes is None:
        text = f"{start}: no node that the pod may use has enough of it free.{report}"
        remedy = (
            f"Check whether a node offers it: kubectl get nodes -o yaml | grep {name}. If one "
            "does, wait until it is free; if none does, the name is wrong, or the device plugin "
            "is not running."
        )
        return INSUFFICIENT.finding("error", text, remedy)
    offering = [node for node in evidence.nodes if _offers(node, name)]
    if not offering:
        text = f"{start}: no node of the cluster offers it.{report}"
        return OFFERED_NOWHERE.finding("error", text)
    names = shortened_list([node.metadata.name for node in offering])
    text = (
        f"{start}: no node that offers it ({names}) has enough of it free and meets the pod's "
        f"other requirements.{report}"
    )
    return INSUFFICIENT.finding("error", text)


def _offers(node: NodeRecord, name: str) -> bool:
    amount = node.status.allocatable.get(name)
    return amount is not None and str(amount) != "0"


def _events(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield the newest event with each reason, from the pod and from its owners."""
    newest: dict[tuple[str, str], Event] = {}
    for event in evidence.events or ():
        if event.type == "Warning":
            newest[_about(event), event.reason] = event
    warnings = [
        (about, reason, event)
        for (about, reason), event in newest.items()
        if not (about == "the pod" and reason in _REPEATED)
    ]
    for about, reason, event in warnings[-_MAX_EVENTS:]:
        text = f"Event {reason} about {about}: {cut(event.text)}"
        code = _EVENTS.get(reason, OTHER_EVENT)
        yield code.finding("unsure", text, _event_remedy(code, evidence))


def _event_remedy(code: Code, evidence: PodEvidence) -> str:
    if code is NO_RDMA_EVENT:
        return f"Change {template_title(evidence)} as the message says, and create the pod again."
    return code.remedy


def _about(event: Event) -> str:
    return "the pod" if event.about.kind == "Pod" else event.about.title
