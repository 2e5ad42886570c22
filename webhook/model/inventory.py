"""The inventory: fabrics with their nodes that take pods, GPUs, RDMA resources and problems.

It is computed for groups of nodes that the fabrics do not distinguish, so that thousands of nodes
take a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.fabric_findings import (
    NODE_IN_SEVERAL_FABRICS,
    NODE_WITHOUT_FABRIC,
    findings_of,
)
from webhook.model.finding import Finding, Location
from webhook.model.names import counted, natural_key
from webhook.model.nodes import Node, NodeGroup, comparable_value, groups_of_nodes
from webhook.model.pod import Pod, at
from webhook.model.resources import is_gpu, is_rdma, scheduler_requests
from webhook.model.unlisted_devices import unlisted_devices

# Nodes that belong to no fabric, or to several, and the reasons.


class UnassignedNodes(NamedTuple):
    """Nodes that do not belong to exactly one fabric, all for the same reason."""

    nodes: tuple[str, ...]
    #: Names of the fabrics that they match; none, or at least two.
    fits: tuple[str, ...]
    #: The fabric with the fewest unmet conditions, "" if they match several.
    nearest: str
    why: str

    @property
    def finding(self) -> Finding:
        """The nodes as a finding."""
        subject = (
            f"{counted(len(self.nodes), 'node')} {'matches' if len(self.nodes) == 1 else 'match'}"
        )
        location = Location(nodes=self.nodes)
        if self.fits:
            text = f"{subject} {' and '.join(self.fits)}: {self.why}"
            return NODE_IN_SEVERAL_FABRICS.finding("error", text, location=location)
        nearest = f" (nearest: {self.nearest})" if self.nearest else ""
        text = f"{subject} no fabric{nearest}: {self.why}"
        return NODE_WITHOUT_FABRIC.finding("error", text, location=location)


def unassigned_nodes(
    groups: Iterable[NodeGroup], configuration: CompiledConfiguration
) -> tuple[UnassignedNodes, ...]:
    """Return the nodes that may belong to a fabric, but do not belong to exactly one."""
    by_reason: dict[tuple[tuple[str, ...], str, str], list[str]] = {}
    for group in groups:
        if len(group.fabric_names) > 1:
            fits = tuple(name for name in configuration.fabrics if name in group.fabric_names)
            by_reason.setdefault((fits, "", _common(group, fits, configuration)), []).extend(
                group.names
            )
        elif not group.fabric_names and may_belong_to_fabric(group, configuration):
            nearest, reason = _nearest(group, configuration)
            by_reason.setdefault(((), nearest, reason), []).extend(group.names)
    return tuple(
        UnassignedNodes(tuple(names), fits, nearest, reason)
        for (fits, nearest, reason), names in by_reason.items()
    )


def may_belong_to_fabric(group: NodeGroup, configuration: CompiledConfiguration) -> bool:
    """Return whether nodes may belong to a fabric: they offer GPUs or RDMA, or fit a label."""
    offers = any(
        is_gpu(name, configuration) or is_rdma(name, configuration) for name in group.resources
    )
    return offers or any(
        _fits_label(group, key, fabric, configuration)
        for fabric in configuration.fabrics.values()
        for key in fabric.node_labels
    )


def _nearest(group: NodeGroup, configuration: CompiledConfiguration) -> tuple[str, str]:
    """Return the fabric with the fewest unmet conditions, or "", and these conditions."""
    lacking = {
        name: [*_lacks(group, fabric, configuration)]
        for name, fabric in configuration.fabrics.items()
    }
    if not lacking:
        return "", "there are no fabrics"
    nearest = min(
        lacking, key=lambda name: (len(lacking[name]), -_met_conditions(group, name, configuration))
    )
    return nearest, "; ".join(lacking[nearest])


def _lacks(group: NodeGroup, fabric: Fabric, configuration: CompiledConfiguration) -> Iterator[str]:
    """Yield the conditions of a fabric that nodes do not meet."""
    for key, globs in fabric.node_labels.items():
        expected = " or ".join(globs)
        if key not in group.labels:
            yield f"label {key} is missing (expected: {expected})"
        elif not _fits_label(group, key, fabric, configuration):
            yield f"label {key} is {group.labels[key]}, not {expected}"
    resources = _identifying_resources(fabric, configuration)
    if resources and not _offers(group, resources):
        yield _not_offered_sentence(resources)


def _not_offered_sentence(names: Sequence[str]) -> str:
    """State that nodes offer no resource of a list: "neither a nor b is offered"."""
    if len(names) == 1:
        return f"{names[0]} is not offered"
    *first, last = names
    lead = "neither" if len(first) == 1 else "none of"
    return f"{lead} {', '.join(first)} {'nor' if len(first) == 1 else 'and'} {last} is offered"


def _met_conditions(group: NodeGroup, name: str, configuration: CompiledConfiguration) -> int:
    """Count the conditions of a fabric that nodes meet."""
    fabric = configuration.fabrics[name]
    labels = sum(_fits_label(group, key, fabric, configuration) for key in fabric.node_labels)
    return labels + _offers(group, _identifying_resources(fabric, configuration))


def _identifying_resources(fabric: Fabric, configuration: CompiledConfiguration) -> list[str]:
    """Return the resources that nodes must offer at least one of; [] if labels are enough."""
    if fabric.node_labels and not fabric.gpu_resources:
        return []
    return [
        *sorted(fabric.gpu_resources),
        *sorted(configuration.unique_rdma_resources[fabric.name]),
    ]


def _offers(group: NodeGroup, names: Iterable[str]) -> bool:
    return any(name in group.resources for name in names)


def _fits_label(
    group: NodeGroup, key: str, fabric: Fabric, configuration: CompiledConfiguration
) -> bool:
    value = group.labels.get(key)
    return value is not None and configuration.by_label[key][fabric.name].match(
        comparable_value(key, value)
    )


def _common(group: NodeGroup, fits: tuple[str, ...], configuration: CompiledConfiguration) -> str:
    """Describe what makes the nodes match several fabrics."""
    members = [configuration.fabrics[name] for name in fits]
    gpus = frozenset(group.resources).intersection(*(fabric.gpu_resources for fabric in members))
    keys = frozenset(group.labels).intersection(*(fabric.node_labels for fabric in members))
    shared = [*sorted(gpus), *(f"label {key}={group.labels[key]}" for key in sorted(keys))]
    if shared:
        return f"{' and '.join(shared)} {'matches' if len(shared) == 1 else 'match'} all of them"
    offered = [
        sorted(configuration.unique_rdma_resources[name] & group.resources.keys()) for name in fits
    ]
    if all(offered):
        return f"they offer resources of each: {', '.join(names[0] for names in offered)}"
    return "nothing in `match` distinguishes them"


# The amounts.

#: Node → resource → amount that its pods have reserved.
Reserved = Mapping[str, Mapping[str, int]]


class FabricCapacity(NamedTuple):
    """The nodes of one fabric, and the total resources of the nodes that take pods."""

    name: str
    #: The nodes that take pods, in natural order: node-2 before node-10.
    nodes: tuple[str, ...]
    #: The nodes that take no pods: cordoned, not ready, or kept free by a taint of Kubernetes.
    unavailable_nodes: tuple[str, ...]
    #: Those of `nodes` that lack an RDMA resource of the fabric.
    nodes_without_resource: tuple[str, ...]
    #: GPU resource → allocatable amount.
    gpus: Mapping[str, int]
    #: RDMA resource of the fabric → allocatable amount.
    resources: Mapping[str, int]
    #: GPUs and RDMA resources that no pod has reserved; None if the pods are unknown.
    free: Mapping[str, int] | None
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that are more than information."""
        return tuple(finding for finding in self.findings if finding.level != "info")

    @property
    def notes(self) -> tuple[Finding, ...]:
        """The findings that are information: taints for which pods need tolerations."""
        return tuple(finding for finding in self.findings if finding.level == "info")


