"""Read the output of tools, recognised by what they write, one file for each tool.

Each file has TOOL, as one types it, and `read`, which takes only lines that are certainly its own
and never assumes what a tool did not show: docstrings show the format, and name its source.
`READERS` is the one table of them. A tool's lines may be cut, or stand between those of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from webhook.machine.readers import (
    containerd_memlock,
    device_list,
    dmidecode,
    host_sysfs,
    hostnamectl,
    ib_sysfs,
    ibdev2netdev,
    iblinkinfo,
    ibstat,
    ibstatus,
    ibv_devices,
    ibv_devinfo,
    ip_brief,
    lsmod,
    lspci,
    modinfo,
    mst_status,
    nvidia_proc,
    nvidia_smi_gpus,
    nvidia_smi_query,
    nvidia_smi_topo,
    ofed_info,
    pci_sysfs,
    perfquery,
    rdma_link,
    rdma_link_json,
    rdma_system,
    show_gids,
    uname,
)
from webhook.machine.readers.rows import ReadsRows, together
from webhook.machine.sightings import Line, Reading


class Reader(Protocol):
    """What a file of this package offers."""

    #: The tool as one types it: "rdma link".
    TOOL: str

    def read(self, lines: Sequence[Line]) -> Reading:
        """Take what is certainly this tool's, in a time that grows with the length of the lines.

        A value that cannot be read is None, and its line is not taken.
        """


READERS: tuple[Reader, ...] = (
    containerd_memlock,
    device_list,
    dmidecode,
    host_sysfs,
    hostnamectl,
    ib_sysfs,
    ibdev2netdev,
    iblinkinfo,
    ibstat,
    ibstatus,
    ibv_devices,
    ibv_devinfo,
    ip_brief,
    lsmod,
    lspci,
    modinfo,
    mst_status,
    nvidia_proc,
    nvidia_smi_gpus,
    nvidia_smi_query,
    nvidia_smi_topo,
    ofed_info,
    pci_sysfs,
    perfquery,
    rdma_link,
    rdma_link_json,
    rdma_system,
    show_gids,
    uname,
)

_READ_ROWS = together(one.read for one in READERS if isinstance(one.read, ReadsRows))
_READ_MORE = [one.read for one in READERS if not isinstance(one.read, ReadsRows)]


def read(lines: Sequence[Line]) -> Reading:
    """Let every reader take its lines; what it found is in the order of the lines.

    Lines that no reader took are those of unknown tools and those with a value that nobody
    understands: whoever shows a reading shows these, too.
    """
    readings = [_READ_ROWS(lines), *(read_more(lines) for read_more in _READ_MORE)]
    sightings = [one for reading in readings for one in reading.sightings]
    return Reading(
        tuple(sorted(sightings, key=lambda one: one.origin.line)),
        frozenset().union(*(reading.taken for reading in readings)),
    )
