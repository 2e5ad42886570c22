"""lsmod, which lists the modules of the kernel, also as /proc/modules.

    Module                  Size  Used by
    nvidia              56717312  3 nvidia_uvm,nvidia_peermem,nvidia_modeset
    nvidia 56717312 3 nvidia_uvm,nvidia_peermem,nvidia_modeset, Live 0x0000000000000000 (POE)

The row of nvidia names all modules that use it, and nvidia_peermem always does: so this row says
that nvidia_peermem is not loaded, also where the list was cut. Source: kmod, tools/lsmod.c;
NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia-peermem.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.machine.sightings import Line, Origin, Reading, SettingSighting

TOOL = "lsmod"

#: Its predecessor, which a package of its own brought, has another name.
_PEERMEM = frozenset({"nvidia_peermem", "nv_peer_mem"})
_HEADER = re.compile(r"\s{0,40}Module\s{1,40}Size\s{1,20}Used by\s*")
_MODULE = re.compile(
    r"(?P<name>[a-z0-9]\w{0,60})\s{1,40}\d{3,12}\s{1,20}\d{1,6}"
    r"(?:\s{1,4}(?P<users>-|[\w,]{1,1500}))?"
    r"(?P<live>\s(?:Live|Loading|Unloading) 0x[0-9a-f]{1,16}(?: \([A-Z]{1,6}\))?)?\s*",
    re.ASCII,
)


def read(lines: Sequence[Line]) -> Reading:
    """Read the rows of the modules that matter; other rows only below the header."""
    sightings: list[SettingSighting] = []
    taken: set[int] = set()
    listed = False
    for line in lines:
        module = _MODULE.fullmatch(line.text)
        listed = bool(_HEADER.fullmatch(line.text) or (listed and module))
        loaded = _peermem(module) if module else None
        if listed or loaded or (module and module["live"]):
            taken.add(line.number)
        if loaded:
            sightings.append(SettingSighting(Origin(TOOL, line.number), "peermem", loaded))
    return Reading(tuple(sightings), frozenset(taken))


def _peermem(module: re.Match[str]) -> str | None:
    users = frozenset((module["users"] or "").split(","))
    if module["name"] in _PEERMEM:
        return "yes"
    if module["name"] != "nvidia":
        return None
    return "yes" if users & _PEERMEM else "no"
