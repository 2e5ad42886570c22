"""The environment: whether a target's own variables turn RDMA off, or may do so unseen."""

from __future__ import annotations

from webhook.decision.outcome import Reason, Verdict
from webhook.decision.scope import Target
from webhook.fabric import rdma_off
from webhook.fabric.rdma_off import Own
from webhook.mutations.env.user_values import HCA_ELSEWHERE, IB_DISABLED, NET_SOCKET, NIXL
from webhook.pipeline.verdict.seen import Seen
from webhook.pod.container_env import has_env_from

NET_PLUGIN = Reason(
    "NcclNetPlugin",
    "The container's NCCL_NET or NCCL_NET_PLUGIN chooses a plugin, which may not use RDMA.",
    rdma="unsure",
)
ENV_UNSEEN = Reason(
    "EnvUnseen", "envFrom may set variables that turn RDMA off, and admission does not see them.",
    rdma="unsure",
)  # fmt: skip
REASONS = (NET_PLUGIN, ENV_UNSEEN)

#: NCCL compares without regard to case (nccl, src/plugin/net.cc).
_OWN_TRANSPORTS = frozenset({"ib", "none", ""})


def judge(seen: Seen, target: Target) -> Verdict | None:
    """Return what a target's variables say against RDMA, None if nothing."""
    own = seen.scope.env.of(target.path)
    if own:
        found = _switched_off(seen, target, own) or _by_plugin(target, own)
        if found is not None:
            return found
    if has_env_from(seen.pod, target.path):
        return Verdict.of(
            ENV_UNSEEN, f"envFrom of {target.name} may set variables that turn RDMA off"
        )
    return None


def _switched_off(seen: Seen, target: Target, own: Own) -> Verdict | None:
    name = target.name
    disabled, socket = rdma_off.nccl_ib_disabled(own), rdma_off.nccl_net_socket(own)
    if disabled:
        return Verdict.of(IB_DISABLED, f"{name} sets NCCL_IB_DISABLE={disabled}: remove it")
    if socket:
        return Verdict.of(NET_SOCKET, f"{name} sets NCCL_NET={socket}: remove it")
    devices = dict(seen.fabric.env.nccl).get(rdma_off.IB_HCA) if seen.fabric else None
    elsewhere = rdma_off.nccl_ib_hca_elsewhere(own, devices)
    if elsewhere:
        message = f"{name} sets NCCL_IB_HCA={elsewhere:.60}, but the fabric has {devices}"
        return Verdict.of(HCA_ELSEWHERE, message)
    tls = rdma_off.ucx_tls_without_rdma(own)
    if tls and rdma_off.uses_nixl(seen.scope.commands.text(target.path), own):
        message = f"{name} uses NIXL with UCX_TLS={tls:.60}, which has no RDMA transport: remove it"
        return Verdict.of(NIXL, message)
    return None


def _by_plugin(target: Target, own: Own) -> Verdict | None:
    for name in ("NCCL_NET_PLUGIN", "NCCL_NET"):
        value = own.get(name) or ""
        if value.lower() not in _OWN_TRANSPORTS:
            return Verdict.of(
                NET_PLUGIN, f"{target.name} sets {name}={value:.40}: that plugin may not use RDMA"
            )
    return None
