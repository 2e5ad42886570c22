"""The libraries: whether variables and commands keep MPI, NCCL or ps-lite off RDMA."""

from __future__ import annotations

from collections.abc import Mapping

from webhook.decide.launchers.launches import parameters_of
from webhook.decide.launchers.roles import mentions_mpi
from webhook.decide.mutations.env import HCA_ELSEWHERE, IB_DISABLED, NET_SOCKET, NIXL
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model import transport_variables
from webhook.model.decision import Reason, Verdict

# MPI's transport: whether ranks without GPUs, which have no NCCL traffic, may use RDMA.
#
# Open MPI uses RDMA through its pml ucx, and through the openib, uct or ofi BTL of its pml ob1. The
# available ones depend on its version and build: 4.0 and later ignore InfiniBand in openib unless
# configured otherwise, 5.0 has no openib (README of 4.0; docs of 5.0, "InfiniBand / RoCE support").
#
#     parameters                                verdict
#     ----------                                -------
#     pml ob1, and btl lists none of the three  no
#     pml ob1, or pml ^ucx                      unsure
#     UCX_TLS without an RDMA transport         no, since only UCX remains
#
# With GPUs the traffic is mostly NCCL's, whatever MPI uses: Horovod's own mpirun sets pml ob1.

MPI_OVER_TCP = Reason(
    "MPIOverTCP",
    "Ranks without GPUs use Open MPI's pml ob1 with BTLs that have no RDMA.",
    remedy=(
        "Remove pml and btl from the options of mpirun and from OMPI_MCA_* in env, "
        "so that Open MPI uses UCX."
    ),
    rdma="no",
)
MPI_OB1 = Reason(
    "MPIOb1",
    "Ranks without GPUs do not use UCX: whether Open MPI's pml ob1 has RDMA depends on its build.",
    remedy=(
        "Remove pml from the options of mpirun and from OMPI_MCA_* in env, so that "
        "Open MPI uses UCX."
    ),
    rdma="unsure",
)
MPI_UCX_TLS = Reason(
    "MPIUcxTls",
    "Ranks without GPUs use MPI over UCX, and their UCX_TLS includes no RDMA transport.",
    remedy="Add rc to UCX_TLS, or remove the variable.",
    rdma="no",
)
MPI_REASONS = (MPI_OVER_TCP, MPI_OB1, MPI_UCX_TLS)

#: The BTLs that may use an RDMA device.
_RDMA = frozenset({"openib", "uct", "ofi"})


