"""Readers for infiniband-diags: ibstat, iblinkinfo, ibstatus and perfquery."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from webhook.diagnose.tools.observations import (
    CableObservation,
    CounterObservation,
    GidObservation,
    Line,
    Observation,
    Origin,
    PortObservation,
    Reading,
)
from webhook.diagnose.tools.readers.blocks import (
    Block,
    BlockFormat,
    read_blocks,
)
from webhook.diagnose.tools.readers.layouts import (
    RECOGNIZED,
    Reader,
    RowReading,
    read_rows,
)
from webhook.diagnose.tools.readers.notation import (
    DEVICE,
    guid,
    hexadecimal,
    kernel_gid,
    kernel_physical_state,
    kernel_port_state,
    link_layer,
    mellanox_type,
    number,
    physical_state,
    port_state,
    rate,
    single_word,
)

# ibstat (infiniband-diags), a block for each device.
#
#   CA 'mlx5_0'
#           CA type: MT4123
#           Port 1:
#                   State: Active
#                   Rate: 200
#
# `ibstat mlx5_0 1` writes `CA: 'mlx5_0'` and the port without indentation, which web pages lose,
# too: so only the key identifies a line. The rate of a port that is Down has no meaning, and is
# read as shown. "Effective speed", in newer versions, is the speed of all ports of a bond together,
# not of one port. Source: rdma-core, infiniband-diags/ibstat.c.

_IBSTAT = "ibstat"

_IBSTAT_FORMAT = BlockFormat(
    _IBSTAT,
    re.compile(rf"\s{{0,40}}(?:CA|Switch|Router|iWARP RNIC|\?{{3}}):? '(?P<device>{DEVICE})'\s*"),
    re.compile(r"\s{0,40}Port (?P<port>\d{1,3}):\s*", re.ASCII),
    {
        "CA type": ("model", single_word),
        "Switch type": ("model", single_word),
        "Router type": ("model", single_word),
        "iWARP RNIC type": ("model", single_word),
        "Number of ports": None,
        "Firmware version": ("firmware", single_word),
        "Hardware version": None,
        "Node GUID": ("node_guid", guid),
        "System image GUID": None,
    },
    {
        "State": ("state", port_state),
        "Physical state": ("physical_state", physical_state),
        "Rate": ("rate_gbps", rate),
        "Effective speed": None,
        "Base lid": ("lid", number),
        "LMC": None,
        "SM lid": None,
        "Capability mask": None,
        "Port GUID": ("port_guid", guid),
        "Link layer": ("link_layer", link_layer),
    },
    first_keys=frozenset(("Number of ports", "Firmware version", "Hardware version")),
    last_device_key="System image GUID",
    last_port_keys=frozenset(("Port GUID", "Link layer")),
    port_count_key="Number of ports",
)


def read_ibstat(lines: Sequence[Line]) -> Reading:
    """Read the blocks: an observation for each device, and one for each port."""
    return read_blocks(lines, _IBSTAT_FORMAT, _ibstat_ports)


def _ibstat_ports(block: Block) -> tuple[PortObservation]:
    model = str(block.fields.get("model", ""))
    device_id = mellanox_type(model)
    if device_id is not None:
        block.fields["device_id"] = device_id
    if device_id is not None or model in ("M", "MT"):  # the beginning of a cut MT4129
        del block.fields["model"]
    return (_IBSTAT_FORMAT.port_observation(block),)


IBSTAT = Reader(_IBSTAT, read_ibstat)


# iblinkinfo (infiniband-diags), a row for each port of a fabric, also with -l.
#
#   CA: gpu-01 mlx5_0:
#         0xa088c20300123456     17    1[  ] ==( 4X     106.25 Gbps Active/  LinkUp)==>
#              2   17[  ] "leaf-1" ( )                               (in one line)
#   Switch: 0x506b4b0300820910 leaf-1:
#              2   17[  ] ==( 4X     106.25 Gbps Active/  LinkUp)==>
#             17    1[  ] "gpu-01 mlx5_0" ( )
#
# The description of a node is its name and its device; "HCA-1" is a number, not a device. A row of
# a switch is taken if a node is at its other end. The speeds are signal rates: four lanes of
# 25.78125 are a link of 100 Gb/s. Source: rdma-core, infiniband-diags/iblinkinfo.c.

_IBLINKINFO = "iblinkinfo"

_IBLINKINFO_HEAD = re.compile(
    r"\s{0,8}(?P<type>CA|Switch|Router): (?:0x[0-9a-f]{16} )?(?P<name>.{1,80}):\s*", re.ASCII
)
_IBLINKINFO_ROW = re.compile(
    r"\s{0,20}(?P<guid>0x[0-9a-f]{16}\s{1,10})?(?:\"\s{0,40}(?P<name>[^\"]{1,80})\"\s{1,10})?"
    r"\d{1,5}\s{1,10}(?P<port>\d{1,3})\[[ \d]{0,3}\] ==\("
    r"(?:\s{0,20}(?P<width>\d{1,2})X\s{1,20}(?P<speed>\d{1,4}(?:\.\d{1,6})?) Gbps(?: \(FDR10\))?)?"
    r"\s{1,20}(?P<state>[A-Za-z]{2,12})/\s{0,8}[A-Za-z]{2,30}\)(?: \([^)]{1,60}\))?==>\s{1,20}"
    r"(?:(?:0x[0-9a-f]{16}\s{1,10})?\d{1,5}\s{1,10}(?P<far_port>\d{1,3}))?\[[ \d]{0,3}\]"
    r" \"\s{0,40}(?P<far>[^\"]{0,80})\" \(\s{0,8}(?P<complaint>[^)]{0,80}?)\s{0,8}\)\s*",
    re.ASCII,
)
_UNAVAILABLE = re.compile(r"\s{0,20}.{1,200}==>\s{1,20}\"Port not available\"\s*")
#: The signal rate of a lane → its data rate in ibstat, both in Gb/s.
_CARRIED = {14.0625: 14.0, 25.78125: 25.0, 53.125: 50.0, 106.25: 100.0, 212.5: 200.0}
#: The NodeDescription that a driver sets (%h %d); "HCA-1" has the number of the device.
_NODE_DESCRIPTION = re.compile(
    r"(?P<node>[\w.-]{1,63}) (?:HCA-\d{1,3}"
    r"|(?P<device>[a-z][a-z0-9]{1,12}_(?:bond_)?\d{1,4}|(?:ib|roce|rdma)[a-zP][\w]{1,30}))",
    re.ASCII,
)


def read_iblinkinfo(lines: Sequence[Line]) -> Reading:
    """Read the rows: an observation for each port of a node in a row."""
    return read_rows(lines, _LinkTable().read_row)


class _LinkTable:
    """A row reader that remembers the open header."""

    def __init__(self) -> None:
        self._head: re.Match[str] | None = None
        self._ports: set[str] = set()

    def read_row(self, line: Line) -> RowReading | None:
        head, row = _IBLINKINFO_HEAD.fullmatch(line.text), _IBLINKINFO_ROW.fullmatch(line.text)
        if head is not None:
            self._head, self._ports = head, set()
        elif row is not None:
            if row["port"] in self._ports:
                self._head = None  # the header of these rows is missing
            self._ports.add(row["port"])
            return RowReading(_cable(Origin(_IBLINKINFO, line.number), row, self._near(row)))
        return RECOGNIZED if head or _UNAVAILABLE.fullmatch(line.text) else None

    def _near(self, row: re.Match[str]) -> str | None:
        """Return the description of the near end, which the row has with -l; None if unknown."""
        if row["name"] or self._head is None:
            return row["name"]
        return self._head["name"] if (self._head["type"] == "CA") == bool(row["guid"]) else None


def _cable(origin: Origin, row: re.Match[str], near: str | None) -> tuple[CableObservation, ...]:
    port, far, far_port = int(row["port"]), row["far"] or None, number(row["far_port"] or "")
    near_node, far_node = (_NODE_DESCRIPTION.fullmatch(end or "") for end in (near, far))
    rate, complaint = _rate(row), row["complaint"] or None
    if near_node is not None or (row["guid"] and not row["name"]):
        node, device = (near_node["node"], near_node["device"]) if near_node else (None, None)
        return (CableObservation(origin, node, device, port, rate, far, far_port, complaint),)
    if far_node is not None and far_port is not None:
        node, device = far_node["node"], far_node["device"]
        return (CableObservation(origin, node, device, far_port, rate, near, port, complaint),)
    return ()


def _rate(row: re.Match[str]) -> float | None:
    if row["speed"] is None:
        return None
    speed = float(row["speed"])
    return int(row["width"]) * _CARRIED.get(speed, speed)


IBLINKINFO = Reader(_IBLINKINFO, read_iblinkinfo)


# ibstatus (infiniband-diags), a block for each port, with the values of sysfs.
#
#   Infiniband device 'mlx5_0' port 1 status:
#           default gid:     fe80:0000:0000:0000:0015:5dff:fd34:11eb
#           state:           4: ACTIVE
#           rate:            200 Gb/sec (4X HDR)
#
# It writes "unknown" for a file that it cannot read, and "IB" for a link layer. The default GID has
# the index 0; zeros mean an empty row. Source: rdma-core, infiniband-diags/scripts.

_IBSTATUS = "ibstatus"

_NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
_IBSTATUS_FORMAT = BlockFormat(
    _IBSTATUS,
    re.compile(
        rf"\s{{0,40}}Infiniband device '(?P<device>{DEVICE})' port (?P<port>\d{{1,3}}) status:\s*"
    ),
    None,
    {},
    {
        "default gid": ("gid", kernel_gid),
        "base lid": ("lid", hexadecimal),
        "sm lid": None,
        "state": ("state", kernel_port_state),
        "phys state": ("physical_state", kernel_physical_state),
        "rate": ("rate_gbps", rate),
        "link_layer": ("link_layer", link_layer),
    },
    # ibv_devinfo writes it after three tabs.
    {"link_layer": range(1, 10)},
    first_keys=frozenset(("default gid", "base lid", "sm lid")),
    no_value="unknown",
    last_port_keys=frozenset(("rate", "link_layer")),
)


def read_ibstatus(lines: Sequence[Line]) -> Reading:
    """Read the blocks: an observation for each port, and one for its first GID."""
    return read_blocks(lines, _IBSTATUS_FORMAT, _ibstatus_ports)


def _ibstatus_ports(block: Block) -> Iterator[Observation]:
    first = str(block.fields.pop("gid", _NO_GID))
    yield _IBSTATUS_FORMAT.port_observation(block)
    if first != _NO_GID and block.port is not None:
        yield GidObservation(Origin(_IBSTATUS, block.line), block.device, block.port, 0, first)


IBSTATUS = Reader(_IBSTATUS, read_ibstatus)


# perfquery (infiniband-diags), the counters of a port, which it identifies by its LID.
#
#   # Port counters: Lid 17 port 1 (CapMask: 0x5A00)
#   PortSelect:......................1
#   SymbolErrorCounter:..............0
#
# Port 255 is the sum of all ports. Sources: rdma-core, infiniband-diags/perfquery.c and
# libibmad/fields.c; Linux, drivers/infiniband/core/sysfs.c for the names in sysfs.

_PERFQUERY = "perfquery"

_PERFQUERY_HEAD = re.compile(
    r"\s{0,8}# Port (?:extended )?counters: Lid (?P<lid>\d{1,5})(?: \([^)]{1,80}\))? port "
    r"(?P<port>\d{1,3})(?: \(.{0,80}\))?\s*",
    re.ASCII,
)
_PERFQUERY_ROW = re.compile(
    r"\s{0,8}(?P<name>[A-Z][A-Za-z0-9]{3,40}):\.{1,40}(?P<value>\w{1,20})\s*", re.ASCII
)
#: Counter in perfquery → its name in sysfs.
_COUNTERS = {
    "SymbolErrorCounter": "symbol_error",
    "LinkErrorRecoveryCounter": "link_error_recovery",
    "LinkDownedCounter": "link_downed",
    "PortRcvErrors": "port_rcv_errors",
    "PortRcvRemotePhysicalErrors": "port_rcv_remote_physical_errors",
    "PortRcvSwitchRelayErrors": "port_rcv_switch_relay_errors",
    "PortXmitDiscards": "port_xmit_discards",
    "PortXmitConstraintErrors": "port_xmit_constraint_errors",
    "PortRcvConstraintErrors": "port_rcv_constraint_errors",
    "LocalLinkIntegrityErrors": "local_link_integrity_errors",
    "ExcessiveBufferOverrunErrors": "excessive_buffer_overrun_errors",
    "VL15Dropped": "VL15_dropped",
    "PortXmitWait": "port_xmit_wait",
    "PortXmitData": "port_xmit_data",
    "PortRcvData": "port_rcv_data",
    "PortXmitPkts": "port_xmit_packets",
    "PortRcvPkts": "port_rcv_packets",
    "PortUnicastXmitPkts": "unicast_xmit_packets",
    "PortUnicastRcvPkts": "unicast_rcv_packets",
    "PortMulticastXmitPkts": "multicast_xmit_packets",
    "PortMulticastRcvPkts": "multicast_rcv_packets",
}
_OTHER = frozenset(("PortSelect", "CounterSelect", "CounterSelect2", "QP1Dropped"))


def read_perfquery(lines: Sequence[Line]) -> Reading:
    """Read the counters below each header."""
    return read_rows(lines, _CounterTable().read_row)


class _CounterTable:
    """A row reader that remembers the open header, and the counters below it."""

    def __init__(self) -> None:
        self._head: re.Match[str] | None = None
        self._names: set[str] = set()

    def read_row(self, line: Line) -> RowReading | None:
        head, row = _PERFQUERY_HEAD.fullmatch(line.text), _PERFQUERY_ROW.fullmatch(line.text)
        if head is not None:
            self._head, self._names = head, set()
            return RECOGNIZED
        if row is None or self._head is None:
            return None
        if row["name"] in self._names:
            self._head = None  # the header of these rows is missing
            return None
        self._names.add(row["name"])
        return _counter(Origin(_PERFQUERY, line.number), self._head, row)


def _counter(origin: Origin, head: re.Match[str], row: re.Match[str]) -> RowReading | None:
    name, value = _COUNTERS.get(row["name"]), number(row["value"])
    if name is None or value is None:
        return RECOGNIZED if row["name"] in _OTHER else None
    lid, port = int(head["lid"]), int(head["port"])
    return RowReading((CounterObservation(origin, None, port, name, value, lid),))


PERFQUERY = Reader(_PERFQUERY, read_perfquery)
