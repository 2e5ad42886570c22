"""Laws of belonging: which fabrics a node is put into, whatever the fabrics list."""

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
                RdmaResource(name=one)
                for one in draw(st.lists(st.sampled_from(_RDMA), unique=True, max_size=2))
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


def _homes(node: Node, members: list[Fabric]) -> frozenset[str]:
    (group,) = groups_of_nodes({"n": node}, fabrics(*members))
    return group.homes


def _without_resources(members: list[Fabric]) -> list[Fabric]:
    """Return the fabrics that can be told by GPUs and labels alone."""
    return [replace(one, resources=()) for one in members if one.gpu_resources or one.node_labels]


@given(_nodes(), _members())
def test_resources_bring_nodes_to_fabrics_and_take_none_from_them(
    node: Node, members: list[Fabric]
) -> None:
    """A node that GPUs and labels put into fabrics is in these and, of the others, in none."""
    loose = [one for one in members if not one.gpu_resources and not one.node_labels]
    matched = _homes(node, strict) if (strict := _without_resources(members)) else frozenset()
    if matched:
        everywhere = {one.name for one in loose if not _own(one, members)}
        assert _homes(node, members) == matched | everywhere


@given(_nodes(), _members())
def test_whoever_offers_a_fabrics_own_resource_belongs_somewhere(
    node: Node, members: list[Fabric]
) -> None:
    """To that fabric, or to one that it matches; only labels can keep it out."""
    owners = {
        one.name
        for one in members
        if _own(one, members) & node.resources.keys() and not one.node_labels
    }
    homes = _homes(node, members)
    assert homes or not owners
    assert homes & owners or not owners or _homes(node, _matching(members))


def _own(fabric: Fabric, members: list[Fabric]) -> set[str]:
    """Return the resources that only this fabric lists."""
    others = {one.name for other in members if other is not fabric for one in other.resources}
    return {one.name for one in fabric.resources} - others


def _matching(members: list[Fabric]) -> list[Fabric]:
    """Return the fabrics that take nodes by `match`, without resources to take them by."""
    taking = [
        one for one in members if one.gpu_resources or one.node_labels or not _own(one, members)
    ]
    return [replace(one, resources=()) for one in taking]
