"""lsmod, which lists the modules of the kernel, also as /proc/modules.

    Module                  Size  Used by
    nvidia              56717312  3 nvidia_uvm,nvidia_peermem,nvidia_modeset
    nvidia 56717312 3 nvidia_uvm,nvidia_peermem,nvidia_modeset, Live 0x0000000000000000 (POE)

The kernel lists the newest module first, and nvidia_peermem is newer than nvidia, which it uses: so
it is not loaded if a list shows it neither above the row of nvidia nor in this row. Only a whole
list says so: lsmod's from its header on, and a row of /proc/modules that goes on behind the users.
Source: kmod, tools/lsmod.c; Linux, kernel/module; NVIDIA/open-gpu-kernel-modules,
kernel-open/nvidia-peermem.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line, Origin, Reading, SettingSighting
from webhook.diagnose.tools.readers.rows import Reader

_LSMOD = "lsmod"

#: Its predecessor, which a package of its own brought, has another name.
_PEERMEM = frozenset({"nvidia_peermem", "nv_peer_mem"})
_HEADER = re.compile(r"\s{0,40}Module\s{1,40}Size\s{1,20}Used by\s*")
_MODULE = re.compile(
    r"(?P<name>[a-z0-9]\w{0,60})\s{1,40}\d{3,12}\s{1,20}\d{1,6}"
    r"(?:\s{1,4}(?P<users>-|[\w,]{1,1500}))?"
    r"(?P<live>\s(?:Live|Loading|Unloading) 0x[0-9a-f]{1,16}(?: \([A-Z]{1,6}\))?)?\s*",
    re.ASCII,
)


def read_lsmod(lines: Sequence[Line]) -> Reading:
    """Read the rows of the modules that matter; other rows only below the header."""
    sightings: list[SettingSighting] = []
    taken: set[int] = set()
    above: set[str] | None = None  # the names in lsmod's list so far
    for line in lines:
        module = _MODULE.fullmatch(line.text)
        if module is None:
            above = set() if _HEADER.fullmatch(line.text) else None
        elif above is not None:
            above.add(module["name"])
        loaded = _peermem(module, above) if module else None
        if above is not None or loaded or (module and module["live"]):
            taken.add(line.number)
        if loaded:
            sightings.append(SettingSighting(Origin(_LSMOD, line.number), "peermem", loaded))
    return Reading(tuple(sightings), frozenset(taken))


def _peermem(module: re.Match[str], above: set[str] | None) -> str | None:
    """Return whether it is loaded, if the row says so; `above` is None outside of a list."""
    users = frozenset((module["users"] or "").split(","))
    of_nvidia = module["name"] == "nvidia"
    if module["name"] in _PEERMEM or (of_nvidia and users & _PEERMEM):
        return "yes"
    whole = module["live"] is not None or (above is not None and not above & _PEERMEM)
    return "no" if of_nvidia and whole else None


LSMOD = Reader(_LSMOD, read_lsmod)
