from __future__ import annotations

from typing import Any

from tests.builders import H100, V100, fabrics
from webhook.decision.nodes import NodeGroup, groups_of_nodes, node_of

PRODUCT = "nvidia.com/gpu.product"


def node(labels: dict[str, str], **offered: Any) -> Any:
    """Make the facts of a node."""
    amounts = {f"nvidia.com/{name}": many for name, many in offered.items()}
    return node_of({"metadata": {"labels": labels}, "status": {"allocatable": amounts}})


def test_nodes_that_are_the_same_to_the_fabrics_are_a_group() -> None:
    """Labels that no fabric lists do not tell them apart; amounts do."""
    volta = {PRODUCT: "Tesla-V100-SXM2"}
    nodes = {
        "a": node({**volta, "rack": "1"}, v100=8),
        "b": node({**volta, "rack": "2"}, v100=8),
        "c": node(volta, v100=7),
        "d": node({"rack": "1"}),
    }
    home = frozenset({"v100-ib"})
    assert groups_of_nodes(nodes, fabrics(V100, H100)) == [
        NodeGroup(["a", "b"], volta, {"nvidia.com/v100": 8}, home),
        NodeGroup(["c"], volta, {"nvidia.com/v100": 7}, home),
        NodeGroup(["d"], {}, {}, frozenset()),
    ]
