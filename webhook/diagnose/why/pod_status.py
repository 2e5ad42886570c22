"""What the cluster says about the pod now: whether it runs, its events and its containers' ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from webhook.diagnose.why.evidence import Gathered, Item, items_at, number_at, word_at
from webhook.diagnose.why.explanation import Level, Sentence
from webhook.diagnose.why.pending_claims import NOT_CREATED, tell_claims
from webhook.model.pod import at

_INSUFFICIENT = re.compile(r"Insufficient ([^\s,.]+(?:\.[^\s,.]+)*)")
#: Events that only repeat what the pod's status or the log says better, or that is told of claims.
_REPEATED = frozenset(
    {"FailedScheduling", "BackOff", "Failed", "Killing", "Unhealthy", NOT_CREATED}
)
#: The most events that are told, the newest ones.
_MOST_EVENTS = 6
_LONGEST = 400
_SIGKILL, _SIGSEGV = 137, 139
_STATUSES = ("initContainerStatuses", "containerStatuses")


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


def tell_now(gathered: Gathered) -> Iterator[Sentence]:
    """Tell the pod's phase, what is wrong with its containers, and its events."""
    pod = gathered.pod
    phase = word_at(pod, ("status", "phase"))
    yield from _phase(gathered, phase)
    yield from _scheduling(gathered)
    for field in _STATUSES:
        for container in items_at(pod, ("status", field)):
            yield from _container(gathered, container)
    yield from _events(gathered)


def _phase(gathered: Gathered, phase: str) -> Iterator[Sentence]:
    pod = gathered.pod
    node = word_at(pod, ("spec", "nodeName"))
    reason = word_at(pod, ("status", "reason"))
    if at(pod, ("metadata", "deletionTimestamp")) is not None:
        yield Sentence("Terminating", "fact", "The pod is being deleted.")
    if reason == "Evicted":
        text = f"The pod was evicted: {_cut(word_at(pod, ('status', 'message')))}"
        remedy = "Request the memory and the disk space that the job uses, and create it again."
        yield Sentence("Evicted", "problem", text, remedy)
    elif phase == "Running":
        yield Sentence("Running", "good", f"The pod is running on node {node}.")
    elif phase == "Succeeded":
        yield Sentence("Succeeded", "good", f"The pod has completed on node {node}.")
    elif phase == "Failed":
        text = f"The pod has failed on node {node or '(none)'}."
        yield Sentence("Failed", "problem", text, _log_remedy(gathered))
    elif phase == "Pending" and node:
        yield Sentence("Starting", "fact", f"The pod is pending on node {node}.")
    elif not phase:
        yield Sentence(
            "NoStatus", "fact", "The manifest has no status: it does not come from a cluster."
        )


def _scheduling(gathered: Gathered) -> Iterator[Sentence]:
    conditions = items_at(gathered.pod, ("status", "conditions"))
    found = next((one for one in conditions if one.get("type") == "PodScheduled"), {})
    message = _cut(word_at(found, ("message",)))
    claims = [*tell_claims(gathered, message)]
    yield from claims
    if found.get("status") != "False":
        return
    if found.get("reason") == "SchedulingGated":
        gates = ", ".join(
            word_at(one, ("name",)) for one in items_at(gathered.pod, ("spec", "schedulingGates"))
        )
        text = f"The pod waits for its scheduling gates to be removed: {gates}."
        yield Sentence(
            "SchedulingGated", "unsure", text, "Ask whoever runs the queue that set them."
        )
        return
    lacking = list(dict.fromkeys(_INSUFFICIENT.findall(message)))
    for name in lacking:
        yield _insufficient(gathered, name, message)
    if not lacking and not claims:
        remedy = "Compare the pod's nodeSelector, affinity and tolerations with the nodes."
        text = f"The pod is pending. The scheduler says: {message}"
        yield Sentence("Unschedulable", "problem", text, remedy)


def _insufficient(gathered: Gathered, name: str, message: str) -> Sentence:
    """Say of a resource that is lacking whether any node has it at all."""
    start = f"The pod is pending on {name}"
    said = f" The scheduler says: {message}"
    if gathered.nodes is None:
        text = f"{start}: no node has enough of it free, or none offers it.{said}"
        remedy = (
            f"Check whether a node offers it: kubectl get nodes -o yaml | grep {name}. If one "
            "does, wait until it is free; if none does, the name is wrong, or the device plugin "
            "is not running."
        )
        return Sentence("Insufficient", "problem", text, remedy)
    offering = [node for node in gathered.nodes if _offers(node, name)]
    if not offering:
        text = f"{start}: no node of the cluster offers it.{said}"
        remedy = (
            "Check the resource's name. If it is right, ask whoever runs the nodes whether the "
            "device plugin is running there."
        )
        return Sentence("OfferedNowhere", "problem", text, remedy)
    names = ", ".join(word_at(node, ("metadata", "name")) for node in offering[:3])
    more = f" and {len(offering) - 3} more" if len(offering) > 3 else ""  # noqa: PLR2004
    text = (
        f"{start}: {names}{more} offer it, but have too little free, or are excluded by the "
        f"pod's other requirements.{said}"
    )
    remedy = "Wait until another job ends, or request less."
    return Sentence("Insufficient", "problem", text, remedy)


