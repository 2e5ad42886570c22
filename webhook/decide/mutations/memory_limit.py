"""`memory-limit`: remove the memory limit of the targets, and keep the request.

Registered memory is pinned and counts against the limit. A limit that is too small does not make
the registration fail (RLIMIT_MEMLOCK does, see `ipc-lock`); it gets the process OOM-killed. A
warning states the price: QoS Guaranteed becomes Burstable. The limit stays if the namespace would
reject the pod without one (LimitRange max or ratio, quota), or if something reads it. It also
stays where the container has a MIG slice or a shared GPU, and so shares its node with other pods,
unless the pod itself requests `drop`.
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.decide.analysis import Mutation, PodAnalysis, RdmaAccess, Target
from webhook.decide.draft import Draft
from webhook.decide.limits import MAX_ENTRIES, too_many
from webhook.model.decision import Reason
from webhook.model.pod import Container, Path, Pod
from webhook.model.pod.qos import amount_at, is_guaranteed, summed_request
from webhook.model.pod.volumes import referenced_resource

DROPPED = Reason(
    "Dropped",
    "The memory limit was removed; if there was no memory request, the limit's value is now "
    "the request.",
    remedy="",
)
NO_LIMIT = Reason("NoLimit", "The container has no memory limit.", remedy="")
KEPT = Reason(
    "Kept",
    "A setting of the pod or of the configuration keeps the memory limit.",
    remedy="",
    reportable=False,
)
UNKNOWN = Reason(
    "NamespaceUnknown",
    "The namespace's LimitRanges and quotas are unknown, so the memory limit is kept.",
    remedy=(
        "Create the pod again: by now, the webhook should have read the pod's namespace. For a "
        "preview, use --live, or add the namespace to the file that you pass to --facts."
    ),
)
REQUIRED = Reason(
    "LimitRequired",
    "The namespace rejects pods without a memory limit, so the limit is kept.",
    remedy=(
        "Make sure that the limit covers all memory that the container uses, including what it "
        "registers, or use a namespace whose LimitRanges and quotas require no memory limit."
    ),
)
READ = Reason(
    "LimitRead",
    "The pod reads limits.memory through the downward API, so the limit is kept.",
    remedy=(
        "Make sure that the limit covers the job's memory and all memory that it registers, or "
        "remove the downward API field that reads limits.memory."
    ),
)
GUARANTEED = Reason(
    "Guaranteed",
    "The pod's QoS class is Guaranteed, and `memoryLimit: keep-guaranteed` keeps the memory "
    "limit of such a pod.",
    remedy="Make sure that the limit covers the job's memory and all memory that it registers.",
)
SHARED_GPU = Reason(
    "SharedGPU",
    "A container with a MIG slice or a shared GPU may share its node with other pods, so the "
    "container's memory limit is kept.",
    remedy=(
        "To let the webhook remove the memory limit, request whole GPUs, or set "
        "rdma.lab/memory-limit: drop."
    ),
    reportable=False,
)
POD_LIMIT_SHARED = Reason(
    "PodLimitShared",
    "The memory limit is set for the pod as a whole, and a container without RDMA has no limit of "
    "its own, so the pod's limit is kept.",
    remedy=(
        "Set limits.memory on each container instead of on the pod, so that the webhook can remove "
        "it only from the containers that need RDMA."
    ),
)
BURSTABLE = Reason(
    "GuaranteedLost",
    "Since the webhook removed the memory limit, the pod's QoS class is Burstable, not "
    "Guaranteed: the pod gets no exclusive CPUs and no NUMA-aligned memory.",
    remedy=(
        "If the job needs exclusive CPUs or NUMA-aligned memory, set rdma.lab/memory-limit: keep. "
        "Otherwise, no action is needed."
    ),
)
UNBOUNDED = Reason(
    "UnboundedMemory",
    "Since the webhook removed the memory limit, an emptyDir volume with medium: Memory and no "
    "sizeLimit can fill the node's memory.",
    remedy="Set sizeLimit on the pod's emptyDir volumes that have medium: Memory.",
)
POOL = Reason(
    "NoGPU",
    "A container without a GPU may size a memory pool by its memory limit, which was removed.",
    remedy=(
        "If the container sizes a memory pool by its limit, set rdma.lab/memory-limit: keep. "
        "Otherwise, no action is needed."
    ),
)


def mutate(draft: Draft, analysis: PodAnalysis) -> None:
    """Drop the limit of every target, and the pod's if no other container depends on it."""
    limited = {target.path for target in analysis.targets if is_limited(draft, target.path)}
    pod_limited = "resources" in analysis.original.spec and is_limited(draft, ("spec",))
    pod_keep_reason = _keep_reason(analysis) if limited or pod_limited else None
    guaranteed_lost = pod_keep_reason is None and is_guaranteed(analysis.original)
    unbounded = unbounded_memory_volumes(analysis.original) if limited else {}
    for target in analysis.targets:
        keep_reason = pod_keep_reason or _target_keep_reason(analysis, target)
        if target.path not in limited:
            draft.already(target.name, NO_LIMIT, "there is no memory limit")
        elif keep_reason is not None:
            _keep(draft, target.name, *keep_reason)
        else:
            message = drop_limit(draft, (*target.path, "resources"))
            draft.applied(target.name, DROPPED, message)
            _warn(draft, target, unbounded, guaranteed_lost=guaranteed_lost)
    if pod_limited:
        keep_reason = pod_keep_reason or next(
            filter(None, (_target_keep_reason(analysis, target) for target in analysis.targets)),
            None,
        )
        _pod_level(draft, analysis, keep_reason, guaranteed_lost=guaranteed_lost)


