"""The current state of the pod: its phase, what it is waiting for, its containers and events."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.diagnose.why.container_status import container_findings, cut, log_remedy
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.pending_claims import NOT_CREATED, claim_findings
from webhook.diagnose.why.pending_nodes import node_findings
from webhook.diagnose.why.pending_scheduler import (
    PREEMPTED_EVENT,
    gate_findings,
    preemption_findings,
    scheduler_findings,
)
from webhook.diagnose.why.pending_volumes import volume_findings
from webhook.diagnose.why.pod_template import template_title
from webhook.kube.objects import Event
from webhook.model.finding import Code, Finding

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
    "Event", "There is another Event of type Warning about the pod or one of its controllers."
)
CODES = (
    TERMINATING,
    EVICTED,
    RUNNING,
    SUCCEEDED,
    FAILED,
    STARTING,
    NO_STATUS,
    NO_RDMA_EVENT,
    FAILED_CREATE,
    OTHER_EVENT,
)

#: Events that only repeat the pod's status, its claims or the log.
_REPEATED = frozenset(
    {"FailedScheduling", "BackOff", "Failed", "Killing", "Unhealthy", NOT_CREATED, PREEMPTED_EVENT}
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
    """Yield what keeps the pod from getting a node; the nodes only if nothing else does."""
    scheduled = evidence.pod.status.condition("PodScheduled")
    message = cut(scheduled.message)
    gates = [*gate_findings(evidence)]
    yield from gates
    claims = [*claim_findings(evidence, message), *volume_findings(evidence, message)]
    yield from claims
    yield from preemption_findings(evidence)
    if not gates and not claims:
        yield from scheduler_findings(evidence)
    if scheduled.status == "False" and scheduled.reason != "SchedulingGated":
        yield from node_findings(evidence, message, has_cause=bool(claims))


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