def judge_mpi_transport(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the visible obstacle to RDMA for a target's ranks, or None."""
    if pod.has_gpu:
        return None
    analysis, user_env, path = pod.analysis, patched.user_env, patched.target.path
    subject = f"container {patched.target.name}"
    unsure = None
    for settings in parameters_of(analysis.commands, path, user_env):
        pml, btl = settings.get("pml"), settings.get("btl") or ""
        if pml == "ob1" and btl and btl[0] != "^" and _RDMA.isdisjoint(btl.split(",")):
            message = f"{subject} runs Open MPI with pml ob1 and btl {btl:.40}: remove both"
            return Verdict.of(MPI_OVER_TCP, message)
        if pml in ("ob1", "^ucx"):
            message = f"{subject} runs Open MPI with pml {pml}, which may lack RDMA: remove pml"
            unsure = unsure or Verdict.of(MPI_OB1, message)
    tls = transport_variables.ucx_tls_without_rdma(user_env)
    # Without its variables, since some are ours.
    if tls and mentions_mpi(analysis.original, path, analysis.commands, {}):
        removal = patched.removal("UCX_TLS")
        message = f"{subject} runs MPI over UCX with UCX_TLS={tls:.40}: {removal}"
        return Verdict.of(MPI_UCX_TLS, message)
    return unsure


# The environment: whether a target's own variables turn RDMA off, visibly or possibly.

NET_PLUGIN = Reason(
    "NcclNetPlugin",
    "The container's NCCL_NET or NCCL_NET_PLUGIN selects a plugin that may not use RDMA.",
    remedy="Remove NCCL_NET and NCCL_NET_PLUGIN, unless the image has the plugin that they name.",
    rdma="unsure",
)
ENV_UNSEEN = Reason(
    "EnvUnseen",
    "envFrom may set variables that turn RDMA off, but admission cannot see them.",
    remedy=(
        "Check that the ConfigMaps and Secrets of envFrom set no NCCL_IB_DISABLE, NCCL_NET or "
        "NCCL_IB_HCA."
    ),
    rdma="unsure",
)
NCCL_REASONS = (NET_PLUGIN, ENV_UNSEEN)

#: The variables that these functions read.
_SWITCHES = frozenset(
    {"NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_PLUGIN", transport_variables.IB_HCA, "UCX_TLS"}
)
#: NCCL's own transports; it ignores case (nccl, src/plugin/net.cc).
_OWN_TRANSPORTS = frozenset({"ib", "none", ""})


def judge_nccl_settings(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the obstacle to RDMA in a target's variables, or None."""
    if not _SWITCHES.isdisjoint(patched.user_env):
        problem = _switch_verdict(pod, patched) or _plugin_verdict(patched)
        if problem is not None:
            return problem
    if pod.analysis.containers[patched.target.path].env_from:
        message = f"envFrom of container {patched.target.name} may set variables that turn RDMA off"
        return Verdict.of(ENV_UNSEEN, message)
    return None


def _switch_verdict(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    subject, user_env = f"container {patched.target.name}", patched.user_env
    disabled, socket = (
        transport_variables.nccl_ib_disabled(user_env),
        transport_variables.nccl_net_socket(user_env),
    )
    if disabled:
        removal = patched.removal("NCCL_IB_DISABLE")
        message = f"{subject} sets NCCL_IB_DISABLE={disabled}: {removal}"
        return Verdict.of(IB_DISABLED, message)
    if socket:
        message = f"{subject} sets NCCL_NET={socket}: {patched.removal('NCCL_NET')}"
        return Verdict.of(NET_SOCKET, message)
    devices = (
        dict(pod.used_fabric.env.library_variables).get(transport_variables.IB_HCA)
        if pod.used_fabric
        else None
    )
    elsewhere = transport_variables.nccl_ib_hca_elsewhere(user_env, devices)
    if elsewhere:
        origin = patched.origin(transport_variables.IB_HCA)
        place = "" if origin == "env" else f" ({origin})"
        message = f"{subject} sets NCCL_IB_HCA={elsewhere:.60}, but the fabric has {devices}{place}"
        return Verdict.of(HCA_ELSEWHERE, message)
    tls = transport_variables.ucx_tls_without_rdma(user_env)
    if tls and transport_variables.uses_nixl(patched.command, user_env):
        message = (
            f"{subject} uses NIXL with UCX_TLS={tls:.60}, which has no RDMA transport: "
            f"{patched.removal('UCX_TLS')}"
        )
        return Verdict.of(NIXL, message)
    return None


def _plugin_verdict(patched: PatchedTarget) -> Verdict | None:
    for name in ("NCCL_NET_PLUGIN", "NCCL_NET"):
        value = patched.user_env.get(name) or ""
        if value.lower() not in _OWN_TRANSPORTS:
            setting = f"container {patched.target.name} sets {name}={value:.40}"
            return Verdict.of(NET_PLUGIN, f"{setting}: that plugin may not use RDMA")
    return None


# Parameter servers: ps-lite, under BytePS and MXNet, uses TCP unless its variables choose RDMA.
#
# Sources: BytePS docs/env.md; ps-lite include/ps/kv_app.h, src/van.cc.
#
#   DMLC_ENABLE_RDMA     absent, "", 0 or zmq is TCP; 1 and ibverbs are RDMA
#   DMLC_ENABLE_UCX      1 is UCX
#   DMLC_PS_VAN_TYPE     (newer ps-lite) zmq and p3 are TCP

PS_LITE_OVER_TCP = Reason(
    "PsLiteOverTcp",
    "The container uses ps-lite (BytePS, MXNet), and no variable enables RDMA for it.",
    remedy=(
        "Set DMLC_ENABLE_RDMA=ibverbs, with an image whose ps-lite is built with "
        "RDMA, in the workers, the servers and the scheduler."
    ),
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


def judge_parameter_server(_: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the verdict on a target that runs ps-lite over TCP; None for any other target."""
    user_env, text = patched.user_env, patched.command
    if _SIGNS.isdisjoint(user_env) and _LAUNCHER not in text:
        return None
    if "horovod" in text or any(name in text for name in _TCP) or _has_rdma(user_env):
        return None
    message = (
        f"container {patched.target.name} uses ps-lite, whose default is TCP: set "
        "DMLC_ENABLE_RDMA=ibverbs"
    )
    return Verdict.of(PS_LITE_OVER_TCP, message)


def _has_rdma(user_env: Mapping[str, str | None]) -> bool:
    """Return whether a variable requests RDMA, or may: only the kubelet can resolve some values."""
    return any(name in user_env and user_env[name] not in tcp for name, tcp in _TCP.items())
