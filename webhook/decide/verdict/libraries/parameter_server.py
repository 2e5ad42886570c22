"""Parameter servers: ps-lite, under BytePS and MXNet, uses TCP unless its variables choose RDMA.

Sources: BytePS docs/env.md; ps-lite include/ps/kv_app.h, src/van.cc, src/rdma_van.h.

    DMLC_ENABLE_RDMA     absent, "", 0 or zmq is TCP; 1 and ibverbs are RDMA
    DMLC_ENABLE_UCX      1 is UCX
    DMLC_PS_VAN_TYPE     (newer ps-lite) zmq and p3 are TCP
"""

from __future__ import annotations

from collections.abc import Mapping

from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.decision import Reason, Verdict

PS_LITE_OVER_TCP = Reason(
    "PsLiteOverTcp",
    "The container uses ps-lite (BytePS, MXNet), and no variable enables RDMA for it.",
    remedy=(
        "Set DMLC_ENABLE_RDMA=ibverbs (BytePS) or DMLC_PS_VAN_TYPE=ibverbs (MXNet), with an image "
        "whose ps-lite is built with RDMA, in the workers, the servers and the scheduler. ps-lite "
        "connects by IP: the pods need a network of the fabric, or hostNetwork."
    ),
    rdma="no",
)
PARAMETER_SERVER_REASONS = (PS_LITE_OVER_TCP,)

#: Variables that choose ps-lite's transport, with the values that mean TCP.
_TCP_VALUES = {
    "DMLC_ENABLE_RDMA": ("", "0", "zmq"),
    "DMLC_ENABLE_UCX": ("", "0"),
    "DMLC_PS_VAN_TYPE": ("", "zmq", "p3"),
}


def judge_parameter_server(_: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the verdict on a target whose ps-lite uses TCP; None if a setting may enable RDMA."""
    if _may_enable(patched) or _has_rdma(patched.user_env):
        return None
    message = (
        f"container {patched.target.name} uses ps-lite, whose default is TCP: set "
        "DMLC_ENABLE_RDMA=ibverbs in all pods"
    )
    return Verdict.of(PS_LITE_OVER_TCP, message)


def _may_enable(patched: PatchedTarget) -> bool:
    """Return whether the command mentions a variable whose value is not known from there."""
    return any(name in patched.command and name not in patched.user_env for name in _TCP_VALUES)


def _has_rdma(user_env: Mapping[str, str | None]) -> bool:
    """Return whether a variable requests RDMA, or may: only the kubelet can resolve some values."""
    return any(name in user_env and user_env[name] not in tcp for name, tcp in _TCP_VALUES.items())
