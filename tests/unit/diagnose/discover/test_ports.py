"""Ports that several tools show, or on which they differ."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from tests.unit.diagnose.discover.observed_nodes import down, ethernet, observed, port
from webhook.diagnose.discover.ports import join_ports
from webhook.diagnose.discover.site import MergedPort, SourcedObservation
from webhook.diagnose.tools.observations import CardObservation, Origin, PcieLink, PortObservation
from webhook.model.finding import Location

IBDEV = Origin("ibdev2netdev", 4)
LSPCI = Origin("lspci", 9)
MST = Origin("mst status -v", 7)


def ports(*observations: Any) -> tuple[MergedPort, ...]:
    """Return the ports of a node on which all tools agree."""
    joined, findings = join_ports("node1", observed(*observations))
    assert findings == ()
    return joined


def only(*observations: Any) -> MergedPort:
    """Return the only port."""
    (merged_port,) = ports(*observations)
    return merged_port


def test_each_tool_adds_what_it_knows() -> None:
    """Ibstat shows the state, ibdev2netdev the interface, lspci the card's link."""
    joined = only(
        port("mlx5_0", pci="0000:3b:00.0", firmware="20.31.1014"),
        PortObservation(IBDEV, device="mlx5_0", port=1, netdevs=("ib0",), netdev_up=False),
        CardObservation(LSPCI, "3b:00.0", vendor_id=0x15B3, device_id=0x101B, numa=1),
    )
    assert joined.device == "mlx5_0"
    assert joined.netdevs == ("ib0",)
    assert joined.state == "Active"
    assert joined.rate_gbps == 200
    assert joined.pci == "0000:3b:00.0"
    assert joined.model == "ConnectX-6"
    assert joined.firmware == "20.31.1014"
    assert joined.numa == 1
    assert joined.sources == ("ibdev2netdev", "ibstat", "lspci")


def test_an_interface_that_is_up_is_no_port_that_is_active() -> None:
    """(Up) and (Down) of ibdev2netdev belong to the interface: the port's state stays unknown."""
    joined = only(PortObservation(IBDEV, device="mlx5_0", port=1, netdevs=("ib0",), netdev_up=True))
    assert joined.state is None
    assert joined.rate_gbps is None
    assert joined.link_layer is None


def test_the_rate_of_a_port_that_is_down_is_not_used() -> None:
    """Ibstat prints 10, 40 or 200 there, without any meaning."""
    assert only(down("mlx5_0", rate_gbps=200.0)).rate_gbps is None
    assert only(port("mlx5_0", state="Initializing")).rate_gbps is None
    assert only(port("mlx5_0", state=None)).rate_gbps == 200


def test_a_contradicted_state_leaves_no_rate() -> None:
    """The rate may have been shown while the port was not Active."""
    observations = observed(port("mlx5_0"), port("mlx5_0", origin=Origin("x", 2), state="Down"))
    (joined,), _ = join_ports("node1", observations)
    assert (joined.state, joined.rate_gbps) == (None, None)


def test_an_id_without_a_vendor_is_nvidias() -> None:
    """Ibstat shows MT4123 and no vendor."""
    joined = only(port("mlx5_0", vendor_id=None))
    assert (joined.vendor_id, joined.model) == (0x15B3, "ConnectX-6")


def test_a_rate_seen_while_down_is_no_contradiction() -> None:
    """Only rates of ports that may be Active are compared."""
    other = port("mlx5_0", origin=Origin("ibstatus", 2), state=None, rate_gbps=200.0)
    assert only(port("mlx5_0"), other).rate_gbps == 200


