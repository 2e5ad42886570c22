"""Readers for tools that describe a node: its kernel, product, modules, drivers and limits.

They are uname, containerd's LimitMEMLOCK, dmidecode, hostnamectl, lsmod, modinfo and ofed_info.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import (
    Line,
    NodeProperty,
    Origin,
    PropertyObservation,
    Reading,
)
from webhook.diagnose.tools.readers.layouts import RECOGNIZED, LineByLineReader, Reader, RowReading
from webhook.diagnose.tools.readers.notation import dmi_value, mlx5_driver, ofed_driver

# uname -a and uname -r, which show the kernel.
#
#   Linux node1 5.15.0-134-generic #145-Ubuntu SMP Wed Feb 12 20:08:39 UTC 2025 x86_64 ... GNU/Linux
#   5.15.0-134-generic
#
# The second is taken only with a word after the numbers, since other versions consist only of
# numbers. Source: coreutils, src/uname.c.

_UNAME = "uname"

_RELEASE = r"[2-9]\.\d{1,3}\.\d{1,3}[\w.+~-]{0,80}"
_ALL = re.compile(
    rf"\s{{0,40}}Linux (?P<host>[\w.-]{{1,64}}) (?P<release>{_RELEASE}) #\d.{{0,300}}", re.ASCII
)
_ALONE = re.compile(
    r"\s{0,40}([2-9]\.\d{1,3}\.\d{1,3}-[\w.+~-]{0,40}[a-z][\w.+~-]{0,40})\s*", re.ASCII
)


def _uname_row(line: Line) -> RowReading | None:
    """Read the release of the kernel, and with `uname -a` also the host name."""
    origin = Origin(_UNAME, line.number)
    full, alone = _ALL.fullmatch(line.text), _ALONE.fullmatch(line.text)
    if full:
        host = PropertyObservation(origin, "hostname", full["host"])
        return RowReading((host, PropertyObservation(origin, "kernel", full["release"])))
    return RowReading((PropertyObservation(origin, "kernel", alone[1]),)) if alone else None


read_uname = LineByLineReader(_uname_row)
UNAME = Reader(_UNAME, read_uname)


# LimitMEMLOCK of containerd: the memory that a container without IPC_LOCK may lock.
#
#   LimitMEMLOCK=infinity                                      (systemctl show, or a unit file)
#   LimitMEMLOCKSoft=8388608                                   (systemctl show, all properties)
#   LimitMEMLOCK=64K:infinity                                  (a unit file: soft and hard limit)
#   Max locked memory         8388608      8388608      bytes  (/proc/PID/limits)
#
# The kernel compares with the soft limit (Linux, drivers/infiniband/core/umem.c). Lines below the
# name of another unit (`# /lib/systemd/system/kubelet.service`, `Id=`, `Description=`) are not
# containerd's. Sources: systemd.exec(5), systemd.syntax(7), proc_pid_limits(5).

_CONTAINERD_MEMLOCK = "containerd's LimitMEMLOCK"

_LIMIT_LINE = re.compile(
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
    """Read the limits of containerd; if both are shown, the soft limit counts."""
    limits: list[tuple[bool, PropertyObservation]] = []
    recognized: set[int] = set()
    unit = ""
    for line in lines:
        named = _UNIT.fullmatch(line.text)
        unit = named[1].lower() if named else unit
        limit = _LIMIT_LINE.fullmatch(line.text) or _PROC.fullmatch(line.text)
        value = limit and _bytes(limit["value"])
        if value or named or _is_other(line.text, unit):
            recognized.add(line.number)
        if limit and value and "containerd" in (unit or "containerd"):
            soft = limit.groupdict().get("soft") is not None
            origin = Origin(_CONTAINERD_MEMLOCK, line.number)
            limits.append((soft, PropertyObservation(origin, "memlock", value)))
    only_soft = any(soft for soft, _ in limits)
    return Reading(
        tuple(memlock for soft, memlock in limits if soft or not only_soft), frozenset(recognized)
    )


def _is_other(text: str, unit: str) -> bool:
    in_unit = bool(unit) and (not text.strip() or _OTHER_FIELD.fullmatch(text.rstrip()))
    return bool(in_unit or _OTHER_LIMIT.fullmatch(text))


def _bytes(text: str) -> str | None:
    """Return a limit in bytes, or "infinity"; None for other text."""
    soft = text.partition(":")[0]
    if soft in _INFINITE:
        return "infinity"
    size = _SIZE.fullmatch(soft)
    return str(int(size[1]) * 1024 ** " KMGTPE".index(size[2] or " ")) if size else None


CONTAINERD_MEMLOCK = Reader(_CONTAINERD_MEMLOCK, read_containerd_memlock)


# dmidecode -t system, which shows the product.
#
#   System Information
#           Manufacturer: NVIDIA
#           Product Name: DGXH100
#
# Other parts (Base Board Information) have a Product Name, too. Source: dmidecode, dmidecode.c.

_DMIDECODE = "dmidecode"

_PART = re.compile(r"([A-Z][A-Za-z ]{1,40}) Information\s*")
_FRAME = re.compile(
    r"# dmidecode [\d.]{1,8}|Getting SMBIOS data from .{1,40}|SMBIOS [\d.]{1,12} present\."
    r"|Handle 0x[0-9A-F]{4}, DMI type \d{1,3}, \d{1,4} bytes"
)
_DMIDECODE_FIELD = re.compile(r"\s{0,40}([A-Z][A-Za-z -]{1,40}):\s{1,8}(\S.{0,120}?)\s*")
_DMIDECODE_PROPERTIES: dict[tuple[str, str], NodeProperty] = {
    ("System", "Manufacturer"): "vendor",
    ("System", "Product Name"): "product",
    ("Chassis", "Asset Tag"): "asset-tag",
}


def read_dmidecode(lines: Sequence[Line]) -> Reading:
    """Read the fields of the system and the chassis below their headings."""
    observations: list[PropertyObservation] = []
    recognized: set[int] = set()
    part = ""
    for line in lines:
        heading, field = _PART.fullmatch(line.text), _DMIDECODE_FIELD.fullmatch(line.text)
        if heading or field is None:
            part = heading[1] if heading else ""
        if part or _FRAME.fullmatch(line.text.rstrip()):
            recognized.add(line.number)
        name = _DMIDECODE_PROPERTIES.get((part, field[1])) if field else None
        value = dmi_value(field[2]) if field else None
        if name and value:
            observations.append(PropertyObservation(Origin(_DMIDECODE, line.number), name, value))
    return Reading(tuple(observations), frozenset(recognized))


DMIDECODE = Reader(_DMIDECODE, read_dmidecode)


# hostnamectl, which shows the host name, the product and the kernel.
#
#      Static hostname: node1
#       Operating System: Ubuntu 22.04.5 LTS
#                 Kernel: Linux 5.15.0-134-generic
#        Hardware Vendor: NVIDIA
#         Hardware Model: DGXH100
#
# Source: systemd, src/hostname/hostnamectl.c.

_HOSTNAMECTL = "hostnamectl"

_HOSTNAMECTL_FIELD = re.compile(
    r"\s{0,40}(?:(Static hostname|Hardware Vendor|Hardware Model): (\S.{0,120}?)"
    r"|(Kernel): Linux (\d.{0,120}?))\s*"
)
_HOSTNAMECTL_PROPERTIES: dict[str, NodeProperty] = {
    "Static hostname": "hostname",
    "Kernel": "kernel",
    "Hardware Vendor": "vendor",
    "Hardware Model": "product",
}
_OTHER = re.compile(
    r"\s{0,40}(?:Transient hostname|Pretty hostname|Icon name|Chassis|Machine ID|Boot ID"
    r"|Virtualization|Operating System|CPE OS Name|Architecture|Firmware Version|Firmware Date"
    r"|Firmware Age): .{0,200}"
)


def _hostnamectl_row(line: Line) -> RowReading | None:
    """Read the fields."""
    field = _HOSTNAMECTL_FIELD.fullmatch(line.text)
    if field is None:
        return RECOGNIZED if _OTHER.fullmatch(line.text) else None
    name, value = field[1] or field[3], dmi_value(field[2] or field[4])
    if value is None or (name == "Static hostname" and value.startswith("(")):
        return RECOGNIZED
    return RowReading(
        (
            PropertyObservation(
                Origin(_HOSTNAMECTL, line.number), _HOSTNAMECTL_PROPERTIES[name], value
            ),
        )
    )


read_hostnamectl = LineByLineReader(_hostnamectl_row)
HOSTNAMECTL = Reader(_HOSTNAMECTL, read_hostnamectl)


# lsmod, which lists the modules of the kernel, also as /proc/modules.
#
#   Module                  Size  Used by
#   nvidia              56717312  3 nvidia_uvm,nvidia_peermem,nvidia_modeset
#   nvidia 56717312 3 nvidia_uvm,nvidia_peermem,nvidia_modeset, Live 0x0000000000000000 (POE)
#
# The kernel lists the newest module first, and nvidia_peermem is newer than nvidia, which it uses:
# so it is not loaded if a list shows it neither above the row of nvidia nor in this row. Only a
# complete list proves this: lsmod's from its header on, and a row of /proc/modules that continues
# after the users. Source: kmod, tools/lsmod.c; Linux, kernel/module;
# NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia-peermem.

_LSMOD = "lsmod"

#: The module, and its predecessor from a separate package.
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
    observations: list[PropertyObservation] = []
    recognized: set[int] = set()
    above: set[str] | None = None  # the names in lsmod's list so far
    for line in lines:
        module = _MODULE.fullmatch(line.text)
        if module is None:
            above = set() if _HEADER.fullmatch(line.text) else None
        elif above is not None:
            above.add(module["name"])
        loaded = _peermem(module, above) if module else None
        if above is not None or loaded or (module and module["live"]):
            recognized.add(line.number)
        if loaded:
            observations.append(PropertyObservation(Origin(_LSMOD, line.number), "peermem", loaded))
    return Reading(tuple(observations), frozenset(recognized))


def _peermem(module: re.Match[str], above: set[str] | None) -> str | None:
    """Return "yes" or "no" if the row decides it, else None; outside a list, `above` is unset."""
    users = frozenset((module["users"] or "").split(","))
    of_nvidia = module["name"] == "nvidia"
    if module["name"] in _PEERMEM or (of_nvidia and users & _PEERMEM):
        return "yes"
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
