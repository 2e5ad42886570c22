"""Nodes that offer what a pending pod requests, and do not take it: selection, cordon, taints."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Self

from webhook.diagnose.why.additions import (
    added_selectors,
    creation_source_title,
    label_authors,
    mutators_remedy,
)
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.messages import cut
from webhook.diagnose.why.pod_template import template_title, with_rollout
from webhook.errors import ShapeError
from webhook.model.equivalent_nodes import EquivalentNodes
from webhook.model.finding import Code, Finding
from webhook.model.names import capitalized, natural_key, shortened_list
from webhook.model.node_availability import CORDONED, NOT_READY, is_of_kubernetes, state_of
from webhook.model.nodes import Node
from webhook.model.placement import Placement
from webhook.model.pod import Pod
from webhook.model.pod.tolerations import Taint

NOT_SELECTED = Code(
    "BlockedBySelection",
    "The pod is pending: its nodeSelector, affinity or nodeName excludes all nodes that offer what "
    "it requests.",
    "Correct the nodeSelector, affinity or nodeName in the pod's manifest or, for a workload, in "
    "the pod template, and create the pod again.",
)
CORDONED_NODES = Code(
    "BlockedByCordon",
    "The pod is pending: nodes that could run it are cordoned.",
    "Once maintenance of these nodes is over, uncordon them: `kubectl uncordon NODE`.",
)
UNREADY_NODES = Code(
    "BlockedByUnreadiness",
    "The pod is pending: nodes that could run it are not ready.",
    "Look for the reason with `kubectl describe node NODE`, and in the kubelet's log on that node.",
)
TAINTED_NODES = Code(
    "BlockedByTaint",
    "The pod is pending: nodes that could run it have a taint that it does not tolerate.",
    "If the pod may run on these nodes, add a toleration to the pod's manifest or, for a "
    "workload, to the pod template, and create the pod again. If the taint is no longer needed, "
    "remove it: `kubectl taint node NODE TAINT-`.",
)
CODES = (NOT_SELECTED, CORDONED_NODES, UNREADY_NODES, TAINTED_NODES)

#: A taint on nodes that never run users' pods: it counts only if no other node is left.
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_MAX_VALUES = 4


class Candidates(NamedTuple):
    """The nodes that offer what a pod requests, by what keeps the pod from them."""

    #: All of them, as classes of one node.
    node_classes: tuple[EquivalentNodes, ...] = ()
    #: The names that the pod's node selection leaves.
    selected: tuple[str, ...] = ()
    #: The selected nodes without an untolerated taint: they lack free resources, or another thing.
    permitted: frozenset[str] = frozenset()
    #: Taint → the selected nodes on which it is the first untolerated taint, in the order of
    #: `_first`.
    by_taint: tuple[tuple[Taint, tuple[str, ...]], ...] = ()
    #: A label that the pod requires and no candidate has: key and value, "" for the affinity.
    unmet: tuple[str, str] | None = None

    @classmethod
    def of(cls, evidence: PodEvidence, names: Sequence[str]) -> Self:
        """Judge nodes by name; all are permitted if the pod or the nodes cannot be read."""
        facts = evidence.placement_nodes
        classes = tuple(_class(name, facts[name]) for name in names if name in facts)
        try:
            placement = Placement(Pod(evidence.pod.manifest))
            selected = [nodes for nodes in classes if placement.selects(nodes)]
            unmet = placement.unmet_label(classes)
        except ShapeError:
            return cls(classes, tuple(names), frozenset(names))
        by_taint: dict[Taint, list[str]] = {}
        permitted_names: list[str] = [name for name in names if name not in facts]
        for nodes in selected:
            (name,) = nodes.names
            taints = placement.repelling(nodes)
            if taints:
                by_taint.setdefault(_first(taints), []).append(name)
            else:
                permitted_names.append(name)
        return cls(
            classes,
            tuple(name for nodes in selected for name in nodes.names),
            frozenset(permitted_names),
            tuple((taint, tuple(nodes)) for taint, nodes in by_taint.items()),
            unmet,
        )


def _class(name: str, node: Node) -> EquivalentNodes:
    return EquivalentNodes(
        frozenset((name,)), node.labels, node.resources, node.availability, frozenset()
    )


def _first(taints: Sequence[Taint]) -> Taint:
    """Return the taint to name: a state of Kubernetes, which must end first, before others."""
    return min(taints, key=lambda taint: (not is_of_kubernetes(taint.key), taint))


_UNTOLERATED = re.compile(r"untolerated taint(?: \{([^:}]{1,320}): ?([^}]{0,63})\})?")
_UNSELECTED = "didn't match Pod's node affinity"
_CORDONED = "node(s) were unschedulable"


def message_findings(message: str) -> Iterator[Finding]:
    """Yield what the scheduler's message says about placement, for nodes that were not read."""
    quote = f" The scheduler reports: {cut(message)}"
    if _UNSELECTED in message:
        text = f"The pod is pending: its nodeSelector or its affinity excludes nodes.{quote}"
        yield NOT_SELECTED.finding("error", text)
    if _CORDONED in message:
        yield CORDONED_NODES.finding("error", f"The pod is pending: nodes are cordoned.{quote}")
    for key, value in dict.fromkeys(_UNTOLERATED.findall(message)):
        if key != _CONTROL_PLANE:
            taint = f"the taint {key}{f'={value}' if value else ''}" if key else "a taint"
            text = f"The pod is pending: nodes have {taint}, which it does not tolerate.{quote}"
            yield TAINTED_NODES.finding("error", text)


