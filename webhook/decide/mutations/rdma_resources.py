"""`rdma-resources`: request the fabric's RDMA devices in addition to the GPUs.

The device plugin mounts /dev/infiniband only into containers that request its resource, and the
scheduler uses it to find the right nodes. Both limits and requests are set, since extended
resources cannot be overcommitted. The user's own requests stay, even a `0`; only an alias (such
as another site's `rdma/hca`) is renamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter

from webhook.decide.analysis import Mutation, PodAnalysis, RdmaAccess, Target
from webhook.decide.draft import Draft
from webhook.model.decision import Reason
from webhook.model.fabric import MODES_WITH_OWN_DEVICE, Fabric, RdmaResource
from webhook.model.names import counted
from webhook.model.pod import Container, Path
from webhook.model.pod.qos import amount_at
from webhook.model.quantity import equal, to_integer
from webhook.model.resources import VIRTUAL_GPU, is_slice

ADDED = Reason(
    "Added",
    "The fabric's RDMA resource was added to the container's `limits` and `requests`.",
    remedy="",
)
RENAMED = Reason(
    "Renamed",
    "The container requested the fabric's RDMA resource under an alias (another name in the "
    "configuration); the webhook replaced the alias with the resource's name, and kept the "
    "quantity.",
    remedy="",
)
PRESENT = Reason(
    "Present",
    "The container already requests an RDMA resource; a quantity of 0 counts, too.",
    remedy="",
)
NO_DEVICES = Reason(
    "NoDevices",
    'The pod sets rdma.lab/devices: "0", so no RDMA resource or claim was added.',
    remedy="",
    reportable=False,
)
NOT_CONFIGURED = Reason(
    "NotConfigured", "The fabric has no `resources`.", remedy="", reportable=False
)
OTHER_INJECTOR = Reason(
    "InjectedElsewhere",
    "The fabric sets `injectResources: false`, so no RDMA resource or claim was added.",
    remedy="",
    reportable=False,
)
NOT_APP = Reason(
    "NotAppContainer",
    "The container is an init container or a sidecar; these never get the resource.",
    remedy="If the container needs RDMA, move its work to an app container.",
)
OTHER = Reason(
    "OtherResource",
    "The container requests an RDMA resource that the fabric does not have.",
    remedy="Remove the resource, so that the webhook requests the fabric's RDMA resource instead.",
)
FEW_DEVICES = Reason(
    "FewDevices",
    "The container requests fewer RDMA devices than the fabric provides for the container's GPUs.",
    remedy=(
        "Remove the RDMA resource from the container, so that the webhook requests as many devices "
        "as the container's GPUs need."
    ),
)
VIRTUAL = Reason(
    "VirtualGPU",
    "The container requests a virtual GPU, which has no GPUDirect RDMA, so NCCL copies the data "
    "through host memory.",
    remedy="Request whole GPUs if the job needs GPUDirect RDMA.",
)

GPU_SLICE = Reason(
    "GPUSlice",
    "Whether a MIG slice or a shared GPU has GPUDirect RDMA depends on the driver; without "
    "GPUDirect RDMA, NCCL copies the data through host memory.",
    remedy="Request whole GPUs if the job needs GPUDirect RDMA.",
)


def mutate(draft: Draft, analysis: PodAnalysis) -> None:
    """Add the fabric's resources to every app container among the targets."""
    fabric = analysis.fabric
    assert fabric is not None
    aliases = aliases_of(fabric)
    for target in analysis.targets:
        if target.kind != "app":
            message = "only app containers get the RDMA resource"
            draft.skipped(target.name, NOT_APP, message)
        elif not _keep_own_resources(draft, analysis, target, fabric):
            _add(draft, analysis, target, fabric)
        if target.partial_gpu:
            _warn_partial(draft, target)
    for name, alias in strays(analysis.original.containers, analysis.targets, aliases):
        message = (
            f"the alias {alias} is replaced only in containers that need RDMA; remove the resource"
        )
        draft.warned(name, OTHER, message)


def _add(draft: Draft, analysis: PodAnalysis, target: Target, fabric: Fabric) -> None:
    requested = devices_for(target, fabric, analysis.annotations.devices)
    if not fabric.inject_resources:
        draft.skipped(target.name, OTHER_INJECTOR, "another injector adds the resource")
    elif analysis.annotations.devices == 0:
        draft.skipped(target.name, NO_DEVICES, 'rdma.lab/devices is "0"')
    elif not requested:
        draft.skipped(target.name, NOT_CONFIGURED, f"fabric {fabric.name} has no resources")
    else:
        for name, count in requested:
            for section in SECTIONS:
                draft.set((*target.path, "resources", section, name), str(count))
        listed = ", ".join(f"{name}: {count}" for name, count in requested)
        draft.applied(target.name, ADDED, f"requested {listed}")


def _keep_own_resources(
    draft: Draft, analysis: PodAnalysis, target: Target, fabric: Fabric
) -> bool:
    """Handle a container that requests RDMA itself; return False if it does not."""
    names = target.rdma
    if not names:
        return False
    known_aliases = aliases_of(fabric)
    aliases = {name: known_aliases[name] for name in names if name in known_aliases}
    if aliases:
        for alias, real in aliases.items():
            rename(draft, target.path, alias, real)
        listed = ", ".join(f"{alias} to {real}" for alias, real in aliases.items())
        draft.applied(
            target.name, RENAMED, f"renamed {listed}, the name of the resource in this cluster"
        )
    else:
        draft.already(target.name, PRESENT, f"already requests {', '.join(names)}")
    _warn_other(draft, target, fabric, [aliases.get(name, name) for name in names])
    if analysis.annotations.devices is None:
        _warn_few(draft, target, fabric)
    return True


