"""Evidence for a pod's fabric in its node selection: selectors, required affinity, inventory.

Tolerations and preferred affinity are no evidence: they permit nodes, but do not choose them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webhook.model.decision import Reason
from webhook.model.fabric import Fabrics
from webhook.model.nodes import PRODUCT, NodeInventory, product_of
from webhook.model.pod import NodeTerm, Pod, Requirement

SELECTOR_UNKNOWN = Reason(
    "SelectorUnknown",
    "The pod requires a node label that no node has, or names a GPU by a label of no fabric.",
)

#: The most labels that are reported, since a pod may have thousands.
_SHOWN = 3
_NONE: frozenset[str] = frozenset()


class FabricConstraint(NamedTuple):
    """What a piece of evidence says: one of the `named` fabrics, if any, and none `excluded`."""

    named: frozenset[str] = _NONE
    excluded: frozenset[str] = _NONE

    def of(self, candidates: frozenset[str]) -> frozenset[str]:
        """Return the candidates that are left."""
        left = candidates - self.excluded
        return left & self.named if self.named else left


def from_selector(pod: Pod, fabrics: Fabrics) -> Iterator[tuple[str, FabricConstraint]]:
    """Read `spec.nodeSelector`: one piece of evidence for each label that a fabric lists."""
    for key, value in pod.node_selector.items():
        found = _label(key, (value,), fabrics)
        if found is not None:
            yield f"nodeSelector {key}={value}", found


def from_affinity(pod: Pod, fabrics: Fabrics) -> FabricConstraint | None:
    """Read the required node affinity.

    Its terms are alternatives: they exclude only the fabrics that all of them exclude, and name
    fabrics only if each term does.
    """
    terms = [_term(term, fabrics) for term in pod.node_terms]
    if not terms:
        return None
    named = frozenset[str]().union(*(term.named for term in terms))
    excluded = terms[0].excluded.intersection(*(term.excluded for term in terms))
    found = FabricConstraint(named if all(term.named for term in terms) else _NONE, excluded)
    return found if found.named or found.excluded else None


def from_inventory(
    pod: Pod, gpus: Iterable[str], fabrics: Fabrics, inventory: NodeInventory
) -> Iterator[tuple[str, FabricConstraint]]:
    """Look up, in the inventory, the node that the pod names, and the nodes with its GPU resource.

    The GPU resource is evidence only if every fabric that claims it has a node with GPUs: the user
    may mean a fabric that is scaled to zero.
    """
    if not inventory.by_node:
        return
    known = [inventory.by_node[name] for name in pod.node_names if name in inventory.by_node]
    if known:
        homes = frozenset[str]().union(*known)
        yield "the node that the pod names", _only(homes, fabrics)
    for gpu in gpus:
        if fabrics.by_gpu[gpu] <= inventory.with_gpus and inventory.by_gpu.get(gpu):
            yield f"the nodes that offer {gpu}", FabricConstraint(named=inventory.by_gpu[gpu])


def misdirected(
    pod: Pod, fabrics: Fabrics, inventory: NodeInventory, *, known: bool
) -> tuple[str, ...]:
    """Return a sentence for each label that the pod requires of its node, and that nothing has.

    Without nodes in the inventory, only a label with the value of another one is reported: a GPU
    product under a key that no fabric lists, if the fabric is not `known` otherwise. What the
    fabrics pin does not count: we may have added it.
    """
    if known and not inventory.label_keys:
        return ()
    required = list(pod.required_labels())
    if not required:
        return ()
    pinned = {key for fabric in fabrics.fabrics.values() for key in fabric.pin or ()}
    required = [one for one in required if one[0] not in pinned]
    if inventory.label_keys:
        missing = [key for key, _ in required if key not in inventory.label_keys]
        return tuple(
            f"no node has the label {key:.80}, which the pod requires" for key in missing[:_SHOWN]
        )
    wrong = [
        key
        for key, values in required
        if key not in fabrics.by_label and _names_product(values, fabrics)
    ]
    return tuple(
        f"no fabric lists the label {key:.60}: a GPU's product is in {PRODUCT}"
        for key in wrong[:_SHOWN]
    )


def _names_product(values: list[str], fabrics: Fabrics) -> bool:
    globs = fabrics.by_label.get(PRODUCT, {}).values()
    return any(one.match(product_of(PRODUCT, value)) for value in values for one in globs)


def _only(homes: frozenset[str], fabrics: Fabrics) -> FabricConstraint:
    return (
        FabricConstraint(named=homes)
        if homes
        else FabricConstraint(excluded=frozenset(fabrics.fabrics))
    )


def _term(term: NodeTerm, fabrics: Fabrics) -> FabricConstraint:
    named, excluded = _NONE, _NONE
    for requirement in term.requirements:
        found = _requirement(requirement, fabrics)
        if found is not None:
            named = named & found.named if named and found.named else named or found.named
            excluded |= found.excluded
    return FabricConstraint(named - excluded, excluded)


def _requirement(requirement: Requirement, fabrics: Fabrics) -> FabricConstraint | None:
    key, operator, values = requirement
    match operator:
        case "In":
            return _label(key, values, fabrics)
        case "NotIn":
            return FabricConstraint(excluded=_literally(key, values, fabrics))
        case "DoesNotExist":
            return FabricConstraint(excluded=frozenset(fabrics.by_label.get(key, ())))
        case _:
            return None


def _label(key: str, values: Iterable[object], fabrics: Fabrics) -> FabricConstraint | None:
    """Compare the values that a label may have with the fabrics that list the label."""
    mentioning = fabrics.by_label.get(key)
    if not mentioning:
        return None
    products = [product_of(key, str(value)) for value in values]
    named = {
        name for product in products for name, globs in mentioning.items() if globs.match(product)
    }
    return FabricConstraint(frozenset(named), frozenset(mentioning.keys() - named))


def _literally(key: str, values: list[str], fabrics: Fabrics) -> frozenset[str]:
    """Return the fabrics whose globs for the label are all among the values, literally."""
    mentioning, given = fabrics.by_label.get(key), frozenset(values)
    return frozenset(
        name for name, globs in (mentioning or {}).items() if given.issuperset(globs.written)
    )
