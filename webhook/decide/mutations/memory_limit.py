"""`memory-limit`: remove the memory limit of the targets, and keep the request.

Registered memory is pinned and counts against the limit. A limit that is too small does not make
the registration fail (RLIMIT_MEMLOCK does, see `ipc-lock`); it gets the process OOM-killed. A
warning states the price: QoS Guaranteed becomes Burstable. The limit stays if the namespace would
reject the pod without one (LimitRange max or ratio, quota), or if something reads it. It also
stays where the container has a MIG slice or shares its GPU, and so its node with other pods, unless
the pod itself says drop.
"""

from __future__ import annotations

from webhook.decide.draft import Draft
from webhook.decide.mutations.limits import (
    drop_limit,
    first_mounted,
    is_guaranteed,
    is_limited,
    reads_limit,
    summed_request,
    unbounded_memory_volumes,
    unlimited,
)
from webhook.decide.scope import Mutation, Needs, Scope, Target
from webhook.model.decision import Reason

DROPPED = Reason(
    "Dropped", "The memory limit was removed; a request that is missing gets its amount."
)
NO_LIMIT = Reason("NoLimit", "There is no memory limit.")
KEPT = Reason("Kept", "The pod or the configuration says keep.", quiet=True)
UNKNOWN = Reason("NamespaceUnknown", "The namespace's LimitRanges and quotas are not known yet.")
REQUIRED = Reason("LimitRequired", "The namespace rejects pods without a memory limit.")
READ = Reason("LimitRead", "The pod reads limits.memory through the downward API.")
GUARANTEED = Reason("Guaranteed", "The pod is Guaranteed, and keep-guaranteed keeps it so.")
SHARED_GPU = Reason(
    "SharedGPU", "A container with a MIG slice or a shared GPU shares its node.", quiet=True
)
POD_LIMIT_SHARED = Reason("PodLimitShared", "Containers without RDMA depend on the pod's limit.")
BURSTABLE = Reason(
    "GuaranteedLost", "Without it the pod is Burstable: no exclusive CPUs, no NUMA memory."
)
UNBOUNDED = Reason("UnboundedMemory", "A memory emptyDir without sizeLimit may fill the node.")
POOL = Reason("NoGPU", "A container without a GPU may size its memory pool by the limit.")


def mutate(draft: Draft, scope: Scope) -> None:
    """Drop the limit of every target, and the pod's if no other container depends on it."""
    limited = {one.path for one in scope.targets if is_limited(draft, one.path)}
    shared = is_limited(draft, ("spec",))
    kept = _why_kept(scope) if limited or shared else None
    lost = kept is None and is_guaranteed(scope.original, scope.containers)
    unbounded = unbounded_memory_volumes(draft.pod) if limited else {}
    for target in scope.targets:
        why = kept or _why_kept_here(scope, target)
        if target.path not in limited:
            draft.already(target.name, NO_LIMIT, "there is no memory limit")
        elif why is not None:
            _keep(draft, target.name, *why)
        else:
            message = drop_limit(draft, (*target.path, "resources"))
            draft.applied(target.name, DROPPED, message)
            _warn(draft, target, unbounded, lost=lost)
    if shared:
        why = kept or next(
            filter(None, (_why_kept_here(scope, one) for one in scope.targets)), None
        )
        _pod_level(draft, scope, why, lost=lost)


def _why_kept_here(scope: Scope, target: Target) -> tuple[Reason, str] | None:
    if target.shared_gpu and scope.requests.memory_limit is None:
        return SHARED_GPU, "kept: other pods share the GPU, and so the node's memory"
    return None


def _why_kept(scope: Scope) -> tuple[Reason, str] | None:
    asked = scope.requests.memory_limit
    policy = asked or scope.fabrics.defaults.memory_limit
    if policy == "keep":
        says = "the pod" if asked else "the configuration"
        return KEPT, f"{says} says keep"
    if not scope.namespace.known:
        return UNKNOWN, "kept: the namespace's LimitRanges and quotas are not known yet"
    if scope.namespace.memory_limit_required:
        return REQUIRED, f"kept: {scope.namespace.memory_limit_required}"
    reader = reads_limit(scope.original, scope.containers, scope.env)
    if reader:
        return READ, f"kept: {reader} reads limits.memory"
    if policy == "keep-guaranteed" and is_guaranteed(scope.original, scope.containers):
        return GUARANTEED, "kept: the pod is Guaranteed"
    return None


def _keep(draft: Draft, where: str, reason: Reason, message: str) -> None:
    draft.skipped(where, reason, message)
    if reason is REQUIRED:
        draft.warned(where, reason, f"memory limit {message}")


def _warn(draft: Draft, target: Target, unbounded: dict[str, int], *, lost: bool) -> None:
    _warn_lost(draft, target.name, lost=lost)
    if not target.gpus and not target.shared_gpu:
        message = "if the memory limit sizes a memory pool, set rdma.lab/memory-limit: keep"
        draft.warned(target.name, POOL, message)
    volume = first_mounted(draft.pod, target.path, unbounded)
    if volume:
        message = f"volume {volume} is memory without sizeLimit: it may fill the node"
        draft.warned(target.name, UNBOUNDED, message)


def _warn_lost(draft: Draft, where: str, *, lost: bool) -> None:
    if lost:
        message = "without a memory limit the pod is not Guaranteed: no exclusive CPUs"
        draft.warned(where, BURSTABLE, message)


def _pod_level(draft: Draft, scope: Scope, kept: tuple[Reason, str] | None, *, lost: bool) -> None:
    """Drop `spec.resources.limits.memory`, unless a container that is not a target relies on it.

    A container without its own limit inherits it.
    """
    others = unlimited(scope.containers, {target.path for target in scope.targets})
    if kept is not None:
        _keep(draft, "", *kept)
    elif others:
        message = f"kept: containers without their own limit depend on it ({', '.join(others)})"
        draft.skipped("", POD_LIMIT_SHARED, message)
    else:
        request = summed_request("memory", scope.containers)
        message = drop_limit(draft, ("spec", "resources"), request)
        draft.applied("", DROPPED, message)
        _warn_lost(draft, "", lost=lost)


MUTATION = Mutation(
    name="memory-limit",
    summary="removes the memory limit, since registered memory counts against it",
    needs=Needs.NIC,
    reasons=(
        *(
            DROPPED,
            NO_LIMIT,
            KEPT,
            UNKNOWN,
            REQUIRED,
            READ,
            GUARANTEED,
            SHARED_GPU,
            POD_LIMIT_SHARED,
        ),
        *(BURSTABLE, UNBOUNDED, POOL),
    ),
    mutate=mutate,
)
