"""The prefixes of pdsh and clush before the lines of benchmarks: the names of machines.

    gpu-01:  #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
    gpu-02: Couldn't allocate MR

Programs, too, begin lines with a word and a colon ("libibverbs: Warning"). So a word is the name of
a machine only before the head of a benchmark, or if it differs from such a name in digits alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line

_MACHINE_PREFIX = re.compile(
    r"(?:pdsh@\S{1,80}: |clush: )?([A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})):(?: (.*))?"
)
_HEAD = re.compile(r"\s*(?:#bytes\s{1,40}#iterations|# nThread \d|\S.{0,60}(?:BW|Latency) Test$)")
_DIGITS = re.compile(r"\d+")


def split_machines(lines: Sequence[Line]) -> dict[str | None, list[Line]]:
    """Return the lines of each machine, without prefixes; those of no machine are of None."""
    split = [(line, _MACHINE_PREFIX.fullmatch(line.text)) for line in lines]
    heads = {found[1] for _, found in split if found and _HEAD.match(found[2] or "")}
    shapes = {_shape(name) for name in heads}
    machines: dict[str | None, list[Line]] = {}
    for line, found in split:
        if found and _shape(found[1]) in shapes:
            mine = line._replace(text=(found[2] or "").strip())
            machines.setdefault(found[1], []).append(mine)
        else:
            machines.setdefault(None, []).append(line)
    return machines


def _shape(name: str) -> str:
    return _DIGITS.sub("0", name)
