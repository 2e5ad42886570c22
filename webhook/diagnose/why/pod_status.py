"""The current state of the pod: its phase, its events, and how its containers ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.explanation import Level, Sentence
from webhook.diagnose.why.pending_claims import NOT_CREATED, claim_findings
from webhook.kube.objects import ContainerStatus, Event, Node, Pod, Terminated

_INSUFFICIENT = re.compile(r"Insufficient ([^\s,.]+(?:\.[^\s,.]+)*)")
#: Events that only repeat the pod's status, its claims or the log.
_REPEATED = frozenset(
    {"FailedScheduling", "BackOff", "Failed", "Killing", "Unhealthy", NOT_CREATED}
)
#: The number of events to show, the newest ones.
_MOST_EVENTS = 6
_LONGEST = 400
_SIGKILL, _SIGSEGV = 137, 139


class _Stuck(NamedTuple):
    """A reason for which the kubelet cannot start a container."""

    text: str
    remedy: str


_IMAGE = _Stuck(
    "its image cannot be pulled",
    "Check the image's name and tag, and that the namespace has the registry's pull secret.",
)
_CONFIG = _Stuck(
    "a ConfigMap, a Secret or a key that it names is missing",
    "Create the object that the message names.",
)
_START = _Stuck("the container could not be started", "Correct what the message names.")
_WAITING = {
    "ErrImagePull": _IMAGE,
    "ImagePullBackOff": _IMAGE,
    "InvalidImageName": _IMAGE,
    "ErrImageNeverPull": _IMAGE,
    "CreateContainerConfigError": _CONFIG,
    "CreateContainerError": _START,
    "RunContainerError": _START,
}


def status_findings(evidence: PodEvidence) -> Iterator[Sentence]:
    """Yield findings on the pod's phase, its containers and its events."""
    status = evidence.pod.status
    yield from _phase(evidence)
    yield from _scheduling(evidence)
    for container in (*status.init_container_statuses, *status.container_statuses):
        yield from _container(evidence, container)
    yield from _events(evidence)


def _phase(evidence: PodEvidence) -> Iterator[Sentence]:
    pod = evidence.pod
    phase, node = pod.status.phase, pod.spec.node_name
    if pod.metadata.is_deleted:
        yield Sentence("Terminating", "fact", "The pod is being deleted.")
    if pod.status.reason == "Evicted":
        text = f"The pod was evicted: {_cut(pod.status.message)}"
        remedy = "Request the memory and the disk space that the job uses, and create it again."
        yield Sentence("Evicted", "problem", text, remedy)
    elif phase == "Running":
        yield Sentence("Running", "good", f"The pod is running on node {node}.")
    elif phase == "Succeeded":
        yield Sentence("Succeeded", "good", f"The pod has completed on node {node}.")
    elif phase == "Failed":
        text = f"The pod has failed on node {node or '(none)'}."
        yield Sentence("Failed", "problem", text, _log_remedy(evidence))
    elif phase == "Pending" and node:
        yield Sentence("Starting", "fact", f"The pod is pending on node {node}.")
    elif not phase:
        yield Sentence(
            "NoStatus", "fact", "The manifest has no status: it does not come from a cluster."
        )


def _scheduling(evidence: PodEvidence) -> Iterator[Sentence]:
    scheduled = evidence.pod.status.condition("PodScheduled")
    message = _cut(scheduled.message)
    claims = [*claim_findings(evidence, message)]
    yield from claims
    if scheduled.status != "False":
        return
    if scheduled.reason == "SchedulingGated":
        gates = ", ".join(gate.name for gate in evidence.pod.spec.scheduling_gates)
        text = f"The pod waits for its scheduling gates to be removed: {gates}."
        yield Sentence(
            "SchedulingGated", "unsure", text, "Ask whoever runs the queue that set them."
        )
        return
    lacking = list(dict.fromkeys(_INSUFFICIENT.findall(message)))
    for name in lacking:
        yield _insufficient(evidence, name, message)
    if not lacking and not claims:
        remedy = "Compare the pod's nodeSelector, affinity and tolerations with the nodes."
        text = f"The pod is pending. The scheduler says: {message}"
        yield Sentence("Unschedulable", "problem", text, remedy)


