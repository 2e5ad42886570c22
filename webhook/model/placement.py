"""The nodes that a pod's own node selection and tolerations leave, as the scheduler judges them.

Source: k8s.io/component-helpers, scheduling/corev1/nodeaffinity (GetRequiredNodeAffinity), and the
scheduler's plugins NodeName, NodeAffinity, NodeUnschedulable and TaintToleration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from webhook.model.equivalent_nodes import EquivalentNodes
from webhook.model.pod import NodeTerm, Pod, Requirement
from webhook.model.pod.node_selection import HOSTNAME, Acceptance, acceptance
from webhook.model.pod.reading import cached_field
from webhook.model.pod.tolerations import NO_EXECUTE, NO_SCHEDULE, Taint, Tolerations

#: The maximum number of requirements in a required affinity that is read; with more of them, all
#: nodes count as selected. Real pods have one or two.
MAX_REQUIREMENTS = 64


class _Term(NamedTuple):
    """A term of the required affinity, prepared: what the nodes of a class must have."""

    #: The label keys that are not individual, each with the test for its value.
    labels: tuple[tuple[str, Acceptance], ...]
    #: Sets of names, and of host names: a node must be in each.
    names: tuple[frozenset[str], ...]
    host_names: tuple[frozenset[str], ...]
    #: Names that the node must not have.
    other_than: frozenset[str]

    def accepts(self, nodes: EquivalentNodes) -> bool:
        """Return whether some of the nodes may satisfy the term."""
        return (
            all(accept(nodes.labels.get(key)) for key, accept in self.labels)
            and not any(nodes.names.isdisjoint(names) for names in self.names)
            and not any(nodes.host_names.isdisjoint(names) for names in self.host_names)
            and not nodes.names <= self.other_than
        )


class Placement:
    """The requirements of a pod on its node."""

    def __init__(self, pod: Pod, individual_label_keys: frozenset[str] = frozenset()) -> None:
        """Prepare; `individual_label_keys`: of the labels that classes of nodes lack."""
        self._individual_label_keys = individual_label_keys
        self._node_name = pod.node_name
        self._labels = [(key, str(value)) for key, value in pod.node_selector.items()]
        self._terms = self._prepared_terms(pod.node_terms) if pod.has_node_terms else None
        self._pod = pod

    def selects(self, nodes: EquivalentNodes) -> bool:
        """Return whether some of the nodes may meet the pod's nodeName, nodeSelector and affinity.

        For a single node without individual labels, the answer is the scheduler's. For more, the
        pod may in fact meet no node: if its requirements on names fit different nodes.
        """
        if self._node_name and self._node_name not in nodes.names:
            return False
        if not all(self.has_label(nodes, key, value) for key, value in self._labels):
            return False
        return self._terms is None or any(term.accepts(nodes) for term in self._terms)

    def has_label(self, nodes: EquivalentNodes, key: str, value: str) -> bool:
        """Return whether some of the nodes may have a label."""
        if key not in self._individual_label_keys:
            return nodes.labels.get(key) == value
        return key != HOSTNAME or value in nodes.host_names

    def unmet_label(self, classes: Collection[EquivalentNodes]) -> tuple[str, str] | None:
        """Return a label that the pod requires, and that no class has: key and value.

        The value is "" for a requirement of the affinity. None if each label by itself is met, or
        the affinity has several terms.
        """
        for key, value in self._labels:
            if not any(self.has_label(nodes, key, value) for nodes in classes):
                return key, value
        for key, accept in self._terms[0].labels if self._terms and len(self._terms) == 1 else ():
            if not any(accept(nodes.labels.get(key)) for nodes in classes):
                return key, ""
        return None

    def repelling(self, nodes: EquivalentNodes, requested: Collection[str] = ()) -> list[Taint]:
        """Return the taints of the nodes that keep the pod away.

        A taint with the key of a `requested` resource does not: the admission plugin
        ExtendedResourceToleration adds a toleration, as clouds do. A pod with a nodeName is not
        scheduled, so only NoExecute counts.
        """
        return [
            taint
            for taint in nodes.availability.taints
            if not (taint.key in requested and taint.effect == NO_SCHEDULE)
            and not (self._node_name and taint.effect != NO_EXECUTE)
            and not self._tolerations.tolerate(taint)
        ]

    @cached_field
    def _tolerations(self) -> Tolerations:
        return Tolerations(self._pod.tolerations)

    def _prepared_terms(self, terms: Sequence[NodeTerm]) -> tuple[_Term, ...] | None:
        """Return the terms that a node can satisfy; None if there are too many requirements."""
        count = sum(len(term.requirements) + len(term.field_requirements) for term in terms)
        if count > MAX_REQUIREMENTS:
            return None
        return tuple(filter(None, map(self._prepared, terms)))

    def _prepared(self, term: NodeTerm) -> _Term | None:
        """Return a term, None if it is empty or invalid: then it matches no node."""
        requirements, fields = term.requirements, term.field_requirements
        tests = [(requirement, acceptance(requirement)) for requirement in requirements]
        names = [*_names(fields, "In")]
        others = [*_names(fields, "NotIn")]
        if any(test is None for _, test in tests) or len(fields) != len(names) + len(others):
            return None
        if not tests and not fields:
            return None
        individual = self._individual_label_keys
        return _Term(
            labels=tuple(
                (requirement.key, test)
                for requirement, test in tests
                if test is not None and requirement.key not in individual
            ),
            names=tuple(frozenset((name,)) for name in names),
            host_names=tuple(
                frozenset(requirement.values)
                for requirement in requirements
                if requirement.key == HOSTNAME in individual and requirement.operator == "In"
            ),
            other_than=frozenset(others),
        )


def _names(fields: Sequence[Requirement], operator: str) -> Iterator[str]:
    """Yield the names in valid requirements on the node's name: these have one value each."""
    for key, written, values in fields:
        if key == "metadata.name" and written == operator and len(values) == 1:
            yield values[0]
