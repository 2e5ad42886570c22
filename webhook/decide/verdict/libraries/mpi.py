"""MPI's transport: whether ranks whose data MPI moves may use RDMA.

MPI moves the data of ranks without GPUs, of MPI's own benchmarks, and of PyTorch with the backend
mpi. `tcp_settings` lists what keeps it on TCP. UCX_TLS without an RDMA transport does so too, since
only UCX remains. Elsewhere NCCL moves the data, whatever MPI uses: Horovod's own mpirun sets pml
ob1.
"""

from __future__ import annotations

from webhook.decide.launchers.mpi_transport import TcpSetting, tcp_settings
from webhook.decide.launchers.roles import mentions_mpi
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model import transport_variables
from webhook.model.decision import Reason, Verdict

MPI_OVER_TCP = Reason(
    "MPIOverTCP",
    "MPI moves the data of the ranks, with Open MPI's pml ob1 and BTLs that cannot use RDMA.",
    remedy=(
        "Remove pml and btl from the options of mpirun and from OMPI_MCA_* in env, "
        "so that Open MPI uses UCX."
    ),
    rdma="no",
)
MPI_OB1 = Reason(
    "MPIOb1",
    "MPI moves the data of the ranks without UCX: whether Open MPI's pml ob1 can use RDMA depends "
    "on its build.",
    remedy=(
        "Remove pml from the options of mpirun and from OMPI_MCA_* in env, so that "
        "Open MPI uses UCX."
    ),
    rdma="unsure",
)
MPI_PROVIDER = Reason(
    "MPIProviderOverTCP",
    "MPI moves the data of the ranks through libfabric, and a variable chooses a provider that "
    "has no RDMA.",
    remedy=(
        "Remove FI_PROVIDER and I_MPI_OFI_PROVIDER from the container's env and command, or set "
        "them to a provider with RDMA, such as mlx or verbs."
    ),
    rdma="no",
)
MPI_PERHAPS_TCP = Reason(
    "MPIPerhapsOverTCP",
    "MPI moves the data of the ranks, and a variable chooses TCP: whether MPI obeys it depends on "
    "its version and build.",
    remedy=(
        "Remove FI_PROVIDER from the container's env and command, or set it to a provider with "
        "RDMA, such as verbs; set I_MPI_FABRICS to shm:ofi."
    ),
    rdma="unsure",
)
MPI_UCX_TLS = Reason(
    "MPIUcxTls",
    "MPI moves the data of the ranks over UCX, and UCX_TLS includes no RDMA transport.",
    remedy="Add rc to UCX_TLS, or remove the variable.",
    rdma="no",
)
MPI_REASONS = (MPI_OVER_TCP, MPI_OB1, MPI_PROVIDER, MPI_PERHAPS_TCP, MPI_UCX_TLS)


def judge_mpi_transport(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the visible obstacle to RDMA for a target's ranks, or None."""
    analysis, user_env, path = pod.analysis, patched.user_env, patched.target.path
    settings = [*tcp_settings(analysis.commands, path, user_env, analysis.fabric)]
    for setting in settings:
        if setting.certain:
            return _verdict(patched, setting)
    tls = transport_variables.ucx_tls_without_rdma(user_env)
    # Without its variables, since some are ours.
    if tls and mentions_mpi(analysis.original, path, analysis.commands, {}):
        place, removal = patched.place("UCX_TLS"), patched.removal("UCX_TLS")
        subject = f"container {patched.target.name}"
        message = f"{subject} runs MPI over UCX with UCX_TLS={tls:.40}{place}: {removal}"
        return patched.verdict(MPI_UCX_TLS, message, "UCX_TLS")
    return _verdict(patched, settings[0]) if settings else None


def _verdict(patched: PatchedTarget, setting: TcpSetting) -> Verdict:
    subject = f"container {patched.target.name} runs"
    if setting.kind == "btl":
        return Verdict.of(MPI_OVER_TCP, f"{subject} Open MPI with {setting.text}: remove both")
    if setting.kind == "pml":
        message = f"{subject} Open MPI with {setting.text}, which may lack RDMA: remove pml"
        return Verdict.of(MPI_OB1, message)
    removal = patched.removal(setting.variable)
    choice = f"{setting.text}{patched.place(setting.variable)}"
    if setting.certain:
        message = f"{subject} MPI with {choice}, which has no RDMA: {removal}"
        return patched.verdict(MPI_PROVIDER, message, setting.variable)
    message = f"{subject} MPI with {choice}, with which it may lack RDMA: {removal}"
    return patched.verdict(MPI_PERHAPS_TCP, message, setting.variable)
