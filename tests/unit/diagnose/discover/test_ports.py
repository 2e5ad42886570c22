"""Several tools together show a port, or contradict each other."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from tests.unit.diagnose.discover.seen import down, ethernet, port, seen
from webhook.diagnose.discover.ports import join_ports
from webhook.diagnose.discover.site import SitePort, SourcedObservation
from webhook.diagnose.tools.observations import CardObservation, Origin, PcieLink, PortObservation

IBDEV = Origin("ibdev2netdev", 4)
LSPCI = Origin("lspci", 9)
MST = Origin("mst status -v", 7)


def ports(*sighted: Any) -> tuple[SitePort, ...]:
    """Return the ports of a node on which all tools agree."""
    found, findings = join_ports("node1", seen(*sighted))
    assert findings == ()
    return found


def only(*sighted: Any) -> SitePort:
    """Return the only port."""
    (found,) = ports(*sighted)
    return found


def test_each_tool_adds_what_it_knows() -> None:
    """Ibstat knows the state, ibdev2netdev the interface, lspci the card's link."""
    found = only(
        port("mlx5_0", pci="0000:3b:00.0", firmware="20.31.1014"),
        PortObservation(IBDEV, device="mlx5_0", port=1, netdevs=("ib0",), netdev_up=False),
        CardObservation(LSPCI, "3b:00.0", vendor_id=0x15B3, device_id=0x101B, numa=1),
    )
    assert found.device == "mlx5_0"
    assert found.netdevs == ("ib0",)
    assert found.state == "Active"
    assert found.rate_gbps == 200
    assert found.pci == "0000:3b:00.0"
    assert found.model == "ConnectX-6"
    assert found.firmware == "20.31.1014"
    assert found.numa == 1
    assert found.sources == ("ibdev2netdev", "ibstat", "lspci")


def test_an_interface_that_is_up_is_no_port_that_is_active() -> None:
    """(Up) and (Down) of ibdev2netdev are the interface's: the port's state stays unknown."""
    found = only(PortObservation(IBDEV, device="mlx5_0", port=1, netdevs=("ib0",), netdev_up=True))
    assert found.state is None
    assert found.rate_gbps is None
    assert found.link_layer is None


def test_the_rate_of_a_port_that_is_down_is_not_used() -> None:
    """Ibstat prints 10, 40 or 200 there; none of it means anything."""
    assert only(down("mlx5_0", rate_gbps=200.0)).rate_gbps is None
    assert only(port("mlx5_0", state="Initializing")).rate_gbps is None
    assert only(port("mlx5_0", state=None)).rate_gbps == 200


def test_a_contradicted_state_leaves_no_rate() -> None:
    """Nobody knows whether the rate was shown while the port was Active."""
    sighted = seen(port("mlx5_0"), port("mlx5_0", origin=Origin("x", 2), state="Down"))
    (found,), _ = join_ports("node1", sighted)
    assert (found.state, found.rate_gbps) == (None, None)


def test_an_id_without_a_vendor_is_nvidias() -> None:
    """Ibstat shows MT4123 and no vendor."""
    found = only(port("mlx5_0", vendor_id=None))
    assert (found.vendor_id, found.model) == (0x15B3, "ConnectX-6")


def test_a_rate_seen_while_down_is_no_contradiction() -> None:
    """Only rates of sightings that may be Active are compared."""
    other = port("mlx5_0", origin=Origin("ibstatus", 2), state=None, rate_gbps=200.0)
    assert only(port("mlx5_0"), other).rate_gbps == 200


