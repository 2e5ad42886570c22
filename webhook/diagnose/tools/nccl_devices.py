"""The RDMA devices in NCCL's log: all that it may use, and the devices of its channels.

    NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>
    NCCL INFO Channel 00/0 : 7[3] -> 8[0] [receive] via NET/IB/1/GDRDMA
    NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct

Format: nccl, src/transport/net_ib.cc (ncclIbInitDevices), net.cc and shm.cc. The number of a
channel's device is one of those in brackets, in the list of the same host; before each line is
"HOST:PID:TID [GPU]". Hosts may name or order their devices differently.

NCCL's plugin for libfabric joins the NICs near a GPU to one device (aws/aws-ofi-nccl):

    NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)
    NCCL INFO NET/Libfabric : GPU Direct RDMA Enabled for HCA 0 'rdmap79s0'
    NCCL INFO Channel 00/0 : 3[3] -> 14[6] [send] via NET/Libfabric/3/GDRDMA

Before it joined NICs, it did not write their number, or wrote it after "Provider":

    NCCL INFO NET/OFI Selected Provider is efa
"""

from __future__ import annotations

import re
from collections import Counter
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
_NICS_ALONE = re.compile(r"NET/OFI Selected Provider is [\w;]{1,40}$", re.MULTILINE)
_LIBFABRIC_CHANNEL = re.compile(rf"via {_LIBFABRIC}/(\d{{1,3}})")
_HOST = re.compile(r"(?<![\w.-])([\w.-]{1,255}):\d{1,10}:\d{1,10} \[")
#: Characters of a line before what these patterns find.
_MAX_PREFIX = 400
#: GPUs that are connected by NVLink do not copy through the memory of the node.
_HOST_MEMORY = "via SHM/"


class NcclDevices(NamedTuple):
    """The devices in a log; all fields are empty for a log without them."""

    #: Those that NCCL may use, by name; the longest list of a rank.
    available: tuple[str, ...] = ()
    #: Those of the channels to other nodes, on any node; () if the log shows none, or not their
    #: names.
    used: tuple[str, ...] = ()
    #: The most of these on one node.
    used_on_a_node: int = 0
    #: With libfabric: the number of a node's NICs, and of those in channels; 0 if unknown.
    available_nics: int = 0
    used_nics: int = 0
    #: Whether GPUs of a node exchange data through the memory of the node.
    through_host_memory: bool = False

    @property
    def used_count(self) -> int:
        """The number of HCAs in use on a node; 0 if the log does not show it."""
        return self.used_on_a_node or self.used_nics

    @property
    def available_count(self) -> int:
        """The number of HCAs that NCCL may use on a node; 0 if the log does not show it."""
        return len(self.available) or self.available_nics


def read_nccl_devices(text: str) -> NcclDevices:
    """Read a log in time linear in its length."""
    names: dict[str, dict[str, str]] = {}
    for listed in _LIST.finditer(text):
        devices, host = dict(_DEVICE.findall(listed[1])), _host(text, listed.start())
        names[host] = max(names.get(host, {}), devices, key=len)
    longest = max(names.values(), key=len, default={})
    channels = {(_host(text, match.start()), match[1]) for match in _CHANNEL.finditer(text)}
    used = [
        (host, names.get(host, longest).get(number))
        for host, number in sorted(channels, key=lambda channel: (channel[0], int(channel[1])))
    ]
    all_named = all(name for _, name in used)
    per_host = Counter(host for host, _ in used)
    nics = max((int(number) for number in _NICS.findall(text)), default=0)
    return NcclDevices(
        available=tuple(longest.values()),
        used=tuple(dict.fromkeys(name for _, name in used if name)) if all_named else (),
        used_on_a_node=max(per_host.values(), default=0) if all_named else 0,
        available_nics=nics,
        used_nics=_used_nics(text, nics),
        through_host_memory=_HOST_MEMORY in text,
    )


def _host(text: str, position: int) -> str:
    """Return the host that wrote the line at a position; "" if the line does not show it."""
    start = max(text.rfind("\n", 0, position) + 1, position - _MAX_PREFIX, 0)
    match = _HOST.search(text, start, position)
    return match[1] if match else ""


def _used_nics(text: str, nics: int) -> int:
    """Return the number of NICs behind the channels of libfabric; 0 if it is uncertain."""
    joined, channels = set(_JOINED.findall(text)), set(_LIBFABRIC_CHANNEL.findall(text))
    if channels and (nics == 1 or _NICS_ALONE.search(text)):
        return len(channels)
    if not joined or not channels <= joined or nics % len(joined):
        return 0
    return nics * len(channels) // len(joined)
