"""LimitMEMLOCK of containerd, which is what a container without IPC_LOCK may lock.

    LimitMEMLOCK=infinity                                      (systemctl show, or a unit file)
    LimitMEMLOCKSoft=8388608                                   (systemctl show, all properties)
    LimitMEMLOCK=64K:infinity                                  (a unit file: soft and hard limit)
    Max locked memory         8388608      8388608      bytes  (/proc/PID/limits)

The kernel compares with the soft limit (Linux, drivers/infiniband/core/umem.c). What stands below
the name of another unit (`# /lib/systemd/system/kubelet.service`, `Id=`, `Description=`) is not
containerd's. Sources: systemd.exec(5), systemd.syntax(7), proc_pid_limits(5).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line, Origin, Reading, SettingSighting
from webhook.diagnose.tools.readers.rows import Reader

_CONTAINERD_MEMLOCK = "containerd's LimitMEMLOCK"

_SHOWN = re.compile(
    r"\s{0,40}LimitMEMLOCK(?P<soft>Soft)?=(?P<value>[0-9A-Za-z]{1,30}(?::[0-9A-Za-z]{1,30})?)\s*"
)
_PROC = re.compile(
    r"\s{0,40}Max locked memory\s{1,40}(?P<value>\d{1,20}|unlimited)\s{1,40}(?:\d{1,20}|unlimited)"
    r"\s{1,40}bytes\s*",
    re.ASCII,
)
#: Other lines of /proc/PID/limits, and of units.
_OTHER_LIMIT = re.compile(
    r"\s{0,40}(?:Limit\s{1,40}Soft Limit\s{1,40}Hard Limit\s{1,40}Units"
    r"|Max (?!locked memory)[a-z -]{4,25}(?:\s{1,40}(?:\d{1,20}|unlimited)){2}"
    r"(?:\s{1,40}[a-z]{2,12})?)\s*",
    re.ASCII,
)
_OTHER_FIELD = re.compile(
    r"\[(?:Unit|Service|Install)\]|(?!LimitMEMLOCK)[A-Z][A-Za-z]{2,40}=.{0,1000}"
)
_UNIT = re.compile(r"\s{0,40}(?:# /\S{1,200}/|Id=|Description=)(\S.{0,200})")
_SIZE = re.compile(r"(\d{1,20})([KMGTPE]?)", re.ASCII)
#: systemd before 229 shows the largest number of 64 bits.
_INFINITE = frozenset({"infinity", "unlimited", str(2**64 - 1)})


def read_containerd_memlock(lines: Sequence[Line]) -> Reading:
    """Read the limits of containerd; where both are shown, the soft one is the one that counts."""
    found: list[tuple[bool, SettingSighting]] = []
    taken: set[int] = set()
    unit = ""
    for line in lines:
        named = _UNIT.fullmatch(line.text)
        unit = named[1].lower() if named else unit
        limit = _SHOWN.fullmatch(line.text) or _PROC.fullmatch(line.text)
        value = limit and _bytes(limit["value"])
        if value or named or _is_other(line.text, unit):
            taken.add(line.number)
        if limit and value and "containerd" in (unit or "containerd"):
            soft = limit.groupdict().get("soft") is not None
            found.append(
                (soft, SettingSighting(Origin(_CONTAINERD_MEMLOCK, line.number), "memlock", value))
            )
    only_soft = any(soft for soft, _ in found)
    return Reading(tuple(one for soft, one in found if soft or not only_soft), frozenset(taken))


def _is_other(text: str, unit: str) -> bool:
    in_unit = bool(unit) and (not text.strip() or _OTHER_FIELD.fullmatch(text.rstrip()))
    return bool(in_unit or _OTHER_LIMIT.fullmatch(text))


def _bytes(text: str) -> str | None:
    """Return a limit as bytes or "infinity"; None if it is neither."""
    soft = text.partition(":")[0]
    if soft in _INFINITE:
        return "infinity"
    size = _SIZE.fullmatch(soft)
    return str(int(size[1]) * 1024 ** " KMGTPE".index(size[2] or " ")) if size else None


CONTAINERD_MEMLOCK = Reader(_CONTAINERD_MEMLOCK, read_containerd_memlock)