@pytest.mark.parametrize(
    ("field", "one", "two", "words"),
    [
        (
            "state",
            "Active",
            "Down",
            "the state: ibstat says Active (node.txt:1), x says Down",
        ),
        ("rate_gbps", 200.0, 100.0, "the rate in Gb/s: ibstat says 200.0"),
        ("link_layer", "InfiniBand", "Ethernet", "the link layer: ibstat says InfiniBand"),
        ("device_id", 0x101B, 0x1015, "the device id: ibstat says 0x101b"),
        ("firmware", "20.31.1014", "20.28.1002", "the firmware: ibstat says 20.31.1014"),
        ("numa", 0, 1, "the NUMA node: ibstat says 0"),
        ("board_id", "MT_0000000223", "MT_0000000224", "the PSID"),
        ("netdevs", ("ib0",), ("ib1",), "the network interface: ibstat says ib0"),
        ("pci", "0000:3b:00.0", "0000:5e:00.0", "the PCI address: ibstat says 0000:3b:00.0"),
        ("virtual", True, False, "whether it is a virtual function: ibstat says True"),
        ("vendor_id", 0x15B3, 0x14E4, "the vendor's id: ibstat says 0x15b3"),
        ("physical_state", "LinkUp", "Polling", "the physical state: ibstat says LinkUp"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.islower() else "",
)
def test_what_tools_say_differently_is_reported_and_not_used(
    field: str, one: Any, two: Any, words: str
) -> None:
    """Both values, both tools and both lines are named; the field is None."""
    other = port("mlx5_0", **{field: two})._replace(origin=Origin("x", 12))
    first = port("mlx5_0", **{field: one})
    (found,), (finding,) = join_ports("node1", seen(first, other))
    assert getattr(found, field) in (None, ())
    assert words in finding.message
    assert "(node.txt:12)" in finding.message
    assert finding.message.startswith("mlx5_0: tools differ on ")
    assert finding.nodes == ("node1",)
    assert finding.severity == "warning"


def test_a_bond_has_two_pci_functions() -> None:
    """Mst lists mlx5_bond_0 for both; the first that all tools know is the bond's."""
    found = only(
        PortObservation(MST, device="mlx5_bond_0", pci="99:00.0", netdevs=("eth4",)),
        PortObservation(MST, device="mlx5_bond_0", pci="99:00.1", netdevs=("eth5",)),
        ethernet("mlx5_bond_0", netdevs=("bond0",), pci="0000:99:00.1"),
    )
    assert found.pci == "0000:99:00.1"
    assert found.netdevs == ("bond0", "eth4", "eth5")


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


def test_devices_are_in_natural_order() -> None:
    """mlx5_2 stands before mlx5_10."""
    found = ports(port("mlx5_10"), port("mlx5_2"), port("mlx5_bond_0"), port("mlx5_0"))
    assert [one.device for one in found] == ["mlx5_0", "mlx5_2", "mlx5_10", "mlx5_bond_0"]


def test_a_numa_node_of_minus_one_says_nothing() -> None:
    """The kernel shows -1 where the machine has no NUMA nodes."""
    assert only(port("mlx5_0", numa=-1)).numa is None
    assert only(port("mlx5_0", numa=-1), port("mlx5_0", numa=0)).numa == 0


def test_the_oui_and_the_pci_id_are_one_vendor() -> None:
    """ibv_devinfo shows 0x02c9, lspci 0x15b3: both are NVIDIA."""
    found = only(port("mlx5_0", vendor_id=0x02C9), port("mlx5_0", vendor_id=0x15B3))
    assert found.vendor_id == 0x15B3
    assert found.model == "ConnectX-6"


def test_the_id_of_a_virtual_function_marks_it() -> None:
    """0x101c is a virtual function of a ConnectX-6."""
    assert only(port("mlx5_2", device_id=0x101C)).virtual is True
    assert only(port("mlx5_0")).virtual is None


def test_an_unknown_card_has_the_model_that_a_tool_shows() -> None:
    """What the table does not know stays as shown; the longest says most."""
    found = only(
        port("bnxt_re0", vendor_id=None, device_id=None, model="NA"),
        port("bnxt_re0", vendor_id=None, device_id=None, model="BCM9-Thor-9"),
    )
    assert found.model == "BCM9-Thor-9"


def test_a_card_without_an_rdma_device_is_shown() -> None:
    """Its driver is not loaded; other vendors' cards in lspci are not looked at."""
    found = ports(
        port("mlx5_0", pci="0000:3b:00.0"),
        CardObservation(LSPCI, "5e:00.0", 0x0207, 0x15B3, 0x101B),
        CardObservation(LSPCI, "01:00.0", 0x0200, 0x8086, 0x1521),
    )
    assert [one.device for one in found] == ["mlx5_0", None]
    assert found[1].pci == "5e:00.0"
    assert found[1].name == "the card at 5e:00.0"


def test_a_card_may_be_a_port_whose_address_is_unknown() -> None:
    """ibdev2netdev and lspci -n alone cannot be joined, so no card is counted twice."""
    found = ports(
        PortObservation(IBDEV, device="mlx5_0", port=1, netdevs=("ib0",)),
        CardObservation(LSPCI, "5e:00.0", 0x0207, 0x15B3, 0x101B, link=PcieLink(16, 16)),
    )
    assert [one.device for one in found] == ["mlx5_0"]


def test_the_order_of_sightings_has_no_influence() -> None:
    """All orders of the same sightings give the same ports and findings."""
    sighted = [
        *seen(port("mlx5_0", pci="0000:3b:00.0", firmware="20.31.1014"), file="a"),
        *seen(PortObservation(IBDEV, device="mlx5_0", port=1, netdevs=("ib0",)), file="b"),
        *seen(port("mlx5_0", origin=Origin("ibv_devinfo", 3), firmware="20.28.1"), file="c"),
        *seen(CardObservation(LSPCI, "3b:00.0", numa=1), file="d"),
    ]
    results = {_hashable(list(order)) for order in permutations(sighted)}
    assert len(results) == 1


def _hashable(sighted: list[SourcedObservation]) -> str:
    return repr(join_ports("node1", sighted))
