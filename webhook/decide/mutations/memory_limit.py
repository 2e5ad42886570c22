"""`memory-limit`: remove the memory limit of the targets, and keep the request.

Registered memory is pinned and counts against the limit. A limit that is too small does not make
the registration fail (RLIMIT_MEMLOCK does, see `ipc-lock`); it gets the process OOM-killed. A
warning states the price: QoS Guaranteed becomes Burstable. The limit stays if the namespace would
reject the pod without one (LimitRange max or ratio, quota), or if something reads it. It also
stays where the container has a MIG slice or shares its GPU, and so its node with other pods, unless
the pod itself says drop.
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.decide.draft import Draft
from webhook.decide.limits import MOST_ENTRIES, too_many
from webhook.decide.scope import KnowledgeLevel, Mutation, Scope, Target
from webhook.errors import ShapeError
from webhook.model.decision import Reason
from webhook.model.pod import Container, Path, Pod, dotted
from webhook.model.pod.volumes import limited_resource
from webhook.model.quantity import amount, equal, format_quantity, is_zero

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
    shared = "resources" in scope.original.spec and is_limited(draft, ("spec",))
    kept = _why_kept(scope) if limited or shared else None
    lost = kept is None and is_guaranteed(scope.original)
    unbounded = unbounded_memory_volumes(scope.original) if limited else {}
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
    reader = reads_limit(scope.original)
    if reader:
        return READ, f"kept: {reader} reads limits.memory"
    if policy == "keep-guaranteed" and is_guaranteed(scope.original):
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
    volume = first_mounted(draft.container(target.path), unbounded) if unbounded else ""
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
    others = unlimited(scope.original.containers, {target.path for target in scope.targets})
    if kept is not None:
        _keep(draft, "", *kept)
    elif others:
        message = f"kept: containers without their own limit depend on it ({', '.join(others)})"
        draft.skipped("", POD_LIMIT_SHARED, message)
    else:
        request = summed_request("memory", scope.original.containers)
        message = drop_limit(draft, ("spec", "resources"), request)
        draft.applied("", DROPPED, message)
        _warn_lost(draft, "", lost=lost)


MUTATION = Mutation(
    name="memory-limit",
    summary="removes the memory limit, since registered memory counts against it",
    needs=KnowledgeLevel.NIC,
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


# What depends on a pod's memory limit: its QoS class, readers of the limit, memory volumes.

_BOTH = ("cpu", "memory")
#: Resources of the whole pod, which the scheduler counts instead of those of the containers.
POD_LEVEL: Path = ("spec", "resources")


def is_guaranteed(pod: Pod) -> bool:
    """Return whether the QoS class is Guaranteed: all limits are set, and requests equal them.

    Source: kubernetes pkg/apis/core/v1/helper/qos, ComputePodQOS. If the pod has pod-level
    resources, only those count.
    """
    if not pod.resources:
        return all(_equal(one.limits, one.requests) for one in pod.containers)
    own = pod.requests
    asked = {
        name: summed_request(name, pod.containers) if own.get(name) is None else own[name]
        for name in _BOTH
    }
    requests = {name: amount for name, amount in asked.items() if amount is not None}
    return _equal(pod.limits, requests)


def summed_request(name: str, containers: Iterable[Container]) -> str | None:
    """Return the sum of the containers' requests; None if it is zero.

    The API server makes it the pod's request for CPU or memory, if the pod has none.
    Source: kubernetes pkg/apis/core/v1/defaults.go, defaultPodRequests.
    """
    total = step = 0
    for one in containers:
        number = _requested(one, name)
        # Init containers run one after another, together with the sidecars started before them.
        if one.kind == "init":
            step = max(step, total + number)
        elif one.kind != "ephemeral":
            total += number
    asked = max(total, step)
    return format_quantity(asked) if asked else None


def _requested(one: Container, name: str) -> int:
    """Return a container's request, in billionths; without one its limit, else 0."""
    for section, amounts in (("requests", one.requests), ("limits", one.limits)):
        asked = amounts.get(name)
        if asked is not None:
            return _amount(asked, (*one.path, "resources", section, name))
    return 0


