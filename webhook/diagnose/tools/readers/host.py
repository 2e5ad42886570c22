"""Readers for what describes a node: its kernel, product and limits.

They are uname, containerd's LimitMEMLOCK, dmidecode, hostnamectl, and files of /sys and /proc.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from webhook.diagnose.tools.observations import (
    Line,
    NodeProperty,
    Origin,
    PropertyObservation,
    Reading,
)
from webhook.diagnose.tools.readers.layouts import RECOGNIZED, LineByLineReader, Reader, RowReading
from webhook.diagnose.tools.readers.notation import dmi_value, mlx5_driver

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


# Files of /sys and /proc with properties of the node, each with its path.
#
#   /sys/class/dmi/id/product_name:DGXH100
#   /sys/module/mlx5_core/version:24.10-0.7.0
#   /sys/module/ib_core/parameters/netns_mode:Y
#   /proc/sys/kernel/osrelease:5.15.0-134-generic
#   /sys/bus/pci/devices:no GPU
#
# This is the output of `grep -r . PATH` and of the script of `rdma-webhook discover script`; only
# the script, which reads all PCI functions, writes the last line. netns_mode is Y if containers
# share the node's RDMA devices (Linux, drivers/infiniband/core/device.c).

_HOST_SYSFS = "sysfs"

_HOST_SYSFS_FILE = re.compile(r"\s{0,40}(/(?:sys|proc)/[\w./-]{1,120}):(.{0,200}?)\s*", re.ASCII)
_NETNS = {"Y": "shared", "N": "exclusive"}
_GPUS = {"no GPU": "none"}


def _or_none(value: str) -> str | None:
    return value or None


def _yes(_: str) -> str:
    return "yes"


#: File → the property, and the function that reads its value.
_FILES: dict[str, tuple[NodeProperty, Callable[[str], str | None]]] = {
    "/sys/class/dmi/id/product_name": ("product", dmi_value),
    "/sys/class/dmi/id/sys_vendor": ("vendor", dmi_value),
    "/sys/class/dmi/id/chassis_asset_tag": ("asset-tag", dmi_value),
    "/sys/module/mlx5_core/version": ("driver", mlx5_driver),
    "/sys/module/ib_core/parameters/netns_mode": ("netns", _NETNS.get),
    "/sys/module/nvidia_peermem/initstate": ("peermem", _yes),
    "/sys/module/nv_peer_mem/initstate": ("peermem", _yes),
    "/sys/bus/pci/devices": ("gpus", _GPUS.get),
    "/proc/sys/kernel/osrelease": ("kernel", _or_none),
    "/proc/sys/kernel/hostname": ("hostname", _or_none),
}


def _host_sysfs_row(line: Line) -> RowReading | None:
    """Read a line of a known file."""
    file = _HOST_SYSFS_FILE.fullmatch(line.text)
    if file is None or file[1] not in _FILES:
        return None
    name, meaning = _FILES[file[1]]
    value = meaning(file[2])
    if value is None:
        return RowReading(fully_read=name not in {"netns", "driver", "gpus"})
    return RowReading((PropertyObservation(Origin(_HOST_SYSFS, line.number), name, value),))


read_host_sysfs = LineByLineReader(_host_sysfs_row)
HOST_SYSFS = Reader(_HOST_SYSFS, read_host_sysfs)