def _offers(node: Item, name: str) -> bool:
    amount = at(node, ("status", "allocatable", name))
    return amount is not None and str(amount) != "0"


def _container(gathered: Gathered, container: Item) -> Iterator[Sentence]:
    name = word_at(container, ("name",))
    waiting = word_at(container, ("state", "waiting", "reason"))
    message = _cut(word_at(container, ("state", "waiting", "message")))
    if stuck := _WAITING.get(waiting):
        text = f"Container {name} cannot start: {stuck.text} ({waiting}): {message}"
        yield Sentence(waiting, "problem", text, stuck.remedy)
    restarts = number_at(container, ("restartCount",))
    ended = _ended(container)
    if ended is not None and not _is_good_end(ended):
        yield _end(gathered, name, ended, restarts)
    elif restarts:
        text = f"Container {name} has restarted {_times(restarts)}."
        yield Sentence("Restarted", "unsure", text, _LOGS)


_LOGS = "Read the log from before the restart: rdma-webhook why POD --logs searches it too."


def _log_remedy(gathered: Gathered) -> str:
    """Say where a log that has the cause is searched."""
    if gathered.logs is None:
        return "Search its log for known errors: rdma-webhook why POD --logs."
    return "The section on its log below says why, if it is known."


def _ended(container: Item) -> Item | None:
    for state in ("state", "lastState"):
        found = at(container, (state, "terminated"))
        if isinstance(found, dict):
            return found
    return None


def _is_good_end(ended: Item) -> bool:
    return number_at(ended, ("exitCode",)) == 0 and ended.get("reason") != "OOMKilled"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _end(gathered: Gathered, name: str, ended: Item, restarts: int) -> Sentence:
    code = number_at(ended, ("exitCode",))
    times = f", and has restarted {_times(restarts)}" if restarts else ""
    if ended.get("reason") == "OOMKilled":
        return _oom(gathered.pod, name, times)
    if code == _SIGKILL:
        text = f"Container {name} was killed (exit code 137){times}."
        remedy = "Read its log. If memory was the cause, the node's kernel log has a line with OOM."
        return Sentence("Killed", "problem", text, remedy)
    crash = " (a segmentation fault)" if code == _SIGSEGV else ""
    said = _cut(word_at(ended, ("message",)))
    text = f"Container {name} ended with exit code {code}{crash}{times}.{f' {said}' * bool(said)}"
    remedy = _LOGS if restarts and gathered.logs is None else _log_remedy(gathered)
    return Sentence("ContainerFailed", "problem", text, remedy)


def _oom(pod: Item, name: str, times: str) -> Sentence:
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


def _memory_limit(pod: Item, name: str) -> str:
    for field in ("containers", "initContainers"):
        for container in items_at(pod, ("spec", field)):
            if container.get("name") == name:
                return word_at(container, ("resources", "limits", "memory"))
    return ""


def _events(gathered: Gathered) -> Iterator[Sentence]:
    """Tell the newest event of each reason, of the pod and of its owners."""
    newest: dict[tuple[str, str], Item] = {}
    for event in gathered.events or ():
        if event.get("type") == "Warning":
            newest[_about(event), word_at(event, ("reason",))] = event
    told = [
        (about, reason, event)
        for (about, reason), event in newest.items()
        if not (about == "the pod" and reason in _REPEATED)
    ]
    for about, reason, event in told[-_MOST_EVENTS:]:
        said = _cut(word_at(event, ("message",)) or word_at(event, ("note",)))
        level, remedy = _weight(reason)
        yield Sentence(reason or "Event", level, f"Event of {about}: {reason}: {said}", remedy)


def _about(event: Item) -> str:
    regarding = at(event, ("involvedObject",)) or at(event, ("regarding",))
    if word_at(regarding, ("kind",)) == "Pod":
        return "the pod"
    return f"{word_at(regarding, ('kind',))} {word_at(regarding, ('name',))}".strip()


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
