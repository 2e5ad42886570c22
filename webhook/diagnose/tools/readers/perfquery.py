"""perfquery (infiniband-diags), the counters of a port, which it knows by its LID.

    # Port counters: Lid 17 port 1 (CapMask: 0x5A00)
    PortSelect:......................1
    SymbolErrorCounter:..............0

Port 255 stands for the sum of all ports. Sources: rdma-core, infiniband-diags/perfquery.c and
libibmad/fields.c; Linux, drivers/infiniband/core/sysfs.c for the names in sysfs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import CounterSighting, Line, Origin, Reading
from webhook.diagnose.tools.readers.notation import number
from webhook.diagnose.tools.readers.rows import Reader, RowReading, read_rows

_PERFQUERY = "perfquery"

_PERFQUERY_HEAD = re.compile(
    r"\s{0,8}# Port (?:extended )?counters: Lid (?P<lid>\d{1,5})(?: \([^)]{1,80}\))? port "
    r"(?P<port>\d{1,3})(?: \(.{0,80}\))?\s*",
    re.ASCII,
)
_PERFQUERY_ROW = re.compile(
    r"\s{0,8}(?P<name>[A-Z][A-Za-z0-9]{3,40}):\.{1,40}(?P<value>\w{1,20})\s*", re.ASCII
)
#: The name of a counter in sysfs.
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
    return read_rows(lines, _CounterTable().row)


class _CounterTable:
    """The header that is open, and the counters below it so far."""

    def __init__(self) -> None:
        self._head: re.Match[str] | None = None
        self._names: set[str] = set()

    def row(self, line: Line) -> RowReading | None:
        head, row = _PERFQUERY_HEAD.fullmatch(line.text), _PERFQUERY_ROW.fullmatch(line.text)
        if head is not None:
            self._head, self._names = head, set()
            return RowReading()
        if row is None or self._head is None:
            return None
        if row["name"] in self._names:
            self._head = None  # that of these rows is missing
            return None
        self._names.add(row["name"])
        return _counter(Origin(_PERFQUERY, line.number), self._head, row)


def _counter(origin: Origin, head: re.Match[str], row: re.Match[str]) -> RowReading | None:
    name, value = _COUNTERS.get(row["name"]), number(row["value"])
    if name is None or value is None:
        return RowReading() if row["name"] in _OTHER else None
    lid, port = int(head["lid"]), int(head["port"])
    return RowReading((CounterSighting(origin, None, port, name, value, lid),))


PERFQUERY = Reader(_PERFQUERY, read_perfquery)
