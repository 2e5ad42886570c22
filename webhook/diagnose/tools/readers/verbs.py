"""ibv_devices (libibverbs), a row for each device.

    device                 node GUID
    ------              ----------------
    mlx5_0              a088c20300123456

Source: rdma-core, libibverbs/examples/device_list.c.
"""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import Line, Origin, PortSighting
from webhook.diagnose.tools.readers.notation import DEVICE, guid
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

_IBV_DEVICES = "ibv_devices"

_IBV_DEVICES_ROW = re.compile(
    rf"\s{{0,8}}(?P<device>{DEVICE})\s{{1,30}}(?P<guid>[0-9a-f]{{16}})\s*", re.ASCII
)
_HEAD = re.compile(r"\s{0,8}(?:device\s{1,40}node GUID|-{6}\s{1,40}-{16})\s*")


def _ibv_devices_row(line: Line) -> RowReading | None:
    """Read the rows."""
    row = _IBV_DEVICES_ROW.fullmatch(line.text)
    if row is None:
        return RowReading() if _HEAD.fullmatch(line.text) else None
    sighting = PortSighting(
        Origin(_IBV_DEVICES, line.number), row["device"], node_guid=guid(row["guid"])
    )
    return RowReading((sighting,))


read_ibv_devices = ReadsRows(_ibv_devices_row)
IBV_DEVICES = Reader(_IBV_DEVICES, read_ibv_devices)
