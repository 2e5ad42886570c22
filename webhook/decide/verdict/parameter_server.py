"""Parameter servers: ps-lite, below BytePS and MXNet, uses TCP unless its variables say otherwise.

Sources: BytePS docs/env.md; ps-lite include/ps/kv_app.h, src/van.cc.

    DMLC_ENABLE_RDMA     absent, "", 0 or zmq is TCP; 1 and ibverbs are RDMA
    DMLC_ENABLE_UCX      1 is UCX
    DMLC_PS_VAN_TYPE     (newer ps-lite) zmq and p3 are TCP
"""

from __future__ import annotations

from collections.abc import Mapping

from webhook.decide.verdict.judged_pod import Seen, SeenTarget
from webhook.model.decision import Reason, Verdict

PS_LITE_OVER_TCP = Reason(
    "PsLiteOverTcp",
    "The container uses ps-lite (BytePS, MXNet), and no variable gives it RDMA.",
    rdma="no",
)
PARAMETER_SERVER_REASONS = (PS_LITE_OVER_TCP,)

#: Variables that only a node of a parameter server has, and BytePS's launcher.
_SIGNS = frozenset({"DMLC_ROLE", "DMLC_PS_ROOT_URI"})
_LAUNCHER = "bpslaunch"
#: Variables that choose ps-lite's transport, with the values that mean TCP.
_TCP = {
    "DMLC_ENABLE_RDMA": ("", "0", "zmq"),
    "DMLC_ENABLE_UCX": ("", "0"),
    "DMLC_PS_VAN_TYPE": ("", "zmq", "p3"),
}


def judge_parameter_server(_: Seen, one: SeenTarget) -> Verdict | None:
    """Return that a target's parameter server uses TCP, None if it has RDMA or is not one."""
    own, text = one.own, one.command
    if _SIGNS.isdisjoint(own) and _LAUNCHER not in text:
        return None
    if "horovod" in text or any(name in text for name in _TCP) or _has_rdma(own):
        return None
    message = f"{one.target.name} uses ps-lite, whose default is TCP: set DMLC_ENABLE_RDMA=ibverbs"
    return Verdict.of(PS_LITE_OVER_TCP, message)


def _has_rdma(own: Mapping[str, str | None]) -> bool:
    """Return whether a variable asks for RDMA, or may: only the kubelet knows some values."""
    return any(name in own and own[name] not in tcp for name, tcp in _TCP.items())
