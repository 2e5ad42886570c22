"""ls /sys/class/infiniband, also with -l: the RDMA devices of a machine, and where they are in PCI.

    mlx5_0  mlx5_1  mlx5_bond_0
    lrwxrwxrwx 1 root root 0 Mar 1 10:00 mlx5_0 -> ../../devices/pci0000:37/[...]/0000:38:00.0/
        infiniband/mlx5_0                                      (in one line)
    /sys/class/infiniband/mlx5_0/device -> ../../../0000:38:00.0

A list of names alone is taken only if all of them are names that drivers of Linux or udev's rules
give to RDMA devices. A device in software (rxe, siw) has no PCI address. Whether a PCI function is
a virtual one does not show here.
"""

from __future__ import annotations

import re

from webhook.diagnose.tools.observations import Line, Origin, PortSighting
from webhook.diagnose.tools.readers.notation import DEVICE, PCI
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

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
#: Of the kernel's drivers (drivers/infiniband/hw, sw) and of rdma-core's udev/rdma_rename.c, except
#: for names that network interfaces have, too ("ibp3s0").
_NAME = re.compile(
    r"(?:mlx[45]_(?:bond_)?|bnxt_re(?:_bond)?|irdma|i40iw|hfi1_|qedr|hns_|efa_|erdma_|mana_|cxgb4_"
    r"|ocrdma|usnic_|vmw_pvrdma|rxe|siw)\d{1,4}"
    r"|(?:roce|rdma)(?:P\d{1,6})?p\d{1,4}s\d{1,4}(?:f\d{1,4})?(?:v\d{1,4})?",
    re.ASCII,
)
_DEVICE_LIST_HEAD = re.compile(r"(?:/sys/class/infiniband/?:|total \d{1,9})\s*", re.ASCII)
_ADDRESS = re.compile(rf"{PCI}(?=/|$)", re.ASCII)


def _device_list_row(line: Line) -> RowReading | None:
    """Read the rows."""
    origin = Origin(_DEVICE_LIST, line.number)
    link = _LINK.fullmatch(line.text) or _DEVICE_LINK.fullmatch(line.text)
    if link is not None:
        addresses = _ADDRESS.findall(link["path"])
        pci = addresses[-1].lower() if addresses else None
        return RowReading((PortSighting(origin, link["device"], pci=pci),))
    names = line.text.split()
    if names and all(map(_NAME.fullmatch, names)):
        return RowReading(tuple(PortSighting(origin, name) for name in names))
    return RowReading() if _DEVICE_LIST_HEAD.fullmatch(line.text) else None


read_device_list = ReadsRows(_device_list_row)
DEVICE_LIST = Reader(_DEVICE_LIST, read_device_list)
