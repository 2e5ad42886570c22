"""Evidence for a pod's fabric in its node selection: selectors, required affinity, nodes.

Tolerations and preferred affinity are not evidence: they permit nodes, but do not choose them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webhook.model.decision import Reason
from webhook.model.fabric import CompiledConfiguration
from webhook.model.nodes import PRODUCT, FabricIndex, comparable_value
from webhook.model.pod import NodeTerm, Pod, Requirement

SELECTOR_UNKNOWN = Reason(
    "SelectorUnknown",
    "The pod requires a node label that no node has, or selects a GPU by a label that no fabric "
    "lists.",
    remedy=(
        "If `kubectl get nodes --show-labels` shows no node with the label, correct it in the "
        "nodeSelector or the affinity."
    ),
)

#: The maximum number of labels to report, since a pod may have thousands.
_MAX_LABELS = 3
_NONE: frozenset[str] = frozenset()


class FabricConstraint(NamedTuple):
    """What evidence implies: the fabric is one of `allowed` (any if empty), none of `excluded`."""

    allowed: frozenset[str] = _NONE
    excluded: frozenset[str] = _NONE

    def filter(self, candidates: frozenset[str]) -> frozenset[str]:
        """Return the candidates that meet this constraint."""
        remaining = candidates - self.excluded
        return remaining & self.allowed if self.allowed else remaining


def from_selector(
    pod: Pod, configuration: CompiledConfiguration
) -> Iterator[tuple[str, FabricConstraint]]:
    """Yield a piece of evidence for each label in `spec.nodeSelector` that a fabric lists."""
    for key, value in pod.node_selector.items():
        constraint = _label(key, (value,), configuration)
        if constraint is not None:
            yield f"nodeSelector {key}={value}", constraint


def from_affinity(pod: Pod, configuration: CompiledConfiguration) -> FabricConstraint | None:
    """Return the constraint in the required node affinity, None if it does not concern fabrics.

    Its terms are alternatives: they exclude only the fabrics that all of them exclude, and limit
    the fabrics only if each term does.
    """
    terms = [_term(term, configuration) for term in pod.node_terms]
    if not terms:
        return None
    allowed = frozenset[str]().union(*(term.allowed for term in terms))
    excluded = terms[0].excluded.intersection(*(term.excluded for term in terms))
    constraint = FabricConstraint(
        allowed if all(term.allowed for term in terms) else _NONE, excluded
    )
    return constraint if constraint.allowed or constraint.excluded else None


def from_fabric_index(
    pod: Pod, gpus: Iterable[str], configuration: CompiledConfiguration, fabric_index: FabricIndex
) -> Iterator[tuple[str, FabricConstraint]]:
    """Yield evidence from known nodes: the node that the pod names, and nodes with its GPUs.

    The GPU resource is evidence only if every fabric that lists it has a node with GPUs: the user
    may mean a fabric that is scaled to zero.
    """
    if not fabric_index.by_node:
        return
    fabrics_of_nodes = [
        fabric_index.by_node[name] for name in pod.node_names if name in fabric_index.by_node
    ]
    if fabrics_of_nodes:
        fabric_names = frozenset[str]().union(*fabrics_of_nodes)
        yield "the node that the pod names", _only(fabric_names, configuration)
    for gpu in gpus:
        if configuration.by_gpu[gpu] <= fabric_index.fabrics_with_gpus and fabric_index.by_gpu.get(
            gpu
        ):
            yield f"the nodes that offer {gpu}", FabricConstraint(allowed=fabric_index.by_gpu[gpu])


def unknown_label_messages(
    pod: Pod, configuration: CompiledConfiguration, fabric_index: FabricIndex, *, fabric_known: bool
) -> tuple[str, ...]:
    """Return a sentence for each label that the pod requires, and that no node or fabric has.

    Without known nodes, only a GPU product under a wrong key is reported: a key that no
    fabric lists, in a pod whose fabric is not known otherwise. The fabrics' pinned labels do not
    count: we may have added them.
    """
    if fabric_known and not fabric_index.label_keys:
        return ()
    required = list(pod.required_labels())
    if not required:
        return ()
    pinned = {key for fabric in configuration.fabrics.values() for key in fabric.pin_selector or ()}
    required = [label for label in required if label[0] not in pinned]
    if fabric_index.label_keys:
        missing = [key for key, _ in required if key not in fabric_index.label_keys]
        return tuple(
            f"no node has the label {key:.80}, which the pod requires"
            for key in missing[:_MAX_LABELS]
        )
    unlisted = [
        key
        for key, values in required
        if key not in configuration.by_label and _names_product(values, configuration)
    ]
    return tuple(
        f"no fabric lists the label {key:.60}; a GPU's product is in {PRODUCT}"
        for key in unlisted[:_MAX_LABELS]
    )


def _names_product(values: list[str], configuration: CompiledConfiguration) -> bool:
    globs = configuration.by_label.get(PRODUCT, {}).values()
    return any(glob.match(comparable_value(PRODUCT, value)) for value in values for glob in globs)


def _only(fabric_names: frozenset[str], configuration: CompiledConfiguration) -> FabricConstraint:
    return (
        FabricConstraint(allowed=fabric_names)
        if fabric_names
        else FabricConstraint(excluded=frozenset(configuration.fabrics))
    )


def _term(term: NodeTerm, configuration: CompiledConfiguration) -> FabricConstraint:
    allowed, excluded = _NONE, _NONE
    for requirement in term.requirements:
        constraint = _requirement(requirement, configuration)
        if constraint is not None:
            allowed = (
                allowed & constraint.allowed
                if allowed and constraint.allowed
                else allowed or constraint.allowed
            )
            excluded |= constraint.excluded
    return FabricConstraint(allowed - excluded, excluded)


def _requirement(
    requirement: Requirement, configuration: CompiledConfiguration
) -> FabricConstraint | None:
    key, operator, values = requirement
    match operator:
        case "In":
            return _label(key, values, configuration)
        case "NotIn":
            return FabricConstraint(excluded=_literally(key, values, configuration))
        case "DoesNotExist":
            return FabricConstraint(excluded=frozenset(configuration.by_label.get(key, ())))
        case _:
            return None


def _label(
    key: str, values: Iterable[object], configuration: CompiledConfiguration
) -> FabricConstraint | None:
    """Compare the permitted values of a label with the fabrics that list it; None if none does."""
    globs_by_fabric = configuration.by_label.get(key)
    if not globs_by_fabric:
        return None
    comparable_values = [comparable_value(key, str(value)) for value in values]
    allowed = {
        name
        for value in comparable_values
        for name, globs in globs_by_fabric.items()
        if globs.match(value)
    }
    return FabricConstraint(frozenset(allowed), frozenset(globs_by_fabric.keys() - allowed))


def _literally(key: str, values: list[str], configuration: CompiledConfiguration) -> frozenset[str]:
    """Return the fabrics whose globs for the label are all literally among the values."""
    globs_by_fabric, permitted = configuration.by_label.get(key), frozenset(values)
    return frozenset(
        name for name, globs in (globs_by_fabric or {}).items() if permitted.issuperset(globs.texts)
    )
