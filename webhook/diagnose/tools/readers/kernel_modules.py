"""Readers for a node's kernel modules and drivers: lsmod, modinfo and ofed_info."""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line, Origin, PropertyObservation, Reading
from webhook.diagnose.tools.readers.layouts import LineByLineReader, Reader, RowReading
from webhook.diagnose.tools.readers.notation import mlx5_driver, ofed_driver

# lsmod, which lists the modules of the kernel, also as /proc/modules.
#
#   Module                  Size  Used by
#   nvidia              56717312  3 nvidia_uvm,nvidia_peermem,nvidia_modeset
#   nvidia 56717312 3 nvidia_uvm,nvidia_peermem,nvidia_modeset, Live 0x0000000000000000 (POE)
#
# The kernel lists the newest module first, and nvidia_peermem is newer than nvidia, which it uses:
# so it is not loaded if a list shows it neither above the row of nvidia nor in this row. Only a
# complete list proves this: lsmod's from its header on, and a row of /proc/modules that continues
# after the users. A kernel that cannot unload modules does not know the users, and shows "- -".
# Source: kmod, tools/lsmod.c; Linux, kernel/module; NVIDIA/open-gpu-kernel-modules,
# kernel-open/nvidia-peermem.

_LSMOD = "lsmod"

#: The module, and its predecessor from a separate package.
_PEERMEM = frozenset({"nvidia_peermem", "nv_peer_mem"})
_HEADER = re.compile(r"\s{0,40}Module\s{1,40}Size\s{1,20}Used by\s*")
_MODULE = re.compile(
    r"(?P<name>[a-z0-9]\w{0,60})\s{1,40}\d{3,12}\s{1,20}(?P<count>\d{1,6}|-)"
    r"(?:\s{1,4}(?P<users>-|[\w,]{1,1500}))?"
    r"(?P<live>\s(?:Live|Loading|Unloading) 0x[0-9a-f]{1,16}(?: \([A-Z]{1,6}\))?)?\s*",
    re.ASCII,
)


def read_lsmod(lines: Sequence[Line]) -> Reading:
    """Read the rows of the modules that matter; other rows only below the header."""
    observations: list[PropertyObservation] = []
    recognized: set[int] = set()
    above: set[str] | None = None  # the names in lsmod's list so far
    for line in lines:
        module = _MODULE.fullmatch(line.text)
        if module is None:
            above = set() if _HEADER.fullmatch(line.text) else None
        elif above is not None:
            above.add(module["name"])
        peermem = _peermem(module, above) if module else None
        if above is not None or peermem or (module and module["live"]):
            recognized.add(line.number)
        if peermem:
            observations.append(
                PropertyObservation(Origin(_LSMOD, line.number), "peermem", peermem)
            )
    return Reading(tuple(observations), frozenset(recognized))


def _peermem(module: re.Match[str], above: set[str] | None) -> str | None:
    """Return "yes" or "no" if the row decides it, else None; outside a list, `above` is unset."""
    users = frozenset((module["users"] or "").split(","))
    of_nvidia = module["name"] == "nvidia"
    if module["name"] in _PEERMEM or (of_nvidia and users & _PEERMEM):
        return "yes"
    if module["count"] == "-":
        return None
    complete = module["live"] is not None or (above is not None and not above & _PEERMEM)
    return "no" if of_nvidia and complete else None


LSMOD = Reader(_LSMOD, read_lsmod)


# modinfo mlx5_core, which shows the origin of the driver for NVIDIA's cards.
#
#   filename:       /lib/modules/5.15.0-134-generic/updates/dkms/mlx5_core.ko
#   version:        24.10-0.7.0
#   vermagic:       5.15.0-134-generic SMP mod_unload modversions
#
# The kernel's drivers are in its folder kernel/, separately installed ones in updates/ or extra/
# (kernel.org, Documentation/kbuild/modules.rst); from kernel 5.11 on, its drivers have no version.
# Source: kmod, tools/modinfo.c.

_MODINFO = "modinfo mlx5_core"

_FILE = re.compile(
    r"filename:\s{1,20}\S{0,100}/lib/modules/([^/\s]{1,100})/(?P<place>kernel|updates|extra|weak-updates)/"
    r"\S{0,200}(?<=/)(?P<module>[\w-]{1,60})\.ko(?:\.(?:gz|xz|zst))?\s*",
    re.ASCII,
)
_MODINFO_FIELD = re.compile(
    r"(?P<name>[a-z][\w-]{1,30}):\s{1,20}(?P<value>\S.{0,400})|sig_\w{1,20}:.{0,400}|\t\t\S.{0,200}"
)


def read_modinfo(lines: Sequence[Line]) -> Reading:
    """Read the description of the module mlx5_core, and of no other module."""
    observations: list[PropertyObservation] = []
    recognized: set[int] = set()
    module = ""
    for line in lines:
        start, field = _FILE.fullmatch(line.text), _MODINFO_FIELD.fullmatch(line.text)
        if start:
            module = start["module"]
        elif field is None:
            module = ""
        if module:
            recognized.add(line.number)
        if module == "mlx5_core":
            observations.extend(_driver(line, start, field))
    return Reading(tuple(observations), frozenset(recognized))


def _driver(
    line: Line, start: re.Match[str] | None, field: re.Match[str] | None
) -> tuple[PropertyObservation, ...]:
    driver = None
    if start and start["place"] == "kernel":
        driver = "inbox"
    elif field and field["name"] == "version":
        driver = mlx5_driver(field["value"].strip())
    return (PropertyObservation(Origin(_MODINFO, line.number), "driver", driver),) if driver else ()


MODINFO = Reader(_MODINFO, read_modinfo)


# ofed_info -s, which shows the installed package of NVIDIA's drivers.
#
#   MLNX_OFED_LINUX-24.10-0.7.0.0:
#   OFED-internal-25.01-0.6.0:
#
# The second belongs to DOCA. Source: MLNX_OFED documentation, "Installed Components".

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
    return RowReading((PropertyObservation(Origin(_OFED_INFO, line.number), "driver", driver),))


read_ofed_info = LineByLineReader(_ofed_info_row)
OFED_INFO = Reader(_OFED_INFO, read_ofed_info)
