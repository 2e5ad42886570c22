"""Log lines that UCX, or NCCL's plugin for UCX, writes when RDMA does not work."""

from __future__ import annotations

import re

from webhook.diagnose.tools.known_lines.known_line import KnownLine

UCX_FAILURES = (
    KnownLine(
        "UcxDeviceMissing", "failure", "ucx", "is not available, please use one or more of",
        re.compile(r"network device '[^']{1,80}' is not available"),
        "[1669031880.738755] [node-0:588291:0] ucp_context.c:969  UCX  WARN  network device "
        "'mlx5_9:1' is not available, please use one or more of: 'eth0'(tcp), 'mlx5_0:1'(ib)",
        "UCX_NET_DEVICES names a device that the container does not have.",
        "Set UCX_NET_DEVICES to one of the RDMA devices that the line lists, such as mlx5_0:1. If "
        "the line lists only network interfaces, such as eth0, the container has no RDMA device "
        "that UCX can use: request the RDMA resource of the fabric.",
        "openucx/ucx, src/ucp/core/ucp_context.c",
    ),
    KnownLine(
        "UcxNothingUsable", "failure", "ucx", "no usable transports/devices", None,
        "[1701292112.829711] [node-0:1:0] ucp_context.c:1582 UCX  ERROR no usable "
        "transports/devices (asked tcp on network:mlx5_0:1)",
        "UCX_NET_DEVICES and UCX_TLS together exclude all devices.",
        "Remove both variables or, if the job needs them, add to UCX_NET_DEVICES a device for one "
        "of the transports in UCX_TLS: an RDMA device, such as mlx5_0:1, for rc, or a network "
        "interface, such as eth0, for tcp.",
        "openucx/ucx, src/ucp/core/ucp_context.c",
    ),
    KnownLine(
        "UcxPluginFailed", "failure", "ucx", "NCCL WARN Failed: UCX error", None,
        "node-0:366:377 [0] ucx_plugin.c:498 NCCL WARN Failed: UCX error ucx_plugin.c:498 '-5' "
        "Invalid parameter",
        "NCCL's plugin for UCX failed with the error that the line shows.",
        "Remove NCCL_PLUGIN_P2P=ucx, so that NCCL uses verbs without UCX.",
        "Mellanox/nccl-rdma-sharp-plugins, src/ucx_plugin.c",
    ),
)  # fmt: skip
