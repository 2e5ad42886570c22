"""The capacity of a port and its PCI Express link."""

from __future__ import annotations

import pytest

from webhook.diagnose.tools.hardware import (
    INFINIBAND_SPEEDS,
    LinkCapacity,
    data_rate,
    link_capacity,
    payload_share,
    pcie_rate,
    roce_mtu,
)
from webhook.diagnose.tools.observations import LinkLayer, PcieLink


@pytest.mark.parametrize(
    ("signal_rate", "carried"),
    [(10, 8), (20, 16), (40, 32), (56, 54.5), (100, 100), (200, 200), (400, 400), (800, 800)],
)
def test_infiniband_up_to_qdr_carries_eight_of_ten_bits(signal_rate: float, carried: float) -> None:
    """A QDR port of 40 Gb/s carries 32; from EDR on, the rate shown is the data rate."""
    assert data_rate(signal_rate, "InfiniBand") == carried


@pytest.mark.parametrize("speed", INFINIBAND_SPEEDS, ids=lambda speed: str(speed.name))
def test_the_table_agrees(speed: tuple[str, float, float]) -> None:
    """A port has the data rate of its generation; FDR10 looks like QDR, and counts as QDR."""
    name, signal_rate, carried = speed
    assert data_rate(signal_rate, "InfiniBand") == (32 if name == "FDR10" else carried)


@pytest.mark.parametrize(
    ("signal_rate", "carried"), [(2.5, 2), (5, 4), (14, 13.625), (80, 64), (112, 109), (25, 25)]
)
def test_other_widths_carry_in_proportion(signal_rate: float, carried: float) -> None:
    """One lane, two or twelve have the encoding of four."""
    assert data_rate(signal_rate, "InfiniBand") == carried


@pytest.mark.parametrize("rate", [10, 25, 40, 100, 400])
def test_ethernet_carries_what_is_shown(rate: float) -> None:
    """40 Gb/s Ethernet is 40 Gb/s of data."""
    assert data_rate(rate, "Ethernet") == rate


def test_an_unknown_link_layer_is_not_reduced() -> None:
    """If 40 Gb/s may be InfiniBand or Ethernet, the higher expectation applies."""
    assert data_rate(40, None) == 40
    assert data_rate(56, None) == 54.5


@pytest.mark.parametrize(
    ("mtu", "link_layer", "share"),
    [(1024, "Ethernet", 0.926), (4096, "Ethernet", 0.980), (4096, "InfiniBand", 0.994)],
)
def test_headers_take_their_share(mtu: int, link_layer: LinkLayer, share: float) -> None:
    """RoCE with an MTU of 1024 reaches 0.926 of the link."""
    assert round(payload_share(mtu, link_layer), 3) == share


@pytest.mark.parametrize(
    ("link", "gbps"),
    [
        (PcieLink(2.5, 4), 7.3),
        (PcieLink(5, 8), 29.3),
        (PcieLink(8, 8), 57.6),
        (PcieLink(8, 16), 115.2),
        (PcieLink(16, 16), 230.5),
        (PcieLink(32, 16), 460.9),
        (PcieLink(64, 16), 863.1),
    ],
    ids=str,
)
def test_pcie_links_carry_less_than_they_transfer(link: PcieLink, gbps: float) -> None:
    """Encoding and packet headers are taken off: 8 GT/s on 16 lanes carry 115 of 128 Gb/s."""
    assert round(pcie_rate(link) or 0, 1) == gbps


def test_an_unknown_speed_is_unknown() -> None:
    """A speed that PCI Express lacks is ignored."""
    assert pcie_rate(PcieLink(7, 16)) is None
    assert link_capacity(100, "InfiniBand", PcieLink(7, 16)) == LinkCapacity(100, "port")


def test_the_narrower_of_the_two_decides() -> None:
    """HDR on eight lanes of PCIe 4.0 cannot carry 200 Gb/s, and EDR can carry its 100."""
    narrow = link_capacity(200, "InfiniBand", PcieLink(16, 8))
    assert (round(narrow.gbps, 1), narrow.limit) == (115.2, "PCIe")
    assert link_capacity(100, "InfiniBand", PcieLink(16, 8)) == LinkCapacity(100, "port")
    assert link_capacity(40, "InfiniBand", None) == LinkCapacity(32, "port")


@pytest.mark.parametrize(
    ("interface_mtu", "mtu"),
    [(0, 0), (351, 0), (352, 256), (1500, 1024), (2143, 1024), (2144, 2048), (4191, 2048),
     (4192, 4096), (9000, 4096), (65536, 4096)],
)  # fmt: skip
def test_the_mtu_of_roce(interface_mtu: int, mtu: int) -> None:
    """The kernel leaves 96 bytes for headers, and takes the next smaller MTU of RDMA."""
    assert roce_mtu(interface_mtu) == mtu
