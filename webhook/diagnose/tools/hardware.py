"""Network cards by their PCI ids, and the capacity of their links."""

from __future__ import annotations

from typing import Literal, NamedTuple

from webhook.diagnose.tools.observations import LinkLayer, PcieLink

# Network cards by their PCI ids.
#
# ibstat and ibv_devinfo show the device id in decimal (MT4129 is 0x1021). The name of an RDMA
# device, such as mlx5_0, does not identify the card: the same name may be another card on another
# node.

MELLANOX_ID, BROADCOM_ID, INTEL_ID = 0x15B3, 0x14E4, 0x8086
AMAZON_ID, PENSANDO_ID, ALIBABA_ID = 0x1D0F, 0x1DD8, 0x1DED
_CORNELIS, _MICROSOFT = 0x434E, 0x1414

#: PCI vendor → its name. Only vendors of cards with a driver in Linux, drivers/infiniband/hw; the
#: names are those of pci.ids, or of the company that has the cards now.
VENDORS = {
    MELLANOX_ID: "NVIDIA",
    BROADCOM_ID: "Broadcom",
    INTEL_ID: "Intel",
    AMAZON_ID: "Amazon",
    PENSANDO_ID: "AMD",
    _CORNELIS: "Cornelis",
    _MICROSOFT: "Microsoft",
    0x1077: "Marvell",  # qedr
    0x1137: "Cisco",  # usnic
    0x1425: "Chelsio",  # cxgb4
    0x15AD: "VMware",  # vmw_pvrdma
    0x19E5: "Huawei",  # hns
    ALIBABA_ID: "Alibaba",  # erdma
}
#: Some drivers show the vendor's OUI, not its PCI id: mlx4 and mlx5 copy it from the firmware, hfi1
#: from the card. Cards with NVIDIA's chips may have the OUI of a company that sold them: Cisco,
#: QLogic, Voltaire, HP, Sun, Bull (Open MPI, mca-btl-openib-device-params.ini).
_VENDOR_BY_OUI = {
    0x02C9: MELLANOX_ID,
    **dict.fromkeys((0x03BA, 0x05AD, 0x066A, 0x08F1, 0x119F, 0x1708), MELLANOX_ID),
    0x1175: INTEL_ID,
}


#: The beginning of the names that drivers give to their devices, before udev's rules: Linux,
#: drivers/infiniband/hw, ib_register_device in each driver's main.c, verbs.c or device.c.
_DRIVER_NAMES = {
    "mlx4_": MELLANOX_ID,
    "mlx5_": MELLANOX_ID,
    "bnxt_re": BROADCOM_ID,
    "irdma": INTEL_ID,
    "hfi1_": INTEL_ID,
    "efa_": AMAZON_ID,
    "ionic_": PENSANDO_ID,
    "mana_": _MICROSOFT,
    "hns_": 0x19E5,
    "erdma_": ALIBABA_ID,
}


def vendor_of_driver(device: str) -> int | None:
    """Return the vendor whose driver gave a device its name; None for any other name."""
    return next((vendor for name, vendor in _DRIVER_NAMES.items() if device.startswith(name)), None)


def verbs_vendor(number: int) -> int | None:
    """Return the PCI vendor for the vendor id of ibv_devinfo, or None if the vendor is unknown."""
    return number if number in VENDORS else _VENDOR_BY_OUI.get(number)


def firmware_version(text: str | None) -> str | None:
    """Return the version of a card's firmware; without one, drivers write zeros ("0.0.0.0")."""
    return text if text and text.strip("0.") else None


class CardModel(NamedTuple):
    """The properties of all cards with the same ids."""

    #: "ConnectX-7"; for a virtual function, the model of its card or, if several models have the
    #: same virtual function, the family.
    model: str
    #: "NVIDIA".
    vendor: str
    #: Whether the ids belong to a virtual function.
    virtual: bool
    #: The fastest port of such a card, in Gb/s; None if the ids do not determine it.
    best_gbps: int | None
    #: The best link of such a card; None if the ids do not determine it.
    best_link: PcieLink | None
    #: Whether its ports can be InfiniBand.
    infiniband: bool
    source: str


