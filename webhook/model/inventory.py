"""The inventory: fabrics, their nodes, GPUs and RDMA resources, and what is wrong.

It is computed group by group, where a group is the nodes that are the same to the fabrics, so that
thousands of nodes take some milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from webhook.model.counted_names import as_counted
from webhook.model.fabric import Fabric, Fabrics
from webhook.model.misfits import Misfits, is_meant, misfits
from webhook.model.node_problems import NodeProblem, problems_of
from webhook.model.nodes import Node, NodeGroup, groups_of_nodes
from webhook.model.resources import is_gpu

#: Node → resource → how many its pods have reserved.
Reserved = Mapping[str, Mapping[str, int]]


class FabricHoldings(NamedTuple):
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

    fabrics: tuple[FabricHoldings, ...]
    misfits: tuple[Misfits, ...]
    #: How many nodes there are, and how many of them no fabric can mean.
    nodes: int
    others: int

    @property
    def well(self) -> bool:
        """Whether nothing is wrong."""
        return not self.misfits and not any(one.problems for one in self.fabrics)


def take_inventory(
    nodes: Mapping[str, Node], fabrics: Fabrics, reserved: Reserved | None = None
) -> FabricInventory:
    """Sort nodes into fabrics, and add up what they offer; `reserved`: None if it is not known."""
    groups = groups_of_nodes({name: nodes[name] for name in sorted(nodes, key=as_counted)}, fabrics)
    return FabricInventory(
        fabrics=tuple(
            _of(fabric, [one for one in groups if fabric.name in one.homes], fabrics, reserved)
            for fabric in fabrics.fabrics.values()
        ),
        misfits=misfits(groups, fabrics),
        nodes=len(nodes),
        others=sum(
            len(one.names) for one in groups if not one.homes and not is_meant(one, fabrics)
        ),
    )


def _of(
    fabric: Fabric, groups: Sequence[NodeGroup], fabrics: Fabrics, reserved: Reserved | None
) -> FabricHoldings:
    gpus = sorted({name for one in groups for name in one.resources if is_gpu(name, fabrics)})
    resources = [one.name for one in fabric.resources]
    names = sorted((name for one in groups for name in one.names), key=as_counted)
    free = None
    if reserved is not None:
        free = {name: _free(groups, name, reserved) for name in (*gpus, *resources)}
    return FabricHoldings(
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
