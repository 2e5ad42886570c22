"""iblinkinfo (infiniband-diags), a row for each port of a fabric, also with -l.

    CA: gpu-01 mlx5_0:
          0xa088c20300123456     17    1[  ] ==( 4X     106.25 Gbps Active/  LinkUp)==>
               2   17[  ] "leaf-1" ( )                               (in one line)
    Switch: 0x506b4b0300820910 leaf-1:
               2   17[  ] ==( 4X     106.25 Gbps Active/  LinkUp)==>
              17    1[  ] "gpu-01 mlx5_0" ( )

A machine is described by its name and its device; "HCA-1" counts them and names none. A row of a
switch is taken if a machine is at its other end. The speeds are those of the signals: four lanes of
25.78125 are a link of 100 Gb/s. Source: rdma-core, infiniband-diags/iblinkinfo.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import CableSighting, Line, Origin, Reading
from webhook.diagnose.tools.readers.notation import number
from webhook.diagnose.tools.readers.rows import Reader, RowReading, read_rows

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
#: Of one lane: the speed of the signal, and what it carries (Gb/s), as ibstat counts.
_CARRIED = {14.0625: 14.0, 25.78125: 25.0, 53.125: 50.0, 106.25: 100.0, 212.5: 200.0}
#: How a driver describes a port (%h %d); "HCA-1" counts the devices.
_MACHINE = re.compile(
    r"(?P<node>[\w.-]{1,63}) (?:HCA-\d{1,3}"
    r"|(?P<device>[a-z][a-z0-9]{1,12}_(?:bond_)?\d{1,4}|(?:ib|roce|rdma)[a-zP][\w]{1,30}))",
    re.ASCII,
)


def read_iblinkinfo(lines: Sequence[Line]) -> Reading:
    """Read the rows: a record for each port of a machine that a row shows."""
    return read_rows(lines, _LinkTable().row)


class _LinkTable:
    """The header that is open."""

    def __init__(self) -> None:
        self._head: re.Match[str] | None = None
        self._ports: set[str] = set()

    def row(self, line: Line) -> RowReading | None:
        head, row = _IBLINKINFO_HEAD.fullmatch(line.text), _IBLINKINFO_ROW.fullmatch(line.text)
        if head is not None:
            self._head, self._ports = head, set()
        elif row is not None:
            if row["port"] in self._ports:
                self._head = None  # that of these rows is missing
            self._ports.add(row["port"])
            return RowReading(_cable(Origin(_IBLINKINFO, line.number), row, self._near(row)))
        return RowReading() if head or _UNAVAILABLE.fullmatch(line.text) else None

    def _near(self, row: re.Match[str]) -> str | None:
        """Return the description of the near end; with -l, it is in the row."""
        if row["name"] or self._head is None:
            return row["name"]
        return self._head["name"] if (self._head["type"] == "CA") == bool(row["guid"]) else None


def _cable(origin: Origin, row: re.Match[str], near: str | None) -> tuple[CableSighting, ...]:
    port, far, far_port = int(row["port"]), row["far"] or None, number(row["far_port"] or "")
    machine, far_machine = _MACHINE.fullmatch(near or ""), _MACHINE.fullmatch(far or "")
    rate, complaint = _rate(row), row["complaint"] or None
    if machine is not None or (row["guid"] and not row["name"]):
        node, device = (machine["node"], machine["device"]) if machine else (None, None)
        return (CableSighting(origin, node, device, port, rate, far, far_port, complaint),)
    if far_machine is not None and far_port is not None:
        node, device = far_machine["node"], far_machine["device"]
        return (CableSighting(origin, node, device, far_port, rate, near, port, complaint),)
    return ()


def _rate(row: re.Match[str]) -> float | None:
    if row["speed"] is None:
        return None
    speed = float(row["speed"])
    return int(row["width"]) * _CARRIED.get(speed, speed)


IBLINKINFO = Reader(_IBLINKINFO, read_iblinkinfo)
