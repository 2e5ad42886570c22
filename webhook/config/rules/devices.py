"""Rules for how devices get into pods: resources, networks and modes.

Sources: k8s-rdma-shared-dev-plugin, Multus, and reports of RoCE in a pod's network
namespace (the plugin's issues 72, 101, 112).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.config.messages import quoted
from webhook.config.model import FabricEntry
from webhook.config.rules.rule import Parts, Problem, per_fabric
from webhook.model.fabric import Mode
from webhook.model.pod import Path
from webhook.model.resources import MIG, VIRTUAL_GPU

#: The modes in which a network moves the device into the pod; in mode dra, the driver does.
_BY_NETWORK: tuple[Mode, ...] = ("sr-iov", "host-device")


@per_fabric
def roce_networks(fabric: FabricEntry) -> Iterator[Problem]:
    """Reject RoCE in mode `shared-device` with fewer networks than devices.

    An error: without its own interface in the pod's network namespace, a device has an empty GID
    table there, and connecting fails. host-network and sr-iov do not need one.
    """
    if fabric.mode != "shared-device" or fabric.link_layer != "Ethernet":
        return
    rails = max(1, len({written.partition(":")[0] for written in fabric.hcas}))
    networks = len(fabric.networks) + sum(_networks_of(fabric))
    if networks < rails:
        yield Problem(
            ("networks",),
            f"{networks} network{'s' * (networks != 1)} for {rails} RoCE "
            f"device{'s' * (rails > 1)}: each device needs a Multus network (macvlan on its "
            "interface); otherwise use mode host-network or sr-iov",
        )


@per_fabric
def networks_on_host(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of `networks` and `socketInterface` in mode `host-network`.

    A warning: they have no effect on pods with hostNetwork, and that mode serves only those.
    """
    if fabric.mode != "host-network":
        return
    for key, given in (
        ("networks", fabric.networks or any(item.network for item in fabric.resources)),
        ("socketInterface", "socket_interface" in fabric.model_fields_set),
    ):
        if given:
            remedy = ": write hostSocketInterface" if key == "socketInterface" else ": remove it"
            yield Problem((key,), f"has no effect on pods with hostNetwork{remedy}")


