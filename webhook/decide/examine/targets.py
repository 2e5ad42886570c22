"""Choose the targets: the containers with GPUs or RDMA devices, or with ranks or a launcher.

The first rule that applies decides (see `select`); the documentation has the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from webhook.decide.analysis import Launcher, Target
from webhook.decide.fabric_variables import own_variables_like_evidence_of_all
from webhook.decide.launchers.commands import Commands
from webhook.decide.launchers.roles import launchers_of
from webhook.model.annotations import (
    CONTAINERS_ANNOTATION,
    DEVICES_ANNOTATION,
    FABRIC_ANNOTATION,
    UserAnnotations,
)
from webhook.model.claims import Claim, fabrics_of
from webhook.model.decision import Denial, Reason
from webhook.model.fabric import CompiledConfiguration
from webhook.model.images import non_root_user
from webhook.model.nearest import suggestion
from webhook.model.pod import Container, Path, Pod
from webhook.model.resources import (
    OTHER_ACCELERATORS,
    TPU,
    ContainerDevices,
    RequestedDevices,
    other_extended_resources,
)

NO_TARGET = Reason(
    "NoTarget",
    "No container requests a GPU or an RDMA resource; "
    f"set {CONTAINERS_ANNOTATION} and {FABRIC_ANNOTATION}.",
    remedy=(
        "Request a GPU or an RDMA resource in the container that needs RDMA, or set "
        "rdma.lab/containers and rdma.lab/fabric."
    ),
    rdma="no",
)
DEVICE_NOT_LISTED = Reason(
    "DeviceNotListed",
    "The pod requests a device that no fabric lists, and requests no GPU or RDMA resource that "
    "the webhook recognizes.",
    remedy=(
        "If the name of the resource is wrong, correct it. Otherwise, set the annotations "
        "rdma.lab/containers and rdma.lab/fabric. If the resource is a GPU, the cluster "
        "administrator can instead add it to gpuResources of the fabric that has it; the pod then "
        "needs neither annotation."
    ),
    rdma="no",
)
NODE_DEVICES = Reason(
    "NodeDevices",
    "A privileged container without a GPU mounts the node's RDMA devices and uses the node's "
    "network, so it has RDMA as it stands. Nothing was added.",
    remedy="",
    rdma="yes",
)
PRIVILEGED_WITH_GPU = Reason(
    "PrivilegedWithGPU",
    "A privileged container requests a GPU that no fabric lists; the container may use the node's "
    "RDMA devices, but nothing was added.",
    remedy=(
        "Ask the cluster administrator to add the GPU's resource to gpuResources of the fabric "
        "whose nodes offer it."
    ),
    rdma="unsure",
)
GPU_BY_CLAIM = Reason(
    "GPUByClaim",
    "The pod gets unknown devices through DRA claims; set rdma.lab/containers and rdma.lab/fabric.",
    remedy=(
        "Set rdma.lab/containers to the names of the containers that need RDMA, separated by "
        "commas, and rdma.lab/fabric to the name of the fabric. If a claim provides the NICs, "
        'set rdma.lab/devices: "0" as well, so that no NIC is requested twice.'
    ),
    rdma="no",
)
CONTAINERS_REQUIRED = Reason(
    "ContainersRequired",
    "The pod sets rdma.lab/fabric, but does not name the containers that need RDMA.",
    remedy=(
        "Set rdma.lab/containers to the names of the containers that need RDMA, separated by "
        "commas."
    ),
    rdma="no",
)
TAKEN_FOR_LAUNCHER = Reason(
    "TakenForLauncher",
    "The container starts ranks in other pods: it gets variables, but no RDMA device.",
    remedy=(
        "If ranks also run in the container itself and use RDMA, list the container in "
        "rdma.lab/containers. Otherwise, no action is needed."
    ),
)


class Selection(NamedTuple):
    """The containers to mutate; or, without any, the reason and a message."""

    targets: tuple[Target, ...] = ()
    launchers: tuple[Launcher, ...] = ()
    reason: Reason | None = None
    message: str = ""


def select(
    pod: Pod,
    container_devices: ContainerDevices,
    annotations: UserAnnotations,
    commands: Commands,
    configuration: CompiledConfiguration,
    *,
    claims: Iterable[Claim] = (),
) -> Selection:
    """Choose the targets; raise Denial for an unclear choice.

    The pod has each container that the annotation names (`annotation_values`).
    """
    if annotations.containers is not None:
        return Selection(_targets_by_name(pod, container_devices, annotations.containers))
    apps = [pair for pair in container_devices if pair[0].kind == "app"]
    targets = [_target(pod, *pair) for pair in apps if pair[1].gpus]
    if targets:
        return Selection(tuple(targets))
    with_claims = _containers_with_claims(claims, configuration)
    targets = [
        _target(pod, *app) for app in apps if app[1].has_rdma or with_claims.get(app[0].path)
    ]
    if targets:
        return Selection(tuple(targets))
    free = [pair for pair in apps if pair[0].path not in with_claims]
    launchers = _launchers(pod, [container for container, _ in free], commands, configuration)
    if launchers:
        return _ranks(pod, free, launchers, annotations)
    if annotations.fabric is not None and apps:
        return Selection((_only(pod, apps),))
    return _no_targets(pod, apps, configuration, with_claims)


def _containers_with_claims(
    claims: Iterable[Claim], configuration: CompiledConfiguration
) -> dict[Path, bool]:
    """Return the containers with DRA claims: path → whether any is known as a GPU or a NIC."""
    with_claims: dict[Path, bool] = {}
    for claim in claims:
        if claim.container is not None and not claim.is_compute_domain:
            path = claim.container.path
            is_device = claim.is_gpu or claim.is_nic or bool(fabrics_of(claim, configuration))
            with_claims[path] = with_claims.get(path) or is_device
    return with_claims


def _launchers(
    pod: Pod, containers: list[Container], commands: Commands, configuration: CompiledConfiguration
) -> tuple[Launcher, ...]:
    """List the containers that start ranks, each with the evidence."""
    ignored = own_variables_like_evidence_of_all(configuration)
    evidence_by_index = launchers_of(pod, commands, ignored)
    return tuple(
        Launcher(container.name, container.path, *evidence_by_index[container.path[-1]])
        for container in containers
        if container.path[-1] in evidence_by_index
    )


def _ranks(
    pod: Pod,
    container_devices: ContainerDevices,
    launchers: tuple[Launcher, ...],
    annotations: UserAnnotations,
) -> Selection:
    """Select launchers, or as targets the containers that run ranks themselves on a named fabric.

    A container that requests 0 of an RDMA resource needs none. It is left out if there are others,
    and it is also left out once these have their resource.
    """
    if annotations.fabric is None or any(launcher.ranks_in_other_pods for launcher in launchers):
        return Selection(launchers=launchers)
    paths = {launcher.path for launcher in launchers}
    running = [pair for pair in container_devices if pair[0].path in paths]
    without_request = [pair for pair in running if not pair[1].rdma]
    return Selection(tuple(_target(pod, *pair) for pair in without_request or running))


def _target(pod: Pod, container: Container, requested: RequestedDevices) -> Target:
    partial_gpu = requested.shared_gpu or requested.virtual_gpu
    rdma = tuple([name for name, _ in requested.rdma])
    user = pod.user_of(container)
    name, path, kind = container.name, container.path, container.kind
    return Target(name, path, kind, requested.whole_gpus, partial_gpu, rdma, user)


def _targets_by_name(
    pod: Pod, container_devices: ContainerDevices, names: tuple[str, ...]
) -> tuple[Target, ...]:
    by_name = {
        container.name: _target(pod, container, requested)
        for container, requested in container_devices
        if container.kind != "ephemeral"
    }
    return tuple(by_name[name] for name in names)


def _only(pod: Pod, container_devices: ContainerDevices) -> Target:
    if len(container_devices) == 1:
        return _target(pod, *container_devices[0])
    have = ", ".join(container.name for container, _ in container_devices)
    msg = (
        f"annotation {FABRIC_ANNOTATION} is set, but no container requests a GPU or an RDMA "
        f"resource; set {CONTAINERS_ANNOTATION} to one or more of: {have}"
    )
    raise Denial(CONTAINERS_REQUIRED, msg)


def _no_targets(
    pod: Pod,
    apps: ContainerDevices,
    configuration: CompiledConfiguration,
    with_claims: Collection[Path],
) -> Selection:
    """Return the reason why a pod has no targets, first of all a device that no fabric lists."""
    for container, _ in apps:
        for name in other_extended_resources(container, configuration):
            if container.path in with_claims:
                return Selection(reason=GPU_BY_CLAIM, message=_claim_message(name, container))
            return _unlisted_device(pod, name, container, configuration)
    shared = _shared_gpu(pod, apps)
    if shared:
        return Selection(reason=NO_TARGET, message=shared)
    equipped = _with_node_devices(pod, apps, configuration)
    if equipped and not with_claims:
        return Selection(reason=NODE_DEVICES, message=equipped)
    reason = GPU_BY_CLAIM if with_claims else NO_TARGET
    return Selection(reason=reason, message=reason.clause)


def _with_node_devices(
    pod: Pod, apps: ContainerDevices, configuration: CompiledConfiguration
) -> str:
    """Return a sentence on a container that has RDMA as it stands, as tools of nodes do; or "".

    Privileged, as root, in the node's network, it may open the devices and register memory.
    """
    paths = pod.infiniband_volumes if pod.host_network else {}
    for container, _ in apps if paths else ():
        volume = next(container.mounted_volumes(paths), None)
        if volume is not None and container.privileged and _is_root(pod, container, configuration):
            cause = f"it is privileged, with hostNetwork and {paths[volume]} by hostPath"
            return f"container {container.name} has RDMA as it stands, since {cause}"
    return ""


def _is_root(pod: Pod, container: Container, configuration: CompiledConfiguration) -> bool:
    """Return whether a container runs as root, as far as is known."""
    user = pod.user_of(container)
    if user == "image" and non_root_user(container.image, configuration.defaults):
        return False
    return user != "other"


def _shared_gpu(pod: Pod, apps: ContainerDevices) -> str:
    """Return a sentence on the annotation that gives an app container a share of a GPU, or "".

    Source: KAI-Scheduler (and Run:ai), docs/gpu-sharing. By default the first container gets it.
    """
    annotations = pod.annotations
    share = next((key for key in _SHARES if key in annotations), None)
    names = [container.name for container, _ in apps]
    user = annotations.get(_SHARE_USER, names[0] if names else None)
    if share is None or user not in names:
        return ""
    return (
        f"annotation {share} gives container {user} a share of a GPU; "
        f"set {CONTAINERS_ANNOTATION} and {FABRIC_ANNOTATION}"
    )


_SHARES = ("gpu-fraction", "gpu-memory")
_SHARE_USER = "gpu-fraction-container-name"


#: The most GPUs that are compared with an unknown one; each takes about 20 microseconds.
_COMPARED = 32


def _unlisted_device(
    pod: Pod, name: str, container: Container, configuration: CompiledConfiguration
) -> Selection:
    """Return the selection without targets for a container with a device that no fabric lists."""
    subject = f"container {container.name} requests {name}"
    if name == TPU:
        return Selection(reason=NO_TARGET, message=f"{subject}, but TPUs do not use RDMA NICs")
    is_gpu = name in OTHER_ACCELERATORS
    addition = f"add {name}" if is_gpu else f"if {name} is a GPU, add it"
    remedy = f"{addition} to gpuResources of the fabric that has it"
    if is_gpu and container.privileged and _is_root(pod, container, configuration):
        remedy = "add that GPU to gpuResources of its fabric"
        message = f"privileged {subject}, which no fabric lists; {remedy}"
        return Selection(reason=PRIVILEGED_WITH_GPU, message=message)
    hint = suggestion(name, configuration.by_gpu, compared=_COMPARED)
    message = f"{subject}, which no fabric lists{hint}; {remedy}"
    return Selection(reason=DEVICE_NOT_LISTED, message=message)


def _claim_message(name: str, container: Container) -> str:
    """Return a sentence on a device with a claim that may bring the same device, or its NIC.

    It does not advise adding the resource to a fabric, which would request a second NIC.
    """
    remedy = (
        f"set {CONTAINERS_ANNOTATION} and {FABRIC_ANNOTATION}; also set {DEVICES_ANNOTATION} to "
        '"0" if a claim provides the NIC'
    )
    return (
        f"container {container.name} requests {name}, which no fabric lists, and has resource "
        f"claims; {remedy}"
    )
