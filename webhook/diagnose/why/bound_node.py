"""The node that a pod is bound to: it settles a doubt of admission about nodes, or raises one.

A pod gets a node only if that has what it requests: the scheduler counts, and the kubelet rejects a
pod that does not fit (kubernetes, pkg/kubelet/lifecycle/predicate.go). So on a node of its fabric,
no verdict on the fabric's nodes is true any more, whatever they were like at admission.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from webhook.decide.examine.fabric_choice import FABRIC_UNKNOWN
from webhook.decide.examine.node_selection import SELECTOR_UNKNOWN
from webhook.decide.verdict.node_reasons import CAPACITY_REASONS
from webhook.diagnose.why.comparison import admission_configuration
from webhook.diagnose.why.evidence import PodEvidence, StatusAnnotation
from webhook.diagnose.why.node_setup import node_problem
from webhook.kube.objects import PodRecord
from webhook.model.finding import Code, Finding
from webhook.model.names import shortened_list
from webhook.model.nodes import build_fabric_index

OUTSIDE_FABRIC = Code(
    "NodeOutsideFabric",
    "The pod is on a node that does not belong to the fabric that the pod was equipped for.",
    "Once a node of the fabric can run the pod, create the pod again without nodeName, and with a "
    "nodeSelector for the labels of the fabric's nodes. If the node should belong to the fabric, "
    "ask the cluster administrator to correct the fabric's `match`.",
)
CODES = (OUTSIDE_FABRIC,)

#: The codes of verdicts about nodes.
_CAPACITY_CODES = frozenset(reason.code for reason in CAPACITY_REASONS)
#: The remarks on the pod's node selection that a node of the fabric disproves, too.
SETTLED_REMARKS = (SELECTOR_UNKNOWN.code,)


class BoundNode(NamedTuple):
    """The node of a pod that was equipped for a fabric."""

    name: str
    fabric: str
    #: Whether admission doubted that the pod gets a node of its fabric.
    is_in_doubt: bool
    #: The fabrics that the node may belong to; None if unknown.
    fabrics: frozenset[str] | None = None
    #: Why they are unknown, as a clause.
    unknown_reason: str = ""

    @property
    def is_of_fabric(self) -> bool:
        """Whether the node is known to belong to the pod's fabric."""
        return self.fabrics is not None and self.fabric in self.fabrics


def node_to_compare(evidence: PodEvidence) -> str:
    """Return the node of a pod for which the fabrics of its node matter; "" for other pods.

    They matter to a verdict about nodes, and if the configuration of the admission is known, to
    each pod that was equipped for a fabric.
    """
    status = evidence.status
    if status is None or _is_rejected(evidence.pod):
        return ""
    is_equipped = status.fabric and status.rdma in ("yes", "unsure")
    is_comparable = is_equipped and admission_configuration(evidence, status) is not None
    return evidence.pod.spec.node_name if _is_in_doubt(status) or is_comparable else ""


def _is_in_doubt(status: StatusAnnotation) -> bool:
    return status.verdict_reason in _CAPACITY_CODES


def node_without_fabric(evidence: PodEvidence) -> str:
    """Return the node of a pod for which admission found no fabric; "" for other pods."""
    status = evidence.status
    if status is None or status.verdict_reason != FABRIC_UNKNOWN.code:
        return ""
    return evidence.pod.spec.node_name


def _is_rejected(pod: PodRecord) -> bool:
    """Return whether a pod failed before a container started, as if the kubelet rejected it."""
    return pod.status.phase == "Failed" and not pod.status.container_statuses


def bound_node(evidence: PodEvidence) -> BoundNode | None:
    """Return the node of a pod that was equipped for a fabric, as far as it matters; or None."""
    name, status = node_to_compare(evidence), evidence.status
    if not name or status is None:
        return None
    return _judged(evidence, status, name)


def _judged(evidence: PodEvidence, status: StatusAnnotation, name: str) -> BoundNode:
    node = BoundNode(name, status.fabric, _is_in_doubt(status))
    facts = evidence.placement_nodes.get(name)
    configuration = admission_configuration(evidence, status)
    if facts is None:
        return node._replace(unknown_reason="the node could not be read")
    if configuration is None:
        unknown_reason = (
            "the configuration of the admission could not be read, or has changed since"
        )
        return node._replace(unknown_reason=unknown_reason)
    return node._replace(fabrics=build_fabric_index({name: facts}, configuration).by_node[name])


def doubt_that_stays(evidence: PodEvidence, node: BoundNode) -> tuple[str, str]:
    """Return the sentence on a node whose fabrics are unknown, and the remedy."""
    if problem := node_problem(evidence):
        return problem.text, problem.remedy
    sentence = (
        f"The pod is now on node {node.name}, but whether this node belongs to the fabric is "
        f"unknown, since {node.unknown_reason}."
    )
    remedy = (
        f"Ask the cluster administrator whether node {node.name} belongs to fabric {node.fabric}: "
        f"`kubectl get node {shlex.quote(node.name)} --show-labels`. If it does, no action is "
        "needed."
    )
    return sentence, remedy


def outside_fabric(node: BoundNode) -> Finding:
    """Return the answer for a node outside of the fabric: `no` if it belongs to another one."""
    start = f"the pod is on node {node.name}, which"
    if node.fabrics:
        others = shortened_list(sorted(node.fabrics))
        text = f"No RDMA: {start} belongs to {others}, not to fabric {node.fabric}."
        return OUTSIDE_FABRIC.finding("error", text)
    text = f"RDMA over {node.fabric} is not certain: {start} belongs to no fabric."
    return OUTSIDE_FABRIC.finding("unsure", text)
