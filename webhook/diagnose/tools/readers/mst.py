"""Reader for NVIDIA's cards: mst status."""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import (
    CardObservation,
    Line,
    Origin,
    PortObservation,
    Reading,
)
from webhook.diagnose.tools.readers.layouts import RECOGNIZED, Reader, RowReading, read_rows
from webhook.diagnose.tools.readers.notation import DEVICE, PCI, number

# mst status (MFT), with -v or -vv a row for each PCI function.
#
#   DEVICE_TYPE             MST                           PCI       RDMA     NET          NUMA
#   ConnectX7(rev:0)        /dev/mst/mt4129_pciconf5      e5:00.0   mlx5_5   net-ibs5     1
#   BlueField3(rev:1)       NA                            03:00.1            net-p1,net-p2  -1
#
# Columns may be empty, and web pages collapse blanks, so that only the form of a word shows its
# column. A line that ends before NUMA was cut, possibly within a name. Two functions of a bond have
# one RDMA device. Without -v it writes the PCI address below the device:
#
#   /dev/mst/mt4129_pciconf0         - PCI configuration cycles access.
#                                      domain:bus:dev.fn=0000:0d:00.0 addr.reg=88 data.reg=92 [...]

_MST_STATUS = "mst status"

_ROW = re.compile(
    rf"\s{{0,20}}(?P<type>[A-Za-z][\w-]{{1,40}})\(rev:\w{{1,4}}\)\s{{1,60}}"
    rf"(?:/dev/mst/(?:mt(?P<id>\d{{3,6}})_)?\S{{1,80}}|NA)\s{{1,60}}(?P<pci>{PCI})"
    rf"(?P<rest>(?:\s{{1,60}}(?P<device>(?!net-){DEVICE}))?(?:\s{{1,60}}(?P<net>net-\S{{1,200}}))?"
    r"\s{1,60}(?P<numa>-?\d{1,3}|NA))?(?P<cut>(?:\s.{0,400})?)",
    re.ASCII,
)
_DEVICE = re.compile(
    r"\s{0,20}/dev/mst/(?:mt(?P<id>\d{3,6})_)?\S{1,80}\s{1,60}- PCI .{1,80}", re.ASCII
)
_ADDRESS = re.compile(rf"\s{{0,80}}domain:bus:dev\.fn=(?P<pci>{PCI})(?:\s.{{0,200}})?", re.ASCII)
_OTHER = re.compile(
    r"\s{0,80}(?:MST (?:modules|devices):|PCI devices:"
    r"|MST PCI(?: configuration)? module (?:is not )?loaded"
    r"|DEVICE_TYPE\s+MST\s+PCI\s+RDMA\s+NET\s+NUMA|Chip revision is: \w{1,4})\s*",
    re.ASCII,
)
_RULE = re.compile(r"-{4,40}\s*|\.\s*")


def read_mst_status(lines: Sequence[Line]) -> Reading:
    """Read the rows, one for each PCI function."""
    rows = _MstRows()
    return read_rows(lines, rows.read_row)


class _MstRows:
    """A row reader that depends on the previous line."""

    def __init__(self) -> None:
        #: Whether the last line was the tool's: only then is a rule or a dot after it, too.
        self._inside = False
        #: The device whose address is on the next line.
        self._device: re.Match[str] | None = None

    def read_row(self, line: Line) -> RowReading | None:
        if not line.text.strip():
            return None
        device, self._device = self._device, _DEVICE.fullmatch(line.text)
        address = _ADDRESS.fullmatch(line.text)
        ruled = self._inside and _RULE.fullmatch(line.text)
        if self._device or ruled or _OTHER.fullmatch(line.text):
            reading: RowReading | None = RECOGNIZED
        elif address is not None and device is not None:
            reading = _mst_status_card(line, device, address)
        else:
            reading = _mst_status_port(line)
        self._inside = reading is not None
        return reading


def _mst_status_card(line: Line, device: re.Match[str], address: re.Match[str]) -> RowReading:
    pci, device_id = address["pci"].lower(), number(device["id"] or "")
    return RowReading(
        (CardObservation(Origin(_MST_STATUS, line.number), pci, device_id=device_id),)
    )


def _mst_status_port(line: Line) -> RowReading | None:
    row = _ROW.fullmatch(line.text)
    if row is None:
        return None
    complete = row["rest"] is not None
    net = (row["net"] or "").split(",")
    observation = PortObservation(
        Origin(_MST_STATUS, line.number),
        row["device"],
        netdevs=tuple(name.removeprefix("net-") for name in net if name) if complete else None,
        pci=row["pci"].lower(),
        device_id=number(row["id"] or ""),
        model=row["type"],
        numa=number(row["numa"] or ""),
    )
    fully_read = complete and not row["cut"].strip()
    name = row["device"] or row["pci"].lower()
    return RowReading((observation,), fully_read, "" if complete else name)


MST_STATUS = Reader(_MST_STATUS, read_mst_status)