@per_fabric
def own_device_networks(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of modes `sr-iov` and `host-device` without a network.

    A warning: a Multus network moves the device into the pod, but another webhook may append that
    network.
    """
    if fabric.mode in _BY_NETWORK and not fabric.networks and not any(_networks_of(fabric)):
        yield Problem(
            ("networks",),
            f"mode {fabric.mode} needs a network that moves the device into the pod: name its "
            "NetworkAttachmentDefinition in resources[].network",
        )


@per_fabric
def network_interfaces(fabric: FabricEntry) -> Iterator[Problem]:
    """Reject an `@interface` that a pod would get twice.

    An error: the second network with that interface fails, and the pod never starts.
    """
    seen: set[str] = set()
    for path, name, times in _networks(fabric):
        interface = name.partition("@")[2]
        if interface and (times > 1 or interface in seen):
            yield Problem(
                path,
                f"{quoted(name)} uses the interface name {quoted(interface)} twice: leave "
                f"out @{interface}",
            )
        seen.add(interface)


@per_fabric
def per_gpu_shared(fabric: FabricEntry) -> Iterator[Problem]:
    """Reject `count: per-gpu` in mode `shared-device`.

    An error: one unit of the shared plugin mounts every device of the resource, so no number of
    units gives each GPU its own device.
    """
    for place, resource in enumerate(fabric.resources):
        if fabric.mode == "shared-device" and resource.count == "per-gpu":
            yield Problem(
                ("resources", place, "count"),
                "in mode shared-device, one unit gives the container every device: write 1 "
                "instead of per-gpu",
            )


@per_fabric
def many_units(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of a count above 1 in mode `shared-device`.

    A warning: more units add nothing, and use up the plugin's `rdmaHcaMax` sooner.
    """
    for place, resource in enumerate(fabric.resources):
        count = resource.count
        if fabric.mode == "shared-device" and count != "per-gpu" and count > 1:
            yield Problem(
                ("resources", place, "count"),
                "in mode shared-device, one unit gives the container every device: write 1 "
                f"instead of {count}",
            )


@per_fabric
def per_gpu_fields(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of `gpusPerDevice`, `devicesPerGpu` and `max` without `count: per-gpu`.

    A warning: they have no effect without it.
    """
    fields = ("gpus_per_device", "devices_per_gpu", "maximum")
    for place, resource in enumerate(fabric.resources):
        for key, given in zip(("gpusPerDevice", "devicesPerGpu", "max"), fields, strict=True):
            if resource.count != "per-gpu" and given in resource.model_fields_set:
                yield Problem(
                    ("resources", place, key), "has no effect unless count is per-gpu: remove it"
                )


@per_fabric
def per_gpu_both_ways(fabric: FabricEntry) -> Iterator[Problem]:
    """Reject `gpusPerDevice` beside `devicesPerGpu`.

    An error: GPUs share a device, or each has several.
    """
    for place, resource in enumerate(fabric.resources):
        if {"gpus_per_device", "devices_per_gpu"} <= resource.model_fields_set:
            yield Problem(
                ("resources", place, "devicesPerGpu"),
                "cannot be combined with gpusPerDevice: remove one of them",
            )


@per_fabric
def no_resource(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of a fabric without a resource, except in modes `host-network` and `dra`.

    A warning: nothing mounts a device into the pod, but a site may do so in another way.
    """
    if fabric.mode not in ("host-network", "dra") and not fabric.resources:
        yield Problem(
            ("resources",),
            "is empty, so no device gets into the pod: name the resource that the device "
            "plugin offers",
        )


def _networks(fabric: FabricEntry) -> Iterator[tuple[Path, str, int]]:
    """Yield each network with the least number of times that it is appended."""
    for place, name in enumerate(fabric.networks):
        yield ("networks", place), name, 1
    for place, resource in enumerate(fabric.resources):
        if resource.network:
            times = 2 if resource.count == "per-gpu" else resource.count
            yield ("resources", place, "network"), resource.network, times


def _networks_of(fabric: FabricEntry) -> Iterator[int]:
    """Yield the number of networks that each resource adds."""
    for resource in fabric.resources:
        yield 0 if not resource.network else 1 if resource.count == "per-gpu" else resource.count


# Rules against GPUs in the place of RDMA resources.
#
# Sources: the names in NVIDIA's, AMD's and Intel's GPU device plugins; the names that sites give
# to GPUs with k8s-device-plugin's `resources.gpus[].name`. An RDMA resource may be in nvidia.com
# as well: `nvidia.com/hostdev`, and any name that the SR-IOV device plugin is configured with.

_GPU_DOMAIN = "gpu.intel.com"
_GPU_NAMES = ("gpu", "gpu.shared")
#: h200, a100-80gb, V100, gb200, l40s, rtx-4090, mi300x. Models that could also be the name of a
#: port (l2, p4) are left out.
_MODEL = re.compile(
    r"(?:nvidia|amd)\.com/(?:nvidia[-_.])?(?:tesla[-_.])?"
    r"(?:(?:gb|gh|[abhv])[0-9]{3}|a(?:10|16|30|40)g?|h20|l(?:20|40)s?|p40|p100|k80|[lt]4"
    r"|(?:geforce|quadro|rtx)[-_.0-9].*+|mi[0-9]{2,3}[ax]?)"
    r"(?:[-_.](?:sxm[0-9]?|pcie|nvl|hbm[0-9]e?|[0-9]+gb?|shared))*",
    re.IGNORECASE,
)


def gpu_as_rdma(parts: Parts) -> Iterator[Problem]:
    """Reject a GPU as an RDMA resource, or as an alias of one.

    An error: pods would request more GPUs instead of RDMA, or their GPUs would be renamed.
    """
    claimed = _claimed(parts)
    for path, name in _resources(parts):
        if _is_gpu(name, claimed):
            yield Problem(
                path,
                f"{quoted(name)} is a GPU, or a share of one: write the resource that the RDMA "
                "device plugin offers, such as rdma/ib",
            )


def gpu_model_as_rdma(parts: Parts) -> Iterator[Problem]:
    """Warn of an RDMA resource, or an alias, with the name of a GPU model: `nvidia.com/h200`.

    A warning: a site may name a device after the GPU of its nodes.
    """
    claimed = _claimed(parts)
    for path, name in _resources(parts):
        if _MODEL.fullmatch(name) and not _is_gpu(name, claimed):
            yield Problem(
                path,
                f"{quoted(name)} looks like a GPU (those belong in match.gpuResources): write "
                "the resource that the RDMA device plugin offers, such as rdma/ib",
            )


def _is_gpu(name: str, claimed: frozenset[str]) -> bool:
    domain, _, short = name.partition("/")
    return (
        name in claimed
        or name in VIRTUAL_GPU
        or short in _GPU_NAMES
        or domain == _GPU_DOMAIN
        or name.startswith(MIG)
    )


def _claimed(parts: Parts) -> frozenset[str]:
    return frozenset(gpu for _, fabric in parts.fabrics() for gpu in fabric.match.gpu_resources)


def _resources(parts: Parts) -> Iterator[tuple[Path, str]]:
    for home, fabric in parts.fabrics():
        for path, name in _names(fabric):
            yield (*home, "resources", *path), name


def _names(fabric: FabricEntry) -> Iterator[tuple[Path, str]]:
    for place, resource in enumerate(fabric.resources):
        yield (place, "name"), resource.name
        for position, alias in enumerate(resource.aliases):
            yield (place, "aliases", position), alias
