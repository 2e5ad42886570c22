"""Laws of the assignment of nodes to fabrics, whatever the fabrics list."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import fabrics
from webhook.model.fabric import Fabric, RdmaResource
from webhook.model.nodes import Node, groups_of_nodes

_GPUS = ("nvidia.com/gpu", "nvidia.com/v100")
_RDMA = ("rdma/a", "rdma/b", "rdma/c")
_RACKS = ("1", "2")


@st.composite
def _members(draw: st.DrawFn) -> list[Fabric]:
    """Draw up to three fabrics, which may share GPUs, resources and labels."""
    names = draw(st.sampled_from([("x",), ("x", "y"), ("x", "y", "z")]))
    return [
        Fabric(
            name=name,
            gpu_resources=draw(st.frozensets(st.sampled_from(_GPUS))),
            node_labels=draw(st.sampled_from([{}, {"rack": ("1",)}, {"rack": ("*",)}])),
            resources=tuple(
                RdmaResource(name=resource)
                for resource in draw(st.lists(st.sampled_from(_RDMA), unique=True, max_size=2))
            ),
        )
        for name in names
    ]


@st.composite
def _nodes(draw: st.DrawFn) -> Node:
    """Draw a node with any of the GPUs, resources and labels of fabrics."""
    offered = draw(st.sets(st.sampled_from((*_GPUS, *_RDMA))))
    labels = draw(st.sampled_from([{}, *({"rack": rack} for rack in _RACKS)]))
    return Node(labels=labels, resources=dict.fromkeys(sorted(offered), 1))


def _fabric_names(node: Node, members: list[Fabric]) -> frozenset[str]:
    (group,) = groups_of_nodes({"n": node}, fabrics(*members))
    return group.fabric_names


def _without_resources(members: list[Fabric]) -> list[Fabric]:
    """Return the fabrics that GPUs and labels alone identify, without their resources."""
    return [
        replace(fabric, resources=())
        for fabric in members
        if fabric.gpu_resources or fabric.node_labels
    ]


@given(_nodes(), _members())
def test_resources_bring_nodes_to_fabrics_and_take_none_from_them(
    node: Node, members: list[Fabric]
) -> None:
    """A node that GPUs and labels put into fabrics is in no others."""
    loose = [fabric for fabric in members if not fabric.gpu_resources and not fabric.node_labels]
    matched = (
        _fabric_names(node, strict) if (strict := _without_resources(members)) else frozenset()
    )
    if matched:
        everywhere = {fabric.name for fabric in loose if not _exclusive_resources(fabric, members)}
        assert _fabric_names(node, members) == matched | everywhere


@given(_nodes(), _members())
def test_a_node_with_a_fabrics_own_resource_has_a_fabric(node: Node, members: list[Fabric]) -> None:
    """The node is in that fabric, or in another that it matches; only labels can exclude it."""
    owners = {
        fabric.name
        for fabric in members
        if _exclusive_resources(fabric, members) & node.resources.keys() and not fabric.node_labels
    }
    fabric_names = _fabric_names(node, members)
    assert fabric_names or not owners
    assert fabric_names & owners or not owners or _fabric_names(node, _matching(members))


def _exclusive_resources(fabric: Fabric, members: list[Fabric]) -> set[str]:
    """Return the resources that only this fabric lists."""
    shared = {
        resource.name for other in members if other is not fabric for resource in other.resources
    }
    return {resource.name for resource in fabric.resources} - shared


def _matching(members: list[Fabric]) -> list[Fabric]:
    """Return the fabrics that select nodes by `match`, without their resources."""
    taking = [
        fabric
        for fabric in members
        if fabric.gpu_resources or fabric.node_labels or not _exclusive_resources(fabric, members)
    ]
    return [replace(fabric, resources=()) for fabric in taking]
