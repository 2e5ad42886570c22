"""The inventory: fabrics, their nodes, GPUs and RDMA resources, and what is wrong.

It is computed group by group, where a group is the nodes that are the same to the fabrics, so that
thousands of nodes take some milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.model.fabric import Fabric, Fabrics
from webhook.model.nodes import Node, NodeGroup, groups_of_nodes, product_of
from webhook.model.pod import Pod, at
from webhook.model.resources import is_gpu, is_rdma, scheduler_requests

# Names in the order in which people count: node-2 before node-10.

_DIGITS = re.compile(r"(\d{1,9})")


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return a key for sorting, by which numbers in names count as numbers."""
    parts = _DIGITS.split(name)
    return [(int(part), "") if place % 2 else (0, part) for place, part in enumerate(parts)]


# Nodes that belong to no fabric, or to several, and why.


class UnassignedNodes(NamedTuple):
    """Nodes that do not belong to exactly one fabric, all for the same reason."""

    nodes: tuple[str, ...]
    #: Names of the fabrics that they fit; none, or at least two.
    fits: tuple[str, ...]
    #: The fabric that they come nearest to, "" if they fit several.
    nearest: str
    why: str


def unassigned_nodes(groups: Iterable[NodeGroup], fabrics: Fabrics) -> tuple[UnassignedNodes, ...]:
    """Return the nodes that may be meant for a fabric, but do not belong to exactly one."""
    found: dict[tuple[tuple[str, ...], str, str], list[str]] = {}
    for group in groups:
        if len(group.homes) > 1:
            fits = tuple(name for name in fabrics.fabrics if name in group.homes)
            found.setdefault((fits, "", _common(group, fits, fabrics)), []).extend(group.names)
        elif not group.homes and is_meant(group, fabrics):
            nearest, why = _nearest(group, fabrics)
            found.setdefault(((), nearest, why), []).extend(group.names)
    return tuple(
        UnassignedNodes(tuple(names), fits, nearest, why)
        for (fits, nearest, why), names in found.items()
    )


def is_meant(group: NodeGroup, fabrics: Fabrics) -> bool:
    """Return whether nodes may be meant for a fabric: they offer GPUs or RDMA, or fit a label."""
    offers = any(is_gpu(name, fabrics) or is_rdma(name, fabrics) for name in group.resources)
    return offers or any(
        _fits_label(group, key, fabric, fabrics)
        for fabric in fabrics.fabrics.values()
        for key in fabric.node_labels
    )


def _nearest(group: NodeGroup, fabrics: Fabrics) -> tuple[str, str]:
    """Return the fabric for which the least is missing, and what; "" if there are no fabrics."""
    lacking = {name: [*_lacks(group, fabric, fabrics)] for name, fabric in fabrics.fabrics.items()}
    if not lacking:
        return "", "there are no fabrics"
    nearest = min(lacking, key=lambda name: (len(lacking[name]), -_matched(group, name, fabrics)))
    return nearest, "; ".join(lacking[nearest])


def _lacks(group: NodeGroup, fabric: Fabric, fabrics: Fabrics) -> Iterator[str]:
    """Yield each condition of a fabric that nodes do not fulfil."""
    for key, globs in fabric.node_labels.items():
        wanted = " or ".join(globs)
        if key not in group.labels:
            yield f"label {key} is missing ({wanted})"
        elif not _fits_label(group, key, fabric, fabrics):
            yield f"label {key} is {group.labels[key]}, not {wanted}"
    resources = _sufficient(fabric, fabrics)
    if resources and not _offers(group, resources):
        yield f"{' or '.join(resources)} is not offered"


def _matched(group: NodeGroup, name: str, fabrics: Fabrics) -> int:
    """Count the conditions of a fabric that nodes fulfil."""
    fabric = fabrics.fabrics[name]
    labels = sum(_fits_label(group, key, fabric, fabrics) for key in fabric.node_labels)
    return labels + _offers(group, _sufficient(fabric, fabrics))


