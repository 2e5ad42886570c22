from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import H100, READY, V100, fabric, fabrics
from webhook.model.equivalent_nodes import NO_CLASSES
from webhook.model.fabric import Fabric, RdmaResource
from webhook.model.nodes import Node, NodeGroup, build_fabric_index, groups_of_nodes, node_of
from webhook.model.pod.node_selection import HOSTNAME

PRODUCT = "nvidia.com/gpu.product"


def node(labels: dict[str, str], **offered: Any) -> Any:
    """Make the facts of a node."""
    amounts = {f"nvidia.com/{name}": count for name, count in offered.items()}
    status = {"allocatable": amounts, "conditions": READY}
    return node_of({"metadata": {"labels": labels}, "status": status})


def test_nodes_that_are_the_same_to_the_fabrics_are_a_group() -> None:
    """Labels that no fabric lists do not distinguish them; amounts do."""
    volta = {PRODUCT: "Tesla-V100-SXM2"}
    nodes = {
        "a": node({**volta, "rack": "1"}, v100=8),
        "b": node({**volta, "rack": "2"}, v100=8),
        "c": node(volta, v100=7),
        "d": node({"rack": "1"}),
    }
    fabric_names = frozenset({"v100-ib"})
    assert groups_of_nodes(nodes, fabrics(V100, H100)) == [
        NodeGroup(["a", "b"], volta, {"nvidia.com/v100": 8}, fabric_names),
        NodeGroup(["c"], volta, {"nvidia.com/v100": 7}, fabric_names),
        NodeGroup(["d"], {}, {}, frozenset()),
    ]


def test_nodes_that_take_no_pods_are_evidence() -> None:
    """A cordon makes a group of its own, but changes nothing about fabrics."""
    volta = {"metadata": {"labels": {PRODUCT: "Tesla-V100-SXM2"}}}
    status = {"allocatable": {"nvidia.com/v100": "8", "rdma/v100": "1"}, "conditions": READY}
    free = node_of({**volta, "status": status})
    cordoned = node_of({**volta, "spec": {"unschedulable": True}, "status": status})
    groups = groups_of_nodes({"a": free, "b": cordoned}, fabrics(V100))
    assert [(group.names, group.takes_pods) for group in groups] == [(["a"], True), (["b"], False)]
    indexes = [
        build_fabric_index({"a": first, "b": free}, fabrics(V100)) for first in (free, cordoned)
    ]
    assert replace(indexes[0], node_classes=NO_CLASSES) == replace(
        indexes[1], node_classes=NO_CLASSES
    )
    assert indexes[0].by_node["a"] == {"v100-ib"}


def test_a_name_counts_more_than_the_hostname_of_another_node() -> None:
    """A kubelet sets its own hostname, and pods that name another node must not suffer."""
    volta = node({PRODUCT: "Tesla-V100-SXM2", HOSTNAME: "a"}, v100=8)
    hopper = node({PRODUCT: "NVIDIA-H100-SXM5", HOSTNAME: "a"}, h100=8)
    for nodes in ({"a": volta, "b": hopper}, {"b": hopper, "a": volta}):
        assert build_fabric_index(nodes, fabrics(V100, H100)).by_node["a"] == {"v100-ib"}


def listing(name: str, *resources: str, **match: Any) -> Fabric:
    """Make a fabric with these resources."""
    return fabric(
        name, resources=tuple(RdmaResource(name=resource) for resource in resources), **match
    )


GPU = {"gpu_resources": frozenset({"nvidia.com/gpu"})}
RACK = {"node_labels": {"rack": ("1",)}}
A, B = listing("a", "rdma/a"), listing("b", "rdma/b")
GPU_A, GPU_B = listing("a", "rdma/a", **GPU), listing("b", "rdma/b", **GPU)
RACK_A = listing("a", "rdma/a", **RACK)
SHARED_A, SHARED_B = listing("a", "rdma/x", **GPU), listing("b", "rdma/x", **GPU)


@pytest.mark.parametrize(
    ("offered", "labels", "members", "expected"),
    [
        pytest.param(["rdma/a"], {}, [GPU_A], {"a"}, id="the resource replaces the GPU"),
        pytest.param(["rdma/a", "x/gpu"], {}, [GPU_A], {"a"}, id="beside a GPU of no fabric"),
        pytest.param(["rdma/b"], {}, [listing("a", "rdma/a", "rdma/b", **GPU)], {"a"}, id="any"),
        pytest.param(["rdma/a"], {}, [RACK_A], set(), id="no label"),
        pytest.param(["rdma/a"], {"rack": "2"}, [RACK_A], set(), id="another label"),
        pytest.param(
            ["rdma/a"],
            {"rack": "1"},
            [listing("a", "rdma/a", **RACK, **GPU)],
            {"a"},
            id="its label",
        ),
        pytest.param(["rdma/x"], {}, [SHARED_A, SHARED_B], set(), id="a shared resource"),
        pytest.param(
            ["rdma/x"], {}, [SHARED_A, listing("b", "rdma/x", **RACK)], set(), id="shared by label"
        ),
        pytest.param(["rdma/b", "nvidia.com/gpu"], {}, [GPU_A, B], {"a"}, id="GPUs come first"),
        pytest.param(["rdma/b"], {"rack": "1"}, [RACK_A, GPU_B], {"a"}, id="labels come first"),
        pytest.param(["rdma/b"], {}, [listing("a"), GPU_B], {"a"}, id="no match comes first"),
        pytest.param(["rdma/a", "rdma/b"], {}, [A, GPU_B], {"a", "b"}, id="resources of two"),
        pytest.param([], {}, [A], set(), id="no match, no resource offered"),
        pytest.param([], {}, [listing("a")], {"a"}, id="no match, no resource listed"),
        pytest.param(
            [],
            {},
            [listing("a", "rdma/x"), listing("b", "rdma/x")],
            {"a", "b"},
            id="no match, a shared resource",
        ),
        pytest.param([], {"rack": "1"}, [RACK_A], {"a"}, id="a label without the resource"),
    ],
)
def test_a_node_belongs_to_the_fabric_that_it_matches_or_whose_own_resource_it_offers(
    offered: list[str], labels: dict[str, str], members: list[Fabric], expected: set[str]
) -> None:
    """By `match`; else by a resource that no other fabric has, where the labels fit."""
    item = {"metadata": {"labels": labels}, "status": {"allocatable": dict.fromkeys(offered, "1")}}
    (group,) = groups_of_nodes({"n": node_of(item)}, fabrics(*members))
    assert group.fabric_names == expected


def test_nodes_without_gpus_are_no_evidence_for_a_gpu() -> None:
    """They make their fabric inhabited, but its nodes with GPUs may be scaled to zero."""
    racks = [
        listing(name, f"rdma/{name}", node_labels={"rack": (name,)}, **GPU) for name in ("a", "b")
    ]
    nodes = {
        "g": Node(labels={"rack": "a"}, resources={"nvidia.com/gpu": 8, "rdma/a": 1}),
        "c": Node(labels={"rack": "b"}, resources={"rdma/b": 1}),
    }
    fabric_index = build_fabric_index(nodes, fabrics(*racks))
    assert fabric_index.by_node == {"g": {"a"}, "c": {"b"}}
    assert fabric_index.inhabited_fabrics == {"a", "b"}
    assert fabric_index.fabrics_with_gpus == {"a"}
    assert fabric_index.offering["rdma/b"] == {"b": 1}