def placement_findings(
    evidence: PodEvidence, candidates: Candidates, quote: str
) -> Iterator[Finding]:
    """Yield what keeps the pod from the nodes that offer what it requests."""
    if candidates.node_classes and not candidates.selected and not candidates.permitted:
        yield _not_selected_finding(evidence, candidates, quote)
        return
    by_taint = dict(candidates.by_taint)
    workers = {taint: nodes for taint, nodes in by_taint.items() if taint.key != _CONTROL_PLANE}
    for taint, nodes in (workers if workers or candidates.permitted else by_taint).items():
        yield _tainted(evidence, taint, sorted(nodes, key=natural_key), quote)


def _not_selected_finding(evidence: PodEvidence, candidates: Candidates, quote: str) -> Finding:
    template = template_title(evidence)
    names = _names(name for nodes in candidates.node_classes for name in nodes.names)
    start = f"The pod is pending: the nodes that offer what it requests ({names})"
    if candidates.unmet is None:
        text = f"{start} do not match its node affinity, nodeSelector or nodeName.{quote}"
        remedy = with_rollout(f"Correct them in {template}", evidence)
        return NOT_SELECTED.finding("error", text, remedy)
    key, value = candidates.unmet
    values = sorted({nodes.labels[key] for nodes in candidates.node_classes if key in nodes.labels})
    actual = f"they have {key}: {shortened_list(values, _MAX_VALUES)}" if values else "none has it"
    if value:
        text = f"{start} do not have the label {key}={value} of its nodeSelector; {actual}.{quote}"
        correction = with_rollout(f"Correct nodeSelector in {template}", evidence)
        if key in added_selectors(evidence):
            added = f"{creation_source_title(evidence)} does not have it: {label_authors(evidence)}"
            added = f"{capitalized(added)} added it."
            correction = f"{added} {mutators_remedy(evidence, are_labels=True)}"
        remedy = (
            f"{correction} If the label is missing by mistake, set it: `kubectl label node NODE "
            f"{shlex.quote(f'{key}={value}')}`."
        )
        return NOT_SELECTED.finding("error", text, remedy)
    text = f"{start} do not match its affinity for the label {key}; {actual}.{quote}"
    remedy = with_rollout(f"Correct the affinity for {key} in {template}", evidence)
    return NOT_SELECTED.finding("error", text, remedy)


def _tainted(evidence: PodEvidence, taint: Taint, nodes: Sequence[str], quote: str) -> Finding:
    """Return the finding on nodes that a taint closes, or the state that the taint stands for."""
    start, names = "The pod is pending: nodes that could run it", _names(nodes)
    state = state_of(taint.key)
    if state == CORDONED:
        command = f"kubectl uncordon {shlex.join(nodes[:3])}"
        remedy = f"Once maintenance of these nodes is over, run `{command}`."
        return CORDONED_NODES.finding("error", f"{start} are cordoned ({names}).{quote}", remedy)
    if state == NOT_READY:
        remedy = (
            f"Look for the reason with `kubectl describe node {shlex.quote(nodes[0])}`, and in the "
            "kubelet's log on the node."
        )
        return UNREADY_NODES.finding("error", f"{start} are not ready ({names}).{quote}", remedy)
    text = f"{start} have the taint {taint}, which it does not tolerate ({names}).{quote}"
    return TAINTED_NODES.finding("error", text, _taint_remedy(evidence, taint, nodes))


def _taint_remedy(evidence: PodEvidence, taint: Taint, nodes: Sequence[str]) -> str:
    if is_of_kubernetes(taint.key):
        return (
            "Kubernetes removes the taint once its cause is gone: `kubectl describe node "
            f"{shlex.quote(nodes[0])}` shows the cause."
        )
    value = f"operator: Equal, value: {taint.value}" if taint.value else "operator: Exists"
    toleration = f"{{key: {taint.key}, {value}, effect: {taint.effect}}}"
    return (
        f"If the pod may run on these nodes, add to tolerations in {template_title(evidence)}: "
        f"{toleration}. If the taint is no longer needed, remove it: `kubectl taint node "
        f"{shlex.join([nodes[0], f'{taint.key}:{taint.effect}-'])}`."
    )


def _names(nodes: Iterable[str]) -> str:
    return shortened_list(sorted(nodes, key=natural_key))
