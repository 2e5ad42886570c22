"""Devices in the lists of show_gids, topo -m and lspci are evidence."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.discover.observed_nodes import discovered, near, observed, port
from webhook.diagnose.discover.discovery import Discovery
from webhook.diagnose.discover.inputs import NodeText, read_texts
from webhook.diagnose.tools.observations import GidObservation, Origin

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


@pytest.mark.parametrize(
    "line",
    [
        "mlx5_0 port 1 ==> ens3f0 (Up)",
        "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens3f0",
        "device                 node GUID\n    mlx5_0              a088c20300123456",
    ],
)
def test_gids_show_the_link_layer_of_a_device_that_other_tools_name(line: str) -> None:
    """ibdev2netdev and rdma link show no link layer, ibv_devices no interface, but GIDs do."""
    discovery = of(f"{line}\n{GIDS}")
    (merged,) = discovery.nodes[0].ports
    assert (merged.link_layer, merged.netdevs) == ("Ethernet", ("ens3f0",))
    assert "show_gids" in merged.sources
    assert [entry["hcas"] for entry in discovery.entries] == [["mlx5_0"]]


@pytest.mark.parametrize("number", [1, None])
def test_gids_add_no_interface_to_those_of_other_tools(number: int | None) -> None:
    """A GID may be of a VLAN or of a pod's interface, which is no contradiction."""
    nodes = {
        "n1": observed(
            port("mlx5_0", link_layer="Ethernet", port=number, netdevs=("ens3f1",)),
            port("mlx5_0", link_layer="Ethernet", netdevs=None),
            GidObservation(Origin("show_gids", 1), "mlx5_0", 1, 0, "fe80::1", "v2", "ens3f1.100"),
        )
    }
    (node,) = discovered(nodes).nodes
    assert [merged.netdevs for merged in node.ports] == [("ens3f1",)]
    assert node.findings == ()


def test_gids_fill_the_interface_of_the_second_port() -> None:
    """The interface of one port is not that of the other."""
    gid = GidObservation(Origin("show_gids", 1), "mlx5_0", 2, 0, "fe80::1", "v2", "ens3f1")
    nodes = {
        "n1": observed(
            port("mlx5_0", link_layer="Ethernet", netdevs=("ens3f0",)),
            port("mlx5_0", link_layer="Ethernet", port=2),
            gid,
        )
    }
    (node,) = discovered(nodes).nodes
    assert [merged.netdevs for merged in node.ports] == [("ens3f0",), ("ens3f1",)]


def test_gids_and_ibstat_may_contradict_each_other() -> None:
    """InfiniBand has no RoCE v2: one of the outputs is of another node, and neither counts."""
    gid = GidObservation(Origin("show_gids", 1), "mlx5_0", 1, 0, "fe80::1", "v2", "ens3f0")
    (node,) = discovered({"n1": observed(port("mlx5_0"), gid)}).nodes
    assert [merged.link_layer for merged in node.ports] == [None]
    assert [finding.code for finding in node.findings] == ["ToolsDisagree"]


@pytest.mark.parametrize("version", ["v1", None])
def test_gids_of_infiniband_add_nothing(version: str | None) -> None:
    """Without an interface, v1 shows no RoCE: the port stays as ibstat shows it."""
    gid = GidObservation(Origin("show_gids", 1), "mlx5_0", 1, 0, "fe80::1", version)
    (node,) = discovered({"n1": observed(port("mlx5_0"), gid)}).nodes
    assert [(merged.link_layer, merged.sources) for merged in node.ports] == [
        ("InfiniBand", ("ibstat",))
    ]


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
