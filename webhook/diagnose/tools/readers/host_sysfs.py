"""Files of /sys and /proc that say something of the whole machine, each with its path.

    /sys/class/dmi/id/product_name:DGXH100
    /sys/module/mlx5_core/version:24.10-0.7.0
    /sys/module/ib_core/parameters/netns_mode:Y
    /proc/sys/kernel/osrelease:5.15.0-134-generic
    /sys/bus/pci/devices:no GPU

This is what `grep -r . PATH` writes, and `rdma-webhook discover script`; only the script, which
looks at all PCI functions, writes the last line. netns_mode is Y where containers share the host's
RDMA devices (Linux, drivers/infiniband/core/device.c).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from webhook.diagnose.tools.observations import Line, Origin, Setting, SettingSighting
from webhook.diagnose.tools.readers.dmi_values import dmi_value
from webhook.diagnose.tools.readers.driver_versions import mlx5_driver
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, RowReading

_HOST_SYSFS = "sysfs"

_HOST_SYSFS_FILE = re.compile(r"\s{0,40}(/(?:sys|proc)/[\w./-]{1,120}):(.{0,200}?)\s*", re.ASCII)
_NETNS = {"Y": "shared", "N": "exclusive"}
_GPUS = {"no GPU": "none"}


def _as_shown(value: str) -> str | None:
    return value or None


def _loaded(_: str) -> str:
    return "yes"


#: What a file says, and how its value is read.
_FILES: dict[str, tuple[Setting, Callable[[str], str | None]]] = {
    "/sys/class/dmi/id/product_name": ("product", dmi_value),
    "/sys/class/dmi/id/sys_vendor": ("vendor", dmi_value),
    "/sys/class/dmi/id/chassis_asset_tag": ("asset-tag", dmi_value),
    "/sys/module/mlx5_core/version": ("driver", mlx5_driver),
    "/sys/module/ib_core/parameters/netns_mode": ("netns", _NETNS.get),
    "/sys/module/nvidia_peermem/initstate": ("peermem", _loaded),
    "/sys/module/nv_peer_mem/initstate": ("peermem", _loaded),
    "/sys/bus/pci/devices": ("gpus", _GPUS.get),
    "/proc/sys/kernel/osrelease": ("kernel", _as_shown),
    "/proc/sys/kernel/hostname": ("hostname", _as_shown),
}


def _host_sysfs_row(line: Line) -> RowReading | None:
    """Read the files that are known."""
    file = _HOST_SYSFS_FILE.fullmatch(line.text)
    if file is None or file[1] not in _FILES:
        return None
    setting, meaning = _FILES[file[1]]
    value = meaning(file[2])
    if value is None:
        return RowReading(understood=setting not in {"netns", "driver", "gpus"})
    return RowReading((SettingSighting(Origin(_HOST_SYSFS, line.number), setting, value),))


read_host_sysfs = ReadsRows(_host_sysfs_row)
HOST_SYSFS = Reader(_HOST_SYSFS, read_host_sysfs)
