"""`nvlink`: let two privileged pods on one node use NVLink between their GPUs.

A pod requests this with `rdma.lab/nvlink: share`, in the namespaces that the configuration
allows. It applies to all containers of a pod or to none: otherwise some would compute on another
pod's GPUs. `obstacles` says what is needed and what stands in the way; `remap` is the script that
restricts CUDA to the container's own GPUs. NCCL uses NVLink only between processes with the same
host hash, so NCCL_HOSTID becomes the node's name (nvidia/nccl#1781). A pod with the node's /tmp
instead of hostNetwork also gets NCCL_IPC_USE_ABSTRACT_SOCKET=0, unless it sets that itself.
Nothing here gives a pod a privilege that it lacks.
"""

from __future__ import annotations

from webhook.decision.draft import Draft
from webhook.decision.outcome import Reason
from webhook.decision.scope import Mutation, Needs, Scope, Target
from webhook.mutations.nvlink.obstacles import REASONS, needed_env, obstacles
from webhook.mutations.nvlink.remap import wrapping
from webhook.pod.container_env import env_of
from webhook.pod.manifest import flag, strings
from webhook.shelltext.argv import unwrap

WRAPPED = Reason("Wrapped", "The command starts behind the remap, and NCCL knows its node.")
PRESENT = Reason("Present", "The command is behind the remap already.")
NOT_REQUESTED = Reason("NotRequested", "The pod lacks rdma.lab/nvlink: share.", quiet=True)
HOST_PID = Reason("HostPIDMissing", "UCX shares GPU memory only within one PID namespace.")


def mutate(draft: Draft, scope: Scope) -> None:
    """Wrap the command of every container with GPUs, or report every obstacle to that."""
    if not scope.requests.nvlink:
        draft.skipped("", NOT_REQUESTED, "the pod does not ask for it")
        return
    targets = [target for target in scope.targets if target.gpus > 0]
    found = list(obstacles(draft.pod, scope, targets))
    if found:
        draft.skipped("", found[0][0], "; ".join(message for _, message in found))
        for reason, message in found:
            draft.warned("", reason, message)
        return
    for target in targets:
        _share(draft, scope, target)
    if not flag(draft.pod, ("spec", "hostPID")):
        draft.warned("", HOST_PID, "without hostPID UCX (and NIXL) cannot use NVLink; NCCL can")


def _share(draft: Draft, scope: Scope, target: Target) -> None:
    own = env_of(draft.pod, target.path)
    needed = needed_env(scope.host_network)
    missing = [item for name, item in needed.items() if name not in own]
    command = (*target.path, "command")
    wrapped = unwrap(strings(draft.pod, command))
    if missing:
        draft.append((*target.path, "env"), *missing)
    if not wrapped:
        draft.insert(command, 0, *wrapping(target.gpus))
    if missing or not wrapped:
        message = f"the command starts with CUDA_VISIBLE_DEVICES of its own {target.gpus} GPUs"
        draft.applied(target.name, WRAPPED, message)
    else:
        draft.already(target.name, PRESENT, "the command is behind the remap already")


MUTATION = Mutation(
    name="nvlink",
    summary="lets privileged pods of one node use NVLink between them, each with its own GPUs",
    needs=Needs.NOTHING,
    reasons=(WRAPPED, PRESENT, NOT_REQUESTED, HOST_PID, *REASONS),
    mutate=mutate,
)