def _target_keep_reason(analysis: PodAnalysis, target: Target) -> tuple[Reason, str] | None:
    if target.partial_gpu and analysis.annotations.memory_limit is None:
        return SHARED_GPU, "kept, since other pods share the GPU, and so the node's memory"
    return None


def _keep_reason(analysis: PodAnalysis) -> tuple[Reason, str] | None:
    requested = analysis.annotations.memory_limit
    policy = requested or analysis.configuration.defaults.memory_limit
    if policy == "keep":
        source = "the pod" if requested else "the configuration"
        return KEPT, f"kept, as set by {source}"
    if not analysis.namespace.is_loaded:
        return UNKNOWN, "kept, since the namespace's LimitRanges and quotas are unknown"
    if analysis.namespace.memory_limit_rejection:
        return REQUIRED, f"kept, since {analysis.namespace.memory_limit_rejection}"
    reader = limit_reader(analysis.original)
    if reader:
        return READ, f"kept, since {reader} reads limits.memory"
    if policy == "keep-guaranteed" and is_guaranteed(analysis.original):
        return GUARANTEED, "kept, since the pod is Guaranteed"
    return None


def _keep(draft: Draft, container: str, reason: Reason, message: str) -> None:
    draft.skipped(container, reason, message)
    if reason is REQUIRED:
        draft.warned(container, reason, f"memory limit {message}")


def _warn(
    draft: Draft, target: Target, unbounded: dict[str, int], *, guaranteed_lost: bool
) -> None:
    _warn_lost(draft, target.name, guaranteed_lost=guaranteed_lost)
    if not target.gpus and not target.partial_gpu:
        message = "if a memory pool is sized by the limit, set rdma.lab/memory-limit: keep"
        draft.warned(target.name, POOL, message)
    volume = first_mounted_volume(draft.container(target.path), unbounded) if unbounded else ""
    if volume:
        message = (
            f"memory-backed volume {volume} has no sizeLimit, so it may fill the node's memory"
        )
        draft.warned(target.name, UNBOUNDED, message)


def _warn_lost(draft: Draft, container: str, *, guaranteed_lost: bool) -> None:
    if guaranteed_lost:
        message = "without a memory limit, the pod is not Guaranteed and gets no exclusive CPUs"
        draft.warned(container, BURSTABLE, message)


def _pod_level(
    draft: Draft,
    analysis: PodAnalysis,
    keep_reason: tuple[Reason, str] | None,
    *,
    guaranteed_lost: bool,
) -> None:
    """Drop `spec.resources.limits.memory`, unless a container that is not a target needs it.

    A container without its own limit inherits it.
    """
    dependents = containers_without_limit(
        analysis.original.containers, {target.path for target in analysis.targets}
    )
    if keep_reason is not None:
        _keep(draft, "", *keep_reason)
    elif dependents:
        names = ", ".join(dependents)
        message = f"kept, since containers without their own limit depend on it ({names})"
        draft.skipped("", POD_LIMIT_SHARED, message)
    else:
        request = summed_request("memory", analysis.original.containers)
        message = drop_limit(draft, ("spec", "resources"), request)
        draft.applied("", DROPPED, message)
        _warn_lost(draft, "", guaranteed_lost=guaranteed_lost)


