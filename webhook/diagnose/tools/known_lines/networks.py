"""Log lines that name the network in use, turn RDMA off, or say what slows it down."""

from __future__ import annotations

import re

from webhook.diagnose.tools.known_lines.known_line import NET_IB_SOURCE, KnownLine

#: NCCL networks that use RDMA: its own, and the plugins of HPC-X and Google. The plugin for
#: libfabric (`NET/OFI`, `NET/AWS Libfabric`) may also use TCP: its provider decides.
_NCCL_RDMA = r"(?:IB(?:ext\w{0,8})?|gIB)"
#: The provider of libfabric in a line of the plugin, if it is one without RDMA, such as
#: `tcp;ofi_rxm` (`transport_variables.provider_without_rdma` has the same list).
_TCP_PROVIDER = r"(?:ofi_\w{1,8};)?(?:net|sockets|tcp|udp)\b"
_PROVIDER_SOURCE = "aws/aws-ofi-nccl, src/nccl_ofi_net"
_LOOK_EARLIER = (
    "Look earlier in the log for a line that gives the reason, such as one that contains `NET/IB : "
    "No device found`, `NCCL_IB_DISABLE` or `libibverbs`."
)
_REMOVE_VARIABLE = (
    "Remove the variable where it is set, for example in the container's env, envFrom or command, "
    "in the image, or in nccl.conf."
)
_NCCL_ENV = "NCCL documentation, Environment Variables"

TRANSPORTS = (
    KnownLine(
        "ChannelsOverRdma", "transport", "nccl", "via NET/",
        re.compile(rf"\bvia NET/{_NCCL_RDMA}/\d"),
        "node-0:528:528 [0] NCCL INFO Channel 00/0 : 7[3] -> 0[0] [receive] via NET/IB/0/GDRDMA",
        "NCCL's channels to other nodes use RDMA.",
        "", "nccl, src/transport/net.cc", rdma=True,
    ),
    KnownLine(
        "ChannelsOverSockets", "transport", "nccl", "via NET/Socket", None,
        "node-0:528:528 [0] NCCL INFO Channel 00/0 : 7[3] -> 0[0] [receive] via NET/Socket/0",
        "NCCL's channels to other nodes use TCP sockets, not RDMA.",
        f"{_LOOK_EARLIER} If there is no such line and NCCL_DEBUG_SUBSYS is set, check that it "
        "includes INIT, NET and ENV: otherwise, NCCL does not write such lines.",
        "nccl, src/transport/net.cc", rdma=False,
    ),
    KnownLine(
        "NetworkIsRdma", "transport", "nccl", "Using network ",
        re.compile(rf"Using network {_NCCL_RDMA}\b"),
        "node-0:152:386 [0] NCCL INFO Using network IBext_v8",
        "NCCL chose an RDMA network for its traffic to other nodes.",
        "", "nccl, src/plugin/net.cc", rdma=True,
    ),
    KnownLine(
        "NetworkIsSocket", "transport", "nccl", "Using network Socket", None,
        "node-0:152:386 [0] NCCL INFO Using network Socket",
        "NCCL chose TCP sockets for its traffic to other nodes.",
        _LOOK_EARLIER,
        "nccl, src/plugin/net.cc", rdma=False,
    ),
    KnownLine(
        "LibfabricOverRdma", "transport", "nccl", "NET/OFI Selected ",
        re.compile(rf"NET/OFI Selected [Pp]rovider is (?!{_TCP_PROVIDER})\w"),
        "node-0:22:22 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct",
        "NCCL's plugin for libfabric uses an RDMA provider.",
        "", _PROVIDER_SOURCE, rdma=True,
    ),
    KnownLine(
        "LibfabricOverTcp", "transport", "nccl", "NET/OFI Selected ",
        re.compile(rf"NET/OFI Selected [Pp]rovider is {_TCP_PROVIDER}"),
        "node-0:22:22 [0] NCCL INFO NET/OFI Selected Provider is tcp;ofi_rxm (found 1 nics)",
        "NCCL's plugin for libfabric uses TCP, not RDMA.",
        "If FI_PROVIDER is set, for example in the container's env or command, or in the image, "
        "remove it. Otherwise, libfabric probably found no RDMA device in the container: request "
        "the RDMA resource of the fabric.",
        _PROVIDER_SOURCE, rdma=False,
    ),
    KnownLine(
        "UcxOverRdma", "transport", "ucx", "cfg#",
        re.compile(r"inter-node cfg#\d{1,6} .{0,400}?\b(?:rc|dc|ud)(?:_mlx5|_verbs|_x|_v)?/"),
        "[1701292112.829711] [node-0:162239:0] ucp_worker.c:1855 UCX  INFO  0x100b240 "
        "inter-node cfg#3 tag(rc_mlx5/mlx5_0:1)",
        "UCX's connections to other nodes use RDMA.",
        "", "openucx/ucx, src/ucp/core/ucp_worker.c", rdma=True,
    ),
    KnownLine(
        "UcxOverTcp", "transport", "ucx", "cfg#",
        re.compile(
            r"inter-node cfg#\d{1,6} (?!.{0,400}?\b(?:rc|dc|ud)(?:_mlx5|_verbs|_x|_v)?/)"
            r".{0,400}?\btcp/"
        ),
        "[1701292112.829711] [node-0:162239:0] ucp_worker.c:1855 UCX  INFO  0x100b240 "
        "inter-node cfg#3 tag(tcp/eth0)",
        "UCX's connections to other nodes use TCP.",
        "Check that the container has an RDMA device, that UCX_TLS, if set, includes an RDMA "
        "transport, such as rc, and that UCX_NET_DEVICES, if set, names an RDMA device of the "
        "container, such as mlx5_0:1.",
        "openucx/ucx, src/ucp/core/ucp_worker.c", rdma=False,
    ),
)  # fmt: skip

SETTINGS = (
    KnownLine(
        "IbDisabledByEnvironment", "setting", "nccl", "NCCL_IB_DISABLE set by environment to",
        re.compile(r"NCCL_IB_DISABLE set by environment to [^0]"),
        "node-0:528:528 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.",
        "NCCL_IB_DISABLE turns RDMA off in NCCL.",
        _REMOVE_VARIABLE,
        _NCCL_ENV,
    ),
    KnownLine(
        "NetSetByEnvironment", "setting", "nccl", "NCCL_NET set by environment to",
        re.compile(r"NCCL_NET set by environment to [Ss]ocket"),
        "node-0:528:528 [0] NCCL INFO NCCL_NET set by environment to Socket",
        "NCCL_NET makes NCCL use TCP sockets.",
        _REMOVE_VARIABLE,
        _NCCL_ENV,
    ),
)  # fmt: skip

SLOWER = (
    KnownLine(
        "GpuDirectOff", "slower", "nccl", "GPU Direct RDMA Disabled for",
        re.compile(r"NET/(?!Socket)[\w ]{1,40} ?: GPU Direct RDMA Disabled for"),
        "node-0:14213:14219 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'",
        "NCCL uses RDMA, but GPUDirect RDMA is off for the NIC that the line names, so NCCL "
        "copies each message through host memory.",
        "If the line gives a distance, the GPU and the NIC are farther apart than "
        "NCCL_NET_GDR_LEVEL allows: NCCL turns GPUDirect RDMA off on purpose, and no action is "
        "needed. Otherwise, ask the cluster administrator whether nvidia-peermem is loaded or "
        "DMA-BUF is available on the node.",
        NET_IB_SOURCE,
    ),
)  # fmt: skip
