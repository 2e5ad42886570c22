"""The environment: whether a target's own variables turn RDMA off, or may do so unseen."""

from __future__ import annotations

import re

from webhook.decision.outcome import Reason, Verdict
from webhook.decision.scope import Target
from webhook.mutations.env.user_values import IB_DISABLED, NET_SOCKET
from webhook.pipeline.verdict.seen import Seen
from webhook.pod.container_env import has_env_from

NET_PLUGIN = Reason(
    "NcclNetPlugin", "The user's NCCL_NET or NCCL_NET_PLUGIN chooses a plugin.", rdma="unsure"
)
ENV_UNSEEN = Reason(
    "EnvUnseen", "envFrom may set variables of NCCL or UCX, which admission cannot see.",
    rdma="unsure",
)  # fmt: skip
REASONS = (NET_PLUGIN, ENV_UNSEEN)

#: NCCL compares without regard to case (nccl, src/plugin/net.cc).
_OWN_TRANSPORTS = frozenset({"ib", "none", ""})
_NOT_ZERO = re.compile(r"\s*[+-]?(0[xX]0*[1-9a-fA-F]|0*[1-9])")


def judge(seen: Seen, target: Target) -> Verdict | None:
    """Return what a target's variables say against RDMA, None if nothing."""
    own = seen.scope.env.of(target.path)
    if _is_set(own.get("NCCL_IB_DISABLE")):
        message = f"{target.name} sets NCCL_IB_DISABLE={own['NCCL_IB_DISABLE']}: remove it"
        return Verdict.of(IB_DISABLED, message)
    net, plugin = own.get("NCCL_NET") or "", own.get("NCCL_NET_PLUGIN") or ""
    if net.lower() == "socket":
        return Verdict.of(NET_SOCKET, f"{target.name} sets NCCL_NET={net}: remove it")
    if net.lower() not in _OWN_TRANSPORTS or plugin.lower() not in _OWN_TRANSPORTS:
        name, value = ("NCCL_NET_PLUGIN", plugin) if plugin else ("NCCL_NET", net)
        return Verdict.of(NET_PLUGIN, f"{target.name} sets {name}={value:.40}, which decides")
    if has_env_from(seen.pod, target.path):
        return Verdict.of(ENV_UNSEEN, f"envFrom of {target.name} may turn RDMA off unseen")
    return None


def _is_set(value: str | None) -> bool:
    """Return whether NCCL reads a value as other than 0 (nccl, src/misc/param.cc: strtoll)."""
    return value is not None and _NOT_ZERO.match(value) is not None
