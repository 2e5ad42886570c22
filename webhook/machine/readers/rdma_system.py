"""rdma system show (iproute2), which says whether containers see the host's RDMA devices.

    netns shared copy-on-fork on
    netns exclusive
    [{"netns":"shared","copy-on-fork":true}]                    (-j)

Source: iproute2, rdma/sys.c.
"""

from __future__ import annotations

import re

from webhook.machine.readers.rows import ReadsRows, RowReading
from webhook.machine.sightings import Line, Origin, SettingSighting

TOOL = "rdma system show"

_ROW = re.compile(
    r"\s{0,40}netns (shared|exclusive)"
    r"(?: (?:copy-on-fork|privileged-qkey|monitor) (?:on|off)){0,4}\s*"
)
_JSON = re.compile(
    r'\s{0,40}\[?\{\s{0,8}"netns"\s{0,8}:\s{0,8}"(shared|exclusive)"'
    r'(?:,\s{0,8}"[a-z-]{1,40}"\s{0,8}:\s{0,8}(?:true|false|"on"|"off")\s{0,8}){0,4}\s{0,8}\}\]?\s*'
)


def _row(line: Line) -> RowReading | None:
    """Read the mode."""
    mode = _ROW.fullmatch(line.text) or _JSON.fullmatch(line.text)
    if mode is None:
        return None
    return RowReading((SettingSighting(Origin(TOOL, line.number), "netns", mode[1]),))


read = ReadsRows(_row)
