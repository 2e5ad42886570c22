"""ibv_devices (libibverbs), a row for each device.

    device                 node GUID
    ------              ----------------
    mlx5_0              a088c20300123456

Source: rdma-core, libibverbs/examples/device_list.c.
"""

from __future__ import annotations

import re

from webhook.machine.readers.notation import DEVICE, guid
from webhook.machine.readers.rows import ReadsRows, RowReading
from webhook.machine.sightings import Line, Origin, PortSighting

TOOL = "ibv_devices"

_ROW = re.compile(rf"\s{{0,8}}(?P<device>{DEVICE})\s{{1,30}}(?P<guid>[0-9a-f]{{16}})\s*", re.ASCII)
_HEAD = re.compile(r"\s{0,8}(?:device\s{1,40}node GUID|-{6}\s{1,40}-{16})\s*")


def _row(line: Line) -> RowReading | None:
    """Read the rows."""
    row = _ROW.fullmatch(line.text)
    if row is None:
        return RowReading() if _HEAD.fullmatch(line.text) else None
    sighting = PortSighting(Origin(TOOL, line.number), row["device"], node_guid=guid(row["guid"]))
    return RowReading((sighting,))


read = ReadsRows(_row)
