"""The nodes that can measure a fabric."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.diagnose.verify.runs.plans import FABRIC
from webhook.diagnose.verify.runs.plan import FabricNodes, fabric_nodes
from webhook.model.fabric import RdmaResource, build_configuration

CONFIGURATION = build_configuration((FABRIC,))
OFFERS = {"nvidia.com/v100": "8", "rdma/rdma_v100": "63"}


def node(name: str, *, ready: str = "True", **changes: Any) -> dict[str, Any]:
    """Return a node as the API server lists it."""
    return {
        "metadata": {"name": name},
        "spec": {"unschedulable": True} if changes.get("cordoned") else {},
        "status": {
            "allocatable": changes.get("offers", OFFERS),
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def test_who_can_and_who_cannot() -> None:
    """Fit nodes are ready, accept pods and offer the resource; others have a reason."""
    nodes = fabric_nodes(
        [
            node("gpu-10"),
            node("gpu-2"),
            node("gpu-3", ready="Unknown"),
            node("gpu-4", cordoned=True),
            node("gpu-5", offers={"nvidia.com/v100": "8", "rdma/rdma_v100": "0"}),
            node("cpu-1", offers={}),
        ],
        CONFIGURATION,
        FABRIC,
    )
    assert nodes.usable == ("gpu-2", "gpu-10")
    assert nodes.obstacles == {
        "gpu-3": "is not ready",
        "gpu-4": "is cordoned",
        "gpu-5": "offers no rdma/rdma_v100",
    }
    assert nodes.all_names == {"gpu-2", "gpu-3", "gpu-4", "gpu-5", "gpu-10", "cpu-1"}


def test_a_node_that_offers_a_part_of_the_resources() -> None:
    """A pod of the fabric requests all resources, so it would stay pending there."""
    rails = tuple(RdmaResource(name=f"rdma/rail{number}") for number in range(3))
    fabric = replace(FABRIC, resources=rails)
    offers = {"nvidia.com/v100": "8", **{rail.name: "63" for rail in rails}}
    nodes = fabric_nodes(
        [node("whole", offers=offers), node("part", offers={**offers, "rdma/rail1": "0"})],
        build_configuration((fabric,)),
        fabric,
    )
    unfit = {"part": "offers no rdma/rail1"}
    assert nodes == FabricNodes(("whole",), unfit, frozenset({"whole", "part"}))


def test_a_node_without_a_status() -> None:
    """A new node without a status cannot measure."""
    assert fabric_nodes([{"metadata": {"name": "new"}}], CONFIGURATION, FABRIC).usable == ()