class FabricInventory(NamedTuple):
    """All fabrics, in the order of their file, and the nodes that belong to none or to several."""

    fabrics: tuple[FabricCapacity, ...]
    unassigned_nodes: tuple[UnassignedNodes, ...]
    #: The number of all nodes, and of those that `may_belong_to_fabric` rejects: they fit no label
    #: of a fabric, and offer no GPU and no RDMA resource, or only such as no fabric lists.
    nodes: int
    unrelated_nodes: int
    #: Accelerators and NICs of unrelated nodes → the number of nodes that offer them.
    unlisted_devices: Mapping[str, int] = {}

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong."""
        return not self.unassigned_nodes and not any(fabric.problems for fabric in self.fabrics)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with nodes outside of the fabrics."""
        return tuple(group.finding for group in self.unassigned_nodes)


def build_inventory(
    nodes: Mapping[str, Node],
    configuration: CompiledConfiguration,
    reserved: Reserved | None = None,
) -> FabricInventory:
    """Assign nodes to fabrics, and add up their resources; pass `reserved` if it is known."""
    groups = groups_of_nodes(
        {name: nodes[name] for name in sorted(nodes, key=natural_key)}, configuration
    )
    unrelated = [
        group
        for group in groups
        if not group.fabric_names and not may_belong_to_fabric(group, configuration)
    ]
    return FabricInventory(
        fabrics=tuple(
            _capacity(
                fabric,
                [group for group in groups if fabric.name in group.fabric_names],
                configuration,
                reserved,
            )
            for fabric in configuration.fabrics.values()
        ),
        unassigned_nodes=unassigned_nodes(groups, configuration),
        nodes=len(nodes),
        unrelated_nodes=sum(len(group.names) for group in unrelated),
        unlisted_devices=unlisted_devices(unrelated, configuration),
    )