MUTATION = Mutation(
    name="memory-limit",
    summary="removes the memory limit, since registered memory counts against it",
    needs=RdmaAccess.ANY_NIC,
    reasons=(
        *(DROPPED, NO_LIMIT, KEPT, UNKNOWN, REQUIRED, READ, GUARANTEED),
        *(SHARED_GPU, POD_LIMIT_SHARED, BURSTABLE, UNBOUNDED, POOL),
    ),
    mutate=mutate,
)


# The dependents of a pod's memory limit: readers of the limit, and memory volumes.

#: The resources of the whole pod, which the scheduler counts instead of the containers'.
POD_LEVEL: Path = ("spec", "resources")


def limit_reader(pod: Pod) -> str:
    """Return the reader of limits.memory through the downward API, or "".

    Without a limit, it would get the node's allocatable memory instead.
    """
    return _env_reader(pod) or _volume_reader(pod)


def _env_reader(pod: Pod) -> str:
    for container in pod.containers:
        env = container.env
        if None not in env.values():
            continue  # all values are known
        for variable in container.env_items:
            is_unknown = env.get(str(variable.get("name"))) is None  # the last of its name counts
            if is_unknown and "valueFrom" in variable and _is_limit(variable["valueFrom"]):
                return f"env {variable.get('name')} of container {container.name}"
    return ""


def _volume_reader(pod: Pod) -> str:
    read = 0
    for volume in pod.volumes("downwardAPI", "projected"):
        for items in volume.projected_item_lists():
            read += len(items)
            if read > MAX_ENTRIES:
                raise too_many({"projected volume items": read})
            for item in items:
                if "resourceFieldRef" in item and _is_limit(item):
                    return f"volume {volume.name}"
    return ""


def _is_limit(source: object) -> bool:
    return bool(referenced_resource(source) == "limits.memory")


def unbounded_memory_volumes(pod: Pod) -> dict[str, int]:
    """Map the name of each memory emptyDir without sizeLimit to its index.

    Only the pod's memory limit bounds their size; without it, the node's memory does.
    """
    volumes: dict[str, int] = {}
    for volume in pod.volumes("emptyDir"):
        if volume.is_unbounded_memory:
            volumes.setdefault(str(volume.name), int(volume.path[-1]))
    return volumes


def first_mounted_volume(container: Container, volumes: dict[str, int]) -> str:
    """Return the first of the volumes that a container mounts; "" if it mounts none."""
    return min(container.mounted_volumes(volumes), key=volumes.__getitem__, default="")


def containers_without_limit(containers: Iterable[Container], excluded: set[Path]) -> list[str]:
    """List the containers that only the pod's limit applies to, except the paths in `excluded`."""
    return [
        container.name
        for container in containers
        if container.kind != "ephemeral"
        and container.path not in excluded
        and container.limits.get("memory") is None
    ]


def drop_limit(draft: Draft, path: Path, request: str | None = None) -> str:
    """Remove the existing limits.memory from the resources at `path`, and return a message.

    A missing request becomes `request`, or else the limit, as in Kubernetes: without a request, the
    scheduler would reserve nothing. Raise ShapeError if a parent is not a mapping.
    """
    limit = draft.get((*path, "limits", "memory"))
    remaining = draft.get((*path, "requests", "memory"))
    has_request = remaining is not None
    if not has_request:
        remaining = limit if request is None else request
        draft.set((*path, "requests", "memory"), remaining)
    draft.remove((*path, "limits", "memory"))
    is_pod = path == POD_LEVEL
    owner, its = ("the pod's ", "its ") if is_pod else ("", "")
    is_counted_by_scheduler = is_pod or not _limits_or_requests_memory(draft)
    remark = "" if is_counted_by_scheduler else "; the scheduler counts the pod's"
    verb = "stays" if has_request else "is now"
    return f"removed {owner}limits.memory {limit}; {its}requests.memory {verb} {remaining}{remark}"


def _limits_or_requests_memory(draft: Draft) -> bool:
    return draft.get(POD_LEVEL) is not None and any(
        draft.get((*POD_LEVEL, section, "memory")) is not None for section in ("limits", "requests")
    )


def is_limited(draft: Draft, path: Path) -> bool:
    """Return whether the container, or the pod's spec, at `path` limits memory; 0 and null do not.

    Raise ShapeError if the limit is not a quantity.
    """
    limit_path = (*path, "resources", "limits", "memory")
    limit = draft.get(limit_path)
    return limit is not None and amount_at(limit, limit_path) > 0
