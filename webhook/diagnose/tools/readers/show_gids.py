"""show_gids (mlnx-tools), a row for each GID that is not zero.

    DEV     PORT    INDEX   GID                                     IPv4            VER     DEV
    mlx5_0  1       3       0000:0000:0000:0000:0000:ffff:0a00:0004 10.0.0.4        v2      ens3f0

On InfiniBand it writes v1 or nothing, and no network interface. Source: mlnx-tools, show_gids.
"""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import GidSighting, Line, Origin
from webhook.diagnose.tools.readers.notation import DEVICE, NETDEV, gid
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

_SHOW_GIDS = "show_gids"

_SHOW_GIDS_ROW = re.compile(
    rf"\s{{0,40}}(?P<device>{DEVICE})\s{{1,20}}(?P<port>\d{{1,3}})\s{{1,20}}(?P<index>\d{{1,4}})"
    r"\s{1,20}(?P<gid>(?:[0-9a-f]{4}:){7}[0-9a-f]{4})(?:\s{1,40}\d{1,3}(?:\.\d{1,3}){3})?"
    rf"(?:\s{{1,40}}(?P<version>v[12])(?:\s{{1,40}}(?P<netdev>{NETDEV}))?)?\s*",
    re.ASCII,
)
_OTHER = re.compile(
    r"\s{0,40}(?:DEV\s+PORT\s+INDEX\s+GID\s+IPv4\s+VER\s+DEV|---\s+----\s+-----\s+---\s[\s-]{1,80}"
    r"|n_gids_found=\d{1,9})\s*",
    re.ASCII,
)


def _show_gids_row(line: Line) -> RowReading | None:
    """Read the rows, one for each GID."""
    row = _SHOW_GIDS_ROW.fullmatch(line.text)
    address = gid(row["gid"]) if row else None
    if row is None or address is None:
        return RowReading() if _OTHER.fullmatch(line.text) else None
    found = GidSighting(
        Origin(_SHOW_GIDS, line.number),
        row["device"],
        int(row["port"]),
        int(row["index"]),
        address,
        row["version"],
        row["netdev"],
    )
    return RowReading((found,))


read_show_gids = ReadsRows(_show_gids_row)
SHOW_GIDS = Reader(_SHOW_GIDS, read_show_gids)
