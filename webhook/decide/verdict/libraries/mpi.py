"""MPI's transport: whether ranks without GPUs, which have no NCCL traffic, may use RDMA.

Open MPI uses RDMA through its pml ucx, and through the openib, uct or ofi BTL of its pml ob1. The
available ones depend on its version and build: 4.0 and later ignore InfiniBand in openib unless
configured otherwise, 5.0 has no openib (README of 4.0; docs of 5.0, "InfiniBand / RoCE support").

    parameters                                verdict
    ----------                                -------
    pml ob1, and btl lists none of the three  no
    pml ob1, or pml ^ucx                      unsure
    UCX_TLS without an RDMA transport         no, since only UCX remains

With GPUs the traffic is mostly NCCL's, whatever MPI uses: Horovod's own mpirun sets pml ob1.
"""

from __future__ import annotations

from webhook.decide.launchers.launches import parameters_of
from webhook.decide.launchers.roles import mentions_mpi
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model import transport_variables
from webhook.model.decision import Reason, Verdict

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
    """Return the visible obstacle to RDMA for a target's ranks without GPUs, or None."""
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