_MLX5 = "Linux, drivers/net/ethernet/mellanox/mlx5/core/main.c, mlx5_core_pci_table"
_MLX4 = "Linux, drivers/net/ethernet/mellanox/mlx4/main.c, mlx4_pci_table"
_BNXT = "Linux, drivers/net/ethernet/broadcom/bnxt/bnxt.c, bnxt_pci_tbl"
_ICE = "Linux, drivers/net/ethernet/intel/ice/ice_devids.h"
_EFA = "amzn-drivers, kernel/linux/efa/src/efa_main.c, efa_pci_tbl"
_IONIC = "Linux, drivers/net/ethernet/pensando/ionic/ionic.h"
_HFI1 = "Linux, drivers/infiniband/hw/hfi1"

_GEN3_X8, _GEN3_X16 = PcieLink(8, 8), PcieLink(8, 16)
_GEN4_X8, _GEN4_X16 = PcieLink(16, 8), PcieLink(16, 16)
_GEN5_X16, _GEN6_X16 = PcieLink(32, 16), PcieLink(64, 16)


def _nvidia(
    model: str, gbps: int | None, link: PcieLink | None, *, ib: bool = True, source: str = _MLX5
) -> CardModel:
    return CardModel(model, "NVIDIA", False, gbps, link, ib, source)


def _nvidia_vf(model: str, *, ib: bool = True, source: str = _MLX5) -> CardModel:
    return CardModel(model, "NVIDIA", True, None, None, ib, source)


def _broadcom(model: str, gbps: int | None, link: PcieLink | None) -> CardModel:
    return CardModel(model, "Broadcom", False, gbps, link, False, _BNXT)


def _intel(model: str, gbps: int, link: PcieLink | None) -> CardModel:
    return CardModel(model, "Intel", False, gbps, link, False, _ICE)


#: An instance has a whole device, not a part of one.
_AMAZON_EFA = CardModel("EFA", "Amazon", False, None, None, False, _EFA)