@pytest.mark.parametrize(
    ("field", "reported", "contradiction", "words"),
    [
        (
            "state",
            "Active",
            "Down",
            "the state of mlx5_0: ibstat shows Active (node.txt:1), x shows Down",
        ),
        ("rate_gbps", 200.0, 100.0, "the rate of mlx5_0 in Gb/s: ibstat shows 200.0"),
        (
            "link_layer",
            "InfiniBand",
            "Ethernet",
            "the link layer of mlx5_0: ibstat shows InfiniBand",
        ),
        ("device_id", 0x101B, 0x1015, "the device ID of mlx5_0: ibstat shows 0x101b"),
        ("firmware", "20.31.1014", "20.28.1002", "the firmware of mlx5_0: ibstat shows 20.31.1014"),
        ("numa", 0, 1, "the NUMA node of mlx5_0: ibstat shows 0"),
        ("board_id", "MT_0000000223", "MT_0000000224", "the PSID of mlx5_0"),
        ("netdevs", ("ib0",), ("ib1",), "the network interface of mlx5_0: ibstat shows ib0"),
        (
            "pci",
            "0000:3b:00.0",
            "0000:5e:00.0",
            "the PCI address of mlx5_0: ibstat shows 0000:3b:00.0",
        ),
        ("virtual", True, False, "the function type of mlx5_0: ibstat shows virtual"),
        ("vendor_id", 0x15B3, 0x14E4, "the vendor ID of mlx5_0: ibstat shows 0x15b3"),
        (
            "physical_state",
            "LinkUp",
            "Polling",
            "the physical state of mlx5_0: ibstat shows LinkUp",
        ),
    ],
    ids=lambda reported: reported if isinstance(reported, str) and reported.islower() else "",
)
def test_a_disagreement_of_tools_is_reported_and_not_used(
    field: str, reported: Any, contradiction: Any, words: str
) -> None:
    """The finding names both values, tools and lines; the field has no value."""
    other = port("mlx5_0", **{field: contradiction})._replace(origin=Origin("x", 12))
    first = port("mlx5_0", **{field: reported})
    (joined,), (finding,) = join_ports("node1", observed(first, other))
    assert getattr(joined, field) in (None, ())
    assert words in finding.text
    assert "(node.txt:12)" in finding.text
    assert finding.text.startswith("tools disagree on ")
    assert finding.location == Location(nodes=("node1",), device="mlx5_0")
    assert (finding.level, finding.code) == ("warning", "ToolsDisagree")


def test_a_bond_has_two_pci_functions() -> None:
    """Mst lists mlx5_bond_0 for both; the bond has the first that all tools show."""
    bond = only(
        PortObservation(MST, device="mlx5_bond_0", pci="99:00.0", netdevs=("eth4",)),
        PortObservation(MST, device="mlx5_bond_0", pci="99:00.1", netdevs=("eth5",)),
        ethernet("mlx5_bond_0", netdevs=("bond0",), pci="0000:99:00.1"),
    )
    assert bond.pci == "0000:99:00.1"
    assert bond.netdevs == ("bond0", "eth4", "eth5")


def test_addresses_of_other_domains_are_other_cards() -> None:
    """GB200 has 0000:03:00.0 and 0002:03:00.0; without a domain it is 0000."""
    first, second = ports(
        port("mlx5_0", pci="0000:03:00.0"),
        port("mlx5_1", pci="0002:03:00.0"),
        CardObservation(LSPCI, "03:00.0", numa=0),
        CardObservation(LSPCI, "0002:03:00.0", numa=1),
    )
    assert (first.numa, second.numa) == (0, 1)


def test_a_tool_without_devices_is_joined_over_the_interface() -> None:
    """Mst without a driver's name still shows net-ib1."""
    first, second = ports(
        port("mlx5_0", netdevs=("ib0",)),
        port("mlx5_1", netdevs=("ib1",)),
        PortObservation(MST, netdevs=("ib1",), pci="5e:00.0", numa=1),
    )
    assert first.pci is None
    assert (second.pci, second.numa) == ("5e:00.0", 1)


def test_an_interface_of_two_devices_joins_nothing() -> None:
    """On GB200, mlx5_3 and mlx5_7 both show bond0."""
    first, second = ports(
        ethernet("mlx5_3", netdevs=("bond0",)),
        ethernet("mlx5_7", netdevs=("bond0",)),
        PortObservation(MST, netdevs=("bond0",), numa=1),
    )
    assert (first.numa, second.numa) == (None, None)


