"""The numbers of nodes and HCAs that the administrator expects."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.discover.observed_nodes import discovered, down, gpus, observed, port
from tests.unit.diagnose.discover.test_discover_command import IBSTAT, Discover, discover
from webhook.diagnose.discover.discovery import Discovery

__all__ = ["discover"]


def differences(discovery: Discovery) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return the level, the text and the nodes of each finding about a number."""
    codes = ("NodeCountDiffers", "HcaCountDiffers")
    return [
        (finding.level, finding.text, finding.location.nodes)
        for finding in discovery.findings
        if finding.code in codes
    ]


@pytest.mark.parametrize(
    ("expected", "text"), [(1, "2 nodes, but 1 expected"), (3, "2 nodes, but 3 expected")]
)
def test_another_number_of_nodes_is_an_error(expected: int, text: str) -> None:
    """A node whose output was forgotten is in no list, so only its number shows that."""
    nodes = {name: observed(port("mlx5_0"), gpus()) for name in ("a", "b")}
    assert differences(discovered(nodes, expected_nodes=expected)) == [("error", text, ())]
    assert differences(discovered(nodes, expected_nodes=2)) == []
    assert differences(discovered(nodes)) == []


def test_only_usable_hcas_of_the_fabric_count() -> None:
    """A device counts once, if a port is Active or of unknown state; the bond is another card."""
    bond = port("mlx5_bond_0", device_id=0x1015, link_layer="Ethernet", rate_gbps=10.0)
    two_ports = [port("mlx5_0"), down("mlx5_0", port=2)]
    nodes = {
        "a": observed(two_ports, port("mlx5_1", state=None), bond),
        "b": observed(two_ports, down("mlx5_1"), bond),
        "c": observed(two_ports, port("mlx5_1"), port("mlx5_2")),
        "d": observed(two_ports, down("mlx5_1"), bond),
    }
    assert differences(discovered(nodes, expected_hcas=2)) == [
        ("error", "1 usable HCA, but 2 expected", ("b", "d")),
        ("error", "3 usable HCAs, but 2 expected", ("c",)),
    ]


def test_a_node_without_a_fabric_has_no_hca() -> None:
    """It has none that could be counted, so it is not overlooked."""
    nodes = {"a": observed(gpus()), "b": observed(port("mlx5_0"), gpus())}
    text = "0 usable HCAs, but 1 expected"
    assert differences(discovered(nodes, expected_hcas=1)) == [("error", text, ("a",))]


def test_the_options_decide_the_exit_code(discover: Discover) -> None:
    """The same output is fine, or one node and seven HCAs too few."""
    assert discover("-", "--expect-nodes", "1", "--expect-hcas", "1", stdin=IBSTAT).code == 0
    ran = discover("-", "--expect-nodes", "2", "--expect-hcas", "8", stdin=IBSTAT)
    assert ran.code == 1
    assert "1 node, but 2 expected" in ran.out
    assert "1 usable HCA, but 8 expected" in ran.out


@pytest.mark.parametrize("given", ["-1", "x", "0"])
@pytest.mark.parametrize("option", ["--expect-nodes", "--expect-hcas"])
def test_a_number_is_positive(discover: Discover, option: str, given: str) -> None:
    """Nobody expects no node, or no HCA."""
    with pytest.raises(SystemExit, match="2"):
        discover("-", f"{option}={given}", stdin=IBSTAT)