#: Vendor id and device id → the model. The rates and links come from the data sheets of NVIDIA,
#: Broadcom and Intel for the fastest card of the model.
CARDS: dict[tuple[int, int], CardModel] = {
    (MELLANOX_ID, 0x1003): _nvidia("ConnectX-3", 56, _GEN3_X8, source=_MLX4),
    (MELLANOX_ID, 0x1004): _nvidia_vf("ConnectX-3 or ConnectX-3 Pro", source=_MLX4),
    (MELLANOX_ID, 0x1007): _nvidia("ConnectX-3 Pro", 56, _GEN3_X8, source=_MLX4),
    (MELLANOX_ID, 0x1011): _nvidia("Connect-IB", 56, _GEN3_X16),
    (MELLANOX_ID, 0x1012): _nvidia_vf("Connect-IB"),
    (MELLANOX_ID, 0x1013): _nvidia("ConnectX-4", 100, _GEN3_X16),
    (MELLANOX_ID, 0x1014): _nvidia_vf("ConnectX-4"),
    (MELLANOX_ID, 0x1015): _nvidia("ConnectX-4 Lx", 50, _GEN3_X8, ib=False),
    (MELLANOX_ID, 0x1016): _nvidia_vf("ConnectX-4 Lx", ib=False),
    (MELLANOX_ID, 0x1017): _nvidia("ConnectX-5", 100, _GEN3_X16),
    (MELLANOX_ID, 0x1018): _nvidia_vf("ConnectX-5"),
    (MELLANOX_ID, 0x1019): _nvidia("ConnectX-5 Ex", 100, _GEN4_X16),
    (MELLANOX_ID, 0x101A): _nvidia_vf("ConnectX-5 Ex"),
    (MELLANOX_ID, 0x101B): _nvidia("ConnectX-6", 200, _GEN4_X16),
    (MELLANOX_ID, 0x101C): _nvidia_vf("ConnectX-6"),
    (MELLANOX_ID, 0x101D): _nvidia("ConnectX-6 Dx", 200, _GEN4_X16, ib=False),
    (MELLANOX_ID, 0x101E): _nvidia_vf("ConnectX-6 Dx or later, or BlueField-2 or later"),
    (MELLANOX_ID, 0x101F): _nvidia("ConnectX-6 Lx", 50, _GEN4_X8, ib=False),
    (MELLANOX_ID, 0x1021): _nvidia("ConnectX-7", 400, _GEN5_X16),
    (MELLANOX_ID, 0x1023): _nvidia("ConnectX-8", 800, _GEN6_X16),
    (MELLANOX_ID, 0x1025): _nvidia("ConnectX-9", None, None),
    (MELLANOX_ID, 0x1027): _nvidia("ConnectX-10", None, None),
    (MELLANOX_ID, 0xA2D2): _nvidia("BlueField", 100, _GEN4_X16),
    (MELLANOX_ID, 0xA2D3): _nvidia_vf("BlueField"),
    (MELLANOX_ID, 0xA2D6): _nvidia("BlueField-2", 200, _GEN4_X16),
    (MELLANOX_ID, 0xA2DC): _nvidia("BlueField-3", 400, _GEN5_X16),
    (MELLANOX_ID, 0xA2DF): _nvidia("BlueField-4", None, None),
    # The AMD Pollara 400 has the same ids as its predecessors; only its subsystem id differs.
    (PENSANDO_ID, 0x1002): CardModel(
        "Pensando DSC or Pollara", "AMD", False, None, None, False, _IONIC
    ),
    (PENSANDO_ID, 0x1003): CardModel(
        "Pensando DSC or Pollara", "AMD", True, None, None, False, _IONIC
    ),
    (BROADCOM_ID, 0x1614): _broadcom("BCM57454", 100, _GEN3_X16),
    (BROADCOM_ID, 0x16D7): _broadcom("BCM57414", 25, _GEN3_X8),
    (BROADCOM_ID, 0x16D8): _broadcom("BCM57416", 10, _GEN3_X8),
    (BROADCOM_ID, 0x1750): _broadcom("BCM57508", 200, _GEN4_X16),
    (BROADCOM_ID, 0x1751): _broadcom("BCM57504", 200, _GEN4_X16),
    (BROADCOM_ID, 0x1752): _broadcom("BCM57502", 200, _GEN4_X16),
    (BROADCOM_ID, 0x1760): _broadcom("BCM57608", 400, _GEN5_X16),
    (BROADCOM_ID, 0x1761): _broadcom("BCM57604", 200, _GEN5_X16),
    (BROADCOM_ID, 0x1762): _broadcom("BCM57602", 100, None),
    (BROADCOM_ID, 0x1806): CardModel("BCM575xx", "Broadcom", True, None, None, False, _BNXT),
    (BROADCOM_ID, 0x1807): CardModel("BCM575xx", "Broadcom", True, None, None, False, _BNXT),
    (BROADCOM_ID, 0x1819): CardModel("BCM576xx", "Broadcom", True, None, None, False, _BNXT),
    (INTEL_ID, 0x1591): _intel("E810-C", 100, _GEN4_X16),
    (INTEL_ID, 0x1592): _intel("E810-C", 100, _GEN4_X16),
    (INTEL_ID, 0x1593): _intel("E810-C", 100, _GEN4_X16),
    (INTEL_ID, 0x1599): _intel("E810-XXV", 25, _GEN4_X8),
    (INTEL_ID, 0x159A): _intel("E810-XXV", 25, _GEN4_X8),
    (INTEL_ID, 0x159B): _intel("E810-XXV", 25, _GEN4_X8),
    (INTEL_ID, 0x12D1): _intel("E830-CC", 200, None),
    (INTEL_ID, 0x12D2): _intel("E830-CC", 200, None),
    (INTEL_ID, 0x12D3): _intel("E830-CC", 200, None),
    (INTEL_ID, 0x1889): CardModel("E810 or E830", "Intel", True, None, None, False, _ICE),
    # Omni-Path is not InfiniBand, but its driver presents it as such.
    (INTEL_ID, 0x24F0): CardModel("Omni-Path 100", "Intel", False, 100, _GEN3_X16, True, _HFI1),
    (INTEL_ID, 0x24F1): CardModel("Omni-Path 100", "Intel", False, 100, _GEN3_X16, True, _HFI1),
    (_CORNELIS, 0x0001): CardModel("CN5000", "Cornelis", False, 400, _GEN5_X16, True, _HFI1),
    (AMAZON_ID, 0xEFA0): _AMAZON_EFA,
    (AMAZON_ID, 0xEFA1): _AMAZON_EFA,
    (AMAZON_ID, 0xEFA2): _AMAZON_EFA,
    (AMAZON_ID, 0xEFA3): _AMAZON_EFA,
    (AMAZON_ID, 0xEFA4): _AMAZON_EFA,
    (_MICROSOFT, 0x00BA): CardModel(
        "MANA", "Microsoft", True, None, None, False,
        "Linux, drivers/net/ethernet/microsoft/mana/gdma_main.c",
    ),
}  # fmt: skip


def card_model(vendor_id: int | None, device_id: int | None) -> CardModel | None:
    """Return the model with these PCI ids, or None."""
    if vendor_id is None or device_id is None:
        return None
    return CARDS.get((vendor_id, device_id))


