"""Read the output of tools, recognised by what they write: a file for each family of tools.

Each tool has a `Reader`, which takes only lines that are certainly its tool's and never assumes
what the tool did not show: docstrings show the format, and name its source.
`READERS` is the one table of them. A tool's lines may be cut, or stand between those of another.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line, Reading
from webhook.diagnose.tools.readers.host import (
    CONTAINERD_MEMLOCK,
    DMIDECODE,
    HOSTNAMECTL,
    LSMOD,
    MODINFO,
    OFED_INFO,
    UNAME,
)
from webhook.diagnose.tools.readers.infiniband_diags import IBLINKINFO, IBSTAT, IBSTATUS, PERFQUERY
from webhook.diagnose.tools.readers.iproute2 import IP_BRIEF, RDMA_LINK, RDMA_LINK_JSON, RDMA_SYSTEM
from webhook.diagnose.tools.readers.layouts import Reader, ReadsRows, together
from webhook.diagnose.tools.readers.nvidia_smi import (
    NVIDIA_PROC,
    NVIDIA_SMI_GPUS,
    NVIDIA_SMI_QUERY,
    NVIDIA_SMI_TOPO,
)
from webhook.diagnose.tools.readers.pci import LSPCI, MST_STATUS, PCI_SYSFS
from webhook.diagnose.tools.readers.sysfs import DEVICE_LIST, HOST_SYSFS, IB_SYSFS
from webhook.diagnose.tools.readers.verbs import IBDEV2NETDEV, IBV_DEVICES, IBV_DEVINFO, SHOW_GIDS

READERS: tuple[Reader, ...] = (
    CONTAINERD_MEMLOCK,
    DEVICE_LIST,
    DMIDECODE,
    HOST_SYSFS,
    HOSTNAMECTL,
    IB_SYSFS,
    IBDEV2NETDEV,
    IBLINKINFO,
    IBSTAT,
    IBSTATUS,
    IBV_DEVICES,
    IBV_DEVINFO,
    IP_BRIEF,
    LSMOD,
    LSPCI,
    MODINFO,
    MST_STATUS,
    NVIDIA_PROC,
    NVIDIA_SMI_GPUS,
    NVIDIA_SMI_QUERY,
    NVIDIA_SMI_TOPO,
    OFED_INFO,
    PCI_SYSFS,
    PERFQUERY,
    RDMA_LINK,
    RDMA_LINK_JSON,
    RDMA_SYSTEM,
    SHOW_GIDS,
    UNAME,
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
