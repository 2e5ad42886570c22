"""rdma system show (iproute2), which says whether containers see the host's RDMA devices.

    netns shared copy-on-fork on
    netns exclusive
    [{"netns":"shared","copy-on-fork":true}]                    (-j)

Source: iproute2, rdma/sys.c.
"""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import Line, Origin, SettingSighting
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

_RDMA_SYSTEM = "rdma system show"

_RDMA_SYSTEM_ROW = re.compile(
    r"\s{0,40}netns (shared|exclusive)"
    r"(?: (?:copy-on-fork|privileged-qkey|monitor) (?:on|off)){0,4}\s*"
)
_JSON = re.compile(
    r'\s{0,40}\[?\{\s{0,8}"netns"\s{0,8}:\s{0,8}"(shared|exclusive)"'
    r'(?:,\s{0,8}"[a-z-]{1,40}"\s{0,8}:\s{0,8}(?:true|false|"on"|"off")\s{0,8}){0,4}\s{0,8}\}\]?\s*'
)


def _rdma_system_row(line: Line) -> RowReading | None:
    """Read the mode."""
    mode = _RDMA_SYSTEM_ROW.fullmatch(line.text) or _JSON.fullmatch(line.text)
    if mode is None:
        return None
    return RowReading((SettingSighting(Origin(_RDMA_SYSTEM, line.number), "netns", mode[1]),))


read_rdma_system = ReadsRows(_rdma_system_row)
RDMA_SYSTEM = Reader(_RDMA_SYSTEM, read_rdma_system)