def _insufficient(evidence: PodEvidence, name: str, message: str) -> Sentence:
    """Return the finding on a missing resource: whether any node offers it."""
    start = f"The pod is pending on {name}"
    cause = f" The scheduler says: {message}"
    if evidence.nodes is None:
        text = f"{start}: no node has enough of it free, or none offers it.{cause}"
        remedy = (
            f"Check whether a node offers it: kubectl get nodes -o yaml | grep {name}. If one "
            "does, wait until it is free; if none does, the name is wrong, or the device plugin "
            "is not running."
        )
        return Sentence("Insufficient", "problem", text, remedy)
    offering = [node for node in evidence.nodes if _offers(node, name)]
    if not offering:
        text = f"{start}: no node of the cluster offers it.{cause}"
        remedy = (
            "Check the resource's name. If it is right, ask whoever runs the nodes whether the "
            "device plugin is running there."
        )
        return Sentence("OfferedNowhere", "problem", text, remedy)
    names = ", ".join(node.metadata.name for node in offering[:3])
    remainder = f" and {len(offering) - 3} more" if len(offering) > 3 else ""  # noqa: PLR2004
    text = (
        f"{start}: {names}{remainder} offer it, but have too little free, or are excluded by the "
        f"pod's other requirements.{cause}"
    )
    remedy = "Wait until another job ends, or request less."
    return Sentence("Insufficient", "problem", text, remedy)


def _offers(node: Node, name: str) -> bool:
    amount = node.status.allocatable.get(name)
    return amount is not None and str(amount) != "0"


def _container(evidence: PodEvidence, container: ContainerStatus) -> Iterator[Sentence]:
    name, restarts = container.name, container.restart_count
    waiting = container.state.waiting
    if waiting and (stuck := _WAITING.get(waiting.reason)):
        reason, message = waiting.reason, _cut(waiting.message)
        text = f"Container {name} cannot start: {stuck.text} ({reason}): {message}"
        yield Sentence(reason, "problem", text, stuck.remedy)
    ended = container.state.terminated or container.last_state.terminated
    if ended is not None and not _is_good_end(ended):
        yield _end(evidence, name, ended, restarts)
    elif restarts:
        text = f"Container {name} has restarted {_times(restarts)}."
        yield Sentence("Restarted", "unsure", text, _LOGS)


_LOGS = "Read the log from before the restart: rdma-webhook why POD --logs searches it too."


def _log_remedy(evidence: PodEvidence) -> str:
    """Return where to search the log for the cause."""
    if evidence.logs is None:
        return "Search its log for known errors: rdma-webhook why POD --logs."
    return "The section on its log below says why, if it is known."


def _is_good_end(ended: Terminated) -> bool:
    return ended.exit_code == 0 and ended.reason != "OOMKilled"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _end(evidence: PodEvidence, name: str, ended: Terminated, restarts: int) -> Sentence:
    code = ended.exit_code
    times = f", and has restarted {_times(restarts)}" if restarts else ""
    if ended.reason == "OOMKilled":
        return _oom(evidence.pod, name, times)
    if code == _SIGKILL:
        text = f"Container {name} was killed (exit code 137){times}."
        remedy = "Read its log. If memory was the cause, the node's kernel log has a line with OOM."
        return Sentence("Killed", "problem", text, remedy)
    crash = " (a segmentation fault)" if code == _SIGSEGV else ""
    message = _cut(ended.message)
    text = f"Container {name} ended with exit code {code}{crash}{times}."
    text = f"{text} {message}" if message else text
    remedy = _LOGS if restarts and evidence.logs is None else _log_remedy(evidence)
    return Sentence("ContainerFailed", "problem", text, remedy)


def _oom(pod: Pod, name: str, times: str) -> Sentence:
    limit = _memory_limit(pod, name)
    if limit:
        text = (
            f"Container {name} used more memory than its limit of {limit} and was killed "
            f"(OOMKilled){times}. Registered memory counts against the limit."
        )
        remedy = (
            "Raise limits.memory, or let the webhook remove it: remove the annotation "
            "rdma.lab/memory-limit: keep, and use a namespace that does not require a limit."
        )
    else:
        text = f"Container {name} was killed because the node ran out of memory (OOMKilled){times}."
        remedy = "Request as much memory as the job uses."
    return Sentence("OOMKilled", "problem", text, remedy)


def _memory_limit(pod: Pod, name: str) -> str:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    matches = (container for container in containers if name and container.name == name)
    return next((container.memory_limit for container in matches), "")


def _events(evidence: PodEvidence) -> Iterator[Sentence]:
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
    for about, reason, event in warnings[-_MOST_EVENTS:]:
        level, remedy = _weight(reason)
        text = f"Event of {about}: {reason}: {_cut(event.text)}"
        yield Sentence(reason or "Event", level, text, remedy)


def _about(event: Event) -> str:
    return "the pod" if event.about.kind == "Pod" else event.about.title


def _weight(reason: str) -> tuple[Level, str]:
    if reason == "NoRDMA":
        return "unsure", "Change the template as the message says, and create the pod again."
    if reason == "FailedCreate":
        return (
            "unsure",
            "Correct what the message names: until then, the controller cannot create pods.",
        )
    return "unsure", ""


def _cut(words: str) -> str:
    return " ".join(words.split())[:_LONGEST]
