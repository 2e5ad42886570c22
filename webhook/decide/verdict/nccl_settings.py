"""The environment: whether a target's own variables turn RDMA off, or may do so unseen."""

from __future__ import annotations

from webhook.decide import transport_variables
from webhook.decide.mutations.user_values import HCA_ELSEWHERE, IB_DISABLED, NET_SOCKET, NIXL
from webhook.decide.verdict.judged_pod import Seen, SeenTarget
from webhook.model.decision import Reason, Verdict

NET_PLUGIN = Reason(
    "NcclNetPlugin",
    "The container's NCCL_NET or NCCL_NET_PLUGIN chooses a plugin, which may not use RDMA.",
    rdma="unsure",
)
ENV_UNSEEN = Reason(
    "EnvUnseen", "envFrom may set variables that turn RDMA off, and admission does not see them.",
    rdma="unsure",
)  # fmt: skip
NCCL_REASONS = (NET_PLUGIN, ENV_UNSEEN)

#: The variables that these functions look at.
_TELLING = frozenset(
    {"NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_PLUGIN", transport_variables.IB_HCA, "UCX_TLS"}
)
#: NCCL compares without regard to case (nccl, src/plugin/net.cc).
_OWN_TRANSPORTS = frozenset({"ib", "none", ""})


def judge_nccl_settings(seen: Seen, one: SeenTarget) -> Verdict | None:
    """Return what a target's variables say against RDMA, None if nothing."""
    if not _TELLING.isdisjoint(one.own):
        found = _switched_off(seen, one) or _by_plugin(one)
        if found is not None:
            return found
    if seen.scope.env.has_env_from(one.target.path):
        message = f"envFrom of {one.target.name} may set variables that turn RDMA off"
        return Verdict.of(ENV_UNSEEN, message)
    return None


def _switched_off(seen: Seen, one: SeenTarget) -> Verdict | None:
    name, own = one.target.name, one.own
    disabled, socket = (
        transport_variables.nccl_ib_disabled(own),
        transport_variables.nccl_net_socket(own),
    )
    if disabled:
        return Verdict.of(IB_DISABLED, f"{name} sets NCCL_IB_DISABLE={disabled}: remove it")
    if socket:
        return Verdict.of(NET_SOCKET, f"{name} sets NCCL_NET={socket}: remove it")
    devices = dict(seen.fabric.env.nccl).get(transport_variables.IB_HCA) if seen.fabric else None
    elsewhere = transport_variables.nccl_ib_hca_elsewhere(own, devices)
    if elsewhere:
        message = f"{name} sets NCCL_IB_HCA={elsewhere:.60}, but the fabric has {devices}"
        return Verdict.of(HCA_ELSEWHERE, message)
    tls = transport_variables.ucx_tls_without_rdma(own)
    if tls and transport_variables.uses_nixl(one.command, own):
        message = f"{name} uses NIXL with UCX_TLS={tls:.60}, which has no RDMA transport: remove it"
        return Verdict.of(NIXL, message)
    return None


def _by_plugin(one: SeenTarget) -> Verdict | None:
    for name in ("NCCL_NET_PLUGIN", "NCCL_NET"):
        value = one.own.get(name) or ""
        if value.lower() not in _OWN_TRANSPORTS:
            told = f"{one.target.name} sets {name}={value:.40}"
            return Verdict.of(NET_PLUGIN, f"{told}: that plugin may not use RDMA")
    return None