def test_two_ports_of_a_device_share_what_is_the_cards() -> None:
    """A dual-port ConnectX-3 has one firmware, and a state for each port."""
    first, second = ports(
        port("mlx4_0", port=2, netdevs=("eth2",), link_layer="Ethernet", rate_gbps=40.0),
        port("mlx4_0", port=1, netdevs=("ib0",), rate_gbps=56.0),
        PortObservation(MST, device="mlx4_0", firmware="2.42.5000", netdevs=("ib0", "eth2")),
    )
    assert [first.port, second.port] == [1, 2]
    assert first.firmware == second.firmware == "2.42.5000"
    assert (first.netdevs, second.netdevs) == (("ib0",), ("eth2",))
    assert second.name == "mlx4_0 port 2"


@pytest.mark.parametrize(
    ("pci_class", "link_layer"),
    [(0x0207, "InfiniBand"), (0x0200, "Ethernet"), (0x0280, None), (None, None)],
)
def test_the_class_of_the_card_shows_the_link_layer(
    pci_class: int | None, link_layer: str | None
) -> None:
    """Unless another tool shows it: ibdev2netdev -v has only the address."""
    named = PortObservation(MST, "mlx5_0", 1, pci="3b:00.0")
    card = CardObservation(LSPCI, "0000:3b:00.0", pci_class, 0x15B3, 0x101B)
    (joined,) = ports(named, card)
    assert joined.link_layer == link_layer
    (by_ibstat,) = ports(named, card, port("mlx5_0", link_layer="Ethernet"))
    assert by_ibstat.link_layer == "Ethernet"


def test_two_link_layers_are_not_settled_by_the_class() -> None:
    """Tools that disagree leave the link layer open."""
    named = PortObservation(MST, "mlx5_0", 1, pci="3b:00.0")
    card = CardObservation(LSPCI, "0000:3b:00.0", 0x0207, 0x15B3, 0x101B)
    disagreeing = (port("mlx5_0"), port("mlx5_0", link_layer="Ethernet"))
    (joined,), findings = join_ports("node1", observed(named, card, *disagreeing))
    assert joined.link_layer is None
    assert [finding.code for finding in findings] == ["ToolsDisagree"]


@pytest.mark.parametrize("version", ["0.0.0.0", "0.0.0", "0", ""])
def test_zeros_are_no_version(version: str) -> None:
    """The drivers of EFA and of devices in software write them; another tool's version counts."""
    (alone,) = ports(port("rdmap0s0", firmware=version))
    (other,) = ports(
        port("mlx5_0", firmware=version), PortObservation(MST, "mlx5_0", firmware="2.0")
    )
    assert (alone.firmware, other.firmware) == (None, "2.0")


def test_devices_are_in_natural_order() -> None:
    """mlx5_2 comes before mlx5_10."""
    joined = ports(port("mlx5_10"), port("mlx5_2"), port("mlx5_bond_0"), port("mlx5_0"))
    assert [merged_port.device for merged_port in joined] == [
        "mlx5_0",
        "mlx5_2",
        "mlx5_10",
        "mlx5_bond_0",
    ]


def test_a_negative_numa_node_is_ignored() -> None:
    """The kernel shows -1 on a machine without NUMA nodes."""
    assert only(port("mlx5_0", numa=-1)).numa is None
    assert only(port("mlx5_0", numa=-1), port("mlx5_0", numa=0)).numa == 0


DEVINFO = Origin("ibv_devinfo", 3)


def test_the_id_of_ibv_devinfo_alone_has_no_vendor() -> None:
    """Without its vendor_id, 4098 of ibv_devinfo may be any vendor's card, so it has no model."""
    joined = only(port("roce0", vendor_id=None, device_id=0x1002, origin=DEVINFO))
    assert (joined.vendor_id, joined.device_id, joined.model) == (None, 0x1002, None)
    typed = PortObservation(IBDEV, "roce0", device_id=0x1002)
    assert only(port("roce0", vendor_id=None, device_id=0x1002, origin=DEVINFO), typed).vendor_id


