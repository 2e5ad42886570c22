"""MPI's transport: whether ranks whose data MPI moves may use RDMA.

MPI moves the data of ranks without GPUs, of MPI's own benchmarks, and of PyTorch with the backend
mpi. Where something shows NCCL, it moves the data, whatever MPI uses: Horovod's own mpirun sets pml
ob1. A program with GPUs that shows neither, such as `mpirun ./solver`, may use either.
"""

from __future__ import annotations

from webhook.decide.launchers.mpi_transport import PML_VARIABLE, worst_tcp_setting
from webhook.decide.verdict.libraries.fabric_devices import judge_device_lists
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.decision import Reason, Verdict

MPI_OVER_TCP = Reason(
    "MPIOverTCP",
    "MPI moves the data of the ranks, and Open MPI's parameters pml and btl choose transports "
    "without RDMA.",
    remedy=(
        "Remove pml and btl from the options of mpirun, and OMPI_MCA_pml and OMPI_MCA_btl from the "
        "container's env and command, so that Open MPI uses UCX."
    ),
    rdma="no",
)
MPI_OB1 = Reason(
    "MPIOb1",
    "MPI moves the data of the ranks without UCX; whether Open MPI's pml ob1 can use RDMA depends "
    "on the build of Open MPI.",
    remedy=(
        "Remove pml from the options of mpirun, and OMPI_MCA_pml from the container's env, so that "
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
    "MPI moves the data of the ranks, and a variable chooses TCP; whether MPI obeys the variable "
    "depends on the version and build of MPI.",
    remedy=(
        "If FI_PROVIDER is set in the container's env or command, remove it, or set it to a "
        "provider with RDMA, such as verbs. If I_MPI_FABRICS is set, set it to shm:ofi."
    ),
    rdma="unsure",
)
MPI_UCX_TLS = Reason(
    "MPIUcxTls",
    "MPI moves the data of the ranks over UCX, and UCX_TLS includes no RDMA transport.",
    remedy="Make UCX_TLS include rc, or remove the variable.",
    rdma="no",
)
MPI_UNLESS_NCCL = Reason(
    "MPIUnlessNccl",
    "MPI starts the program, and a setting keeps MPI from using RDMA; whether MPI or NCCL moves "
    "the program's data is unknown.",
    remedy=(
        "If MPI moves the program's data, remove the setting. If NCCL does, no action is needed."
    ),
    rdma="unsure",
)
MPI_REASONS = (
    *(MPI_OVER_TCP, MPI_OB1, MPI_PROVIDER, MPI_PERHAPS_TCP, MPI_UCX_TLS),
    MPI_UNLESS_NCCL,
)
_OB1 = {
    True: (MPI_OVER_TCP, "Open MPI with {setting}; remove both"),
    False: (MPI_OB1, "Open MPI with {setting}, which may lack RDMA; remove pml"),
}
#: The variable, "" for options of mpirun, and whether it is certain → what the target runs.
_VERDICTS = {
    **{(name, certain): _OB1[certain] for name in ("", PML_VARIABLE) for certain in _OB1},
    ("UCX_TLS", True): (MPI_UCX_TLS, "MPI over UCX with {setting}; {removal}"),
}
_OF_PROVIDERS = {
    True: (MPI_PROVIDER, "MPI with {setting}, which has no RDMA; {removal}"),
    False: (MPI_PERHAPS_TCP, "MPI with {setting}, with which it may lack RDMA; {removal}"),
}


def judge_mpi_transport(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the visible obstacle to RDMA for a target's ranks, or None."""
    analysis, path = pod.analysis, patched.target.path
    tcp = worst_tcp_setting(analysis.commands, path, patched.effective_env, analysis.fabric)
    if tcp is None:
        return judge_device_lists(pod, patched, "UCX_NET_DEVICES")
    reason, text = _VERDICTS.get((tcp.variable, tcp.certain)) or _OF_PROVIDERS[tcp.certain]
    setting = f"{tcp.text}{patched.origin_suffix(tcp.variable)}"
    message = text.format(setting=setting, removal=patched.removal(tcp.variable))
    return patched.verdict(reason, f"container {patched.target.name} runs {message}", tcp.variable)


def unless_nccl(verdict: Verdict) -> Verdict:
    """Return the verdict on MPI for a program whose data NCCL may move instead."""
    message = f"{verdict.message} (no action is needed if NCCL moves the data)"
    return Verdict.of(MPI_UNLESS_NCCL, message).with_key(
        verdict.key, overrides_env=verdict.overrides_env
    )