def _sufficient(fabric: Fabric, fabrics: Fabrics) -> list[str]:
    """Return the resources of which nodes must offer any one; none if labels are enough."""
    if fabric.node_labels and not fabric.gpu_resources:
        return []
    return [*sorted(fabric.gpu_resources), *sorted(fabrics.own_resources[fabric.name])]


def _offers(group: NodeGroup, names: Iterable[str]) -> bool:
    return any(name in group.resources for name in names)


def _fits_label(group: NodeGroup, key: str, fabric: Fabric, fabrics: Fabrics) -> bool:
    value = group.labels.get(key)
    return value is not None and fabrics.by_label[key][fabric.name].match(product_of(key, value))


def _common(group: NodeGroup, fits: tuple[str, ...], fabrics: Fabrics) -> str:
    """Say what fits all of several fabrics."""
    members = [fabrics.fabrics[name] for name in fits]
    gpus = frozenset(group.resources).intersection(*(one.gpu_resources for one in members))
    keys = frozenset(group.labels).intersection(*(one.node_labels for one in members))
    shared = [*sorted(gpus), *(f"label {key}={group.labels[key]}" for key in sorted(keys))]
    if shared:
        return f"{' and '.join(shared)} {'fits' if len(shared) == 1 else 'fit'} all of them"
    offered = [sorted(fabrics.own_resources[name] & group.resources.keys()) for name in fits]
    if all(offered):
        return f"a resource of each is offered: {', '.join(names[0] for names in offered)}"
    return "nothing in their match tells them apart"


# What is wrong with the nodes of a fabric, in sentences that name nodes, or only count them.

#: The most nodes that a sentence names.
SHOWN = 3


class NodeProblem(NamedTuple):
    """Something that is wrong with the nodes of a fabric."""

    code: str
    #: The nodes that it concerns; none if it concerns the fabric.
    nodes: tuple[str, ...]
    #: What is wrong; with nodes, what follows "node n7 has".
    what: str

    @property
    def text(self) -> str:
        """The sentence, with the names of some nodes."""
        if not self.nodes:
            return self.what
        if len(self.nodes) == 1:
            return f"node {self.nodes[0]} has {self.what}"
        return f"{len(self.nodes)} nodes ({some(self.nodes)}) have {self.what}"

    @property
    def anonymous(self) -> str:
        """The sentence without names, for those who may not know them."""
        if not self.nodes:
            return self.what
        many = len(self.nodes)
        return f"{'1 node has' if many == 1 else f'{many} nodes have'} {self.what}"


def some(nodes: Sequence[str]) -> str:
    """List the first nodes, and count the others."""
    more = len(nodes) - SHOWN
    if more <= 0:
        return ", ".join(nodes)
    return f"{', '.join(nodes[:SHOWN])} and {more} more"


def problems_of(
    fabric: Fabric, groups: Sequence[NodeGroup], fabrics: Fabrics
) -> Iterator[NodeProblem]:
    """Yield what is wrong with the nodes of a fabric, which are these groups."""
    if not groups:
        yield NodeProblem("FabricWithoutNodes", (), "no node belongs to the fabric")
        return
    for resource in fabric.resources:
        name = resource.name
        lacking = [group for group in groups if name not in group.resources]
        if len(lacking) == len(groups):
            yield NodeProblem("ResourceNotOffered", (), f"resource {name} is offered by no node")
            continue
        for group in lacking:
            gpus = sorted(one for one in group.resources if is_gpu(one, fabrics))
            what = f"the GPU {gpus[0]}, but not {name}" if gpus else f"no {name}"
            yield NodeProblem("NodeWithoutResource", tuple(group.names), what)


#: Node → resource → how many its pods have reserved.
Reserved = Mapping[str, Mapping[str, int]]


