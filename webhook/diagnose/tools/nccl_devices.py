"""The RDMA devices in NCCL's log: all that it may use, and the devices of its channels.

    NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>
    NCCL INFO Channel 00/0 : 7[3] -> 8[0] [receive] via NET/IB/1/GDRDMA
    NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct

Format: nccl, src/transport/net_ib.cc (ncclIbInitDevices), net.cc and shm.cc. The number of a
channel's device is one of those in brackets.

NCCL's plugin for libfabric joins the NICs near a GPU to one device (aws/aws-ofi-nccl):

    NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)
    NCCL INFO NET/Libfabric : GPU Direct RDMA Enabled for HCA 0 'rdmap79s0'
    NCCL INFO Channel 00/0 : 3[3] -> 14[6] [send] via NET/Libfabric/3/GDRDMA
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NETWORK = r"NET/(?:IB(?:ext\w{0,8})?|gIB)"
_LIST = re.compile(
    rf"{_NETWORK} : Using((?: {{0,2}}\[\d{{1,3}}\][\w.+-]{{1,64}}:\d{{1,3}}/\w{{1,8}}){{1,64}})"
)
_DEVICE = re.compile(r"\[(\d{1,3})\]([\w.+-]{1,64}):")
_CHANNEL = re.compile(rf"via {_NETWORK}/(\d{{1,3}})")
_LIBFABRIC = r"NET/(?:AWS )?Libfabric"
_NICS = re.compile(r"NET/OFI Selected [Pp]rovider is .{1,80}\(found (\d{1,3}) nics\)")
_JOINED = re.compile(rf"{_LIBFABRIC} : GPU Direct RDMA \w{{7,8}} for HCA (\d{{1,3}}) ")
_LIBFABRIC_CHANNEL = re.compile(rf"via {_LIBFABRIC}/(\d{{1,3}})")
#: GPUs that are connected by NVLink do not copy through the memory of the node.
_HOST_MEMORY = "via SHM/"


class NcclDevices(NamedTuple):
    """The devices in a log; all fields are empty for a log without them."""

    #: Those that NCCL may use, by name; the longest list of a rank.
    available: tuple[str, ...] = ()
    #: Those of the channels to other nodes; () if the log shows none, or not their names.
    used: tuple[str, ...] = ()
    #: With libfabric: the number of a node's NICs, and of those in channels; 0 if unknown.
    available_nics: int = 0
    used_nics: int = 0
    #: Whether GPUs of a node exchange data through the memory of the node.
    through_host_memory: bool = False

    @property
    def used_count(self) -> int:
        """The number of HCAs in use on a node; 0 if the log does not show it."""
        return len(self.used) or self.used_nics

    @property
    def available_count(self) -> int:
        """The number of HCAs that NCCL may use on a node; 0 if the log does not show it."""
        return len(self.available) or self.available_nics


def read_nccl_devices(text: str) -> NcclDevices:
    """Read a log in time linear in its length."""
    names: dict[str, str] = {}
    for listed in _LIST.finditer(text):
        devices = dict(_DEVICE.findall(listed[1]))
        names = devices if len(devices) > len(names) else names
    numbers = sorted({match[1] for match in _CHANNEL.finditer(text)}, key=int)
    used = [names[number] for number in numbers if number in names]
    nics = max((int(number) for number in _NICS.findall(text)), default=0)
    return NcclDevices(
        available=tuple(names.values()),
        used=tuple(used) if len(used) == len(numbers) else (),
        available_nics=nics,
        used_nics=_used_nics(text, nics),
        through_host_memory=_HOST_MEMORY in text,
    )


def _used_nics(text: str, nics: int) -> int:
    """Return the number of NICs behind the channels of libfabric; 0 if it is uncertain."""
    joined, channels = set(_JOINED.findall(text)), set(_LIBFABRIC_CHANNEL.findall(text))
    if not joined or not channels <= joined or nics % len(joined):
        return 0
    return nics * len(channels) // len(joined)
