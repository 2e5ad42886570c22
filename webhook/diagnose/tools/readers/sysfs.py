"""Readers for /sys/class/infiniband: the RDMA devices, their ports and their list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from webhook.diagnose.tools.observations import (
    CounterObservation,
    GidObservation,
    InterfaceObservation,
    Line,
    Observation,
    Origin,
    PortObservation,
    Reading,
)
from webhook.diagnose.tools.readers.blocks import (
    port_of_fields,
)
from webhook.diagnose.tools.readers.layouts import (
    RECOGNIZED,
    LineByLineReader,
    Reader,
    RowReading,
)
from webhook.diagnose.tools.readers.notation import (
    DEVICE,
    NETDEV,
    PCI,
    guid,
    hexadecimal,
    kernel_gid,
    kernel_physical_state,
    kernel_port_state,
    link_layer,
    mellanox_type,
    number,
    rate,
    single_word,
)

# Files of /sys/class/infiniband, each with its path.
#
#   /sys/class/infiniband/mlx5_0/ports/1/rate:400 Gb/sec (4X NDR)      grep -r . PATH
#   ==> /sys/class/infiniband/mlx5_0/fw_ver <==                        head PATH PATH
#   28.39.1002
#
# A copied tree may begin at the device ("mlx5_0/ports/1/rate"); `read_tree` reads one from a
# mapping. Sources: Linux, Documentation/ABI/stable/sysfs-class-infiniband,
# drivers/infiniband/core/sysfs.c.

_IB_SYSFS = "sysfs"

_MAX_LINE = 1000
_NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"

#: The field of a file, and the function that reads its value; None for an ignored file.
_FieldReader = tuple[str, Callable[[str], object | None]] | None
_OF_DEVICE: dict[str, _FieldReader] = {
    "board_id": ("board_id", single_word),
    "device/device": ("device_id", hexadecimal),
    "device/numa_node": ("numa", number),
    "device/vendor": ("vendor_id", hexadecimal),
    "fw_ver": ("firmware", single_word),
    "hca_type": ("device_id", mellanox_type),
    "hw_rev": None,
    "node_desc": None,
    "node_guid": ("node_guid", guid),
    "node_type": None,
    "sys_image_guid": None,
}
_OF_PORT: dict[str, _FieldReader] = {
    "cap_mask": None,
    "has_smi": None,
    "lid": ("lid", hexadecimal),
    "lid_mask_count": None,
    "link_layer": ("link_layer", link_layer),
    "phys_state": ("physical_state", kernel_physical_state),
    "rate": ("rate_gbps", rate),
    "sm_lid": None,
    "sm_sl": None,
    "state": ("state", kernel_port_state),
}
#: File names that only an RDMA device has, so that a path may begin at the device.
_RDMA_FILES = frozenset(("board_id", "fw_ver", "hca_type", "hw_rev", "node_guid", "sys_image_guid"))
_PATH = (
    rf"(?P<folder>(?:\S{{0,300}}?/)?(?:(?P<pci>{PCI})/)?infiniband/)?(?:\./)?"
    rf"(?P<device>{DEVICE})/(?:ports/(?P<port>\d{{1,3}})/)?"
    r"(?P<file>device/physfn/[a-z_]{2,30}|device/uevent|device/(?:device|vendor|numa_node)"
    rf"|device/net/(?P<netdev>{NETDEV})/(?P<attribute>[a-z_]{{2,30}})"
    r"|(?P<table>gids|gid_attrs/types|gid_attrs/ndevs|pkeys)/(?P<index>\d{1,4})"
    r"|(?:hw_)?counters/(?P<counter>[a-zA-Z0-9_]{2,60})|[a-z_]{2,20})"
)
_ROW = re.compile(rf"\s{{0,8}}{_PATH}(?::\s{{0,8}}|\s{{1,8}})(?P<value>\S.{{0,300}})?", re.ASCII)
_IB_SYSFS_HEAD = re.compile(rf"==> {_PATH} <==\s*", re.ASCII)
_IB_SYSFS_FILE = re.compile(_PATH, re.ASCII)
_SLOT = re.compile(rf"PCI_SLOT_NAME=({PCI})", re.ASCII)


def read_ib_sysfs(lines: Sequence[Line]) -> Reading:
    """Read the known files: an observation for each device, port, counter, GID and MTU."""
    tree = _Tree()
    recognized: set[int] = set()
    for numbers, path, value in _files(lines):
        if tree.take(numbers[-1], path, value):
            recognized.update(numbers)
    return Reading(tuple(tree.observations()), frozenset(recognized))


def read_tree(files: Mapping[str, str]) -> tuple[Observation, ...]:
    """Read the text of files by path from the device on: "mlx5_0/ports/1/rate"."""
    tree = _Tree()
    for name, text in files.items():
        path = _IB_SYSFS_FILE.fullmatch(name)
        if path is not None:
            for value in text.splitlines():
                tree.take(0, path, value.strip())
    return tuple(tree.observations())


def _files(lines: Iterable[Line]) -> Iterator[tuple[tuple[int, ...], re.Match[str], str]]:
    """Yield the line numbers of each file, its path, and its value."""
    head: tuple[int, re.Match[str]] | None = None
    for line in lines:
        if len(line.text) > _MAX_LINE or not line.text.strip():
            continue
        heading, row = _IB_SYSFS_HEAD.fullmatch(line.text), _ROW.fullmatch(line.text)
        if row is not None and _certain(row):
            yield (line.number,), row, (row["value"] or "").strip()
        elif heading is None and head is not None:
            yield (head[0], line.number), head[1], line.text.strip()
        head = (line.number, heading) if heading else None


def _certain(path: re.Match[str]) -> bool:
    return bool(path["folder"] or path["port"] or path["file"] in _RDMA_FILES)


_Value = TypeVar("_Value")


@dataclass
class _Part(Generic[_Value]):
    """The fields of a device, of a port, or of a row of its GIDs."""

    line: int
    fields: dict[str, _Value] = field(default_factory=dict)


class _Tree:
    """The files that are being read."""

    def __init__(self) -> None:
        #: Device and port → their fields, more than once if a file occurs again.
        self._parts: dict[tuple[str, int | None], list[_Part[object]]] = {}
        #: Device, port and index → the row.
        self._gids: dict[tuple[str, int, int], _Part[str]] = {}
        self._counters: list[CounterObservation] = []
        self._interfaces: list[InterfaceObservation] = []

    def take(self, line: int, path: re.Match[str], value: str) -> bool:
        """Add a file; return whether it and its value are understood."""
        device, port = path["device"], number(path["port"] or "")
        if path["pci"]:
            self._fill(line, (device, None), "pci", path["pci"].lower())
        if path["table"] and port is not None:
            row = self._gids.setdefault((device, port, int(path["index"])), _Part(line))
            row.fields[path["table"]] = value
            return True
        if path["counter"] and port is not None:
            return self._take_counter(line, device, port, path["counter"], value)
        mtu = number(value) if path["attribute"] == "mtu" else None
        if mtu is not None:
            interface = InterfaceObservation(Origin(_IB_SYSFS, line), path["netdev"], mtu=mtu)
            self._interfaces.append(interface)
        filled = _field_of(path, value)
        if filled is not None and filled[1] is not None:
            self._fill(line, (device, port), *filled)
        return filled is not None and (filled[1] is not None or not filled[0])

    def _take_counter(self, line: int, device: str, port: int, counter: str, value: str) -> bool:
        count = number(value)
        if count is not None:
            observation = CounterObservation(Origin(_IB_SYSFS, line), device, port, counter, count)
            self._counters.append(observation)
        return count is not None

    def _fill(self, line: int, key: tuple[str, int | None], name: str, value: object) -> None:
        parts = self._parts.setdefault(key, [_Part(line)])
        if name == "netdevs":
            before = parts[-1].fields.get(name, ())
            assert isinstance(before, tuple)
            value = tuple(dict.fromkeys((*before, value)))
        elif parts[-1].fields.get(name, value) != value:
            parts.append(_Part(line))
        parts[-1].fields[name] = value

    def observations(self) -> Iterator[Observation]:
        """Yield the observations of all files."""
        for (device, port), parts in self._parts.items():
            for part in parts:
                yield port_of_fields(Origin(_IB_SYSFS, part.line), device, port, **part.fields)
        yield from self._counters
        yield from self._interfaces
        for (device, number_of_port, index), row in self._gids.items():
            address = kernel_gid(row.fields.get("gids", _NO_GID))
            if address is not None and address != _NO_GID:
                yield GidObservation(
                    Origin(_IB_SYSFS, row.line),
                    device,
                    number_of_port,
                    index,
                    address,
                    self._version(device, number_of_port, row.fields.get("gid_attrs/types")),
                    row.fields.get("gid_attrs/ndevs") or None,
                )

    def _version(self, device: str, port: int, kind: str | None) -> str | None:
        """Return the version of RoCE; the kernel shows v1 on InfiniBand, too."""
        parts = self._parts.get((device, port), ())
        if kind == "IB/RoCE v1":
            ethernet = any(part.fields.get("link_layer") == "Ethernet" for part in parts)
            return "v1" if ethernet else None
        return "v2" if kind == "RoCE v2" else None


def _field_of(path: re.Match[str], value: str) -> tuple[str, object | None] | None:
    """Return the field of a file and its value, ("", None) if ignored; None for an unknown file."""
    file = path["file"]
    if path["netdev"]:
        return "netdevs", path["netdev"]
    if file.startswith("device/physfn/"):
        return "virtual", True
    if file == "device/uevent":
        slot = _SLOT.fullmatch(value)
        return ("pci", slot[1].lower()) if slot else ("", None)
    table = _OF_PORT if path["port"] else _OF_DEVICE
    if file not in table:
        return None
    field_reader = table[file]
    return (field_reader[0], field_reader[1](value)) if field_reader else ("", None)


IB_SYSFS = Reader(_IB_SYSFS, read_ib_sysfs)


# ls /sys/class/infiniband, also with -l: the RDMA devices of a node, and their PCI addresses.
#
#   mlx5_0  mlx5_1  mlx5_bond_0
#   lrwxrwxrwx 1 root root 0 Mar 1 10:00 mlx5_0 -> ../../devices/pci0000:37/[...]/0000:38:00.0/
#       infiniband/mlx5_0                                      (in one line)
#   /sys/class/infiniband/mlx5_0/device -> ../../../0000:38:00.0
#
# A list of names alone is taken only if Linux drivers or udev rules give all of these names to RDMA
# devices. A device in software (rxe, siw) has no PCI address. The list does not show whether a PCI
# function is virtual.

_DEVICE_LIST = "ls /sys/class/infiniband"

_LINK = re.compile(
    rf"(?:l\S{{9,10}}\s.{{1,120}}\s)?(?:\S{{0,200}}/)?(?P<device>{DEVICE}) -> "
    rf"\S{{1,40}}/devices/(?P<path>\S{{1,500}})/infiniband/(?P=device)\s*",
    re.ASCII,
)
_DEVICE_LINK = re.compile(
    rf"(?:l\S{{9,10}}\s.{{1,120}}\s)?\S{{0,200}}/infiniband/(?P<device>{DEVICE})/device -> "
    rf"(?P<path>\S{{0,500}})",
    re.ASCII,
)
#: Names from the kernel's drivers (drivers/infiniband/hw, sw) and rdma-core's udev/rdma_rename.c,
#: except for names that network interfaces also have ("ibp3s0").
_NAME = re.compile(
    r"(?:mlx[45]_(?:bond_)?|bnxt_re(?:_bond)?|irdma|i40iw|hfi1_|qedr|hns_|efa_|erdma_|mana_|cxgb4_"
    r"|ocrdma|usnic_|vmw_pvrdma|rxe|siw)\d{1,4}"
    r"|(?:roce|rdma)(?:P\d{1,6})?p\d{1,4}s\d{1,4}(?:f\d{1,4})?(?:v\d{1,4})?",
    re.ASCII,
)
_DEVICE_LIST_HEAD = re.compile(r"(?:/sys/class/infiniband/?:|total \d{1,9})\s*", re.ASCII)
_ADDRESS = re.compile(rf"{PCI}(?=/|$)", re.ASCII)


def _device_list_row(line: Line) -> RowReading | None:
    """Read a row."""
    origin = Origin(_DEVICE_LIST, line.number)
    link = _LINK.fullmatch(line.text) or _DEVICE_LINK.fullmatch(line.text)
    if link is not None:
        addresses = _ADDRESS.findall(link["path"])
        pci = addresses[-1].lower() if addresses else None
        return RowReading((PortObservation(origin, link["device"], pci=pci),))
    names = line.text.split()
    if names and all(map(_NAME.fullmatch, names)):
        return RowReading(tuple(PortObservation(origin, name) for name in names))
    return RECOGNIZED if _DEVICE_LIST_HEAD.fullmatch(line.text) else None


read_device_list = LineByLineReader(_device_list_row)
DEVICE_LIST = Reader(_DEVICE_LIST, read_device_list)
