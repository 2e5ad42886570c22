"""ofed_info -s, which says which package of NVIDIA's drivers is installed.

    MLNX_OFED_LINUX-24.10-0.7.0.0:
    OFED-internal-25.01-0.6.0:

The second is that of DOCA. Source: MLNX_OFED documentation, "Installed Components".
"""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import Line, Origin, SettingSighting
from webhook.diagnose.tools.readers.driver_versions import ofed_driver
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

_OFED_INFO = "ofed_info -s"

_ROW = re.compile(
    r"\s{0,40}(?:MLNX_OFED_LINUX|MLNX_EN|OFED-internal|DOCA_OFED)-([\d.-]{3,40}):?\s*", re.ASCII
)


def _ofed_info_row(line: Line) -> RowReading | None:
    """Read the version."""
    row = _ROW.fullmatch(line.text)
    driver = row and ofed_driver(row[1])
    if driver is None:
        return None
    return RowReading((SettingSighting(Origin(_OFED_INFO, line.number), "driver", driver),))


read_ofed_info = ReadsRows(_ofed_info_row)
OFED_INFO = Reader(_OFED_INFO, read_ofed_info)