# The capacity of links: InfiniBand and Ethernet ports, and their PCI Express links.
#
# A tool shows the signal rate of a port. Up to QDR, two of ten bits are not data, so a port of
# 40 Gb/s carries 32; FDR's 56 carry 54.5; from EDR on, and on Ethernet, the rate shown is the data
# rate (InfiniBand Architecture Specification, volume 2; Linux, drivers/infiniband/core/sysfs.c,
# rate_show). A test cannot be faster than the slower of the port and its PCI Express link.


class InfiniBandSpeed(NamedTuple):
    """A generation of InfiniBand."""

    name: str
    #: The rate that tools show for four lanes, in Gb/s.
    shown_rate: float
    #: The data rate of four lanes, in Gb/s.
    data_rate: float


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
#: The rates that tools show for any number of lanes of SDR, DDR and QDR, and of FDR. 40 is also
#: FDR10; then 32 is too low, and no good result is graded as bad.
_EIGHT_OF_TEN = frozenset({2.5, 5, 10, 20, 30, 40, 60, 80, 120})
_FDR = frozenset({14, 28, 56, 112, 168})

#: Transfers per lane in GT/s → the share of data: 8b/10b, 128b/130b, and 236 of the 256 bytes of a
#: flit (PCI Express Base Specification 6.0, 4.2.3).
_PCIE_DATA = {
    2.5: 0.8,
    5.0: 0.8,
    8.0: 128 / 130,
    16.0: 128 / 130,
    32.0: 128 / 130,
    64.0: 236 / 256,
}
#: Bytes of data in a packet (MaxPayload), and of overhead (R. Neugebauer and others, "Understanding
#: PCIe performance for end host networking", SIGCOMM 2018, section 3).
USUAL_PAYLOAD = 256
_PCIE_OVERHEAD = 24

#: Overhead of a packet in bytes. RoCE v2: preamble and gap 20, Ethernet 14 and 4, IPv4 20,
#: UDP 8, BTH 12, ICRC 4. InfiniBand: LRH 8, BTH 12, ICRC 4, VCRC 2.
_PACKET_OVERHEAD: dict[LinkLayer, int] = {"Ethernet": 82, "InfiniBand": 26}
#: The MTUs of RDMA, in bytes; any other number is not an MTU.
RDMA_MTUS = (256, 512, 1024, 2048, 4096)
#: The largest headers of RDMA in the MTU of a network interface: GRH 40, UDP 8, BTH 12, XRC 4,
#: AtomicETH 28, ICRC 4.
_ROCE_HEADERS = 96


class LinkCapacity(NamedTuple):
    """The capacity of a port of a node."""

    #: In Gb/s.
    gbps: float
    #: The slower of the two.
    limit: Literal["port", "PCIe"]


def data_rate(rate_gbps: float, link_layer: LinkLayer | None) -> float:
    """Return the data rate of a port in Gb/s, given the rate that tools show."""
    if link_layer == "Ethernet":
        return rate_gbps
    if rate_gbps in _EIGHT_OF_TEN and link_layer == "InfiniBand":
        return rate_gbps * 0.8
    if rate_gbps in _FDR:
        return rate_gbps * 54.5 / 56
    return rate_gbps


def roce_mtu(interface_mtu: int) -> int:
    """Return the largest RDMA MTU in packets of a network interface's MTU; 0 below 352 bytes.

    Source: Linux, include/rdma/ib_addr.h, iboe_get_mtu.
    """
    return max((mtu for mtu in RDMA_MTUS if mtu + _ROCE_HEADERS <= interface_mtu), default=0)


def payload_share(mtu: int, link_layer: LinkLayer) -> float:
    """Return the payload share of a link, given the RDMA MTU (256 to 4096 bytes)."""
    return mtu / (mtu + _PACKET_OVERHEAD[link_layer])


def pcie_rate(link: PcieLink, payload: int = USUAL_PAYLOAD) -> float | None:
    """Return the data rate of a PCI Express link in Gb/s; None for an unknown speed."""
    data = _PCIE_DATA.get(link.speed)
    share = payload / (payload + _PCIE_OVERHEAD)
    return None if data is None else link.speed * link.width * data * share


def link_capacity(
    rate_gbps: float, link_layer: LinkLayer | None, link: PcieLink | None
) -> LinkCapacity:
    """Return the capacity of a port: the slower of its data rate and its PCIe link."""
    port = data_rate(rate_gbps, link_layer)
    pcie = pcie_rate(link) if link else None
    if pcie is not None and pcie < port:
        return LinkCapacity(pcie, "PCIe")
    return LinkCapacity(port, "port")
