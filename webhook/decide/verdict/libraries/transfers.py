"""The libraries that move data between servers or experts: NIXL, Mooncake, MoRI and NVSHMEM.

NIXL uses UCX unless another backend is chosen, such as LIBFABRIC: that prefers EFA, and older
versions know no other RDMA, only TCP. NVSHMEM, under DeepEP, uses verbs by `ibrc` or
`ibgda`, and nothing between nodes with `none`. MoRI uses verbs alone.

Sources: NIXL docs (backend UCX) and src/utils/libfabric of 0.7 (EFA, else sockets); UCX FAQ;
Mooncake transfer_engine_impl.cpp and its docs/source/deployment; ROCm/mori
src/application/transport/rdma/rdma.cpp (MORI_RDMA_DEVICES); NVSHMEM's environment variables.
"""

from __future__ import annotations

from webhook.decide.mutations.env import NIXL
from webhook.decide.verdict.libraries.fabric_devices import (
    DEVICE_LIST_REASONS,
    judge_device_lists,
)
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model import transport_variables
from webhook.model.decision import Reason, Verdict

NIXL_BACKEND = Reason(
    "NixlBackend",
    "NIXL uses a backend other than UCX, and whether that backend uses the fabric's devices is "
    "unknown.",
    remedy=(
        "Let NIXL use UCX, its default: remove the backend from --kv-transfer-config, or remove "
        "the variable that sets it (SGLANG_DISAGGREGATION_NIXL_BACKEND or "
        "TRTLLM_NIXL_KVCACHE_BACKEND)."
    ),
    rdma="unsure",
)
MOONCAKE_OVER_TCP = Reason(
    "MooncakeOverTcp",
    "A setting, such as MC_FORCE_TCP or the protocol tcp, makes Mooncake use TCP.",
    remedy="Remove MC_FORCE_TCP, and set Mooncake's protocol to rdma.",
    rdma="no",
)
NVSHMEM_OVER_UCX = Reason(
    "NvshmemUcxTls",
    "NVSHMEM uses UCX, and UCX_TLS includes no RDMA transport.",
    remedy="Make UCX_TLS include rc, or remove the variable.",
    rdma="no",
)
TRANSFER_REASONS = (NIXL_BACKEND, MOONCAKE_OVER_TCP, NVSHMEM_OVER_UCX, *DEVICE_LIST_REASONS)
#: The variable with NVSHMEM's transport between nodes.
NVSHMEM_TRANSPORT = "NVSHMEM_REMOTE_TRANSPORT"


def judge_nixl(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the obstacle to RDMA for NIXL, or None."""
    variable, backend = transport_variables.nixl_backend(patched.effective_env)
    if backend:
        return _other_backend(patched, variable, backend)
    tls = transport_variables.ucx_tls_without_rdma(patched.effective_env)
    if not tls:
        return judge_device_lists(pod, patched, "UCX_NET_DEVICES")
    message = (
        f"container {patched.target.name} uses NIXL with UCX_TLS={tls:.60}"
        f"{patched.origin_suffix('UCX_TLS')}, which has no RDMA transport; "
        f"{patched.removal('UCX_TLS')}"
    )
    return patched.verdict(NIXL, message, "UCX_TLS")


def _other_backend(patched: PatchedTarget, variable: str, backend: str) -> Verdict:
    """Return the verdict on a backend that does not use UCX."""
    suffix = patched.origin_suffix(variable) or f" ({variable})"
    message = (
        f"container {patched.target.name} makes NIXL use {backend:.40}{suffix} instead of UCX, and "
        "that backend might not use the fabric's devices"
    )
    return patched.verdict(NIXL_BACKEND, message, variable)


def judge_mooncake(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the obstacle to RDMA for Mooncake, or None."""
    setting = transport_variables.mooncake_tcp(patched.effective_env, patched.command)
    if not setting:
        return judge_device_lists(pod, patched, "MOONCAKE_DEVICE", "MC_TE_FILTERS", "MC_MS_FILTERS")
    name = setting.partition("=")[0]
    start = f"container {patched.target.name} makes Mooncake use TCP"
    message = f"{start}; remove {setting:.60}{patched.origin_suffix(name)}"
    return patched.verdict(MOONCAKE_OVER_TCP, message, name)


def judge_mori(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the obstacle to RDMA for MoRI, or None."""
    return judge_device_lists(pod, patched, "MORI_RDMA_DEVICES")


def judge_nvshmem(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the obstacle to RDMA for NVSHMEM, or None."""
    if not nvshmem_uses_ucx(patched):
        return judge_device_lists(pod, patched, "NVSHMEM_HCA_LIST")
    tls = transport_variables.ucx_tls_without_rdma(patched.effective_env)
    if tls:
        message = (
            f"container {patched.target.name} uses NVSHMEM over UCX with UCX_TLS={tls:.60}"
            f"{patched.origin_suffix('UCX_TLS')}; {patched.removal('UCX_TLS')}"
        )
        return patched.verdict(NVSHMEM_OVER_UCX, message, "UCX_TLS")
    return judge_device_lists(pod, patched, "NVSHMEM_HCA_LIST", "UCX_NET_DEVICES")


def nvshmem_uses_ucx(patched: PatchedTarget) -> bool:
    """Return whether NVSHMEM reads UCX's variables."""
    return (patched.effective_env.get(NVSHMEM_TRANSPORT) or "").lower() == "ucx"
