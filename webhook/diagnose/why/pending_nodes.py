"""Why no node takes a pending pod: the nodes that could run it, and what keeps it from each.

The nodes and the pod's own requirements are judged as the scheduler judges them; its message, which
counts nodes without naming them, is quoted. Without the right to read nodes, only the message is
known. Source: Kubernetes 1.34 and 1.36, pkg/scheduler/framework/plugins (noderesources,
nodeaffinity, nodeunschedulable, tainttoleration).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.messages import cut
from webhook.diagnose.why.pending_holders import INSUFFICIENT, in_use_finding
from webhook.diagnose.why.pending_placement import Candidates, message_findings, placement_findings
from webhook.errors import ShapeError
from webhook.model.finding import Code, Finding
from webhook.model.nearest import suggestion
from webhook.model.pod import Pod
from webhook.model.quantity import BILLIONTHS, format_quantity, parse
from webhook.model.resources import scheduler_requests

UNSCHEDULABLE = Code(
    "Unschedulable",
    "The pod is pending for a reason that no other code covers.",
    "Correct the problem that the scheduler's message reports: `kubectl describe pod` shows "
    "the whole message.",
)
OFFERED_NOWHERE = Code(
    "OfferedNowhere",
    "The pod is pending: it requests a resource that no node of the cluster offers.",
    "Check the resource's name. If it is right, ask the cluster administrator whether the device "
    "plugin that offers it is running.",
)
TOO_LARGE = Code(
    "TooLarge",
    "The pod is pending: it requests more of a resource than any node has in total.",
    "Request at most as much as the largest node has, and let the job use more pods.",
)
NEVER_TOGETHER = Code(
    "NeverTogether",
    "The pod is pending: no single node offers all the resources that the pod requests, in the "
    "requested amounts.",
    "Request at most what a single node offers: `kubectl describe nodes` lists each node's "
    "resources under Allocatable.",
)
CODES = (UNSCHEDULABLE, INSUFFICIENT, OFFERED_NOWHERE, TOO_LARGE, NEVER_TOGETHER)

_INSUFFICIENT = re.compile(r"Insufficient ([^\s,.]+(?:\.[^\s,.]+)*)")


def node_findings(evidence: PodEvidence, message: str, *, has_cause: bool) -> Iterator[Finding]:
    """Yield why no node takes the pod; `has_cause`: whether its claims are a reason already."""
    lacking = list(dict.fromkeys(_INSUFFICIENT.findall(message)))
    quote = f" The scheduler reports: {cut(message)}"
    if evidence.nodes is None:
        findings = [_unread(name, quote) for name in lacking]
        findings += [] if has_cause else message_findings(message)
    else:
        findings = [*_judged(evidence, lacking, quote)]
    yield from findings
    if not findings and not has_cause:
        yield _unschedulable(message)


class _Obstacle(NamedTuple):
    """A reason of the scheduler that is not about resources."""

    #: Words in its message.
    words: str
    #: A clause, after "since".
    cause: str
    remedy: str


#: Source: pkg/scheduler/framework/plugins (nodeports, interpodaffinity, podtopologyspread,
#: volumerestrictions).
_OBSTACLES = (
    _Obstacle(
        "free ports",
        "another pod uses a host port that this pod needs (hostPort, or hostNetwork)",
        "Choose another port, wait until that pod ends, or use more nodes than such pods.",
    ),
    _Obstacle(
        "anti-affinity",
        "a rule of podAntiAffinity, its own or that of a running pod, keeps the two apart",
        "Correct the rule, or wait until the other pod ends.",
    ),
    _Obstacle(
        "pod affinity rules",
        "no node runs a pod that its podAffinity requires",
        "Correct the rule, or start that pod first.",
    ),
    _Obstacle(
        "topology spread constraints",
        "its topologySpreadConstraints allow no node",
        "Compare their topologyKey with the labels of the nodes (kubectl get nodes --show-labels), "
        "or set whenUnsatisfiable to ScheduleAnyway.",
    ),
    _Obstacle(
        "ReadWriteOncePod",
        "another pod uses its PersistentVolumeClaim, whose access mode is ReadWriteOncePod",
        "Wait until that pod ends, or use a claim of another access mode.",
    ),
)


def _unschedulable(message: str) -> Finding:
    """Return the finding on what the scheduler reports besides resources, or on its message."""
    obstacles = [obstacle for obstacle in _OBSTACLES if obstacle.words in message]
    causes = "; and ".join(obstacle.cause for obstacle in obstacles)
    text = f"The pod is pending{f', since {causes}' if causes else ''}."
    remedy = " ".join(obstacle.remedy for obstacle in obstacles) or UNSCHEDULABLE.remedy
    return UNSCHEDULABLE.finding("error", f"{text} The scheduler reports: {cut(message)}", remedy)


def _unread(name: str, quote: str) -> Finding:
    text = f"The pod is waiting for {name}: no node that the pod may use has enough of it free."
    remedy = (
        f"Check whether a node offers it: `kubectl get nodes -o yaml | grep {shlex.quote(name)}`. "
        "If one does, wait until it is free; if none does, the name is wrong, or the device plugin "
        "is not running."
    )
    return INSUFFICIENT.finding("error", text + quote, remedy)


def _judged(evidence: PodEvidence, lacking: list[str], quote: str) -> Iterator[Finding]:
    """Yield the reasons by the nodes: sizes first, then placement, then free amounts."""
    requested = _requested(evidence, lacking)
    offers = _offers(evidence, requested)
    too_large = [*_too_large(evidence, offers, requested, quote)]
    yield from too_large
    if too_large:
        return
    names = [name for name, offered in offers.items() if _has_all(offered, requested)]
    if not names:
        yield _never_together(evidence, offers, requested, quote)
        return
    candidates = Candidates.of(evidence, names)
    if candidates.permitted:
        yield from (in_use_finding(evidence, name, candidates.permitted, quote) for name in lacking)
    yield from placement_findings(evidence, candidates, quote)


_Amounts = Mapping[str, int]


def _requested(evidence: PodEvidence, lacking: Iterable[str]) -> dict[str, int]:
    """Return what the pod requests of extended resources, and of what is lacking: billionths."""
    pod = evidence.pod
    try:
        extended = scheduler_requests(Pod(pod.manifest))
    except ShapeError:
        extended = {}
    requested = {name: amount * BILLIONTHS for name, amount in extended.items() if amount}
    for name in lacking:
        if "/" not in name:
            amounts = (container.resources.requests.get(name) for container in pod.spec.containers)
            requested[name] = sum(map(_billionths, amounts))
        # The smallest amount, for a resource of a pod that cannot be read.
        requested[name] = requested.get(name) or 1
    return requested


def _offers(evidence: PodEvidence, names: Collection[str]) -> dict[str, _Amounts]:
    """Return node → resource → allocatable amount in billionths."""
    return {
        node.metadata.name: {name: _billionths(node.status.allocatable.get(name)) for name in names}
        for node in evidence.nodes or ()
    }


def _billionths(written: object) -> int:
    try:
        return parse(written)
    except ValueError:
        return 0


def _has_all(offered: _Amounts, requested: _Amounts) -> bool:
    return all(offered.get(name, 0) >= amount for name, amount in requested.items())


def _too_large(
    evidence: PodEvidence, offers: Mapping[str, _Amounts], requested: _Amounts, quote: str
) -> Iterator[Finding]:
    """Yield a finding for each resource that the pod requests more of than any node has."""
    for name, amount in requested.items():
        largest = max(offers, key=lambda node: offers[node][name], default="")
        total = offers[largest][name] if largest else 0
        if not total:
            hint = _offered_name(evidence, name)
            text = f"The pod is waiting for {name}: no node of the cluster offers it{hint}.{quote}"
            yield OFFERED_NOWHERE.finding("error", text, _offer(name))
        elif total < amount:
            written, maximum = format_quantity(amount), format_quantity(total)
            text = (
                f"The pod is pending: it requests {name}: {written}, and the largest node "
                f"({largest}) has {maximum} in total.{quote}"
            )
            yield TOO_LARGE.finding("error", text, _request_less(evidence, largest, name, maximum))


def _offered_name(evidence: PodEvidence, name: str) -> str:
    """Return a note on a resource with a similar name that nodes offer, or ""."""
    offered = (resource for node in evidence.nodes or () for resource in node.status.allocatable)
    return suggestion(name, sorted({other for other in offered if "/" in other and other != name}))


def _offer(name: str) -> str:
    """Return how nodes come to offer a resource, or what to do without it."""
    if name.startswith("hugepages-"):
        return _RESERVE_HUGEPAGES
    return OFFERED_NOWHERE.remedy if "/" in name else _REPORT_STORAGE


#: The kubelet reports CPU and memory in any case, but ephemeral-storage only with this setting.
_REPORT_STORAGE = (
    "Remove the request, or ask the cluster administrator why the kubelets do not report the "
    "resource (localStorageCapacityIsolation in their configuration)."
)
#: The kubelet counts the huge pages of its node when it starts.
_RESERVE_HUGEPAGES = (
    "Ask the cluster administrator to reserve huge pages of this size on the nodes (for 2Mi: "
    "sysctl vm.nr_hugepages) and to restart their kubelets."
)


def _never_together(
    evidence: PodEvidence, offers: Mapping[str, _Amounts], requested: _Amounts, quote: str
) -> Finding:
    """Return the finding on requests that no node can meet, with the only one that is too large."""
    amounts = ", ".join(f"{name}: {format_quantity(requested[name])}" for name in requested)
    text = f"The pod is pending: no node offers all that it requests ({amounts})."
    nearest = _nearest(offers, requested)
    if nearest is None:
        return NEVER_TOGETHER.finding("error", f"{text}{quote}")
    node, name = nearest
    maximum = format_quantity(offers[node][name])
    text = f"{text} Node {node} offers the others, but only {name}: {maximum}.{quote}"
    return NEVER_TOGETHER.finding("error", text, _request_less(evidence, node, name, maximum))


def _request_less(evidence: PodEvidence, node: str, name: str, maximum: str) -> str:
    """Return the remedy for a request that is larger than a node.

    Pods of the node itself always use some of its CPU and memory.
    """
    containers = evidence.pod.spec.containers
    requesting = [container for container in containers if name in container.resources.requests]
    for_pod = "for all containers of a pod together" if len(requesting) > 1 else "for a pod"
    limit = f"at most {name}: {maximum} {for_pod}"
    if "/" not in name:
        limit = (
            f"less than {name}: {maximum} {for_pod}, since DaemonSets use some of it "
            f"(kubectl describe node {shlex.quote(node)})"
        )
    return f"Request {limit}, and let the job use more pods."


def _nearest(offers: Mapping[str, _Amounts], requested: _Amounts) -> tuple[str, str] | None:
    """Return the node with the most of the only resource that it has too little of, and that."""
    nearest = []
    for node, offered in offers.items():
        scarce = [name for name, amount in requested.items() if offered[name] < amount]
        if len(scarce) == 1 and offered[scarce[0]]:
            nearest.append((offered[scarce[0]] / requested[scarce[0]], node, scarce[0]))
    return max(nearest)[1:] if nearest else None
