"""Records of what a tool showed of a node, without interpretation.

A reader of `tools.readers` turns the lines of one tool into these records. A field that the tool
did not show has the value None; nothing is assumed. If two tools contradict each other, both
records stay, and `discover`, which joins them, reports the conflict.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

LinkLayer = Literal["InfiniBand", "Ethernet"]
#: The states of an RDMA port, as ibstat spells them.
PortState = Literal["Down", "Initializing", "Armed", "Active"]
#: The physical states of an RDMA port, as ibstat spells them.
PhysicalState = Literal[
    "No state change",
    "Sleep",
    "Polling",
    "Disabled",
    "PortConfigurationTraining",
    "LinkUp",
    "LinkErrorRecovery",
    "PhyTest",
]


class Line(NamedTuple):
    """A line of a text, without line end, node prefix and color codes."""

    #: Its number in the text; 1 is the first.
    number: int
    text: str


class Origin(NamedTuple):
    """The tool and the line of an observation."""

    #: The command as typed: "ibstat", "rdma link", "nvidia-smi topo -m"; "sysfs" for files.
    tool: str
    #: The first line of the observation; 0 without lines (files of sysfs).
    line: int


class PcieLink(NamedTuple):
    """The speed and width of a PCI Express link."""

    #: Transfers per lane in GT/s: 2.5, 5, 8, 16, 32, 64.
    speed: float
    #: The number of lanes.
    width: int


class PortObservation(NamedTuple):
    """One tool's observation of a port of an RDMA device; without `port`, of the device."""

    origin: Origin
    #: The RDMA device (mlx5_0). None if the tool identifies it only by `pci` or `netdevs`.
    device: str | None = None
    #: The number of the port; 1 is the first.
    port: int | None = None
    #: The network interfaces of the port, in the order shown; () if the tool shows none.
    netdevs: tuple[str, ...] | None = None
    #: Whether the network interface is up, which differs from the state of the RDMA port.
    netdev_up: bool | None = None
    state: PortState | None = None
    physical_state: PhysicalState | None = None
    link_layer: LinkLayer | None = None
    #: The rate as shown, in Gb/s; meaningless while the port is not Active.
    rate_gbps: float | None = None
    #: As shown, lower case: "0000:3b:00.0" or, without the domain, "3b:00.0".
    pci: str | None = None
    #: The PCI ids: 0x15b3, 0x1021.
    vendor_id: int | None = None
    device_id: int | None = None
    #: The part or model as the tool shows it, not looked up: "MCX653106A-HDAT".
    model: str | None = None
    #: The PSID: "MT_0000000838".
    board_id: str | None = None
    firmware: str | None = None
    #: The NUMA node; -1 if the node does not report one.
    numa: int | None = None
    #: 16 lower-case hexadecimal digits; 0000000000000000 is kept, since it has a meaning.
    node_guid: str | None = None
    port_guid: str | None = None
    lid: int | None = None
    #: The MTU that RDMA uses on the port now, in bytes: 1024, 4096.
    mtu: int | None = None
    #: The largest MTU that RDMA can use on the port.
    max_mtu: int | None = None
    #: Whether it is a virtual function.
    virtual: bool | None = None


class CardObservation(NamedTuple):
    """One tool's observation of a PCI function of a network card."""

    origin: Origin
    #: As `PortObservation.pci`.
    pci: str
    #: The class of the function: 0x0207 InfiniBand, 0x0200 Ethernet.
    pci_class: int | None = None
    vendor_id: int | None = None
    device_id: int | None = None
    #: As the tool describes it: "Mellanox Technologies MT2910 Family [ConnectX-7]".
    model: str | None = None
    #: The link as it runs now, and the best link of the card.
    link: PcieLink | None = None
    best_link: PcieLink | None = None
    numa: int | None = None
    virtual: bool | None = None


class GpuObservation(NamedTuple):
    """One tool's observation of a GPU."""

    origin: Origin
    #: The number in nvidia-smi, from 0; None if the tool shows no number.
    number: int | None = None
    #: As the tool names it: "NVIDIA H100 80GB HBM3".
    product: str | None = None
    uuid: str | None = None
    pci: str | None = None
    numa: int | None = None
    #: The PCI vendor, 0x1002 for AMD; None if the tool does not show it. nvidia-smi is NVIDIA's.
    vendor_id: int | None = None


