"""Transfers that fail: perftest and NCCL print the status of the work completion.

    Failed status 12: wr_id 0 syndrom 0x81
    NET/IB: Got completion from peer 10.2.0.5<3309> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=...

The statuses come from rdma-core, libibverbs/verbs.h (`ibv_wc_status`); ibv_poll_cq(3) has their
names. Older versions of NCCL print `error 12`, others `status=12`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from webhook.diagnose.tools.known_lines.known_line import NET_IB_SOURCE, KnownLine

_STATUS_SOURCE = "rdma-core, libibverbs/verbs.h, ibv_wc_status"
_PERFTEST_SOURCE = f"linux-rdma/perftest, src/perftest_resources.h; {_STATUS_SOURCE}"
_NCCL_SOURCE = f"{NET_IB_SOURCE}; {_STATUS_SOURCE}"
_GPU_MEMORY = (
    "check that nvidia-peermem or DMA-BUF is available, and that the IOMMU is off or in "
    "passthrough mode (iommu=pt)"
)
_LOST_PACKETS = (
    "use devices on the same network{variable} and, on RoCE, that flow control is on, since the "
    "network may lose packets without it."
)


class _Cause(NamedTuple):
    """A status with its cause, and the remedy for each of the two programs."""

    status: int
    #: As in ibv_wc_status, without IBV_WC_ and _ERR.
    symbol: str
    #: The end of the codes.
    name: str
    meaning: str
    perftest_remedy: str
    nccl_remedy: str
    #: Besides the definition of the status.
    source: str = ""
    consequence: bool = False


_CAUSES = (
    _Cause(
        4, "LOC_PROT", "LocalProtection",
        "An RDMA transfer failed, since the NIC could not access memory of its own node (status "
        "4, local protection).",
        f"Run the test without --use_cuda. If that works, the NIC cannot access the GPU's memory: "
        f"{_GPU_MEMORY}.",
        "Run the job with NCCL_NET_GDR_LEVEL=LOC. If that works, the NIC cannot access the GPU's "
        f"memory: {_GPU_MEMORY}.",
        "linux-rdma/perftest, issues 140, 173 and 200; NVIDIA, GPUDirect RDMA",
    ),
    _Cause(
        5, "WR_FLUSH", "Flushed",
        "An RDMA transfer was dropped, since an earlier transfer on its queue pair had failed "
        "(status 5, flushed).",
        "Look for the first failure in the output of both ends.",
        "Look for the first failure in the logs of all ranks.",
        consequence=True,
    ),
    _Cause(
        9, "REM_INV_REQ", "InvalidRequest",
        "The other node rejected an RDMA transfer as invalid (status 9, remote invalid request).",
        "Run the same program with the same options at both ends. On soft-RoCE, use a single queue "
        "pair (-q 1).",
        "Use the same versions of NCCL and of its plugins, and the same NCCL_ variables, in all "
        "pods of the job.",
    ),
    _Cause(
        10, "REM_ACCESS", "RemoteAccess",
        "The other node refused access to its memory (status 10, remote access).",
        "Run both ends with the same options: a server without -a reserves too little memory for "
        "a client with -a. On the other node, if perftest runs with --use_cuda there, "
        f"{_GPU_MEMORY}.",
        f"Check that NCCL_IB_HCA names only devices of the fabric. On the other node, "
        f"{_GPU_MEMORY}.",
    ),
    _Cause(
        11, "REM_OP", "RemoteOperation",
        "The other node could not complete an RDMA transfer (status 11, remote operation).",
        "Read the output of the other end, which may show a different status. On the other node, "
        f"if perftest runs with --use_cuda there, {_GPU_MEMORY}.",
        "Read the log of the other rank, which may show a different status. On the other node, "
        f"{_GPU_MEMORY}.",
        "linux-rdma/perftest, issue 200",
    ),
    _Cause(
        12, "RETRY_EXC", "Unanswered",
        "The other node did not answer an RDMA transfer in time (status 12, retries exceeded).",
        "Read the output of perftest at the other end first: that process may have exited. If it "
        f"is still running, check that the two ends {_LOST_PACKETS.format(variable='')}",
        "Read the log of the other rank first: that rank may have exited. If it is still running, "
        f"check that the two ranks {_LOST_PACKETS.format(variable=' (compare NCCL_IB_HCA)')}",
    ),
    _Cause(
        13, "RNR_RETRY_EXC", "ReceiverNotReady",
        "The other node had no buffer ready for a message (status 13, receiver not ready).",
        "Check that the process at the other end is still running and has a CPU of its own. With "
        "ib_send_bw, give both ends the same options.",
        "Read the log of the other rank: that rank may be stuck or may be getting too little CPU "
        "time.",
    ),
)  # fmt: skip


def _perftest_pattern(status: str) -> re.Pattern[str]:
    return re.compile(rf"Failed status {status}\b[^:]{{0,80}}: wr_id")


def _nccl_pattern(status: str) -> re.Pattern[str]:
    return re.compile(
        rf"Got completion\b.{{0,200}}? with (?:error |status=(?:\w{{1,40}}\()?){status}\b"
    )


def _rows_of(cause: _Cause) -> tuple[KnownLine, KnownLine]:
    further = f"; {cause.source}" if cause.source else ""
    return (
        KnownLine(
            f"Transfer{cause.name}", "failure", "verbs", "Failed status",
            _perftest_pattern(str(cause.status)),
            f"Failed status {cause.status}: wr_id 0 syndrom 0x81",
            cause.meaning, cause.perftest_remedy, _PERFTEST_SOURCE + further,
            consequence=cause.consequence,
        ),
        KnownLine(
            f"Completion{cause.name}", "failure", "verbs", "Got completion ",
            _nccl_pattern(str(cause.status)),
            "node-0:5776:5902 [0] NCCL WARN NET/IB: Got completion from peer 10.2.0.5<33092> with "
            f"status=IBV_WC_{cause.symbol}_ERR({cause.status}) opcode=IBV_WC_SEND(0) vendor_err=81",
            cause.meaning, cause.nccl_remedy, _NCCL_SOURCE + further,
            consequence=cause.consequence,
        ),
    )  # fmt: skip


_OTHER = rf"(?!(?:{'|'.join(str(cause.status) for cause in _CAUSES)})\b)\d{{1,2}}"
_OTHER_REMEDY = "Look for NIC errors in {} and in the kernel's log on both nodes (dmesg)."

WORK_COMPLETIONS = (
    *(row for cause in _CAUSES for row in _rows_of(cause)),
    KnownLine(
        "TransferFailed", "failure", "verbs", "Failed status", _perftest_pattern(_OTHER),
        "Failed status 2: wr_id 0 syndrom 0x68",
        "An RDMA transfer failed with the status that the line shows.",
        _OTHER_REMEDY.format("the output of the other end"), _PERFTEST_SOURCE,
    ),
    KnownLine(
        "CompletionError", "failure", "verbs", "Got completion ", _nccl_pattern(_OTHER),
        "node-0:5776:5902 [0] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from "
        "peer 10.2.0.5<33092> with error 2, opcode 0, len 0, vendor err 104 (Send)",
        "An RDMA transfer failed with the error that the line shows.",
        _OTHER_REMEDY.format("the log of the other rank"), _NCCL_SOURCE,
    ),
)  # fmt: skip