@pytest.mark.parametrize(
    ("device", "vendor"),
    [
        ("mlx5_0", 0x15B3),
        ("mlx4_0", 0x15B3),
        ("bnxt_re0", 0x14E4),
        ("irdma1", 0x8086),
        ("hfi1_0", 0x8086),
        ("efa_0", 0x1D0F),
        ("ionic_3", 0x1DD8),
        ("mana_0", 0x1414),
        ("hns_0", 0x19E5),
        ("erdma_0", 0x1DED),
        ("rdmap85s0", None),
    ],
)
def test_the_name_that_a_driver_gives_shows_the_vendor(device: str, vendor: int | None) -> None:
    """Where no tool shows a vendor, the kernel's name does; udev's names are of any vendor."""
    joined = only(port(device, vendor_id=None, device_id=None))
    assert joined.vendor_id == vendor
    joined = only(port(device, vendor_id=0x1077, device_id=None))
    assert joined.vendor_id == 0x1077


def test_efa_has_no_link_layer() -> None:
    """Older versions of ibv_devinfo show InfiniBand for a link layer that is not specified."""
    assert only(port("rdmap85s0", vendor_id=0x1D0F, device_id=0xEFA2)).link_layer is None


def test_the_id_of_a_virtual_function_marks_it() -> None:
    """0x101c is a virtual function of a ConnectX-6."""
    assert only(port("mlx5_2", device_id=0x101C)).virtual is True
    assert only(port("mlx5_0")).virtual is None


def test_an_unknown_card_has_the_model_that_a_tool_shows() -> None:
    """A model outside the table stays as shown; the longest has most detail."""
    joined = only(
        port("bnxt_re0", vendor_id=None, device_id=None, model="NA"),
        port("bnxt_re0", vendor_id=None, device_id=None, model="BCM9-Thor-9"),
    )
    assert joined.model == "BCM9-Thor-9"


def test_a_card_without_an_rdma_device_is_shown() -> None:
    """Its driver is not loaded; other vendors' cards in lspci are ignored."""
    joined = ports(
        port("mlx5_0", pci="0000:3b:00.0"),
        CardObservation(LSPCI, "5e:00.0", 0x0207, 0x15B3, 0x101B),
        CardObservation(LSPCI, "01:00.0", 0x0200, 0x8086, 0x1521),
    )
    assert [merged_port.device for merged_port in joined] == ["mlx5_0", None]
    assert joined[1].pci == "5e:00.0"
    assert joined[1].name == "the card at 5e:00.0"


def test_a_card_may_be_a_port_whose_address_is_unknown() -> None:
    """ibdev2netdev and lspci -n alone cannot be joined, so no card is counted twice."""
    joined = ports(
        PortObservation(IBDEV, device="mlx5_0", port=1, netdevs=("ib0",)),
        CardObservation(LSPCI, "5e:00.0", 0x0207, 0x15B3, 0x101B, link=PcieLink(16, 16)),
    )
    assert [merged_port.device for merged_port in joined] == ["mlx5_0"]


def test_the_order_of_observations_has_no_influence() -> None:
    """All orders of the same observations give the same ports and findings."""
    observations = [
        *observed(port("mlx5_0", pci="0000:3b:00.0", firmware="20.31.1014"), file="a"),
        *observed(PortObservation(IBDEV, device="mlx5_0", port=1, netdevs=("ib0",)), file="b"),
        *observed(port("mlx5_0", origin=Origin("ibv_devinfo", 3), firmware="20.28.1"), file="c"),
        *observed(CardObservation(LSPCI, "3b:00.0", numa=1), file="d"),
    ]
    results = {_hashable(list(order)) for order in permutations(observations)}
    assert len(results) == 1


def _hashable(observations: list[SourcedObservation]) -> str:
    return repr(join_ports("node1", observations))