def _warn_few(draft: Draft, target: Target, fabric: Fabric) -> None:
    """Warn about fewer devices than the webhook would request, unless containers share them."""
    if fabric.mode not in MODES_WITH_OWN_DEVICE:
        return
    limits = draft.container(target.path).limits
    default = devices_for(target, fabric, None)
    requested = sum(to_integer(limits[name]) for name, _ in default if name in limits)
    available = sum(count for _, count in default)
    if 0 < requested < available:
        message = (
            f"requests {counted(requested, 'device')}, but the fabric has {available} for the "
            "container's GPUs"
        )
        draft.warned(target.name, FEW_DEVICES, message)


def _warn_other(draft: Draft, target: Target, fabric: Fabric, names: list[str]) -> None:
    of_fabric = {resource.name for resource in fabric.resources}
    for name in names:
        if name not in of_fabric:
            message = f"{name} stays unchanged, since it is not a resource of fabric {fabric.name}"
            draft.warned(target.name, OTHER, message)


def _warn_partial(draft: Draft, target: Target) -> None:
    limits = draft.container(target.path).limits
    if not VIRTUAL_GPU.isdisjoint(limits):
        draft.warned(target.name, VIRTUAL, "a virtual GPU has no GPUDirect RDMA")
    for name in filter(is_slice, limits):
        message = f"whether {name} has GPUDirect RDMA depends on the driver"
        draft.warned(target.name, GPU_SLICE, message)


MUTATION = Mutation(
    name="rdma-resources",
    summary="requests the RDMA resource of the pod's fabric",
    needs=RdmaAccess.FABRIC,
    reasons=(
        ADDED,
        RENAMED,
        PRESENT,
        NO_DEVICES,
        NOT_CONFIGURED,
        OTHER_INJECTOR,
        NOT_APP,
        OTHER,
        FEW_DEVICES,
        VIRTUAL,
        GPU_SLICE,
    ),
    mutate=mutate,
)


# Rename another site's RDMA resource to the fabric's name for it.

SECTIONS = ("limits", "requests")


def aliases_of(fabric: Fabric) -> dict[str, str]:
    """Return the aliases of this fabric's resources, each with the real name."""
    return {alias: resource.name for resource in fabric.resources for alias in resource.aliases}


def strays(
    containers: Iterable[Container], targets: Iterable[Target], aliases: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield (container, alias) for each alias in a container that is not a target.

    Such an alias is not renamed, so the pod waits forever for a resource that no local node has.
    """
    if not aliases:
        return
    target_paths = {target.path for target in targets}
    for container in containers:
        if container.path not in target_paths:
            for alias in container.limits:
                if alias in aliases:
                    yield container.name, alias


def rename(draft: Draft, path: Path, alias: str, real: str) -> None:
    """Rename an alias in both sections of the resources of a container, and keep its quantity.

    If either section has the real name too, each section with one of the names gets the largest
    quantity, since limits and requests of such a resource must be equal.
    """
    container, path = draft.container(path), (*path, "resources")
    sections = {"limits": container.limits, "requests": container.requests}
    merging = any(real in quantities for quantities in sections.values())
    largest = _largest(sections, (real, alias), path) if merging else None
    for section, quantities in sections.items():
        if alias not in quantities and not (merging and real in quantities):
            continue
        quantity = largest if merging else quantities[alias]
        unchanged = real in quantities and equal(quantities[real], quantity)
        if alias in quantities:
            draft.remove((*path, section, alias))
        if not unchanged:
            draft.set((*path, section, real), quantity)


def _largest(sections: dict[str, dict[str, object]], names: Iterable[str], path: Path) -> object:
    """Return the largest quantity; of equal ones, the first."""
    candidates: list[tuple[int, object]] = []
    for name in names:
        for section, quantities in sections.items():
            if name in quantities:
                quantity = quantities[name]
                candidates.append((amount_at(quantity, (*path, section, name)), quantity))
    return max(candidates, key=itemgetter(0))[1]


# Compute the number of devices that a target gets of each RDMA resource of its fabric.


def devices_for(target: Target, fabric: Fabric, requested: int | None) -> list[tuple[str, int]]:
    """Return (resource, quantity) for a target; `requested` is the pod's rdma.lab/devices.

    Devices that the pod requests are spread over the fabric's resources in their order: three
    devices over two resources are two of the first and one of the second.
    """
    if requested is None:
        return [(resource.name, _count(target, resource)) for resource in fabric.resources]
    if not fabric.resources:
        return []
    share, remainder = divmod(requested, len(fabric.resources))
    shares = [
        (resource.name, share + (index < remainder))
        for index, resource in enumerate(fabric.resources)
    ]
    return [(name, count) for name, count in shares if count]


def _count(target: Target, resource: RdmaResource) -> int:
    """Return the number of devices of a resource: fixed, or per GPU but at least one.

    Slices of a GPU do not count as GPUs.
    """
    if resource.count is not None:
        return resource.count
    needed = max(1, -(-target.gpus * resource.devices_per_gpu // resource.gpus_per_device))
    return needed if resource.maximum is None else min(needed, resource.maximum)
