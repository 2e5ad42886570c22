"""Devices that only show_gids, topo -m or lspci list are evidence."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.discover.observed_nodes import discovered, near, observed, port
from webhook.diagnose.discover.discovery import Discovery
from webhook.diagnose.discover.inputs import NodeText, read_texts

GIDS = (
    "mlx5_0\t1\t0\tfe80:0000:0000:0000:a088:c2ff:fe12:3456\t\t\tv1\tens3f0\n"
    "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a00:0004\t10.0.0.4\tv2\tens3f0\n"
)
CARD = "3b:00.0 Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6]\n"
FUNCTION = (
    "3b:00.1 Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6 Virtual "
    "Function]\n"
)


def of(text: str) -> Discovery:
    """Return the discovery of one node's text."""
    return discovered(read_texts([NodeText("n1.txt", "n1", text)]).nodes)


def test_show_gids_shows_ports() -> None:
    """Device, port, interface and RoCE: enough for a fabric, though not for its rate."""
    discovery = of(GIDS)
    (merged,) = discovery.nodes[0].ports
    assert (merged.device, merged.port, merged.netdevs) == ("mlx5_0", 1, ("ens3f0",))
    assert (merged.link_layer, merged.sources) == ("Ethernet", ("show_gids",))
    (entry,) = discovery.entries
    assert (entry["linkLayer"], entry["hcas"]) == ("Ethernet", ["mlx5_0"])
    assert "NodeWithoutRdmaDevice" not in {finding.code for finding in discovery.findings}


@pytest.mark.parametrize("version", ["\t\t\tv1", ""])
def test_a_gid_without_an_interface_shows_no_ethernet(version: str) -> None:
    """On InfiniBand, show_gids writes v1 or nothing, and no interface: the link layer is open."""
    discovery = of(f"mlx5_0\t1\t0\tfe80:0000:0000:0000:a088:c203:0012:3456{version}\n")
    (merged,) = discovery.nodes[0].ports
    assert (merged.device, merged.link_layer, merged.netdevs) == ("mlx5_0", None, ())
    assert [finding.code for finding in discovery.findings] == ["LinkLayerUnknown"]


def test_a_topology_lists_devices_by_its_legend() -> None:
    """The name of a column alone, NIC0, is no device."""
    nodes = {"n1": observed(near("GPU0", "mlx5_3"), near("GPU0", "NIC1"))}
    discovery = discovered(nodes)
    assert [merged.device for merged in discovery.nodes[0].ports] == ["mlx5_3"]
    assert "LinkLayerUnknown" in {finding.code for finding in discovery.findings}


def test_what_tools_show_of_a_device_stays() -> None:
    """A list adds nothing to a device with an observation of its own."""
    nodes = {"n1": observed(port("mlx5_0"), near("GPU0", "mlx5_0"))}
    (merged,) = discovered(nodes).nodes[0].ports
    assert merged.sources == ("ibstat",)


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        (CARD, "1 card"),
        (f"{CARD}{FUNCTION}", "1 card and 1 virtual function"),
        (FUNCTION, "1 virtual function"),
    ],
)
def test_lspci_shows_cards(text: str, cards: str) -> None:
    """Plain lspci, which has no ids, names the vendor: the node has cards, but no RDMA device."""
    (finding,) = of(text).findings
    assert (finding.code, finding.level) == ("NodeWithoutRdmaDevice", "error")
    assert finding.text == f"no tool shows an RDMA device (lspci: {cards} of NVIDIA)"


def test_a_node_without_cards_has_none_to_name() -> None:
    """Other vendors also make cards without RDMA."""
    (finding,) = of(
        "98:00.0 Ethernet controller: Broadcom Inc. and subsidiaries BCM57508\n"
    ).findings
    assert finding.text == "no tool shows an RDMA device"


def test_a_port_may_have_several_interfaces() -> None:
    """A VLAN has a GID of its own on the same port, which is no contradiction."""
    vlan = GIDS.splitlines()[1].replace("\t3\t", "\t5\t").replace("ens3f0", "ens3f0.100")
    discovery = of(f"{vlan}\n{GIDS}")
    (merged,) = discovery.nodes[0].ports
    assert merged.netdevs == ("ens3f0", "ens3f0.100")
    assert discovery.nodes[0].findings == ()
