"""What a link can carry: InfiniBand and Ethernet ports, and the PCI Express link behind them.

A tool shows the rate at which a port signals. Up to QDR, two of ten bits are not data, so a port of
40 Gb/s carries 32; FDR's 56 carry 54.5; from EDR on, and on Ethernet, the rate shown is that of the
data (InfiniBand Architecture Specification, volume 2; Linux, drivers/infiniband/core/sysfs.c,
rate_show). A test cannot be faster than the slower of the port and its PCI Express link.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from webhook.diagnose.tools.observations import LinkLayer, PcieLink


class InfiniBandSpeed(NamedTuple):
    """A generation of InfiniBand."""

    name: str
    #: What tools show for four lanes, in Gb/s.
    shown: float
    #: What four lanes carry, in Gb/s.
    data: float


#: Slowest first.
INFINIBAND_SPEEDS = (
    InfiniBandSpeed("SDR", 10, 8),
    InfiniBandSpeed("DDR", 20, 16),
    InfiniBandSpeed("QDR", 40, 32),
    InfiniBandSpeed("FDR10", 40, 40),
    InfiniBandSpeed("FDR", 56, 54.5),
    InfiniBandSpeed("EDR", 100, 100),
    InfiniBandSpeed("HDR", 200, 200),
    InfiniBandSpeed("NDR", 400, 400),
    InfiniBandSpeed("XDR", 800, 800),
)
#: What tools show for any number of lanes of SDR, DDR and QDR, and of FDR. 40 is also FDR10; then
#: 32 is too low, and nothing good is called bad.
_EIGHT_OF_TEN = frozenset({2.5, 5, 10, 20, 30, 40, 60, 80, 120})
_FDR = frozenset({14, 28, 56, 112, 168})

#: Transfers of a lane in GT/s, and the share of them that is data: 8b/10b, 128b/130b, and the 236
#: of the 256 bytes of a flit that hold packets (PCI Express Base Specification 6.0, 4.2.3).
_PCIE_DATA = {
    2.5: 0.8,
    5.0: 0.8,
    8.0: 128 / 130,
    16.0: 128 / 130,
    32.0: 128 / 130,
    64.0: 236 / 256,
}
#: Packets of 256 bytes, the usual MaxPayload, with 24 bytes around them (R. Neugebauer and others,
#: "Understanding PCIe performance for end host networking", SIGCOMM 2018, section 3).
_PCIE_PACKETS = 256 / (256 + 24)

#: Bytes around the payload of a packet. RoCE v2: preamble and gap 20, Ethernet 14 and 4, IPv4 20,
#: UDP 8, BTH 12, ICRC 4. InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2.
_AROUND: dict[LinkLayer, int] = {"Ethernet": 82, "InfiniBand": 26}


class Expectation(NamedTuple):
    """What a port of a machine can carry at most."""

    #: In Gb/s.
    gbps: float
    #: Which of the two is the narrower.
    limit: Literal["port", "PCIe"]


def data_rate(rate_gbps: float, link_layer: LinkLayer | None) -> float:
    """Return how much a port carries, in Gb/s, given the rate that tools show."""
    if link_layer == "Ethernet":
        return rate_gbps
    if rate_gbps in _EIGHT_OF_TEN and link_layer == "InfiniBand":
        return rate_gbps * 0.8
    if rate_gbps in _FDR:
        return rate_gbps * 54.5 / 56
    return rate_gbps


def payload_share(mtu: int, link_layer: LinkLayer) -> float:
    """Return the share of a link that is payload, given the MTU of RDMA (256 to 4096 bytes)."""
    return mtu / (mtu + _AROUND[link_layer])


def pcie_rate(link: PcieLink) -> float | None:
    """Return how much a PCI Express link carries, in Gb/s; None for an unknown speed."""
    data = _PCIE_DATA.get(link.speed)
    return None if data is None else link.speed * link.width * data * _PCIE_PACKETS


def expected_rate(
    rate_gbps: float, link_layer: LinkLayer | None, link: PcieLink | None
) -> Expectation:
    """Return what a port can carry at most: the slower of its own data rate and its PCIe link."""
    port = data_rate(rate_gbps, link_layer)
    bus = pcie_rate(link) if link else None
    if bus is not None and bus < port:
        return Expectation(bus, "PCIe")
    return Expectation(port, "port")