def _amount(value: object, path: Path) -> int:
    try:
        return amount(value)
    except ValueError as error:
        raise ShapeError(f"{dotted(path)}: {error}") from error


def _equal(limits: dict[str, object], requests: dict[str, object]) -> bool:
    try:
        for name in _BOTH:
            limit = limits.get(name)
            if is_zero(limit) or not equal(requests.get(name, limit), limit):
                return False
    except ValueError:
        return False
    return True


def reads_limit(pod: Pod) -> str:
    """Name what reads limits.memory through the downward API; return "" if nothing does.

    Without a limit, it would read the node's allocatable memory instead.
    """
    return _env_reader(pod) or _volume_reader(pod)


def _env_reader(pod: Pod) -> str:
    for one in pod.containers:
        if None not in one.env.values():
            continue  # all values are literals
        for variable in one.env_items:
            if "valueFrom" in variable and _is_limit(variable["valueFrom"]):
                return f"env {variable.get('name')} of container {one.name}"
    return ""


def _volume_reader(pod: Pod) -> str:
    read = 0
    for volume in pod.volumes("downwardAPI", "projected"):
        for listed in volume.downward_items():
            read += len(listed)
            if read > MOST_ENTRIES:
                raise too_many({"what volumes project": read})
            for item in listed:
                if "resourceFieldRef" in item and _is_limit(item):
                    return f"volume {volume.name}"
    return ""


def _is_limit(source: object) -> bool:
    return bool(limited_resource(source) == "limits.memory")


def unbounded_memory_volumes(pod: Pod) -> dict[str, int]:
    """Return the names of the memory emptyDirs without sizeLimit, each with its index.

    Only the pod's memory limit bounds their size; without it, the node's memory does.
    """
    found: dict[str, int] = {}
    for volume in pod.volumes("emptyDir"):
        if volume.is_unbounded_memory:
            found.setdefault(str(volume.name), int(volume.path[-1]))
    return found


def first_mounted(container: Container, volumes: dict[str, int]) -> str:
    """Name the first of the volumes that a container mounts; return "" if it mounts none."""
    return min(container.mounted(volumes), key=volumes.__getitem__, default="")


def unlimited(containers: Iterable[Container], without: set[Path]) -> list[str]:
    """Name the containers that only the pod's limit applies to, except those at `without`."""
    return [
        one.name
        for one in containers
        if one.kind != "ephemeral" and one.path not in without and one.limits.get("memory") is None
    ]


def drop_limit(draft: Draft, path: Path, request: str | None = None) -> str:
    """Remove the existing limits.memory from the resources at `path`, and say what remains.

    A missing request becomes `request`, or else the limit, as in Kubernetes: without a request, the
    scheduler would reserve nothing. Raise ShapeError if a parent is not a mapping.
    """
    limit = draft.get((*path, "limits", "memory"))
    remaining = draft.get((*path, "requests", "memory"))
    kept = remaining is not None
    if not kept:
        remaining = limit if request is None else request
        draft.set((*path, "requests", "memory"), remaining)
    draft.remove((*path, "limits", "memory"))
    pods = path == POD_LEVEL
    whose, its = ("the pod's ", "its ") if pods else ("", "")
    counted = pods or not _limits_or_requests_memory(draft)
    rest = "" if counted else "; the scheduler counts the pod's"
    verb = "stays" if kept else "is now"
    return f"removed {whose}limits.memory {limit}; {its}requests.memory {verb} {remaining}{rest}"


def _limits_or_requests_memory(draft: Draft) -> bool:
    return draft.get(POD_LEVEL) is not None and any(
        draft.get((*POD_LEVEL, section, "memory")) is not None for section in ("limits", "requests")
    )


def is_limited(draft: Draft, path: Path) -> bool:
    """Return whether the container, or the pod's spec, at `path` limits memory; 0 and null do not.

    Raise ShapeError if the limit is not a quantity.
    """
    where = (*path, "resources", "limits", "memory")
    limit = draft.get(where)
    return limit is not None and _amount(limit, where) > 0
