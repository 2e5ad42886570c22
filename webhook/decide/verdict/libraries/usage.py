"""Which libraries move a target's data between nodes: the verdict is theirs.

NCCL moves it in a pod with GPUs, unless the target shows that another library does; in a group over
several nodes, both move it, except with ps-lite: BytePS uses NCCL only within a node (its
docs/architecture.md), and MXNet's kvstore not at all. MPI moves the data of ranks without GPUs and
of its own benchmarks, and may move that of a program that it starts and that shows no library. The
backend that a command chooses for PyTorch moves the data of that command.
"""

from __future__ import annotations

from collections.abc import Mapping

from webhook.decide.launchers.openmpi import HCOLL_VARIABLE
from webhook.decide.launchers.roles import may_lack_env, mentions_mpi
from webhook.decide.mutations.nvlink.requirements import HOST_ID
from webhook.decide.verdict.libraries.transfers import NVSHMEM_TRANSPORT
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.fabric import Fabric
from webhook.model.libraries import WEBHOOK_VARIABLES
from webhook.model.traffic_libraries import (
    TrafficLibrary,
    libraries_in,
    moves_data_by_mpi,
    shows_no_library,
    spans_nodes,
    torch_backend,
)

#: The variables that the mutations `env`, `hcoll` and `nvlink` set, without a site's.
_OWN = WEBHOOK_VARIABLES | {HCOLL_VARIABLE, HOST_ID}


def with_libraries_shown_by(
    pod: PatchedPod, patched: PatchedTarget, effective_env: Mapping[str, str | None]
) -> PatchedTarget:
    """Return a target with other variables, and with the libraries that they show."""
    changed = patched
    if effective_env is not patched.effective_env:
        changed = patched._replace(effective_env=effective_env)
    user_env = without_ours(effective_env, pod.used_fabric)
    return changed._replace(
        carriers=_carriers(pod, changed, user_env),
        may_use_mpi=_may_use_mpi(pod, changed, user_env),
    )


def without_ours(env: Mapping[str, str | None], fabric: Fabric | None) -> Mapping[str, str | None]:
    """Return the variables that are certainly the user's in a pod on this fabric."""
    site_variables = fabric.env.site_variables if fabric else ()
    ignored = _OWN.union([name for name, _ in site_variables])
    if ignored.isdisjoint(env):
        return env
    return {name: value for name, value in env.items() if name not in ignored}


def _carriers(
    pod: PatchedPod, patched: PatchedTarget, user_env: Mapping[str, str | None]
) -> tuple[TrafficLibrary, ...]:
    command = patched.command
    libraries = [
        library
        for library in libraries_in(command, user_env, patched.container.image)
        if library != "NVSHMEM" or not _stays_in_node(patched)
    ]
    backend = None if libraries else torch_backend(command)
    if backend is not None:
        return (backend,)
    if not libraries and moves_data_by_mpi(command):
        return ("MPI",)
    mpi = not pod.has_gpu and _mentions_mpi(pod, patched, user_env)
    if libraries:
        uses_nccl = "ps-lite" not in libraries and _spans_nodes(pod, patched)
    else:
        uses_nccl = pod.has_gpu or any(name.startswith("NCCL_") for name in user_env)
    if uses_nccl:
        libraries.append("NCCL")
    return (*libraries, "MPI") if mpi else tuple(libraries)


def _may_use_mpi(
    pod: PatchedPod, patched: PatchedTarget, user_env: Mapping[str, str | None]
) -> bool:
    """Return whether MPI starts a program that shows no library; workers show nothing."""
    analysis, path = pod.analysis, patched.target.path
    return (
        _mentions_mpi(pod, patched, user_env)
        and not may_lack_env(analysis.original, path, analysis.commands, user_env)
        and shows_no_library(patched.command, user_env)
    )


def _stays_in_node(patched: PatchedTarget) -> bool:
    """Return whether NVSHMEM moves nothing between nodes."""
    return (patched.effective_env.get(NVSHMEM_TRANSPORT) or "").lower() == "none"


def _mentions_mpi(
    pod: PatchedPod, patched: PatchedTarget, user_env: Mapping[str, str | None]
) -> bool:
    analysis = pod.analysis
    path, commands = patched.target.path, analysis.commands
    return mentions_mpi(analysis.original, path, commands, patched.command, user_env)


def _spans_nodes(pod: PatchedPod, patched: PatchedTarget) -> bool:
    original = pod.analysis.original
    return spans_nodes(
        original.labels, original.annotations, patched.command, patched.effective_env
    )
