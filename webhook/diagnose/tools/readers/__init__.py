"""Readers for the output of tools, which they recognize by its content; a file for each family.

A `Reader` takes only lines that are certainly its tool's, and assumes nothing that the tool did not
show; the comment above it has the format and its source. `READERS` is the only table of them. A
tool's lines may be cut, or mixed with lines of other tools.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line, Reading
from webhook.diagnose.tools.readers.amd_smi import AMD_SMI, ROCM_SMI
from webhook.diagnose.tools.readers.failures import FAILURES
from webhook.diagnose.tools.readers.host import (
    CONTAINERD_MEMLOCK,
    DMIDECODE,
    HOST_SYSFS,
    HOSTNAMECTL,
    UNAME,
)
from webhook.diagnose.tools.readers.infiniband_diags import IBLINKINFO, IBSTAT, IBSTATUS, PERFQUERY
from webhook.diagnose.tools.readers.iproute2 import (
    IP_BRIEF,
    RDMA_DEV,
    RDMA_LINK,
    RDMA_LINK_JSON,
    RDMA_SYSTEM,
)
from webhook.diagnose.tools.readers.kernel_modules import LSMOD, MODINFO, OFED_INFO
from webhook.diagnose.tools.readers.layouts import LineByLineReader, Reader, combine_row_readers
from webhook.diagnose.tools.readers.mst import MST_STATUS
from webhook.diagnose.tools.readers.nvidia_smi import (
    NVIDIA_PROC,
    NVIDIA_SMI_GPUS,
    NVIDIA_SMI_QUERY,
    NVIDIA_SMI_TOPO,
)
from webhook.diagnose.tools.readers.pci import LSPCI, PCI_SYSFS
from webhook.diagnose.tools.readers.smi_tables import AMD_SMI_TABLE, NVIDIA_SMI_TABLE
from webhook.diagnose.tools.readers.sysfs import DEVICE_LIST, IB_SYSFS
from webhook.diagnose.tools.readers.verbs import IBDEV2NETDEV, IBV_DEVICES, IBV_DEVINFO, SHOW_GIDS

READERS: tuple[Reader, ...] = (
    AMD_SMI,
    AMD_SMI_TABLE,
    CONTAINERD_MEMLOCK,
    DEVICE_LIST,
    DMIDECODE,
    FAILURES,
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
    NVIDIA_SMI_TABLE,
    NVIDIA_SMI_TOPO,
    OFED_INFO,
    PCI_SYSFS,
    PERFQUERY,
    RDMA_DEV,
    RDMA_LINK,
    RDMA_LINK_JSON,
    RDMA_SYSTEM,
    ROCM_SMI,
    SHOW_GIDS,
    UNAME,
)

_ROW_READER = combine_row_readers(
    reader.read for reader in READERS if isinstance(reader.read, LineByLineReader)
)
_BLOCK_READERS = [
    reader.read for reader in READERS if not isinstance(reader.read, LineByLineReader)
]


def read(lines: Sequence[Line]) -> Reading:
    """Read lines with all readers; return the observations in the order of the lines.

    Lines that no reader takes are from unknown tools, or have a value that no reader understands;
    reports list them, too.
    """
    readings = [_ROW_READER(lines), *(read_block(lines) for read_block in _BLOCK_READERS)]
    observations = [observation for reading in readings for observation in reading.observations]
    return Reading(
        tuple(sorted(observations, key=lambda observation: observation.origin.line)),
        frozenset().union(*(reading.recognized_lines for reading in readings)),
        tuple(cut for reading in readings for cut in reading.cuts),
    )
