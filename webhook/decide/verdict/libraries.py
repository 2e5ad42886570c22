"""MPI's transport: whether ranks without GPUs, which have no traffic of NCCL's, may use RDMA.

Open MPI uses RDMA by its pml ucx, and by the openib, uct or ofi BTL of its pml ob1. Which of these
it has depends on its version and its build: 4.0 and later ignore InfiniBand in openib unless told
otherwise, 5.0 has none (README of 4.0; docs of 5.0, "InfiniBand / RoCE support").

    parameters                                verdict
    ----------                                -------
    pml ob1, and btl lists none of those      no
    pml ob1, or pml ^ucx                      unsure
    UCX_TLS without an RDMA transport         no, since UCX is what is left

With GPUs the traffic is mostly NCCL's, whatever MPI uses: Horovod's own mpirun says pml ob1.
"""

from __future__ import annotations

from webhook.decide import transport_variables
from webhook.decide.launchers.launches_launches import parameters_of
from webhook.decide.launchers.roles import speaks_of_mpi
from webhook.decide.verdict.judged_pod import Seen, SeenTarget
from webhook.model.decision import Reason, Verdict

MPI_OVER_TCP = Reason(
    "MPIOverTCP",
    "Ranks without GPUs use Open MPI's pml ob1 with BTLs that have no RDMA.",
    rdma="no",
)
MPI_OB1 = Reason(
    "MPIOb1",
    "Ranks without GPUs do not use UCX: whether Open MPI's pml ob1 has RDMA depends on its build.",
    rdma="unsure",
)
MPI_UCX_TLS = Reason(
    "MPIUcxTls",
    "Ranks without GPUs use MPI over UCX, and the user's UCX_TLS leaves no RDMA transport.",
    rdma="no",
)
MPI_REASONS = (MPI_OVER_TCP, MPI_OB1, MPI_UCX_TLS)

#: The BTLs that may use an RDMA device.
_RDMA = frozenset({"openib", "uct", "ofi"})


def judge_mpi_transport(seen: Seen, one: SeenTarget) -> Verdict | None:
    """Return what keeps a target's ranks off RDMA, None if nothing does that can be seen."""
    if seen.has_gpu:
        return None
    scope, own, name, path = seen.scope, one.own, one.target.name, one.target.path
    unsure = None
    for given in parameters_of(scope.commands, path, own):
        pml, btl = given.get("pml"), given.get("btl") or ""
        if pml == "ob1" and btl and btl[0] != "^" and _RDMA.isdisjoint(btl.split(",")):
            message = f"{name} runs Open MPI with pml ob1 and btl {btl:.40}: remove both"
            return Verdict.of(MPI_OVER_TCP, message)
        if pml in ("ob1", "^ucx"):
            message = f"{name} runs Open MPI with pml {pml}, which may lack RDMA: remove it"
            unsure = unsure or Verdict.of(MPI_OB1, message)
    tls = transport_variables.ucx_tls_without_rdma(own)
    # Not by its variables, some of which are ours.
    if tls and speaks_of_mpi(scope.original, path, scope.commands, {}):
        message = f"{name} runs MPI over UCX with UCX_TLS={tls:.40}: remove it"
        return Verdict.of(MPI_UCX_TLS, message)
    return unsure