class DistanceObservation(NamedTuple):
    """The distance between a GPU and a NIC of the node (nvidia-smi topo -m)."""

    origin: Origin
    #: "GPU0".
    gpu: str
    #: The RDMA device if the legend names it, else the column's name: "NIC0".
    nic: str
    #: PIX (one switch), PXB, PHB, NODE, SYS; nearest first.
    distance: str


class InterfaceObservation(NamedTuple):
    """One tool's observation of a network interface."""

    origin: Origin
    netdev: str
    #: UP, DOWN or UNKNOWN, as `ip -br a` shows.
    state: str | None = None
    #: With their prefix: "10.0.0.4/24".
    addresses: tuple[str, ...] = ()
    #: The MTU in bytes: 1500, 9000.
    mtu: int | None = None


class GidObservation(NamedTuple):
    """A row of the GID table of a port."""

    origin: Origin
    device: str
    port: int
    #: The index of the GID in the table, from 0.
    gid_index: int
    #: Eight groups of four lower-case hexadecimal digits, also if the tool shortens them.
    gid: str
    #: "v1" or "v2"; None on InfiniBand, or if the tool does not show it.
    version: str | None = None
    netdev: str | None = None


class CableObservation(NamedTuple):
    """A link between a port of a node and a port of a switch (iblinkinfo)."""

    origin: Origin
    #: The names of the node and of its device, if the description has them: "node1", "mlx5_0".
    node: str | None
    device: str | None
    port: int
    #: The rate of the link in Gb/s: width times speed; None while the link is down.
    rate_gbps: float | None
    #: Description and port of the other end.
    switch: str | None
    switch_port: int | None
    #: The warning of iblinkinfo: "Could be 4X", "Could be 53.125 Gbps".
    complaint: str | None = None


class CounterObservation(NamedTuple):
    """A counter of a port."""

    origin: Origin
    #: None if the tool identifies the port only by its `lid` (perfquery).
    device: str | None
    port: int
    #: As sysfs names it: symbol_error, link_downed, port_rcv_errors, ...
    counter: str
    value: int
    lid: int | None = None


#: memlock      LimitMEMLOCK of containerd: bytes as a number, or "infinity"
#: netns        "shared" or "exclusive" (rdma system show)
#: driver       of the RDMA devices: "inbox" or "OFED" with its version ("OFED 24.10-0.7.0")
#: peermem      whether nvidia_peermem is loaded: "yes" or "no"
#: kernel       uname -r
#: product      the machine type in DMI: "DGXH100"
#: vendor       its maker in DMI: "NVIDIA"
#: asset-tag    of its chassis in DMI, where clouds write their name
#: hostname     as printed by `hostname`
#: gpus         "none" if no PCI function is a GPU
NodeProperty = Literal[
    "memlock",
    "netns",
    "driver",
    "peermem",
    "kernel",
    "product",
    "vendor",
    "asset-tag",
    "hostname",
    "gpus",
]


class PropertyObservation(NamedTuple):
    """A property of a node, such as its kernel."""

    origin: Origin
    name: NodeProperty
    value: str


#: not installed  a shell did not find the tool
#: no device      the tool found no RDMA device
#: stopped        the tool stopped before the end of its output
#: no driver      the tool cannot reach the GPUs' driver
FailureKind = Literal["not installed", "no device", "stopped", "no driver"]


class ToolFailure(NamedTuple):
    """A message in place of a tool's output, or of the rest of it."""

    origin: Origin
    kind: FailureKind
    #: As the tool writes it; "" if a shell did not find the tool.
    message: str = ""


Observation = (
    PortObservation
    | CardObservation
    | GpuObservation
    | DistanceObservation
    | InterfaceObservation
    | GidObservation
    | CableObservation
    | CounterObservation
    | PropertyObservation
    | ToolFailure
)


class Cut(NamedTuple):
    """A part of an output that is shorter than the tool makes it."""

    #: As in `Origin`.
    tool: str
    #: The last line that shows the part. Only at the end of a text is the output cut there; between
    #: other lines, a person may have shortened it.
    line: int
    #: The device, "mlx5_7", or the PCI address; of a table, its rows: "5 of 8 rows".
    within: str
    #: Whether the output is cut wherever the part is, as is a table with fewer rows than columns.
    is_table: bool = False
    #: Whether the tool has an option with which the part is whole; only the command shows that.
    may_be_short_form: bool = False


class Reading(NamedTuple):
    """The observations that a reader takes from lines."""

    observations: tuple[Observation, ...]
    #: The numbers of all lines that it recognized, with or without an observation.
    recognized_lines: frozenset[int]
    #: The parts that are too short.
    cuts: tuple[Cut, ...] = ()