def _capacity(
    fabric: Fabric,
    groups: Sequence[NodeGroup],
    configuration: CompiledConfiguration,
    reserved: Reserved | None,
) -> FabricCapacity:
    available = [group for group in groups if group.takes_pods]
    gpus = sorted(
        {name for group in groups for name in group.resources if is_gpu(name, configuration)}
    )
    resources = [resource.name for resource in fabric.resources]
    lacking = [group for group in available if not group.resources.keys() >= {*resources}]
    free = None
    if reserved is not None:
        free = {name: _free(available, name, reserved) for name in (*gpus, *resources)}
    return FabricCapacity(
        name=fabric.name,
        nodes=_node_names(available),
        unavailable_nodes=_node_names(group for group in groups if not group.takes_pods),
        nodes_without_resource=_node_names(lacking),
        gpus=_totals(available, gpus),
        resources=_totals(available, resources),
        free=free,
        findings=tuple(findings_of(fabric, groups, configuration)),
    )


def _node_names(groups: Iterable[NodeGroup]) -> tuple[str, ...]:
    return tuple(sorted((name for group in groups for name in group.names), key=natural_key))


def _totals(groups: Iterable[NodeGroup], names: Iterable[str]) -> dict[str, int]:
    return {
        name: sum(len(group.names) * group.resources.get(name, 0) for group in groups)
        for name in names
    }


def _free(groups: Iterable[NodeGroup], name: str, reserved: Reserved) -> int:
    """Add up the free amount on each node; a node may now have less than its pods reserved."""
    return sum(
        max(0, group.resources.get(name, 0) - reserved.get(node, {}).get(name, 0))
        for group in groups
        for node in group.names
    )


# The extended resources that the pods on each node have reserved, as the scheduler counts them.

#: The phases of pods that have released their resources.
_FINISHED = ("Succeeded", "Failed")


class Reservation(NamedTuple):
    """The reservation of a pod on its node: extended resource → amount."""

    node: str
    amounts: Mapping[str, int]


def reservation_of(pod: object) -> Reservation | None:
    """Return a pod's reservation, or None; raise ShapeError if the pod is malformed."""
    node = at(pod, ("spec", "nodeName"))
    if not isinstance(pod, dict) or not isinstance(node, str):
        return None
    if at(pod, ("status", "phase")) in _FINISHED:
        return None
    amounts = scheduler_requests(Pod(pod))
    return Reservation(node, amounts) if amounts else None


def reserved_on_nodes(reservations: Iterable[Reservation]) -> dict[str, dict[str, int]]:
    """Add up reservations: node → resource → amount."""
    reserved: dict[str, dict[str, int]] = {}
    for node, amounts in reservations:
        total = reserved.setdefault(node, {})
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    return reserved
