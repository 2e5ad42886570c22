"""Read the output of tools, recognised by what they write, one file for each tool.

Each file has a `Reader`, which takes only lines that are certainly its tool's and never assumes
what the tool did not show: docstrings show the format, and name its source.
`READERS` is the one table of them. A tool's lines may be cut, or stand between those of another.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line, Reading
from webhook.diagnose.tools.readers.containerd_memlock import CONTAINERD_MEMLOCK
from webhook.diagnose.tools.readers.device_list import DEVICE_LIST
from webhook.diagnose.tools.readers.dmidecode import DMIDECODE
from webhook.diagnose.tools.readers.host import UNAME
from webhook.diagnose.tools.readers.host_sysfs import HOST_SYSFS
from webhook.diagnose.tools.readers.hostnamectl import HOSTNAMECTL
from webhook.diagnose.tools.readers.ibdev2netdev import IBDEV2NETDEV
from webhook.diagnose.tools.readers.iblinkinfo import IBLINKINFO
from webhook.diagnose.tools.readers.ibstatus import IBSTATUS
from webhook.diagnose.tools.readers.ibv_devinfo import IBV_DEVINFO
from webhook.diagnose.tools.readers.infiniband_diags import IBSTAT
from webhook.diagnose.tools.readers.ip_brief import IP_BRIEF
from webhook.diagnose.tools.readers.iproute2 import RDMA_LINK
from webhook.diagnose.tools.readers.lsmod import LSMOD
from webhook.diagnose.tools.readers.lspci import LSPCI
from webhook.diagnose.tools.readers.modinfo import MODINFO
from webhook.diagnose.tools.readers.mst_status import MST_STATUS
from webhook.diagnose.tools.readers.nvidia_proc import NVIDIA_PROC
from webhook.diagnose.tools.readers.nvidia_smi import NVIDIA_SMI_GPUS
from webhook.diagnose.tools.readers.nvidia_smi_query import NVIDIA_SMI_QUERY
from webhook.diagnose.tools.readers.nvidia_smi_topo import NVIDIA_SMI_TOPO
from webhook.diagnose.tools.readers.ofed_info import OFED_INFO
from webhook.diagnose.tools.readers.pci import PCI_SYSFS
from webhook.diagnose.tools.readers.perfquery import PERFQUERY
from webhook.diagnose.tools.readers.rdma_link_json import RDMA_LINK_JSON
from webhook.diagnose.tools.readers.rdma_system import RDMA_SYSTEM
from webhook.diagnose.tools.readers.rows import Reader, ReadsRows, together
from webhook.diagnose.tools.readers.show_gids import SHOW_GIDS
from webhook.diagnose.tools.readers.sysfs import IB_SYSFS
from webhook.diagnose.tools.readers.verbs import IBV_DEVICES

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
