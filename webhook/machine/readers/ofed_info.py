"""ofed_info -s, which says which package of NVIDIA's drivers is installed.

    MLNX_OFED_LINUX-24.10-0.7.0.0:
    OFED-internal-25.01-0.6.0:

The second is that of DOCA. Source: MLNX_OFED documentation, "Installed Components".
"""

from __future__ import annotations

import re

from webhook.machine.readers.driver_versions import ofed_driver
from webhook.machine.readers.rows import ReadsRows, RowReading
from webhook.machine.sightings import Line, Origin, SettingSighting

TOOL = "ofed_info -s"

_ROW = re.compile(
    r"\s{0,40}(?:MLNX_OFED_LINUX|MLNX_EN|OFED-internal|DOCA_OFED)-([\d.-]{3,40}):?\s*", re.ASCII
)


def _row(line: Line) -> RowReading | None:
    """Read the version."""
    row = _ROW.fullmatch(line.text)
    driver = row and ofed_driver(row[1])
    if driver is None:
        return None
    return RowReading((SettingSighting(Origin(TOOL, line.number), "driver", driver),))


read = ReadsRows(_row)