class FabricCapacity(NamedTuple):
    """What the nodes of one fabric offer together."""

    name: str
    #: Sorted as people count: node-2 before node-10.
    nodes: tuple[str, ...]
    #: GPU resource → how many are allocatable.
    gpus: Mapping[str, int]
    #: Each of the fabric's RDMA resources → how many are allocatable.
    resources: Mapping[str, int]
    #: GPUs and RDMA resources that no pod has reserved; None if the pods are not known.
    free: Mapping[str, int] | None
    problems: tuple[NodeProblem, ...]


class FabricInventory(NamedTuple):
    """All fabrics, in the order of their file, and the nodes that belong to none or to several."""

    fabrics: tuple[FabricCapacity, ...]
    unassigned_nodes: tuple[UnassignedNodes, ...]
    #: How many nodes there are, and how many of them no fabric can mean.
    nodes: int
    others: int

    @property
    def well(self) -> bool:
        """Whether nothing is wrong."""
        return not self.unassigned_nodes and not any(one.problems for one in self.fabrics)


def build_inventory(
    nodes: Mapping[str, Node], fabrics: Fabrics, reserved: Reserved | None = None
) -> FabricInventory:
    """Sort nodes into fabrics, and add up what they offer; `reserved`: None if it is not known."""
    groups = groups_of_nodes(
        {name: nodes[name] for name in sorted(nodes, key=natural_key)}, fabrics
    )
    return FabricInventory(
        fabrics=tuple(
            _of(fabric, [one for one in groups if fabric.name in one.homes], fabrics, reserved)
            for fabric in fabrics.fabrics.values()
        ),
        unassigned_nodes=unassigned_nodes(groups, fabrics),
        nodes=len(nodes),
        others=sum(
            len(one.names) for one in groups if not one.homes and not is_meant(one, fabrics)
        ),
    )


def _of(
    fabric: Fabric, groups: Sequence[NodeGroup], fabrics: Fabrics, reserved: Reserved | None
) -> FabricCapacity:
    gpus = sorted({name for one in groups for name in one.resources if is_gpu(name, fabrics)})
    resources = [one.name for one in fabric.resources]
    names = sorted((name for one in groups for name in one.names), key=natural_key)
    free = None
    if reserved is not None:
        free = {name: _free(groups, name, reserved) for name in (*gpus, *resources)}
    return FabricCapacity(
        name=fabric.name,
        nodes=tuple(names),
        gpus=_offered(groups, gpus),
        resources=_offered(groups, resources),
        free=free,
        problems=tuple(problems_of(fabric, groups, fabrics)),
    )


def _offered(groups: Iterable[NodeGroup], names: Iterable[str]) -> dict[str, int]:
    return {
        name: sum(len(one.names) * one.resources.get(name, 0) for one in groups) for name in names
    }


def _free(groups: Iterable[NodeGroup], name: str, reserved: Reserved) -> int:
    """Add up what is free on each node; a node may have less than its pods once got."""
    return sum(
        max(0, one.resources.get(name, 0) - reserved.get(node, {}).get(name, 0))
        for one in groups
        for node in one.names
    )


# What the pods on each node have reserved of extended resources, as the scheduler counts it.

#: A pod in one of these phases has given its resources back.
_FINISHED = ("Succeeded", "Failed")


class Reservation(NamedTuple):
    """What a pod has reserved on its node: extended resource → how many."""

    node: str
    amounts: Mapping[str, int]


def reservation_of(pod: object) -> Reservation | None:
    """Return what a pod has reserved; None if nothing. Raise ShapeError for what is not a pod."""
    node = at(pod, ("spec", "nodeName"))
    if not isinstance(pod, dict) or not isinstance(node, str):
        return None
    if at(pod, ("status", "phase")) in _FINISHED:
        return None
    amounts = scheduler_requests(Pod(pod))
    return Reservation(node, amounts) if amounts else None


def reserved_on_nodes(reservations: Iterable[Reservation]) -> dict[str, dict[str, int]]:
    """Return node → resource → how many."""
    found: dict[str, dict[str, int]] = {}
    for node, amounts in reservations:
        total = found.setdefault(node, {})
        for name, many in amounts.items():
            total[name] = total.get(name, 0) + many
    return found
