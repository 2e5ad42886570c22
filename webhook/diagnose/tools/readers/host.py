"""uname -a and uname -r, which name the kernel.

    Linux node1 5.15.0-134-generic #145-Ubuntu SMP Wed Feb 12 20:08:39 UTC 2025 x86_64 ... GNU/Linux
    5.15.0-134-generic

The second is taken only with a word after the numbers, since versions of other things are numbers
alone. Source: coreutils, src/uname.c.
"""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import Line, Origin, SettingSighting
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

_UNAME = "uname"

_RELEASE = r"[2-9]\.\d{1,3}\.\d{1,3}[\w.+~-]{0,80}"
_ALL = re.compile(
    rf"\s{{0,40}}Linux (?P<host>[\w.-]{{1,64}}) (?P<release>{_RELEASE}) #\d.{{0,300}}", re.ASCII
)
_ALONE = re.compile(
    r"\s{0,40}([2-9]\.\d{1,3}\.\d{1,3}-[\w.+~-]{0,40}[a-z][\w.+~-]{0,40})\s*", re.ASCII
)


def _uname_row(line: Line) -> RowReading | None:
    """Read the release of the kernel, and of `uname -a` the name of the machine."""
    origin = Origin(_UNAME, line.number)
    whole, alone = _ALL.fullmatch(line.text), _ALONE.fullmatch(line.text)
    if whole:
        host = SettingSighting(origin, "hostname", whole["host"])
        return RowReading((host, SettingSighting(origin, "kernel", whole["release"])))
    return RowReading((SettingSighting(origin, "kernel", alone[1]),)) if alone else None


read_uname = ReadsRows(_uname_row)
UNAME = Reader(_UNAME, read_uname)
