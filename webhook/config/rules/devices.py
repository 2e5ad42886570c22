"""Rules for how devices get into pods: resources, networks and modes.

Sources: k8s-rdma-shared-dev-plugin, Multus, and reports of RoCE in a pod's network
namespace (the plugin's issues 72, 101, 112).
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.config.model import FabricEntry
from webhook.config.rules.rule import Violation, rule
from webhook.model.fabric import Mode
from webhook.model.names import counted
from webhook.model.pod import Path
from webhook.model.quoting import quoted

#: The modes in which a network moves the device into the pod; in mode dra, the driver moves it.
_NETWORK_MODES: tuple[Mode, ...] = ("sr-iov", "host-device")


@rule(
    "error",
    "In `networks`, list one Multus network (macvlan on the device's interface) for each device; "
    "or, if pods use hostNetwork or virtual functions, set `mode` to host-network or sr-iov, "
    "respectively.",
)
def roce_networks(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that uses RoCE in mode `shared-device`, but has fewer networks than devices.

    An error: without its own interface in the pod's network namespace, a device has an empty GID
    table there, and connecting fails. In mode `host-network`, pods use the node's interfaces; in
    mode `sr-iov`, the interface of each device moves into the pod with the device.
    """
    if (
        fabric.mode != "shared-device"
        or fabric.link_layer != "Ethernet"
        or fabric.transport == "libfabric"
        or fabric.annotations
    ):
        return
    rails = max(1, len({written.partition(":")[0] for written in fabric.hcas}))
    networks = len(fabric.networks) + sum(_network_counts(fabric))
    if networks < rails:
        yield Violation(
            ("networks",),
            f"{counted(networks, 'network')} for {counted(rails, 'RoCE device')}",
        )


@rule(
    "warning",
    "Remove `networks` and resources[].network, and write hostSocketInterface instead of "
    "socketInterface.",
)
def networks_on_host(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that has mode `host-network`, but sets a network or `socketInterface`.

    A warning: they have no effect on pods with hostNetwork, the only pods of that mode.
    """
    if fabric.mode != "host-network":
        return
    no_effect = "no effect on pods with hostNetwork"
    if fabric.networks or any(resource.network for resource in fabric.resources):
        yield Violation(
            ("networks",), f"networks have {no_effect}", "Remove networks and resources[].network."
        )
    if "socket_interface" in fabric.model_fields_set:
        yield Violation(
            ("socketInterface",),
            f"socketInterface has {no_effect}",
            "Write hostSocketInterface instead.",
        )


@rule(
    "warning",
    (
        "If Multus attaches the devices, set resources[].network to the name of the "
        "NetworkAttachmentDefinition; otherwise, list in `annotations` the annotations that attach "
        "the devices."
    ),
)
def own_device_networks(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that has mode `sr-iov` or `host-device`, but no network or annotation.

    A warning: a Multus network moves the device into the pod, but another webhook may append that
    network. An EFA device, reached through libfabric, needs none, and InfiniBand works without an
    interface in the pod: there, an explicit `linkLayer: InfiniBand` is enough.
    """
    attached = fabric.networks or any(_network_counts(fabric)) or fabric.annotations
    if fabric.mode in _NETWORK_MODES and not attached and not _needs_no_interface(fabric):
        yield Violation(
            ("networks",),
            f"mode {fabric.mode} needs a network that moves the device into the pod",
        )


def _needs_no_interface(fabric: FabricEntry) -> bool:
    """Return whether the devices work without a network interface in the pod.

    The default link layer is not believed: it may be an omission.
    """
    explicit = "link_layer" in fabric.model_fields_set
    return fabric.transport == "libfabric" or (explicit and fabric.link_layer == "InfiniBand")


@rule(
    "error",
    "Give each network a different @interface, and omit @interface from the network of a resource "
    "whose `count` is not 1.",
)
def network_interfaces(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that uses the same `@interface` for several networks or devices.

    An error: with two networks of the same interface, a pod never starts. Only the first device of
    a resource gets an interface of that name, so the name cannot be meant for several devices.
    """
    interfaces: set[str] = set()
    for path, name, repeats in _networks(fabric):
        interface = name.partition("@")[2]
        if not interface:
            continue
        if interface in interfaces:
            yield Violation(
                path, f"{quoted(name)} uses the interface name {quoted(interface)} twice"
            )
        elif repeats:
            yield Violation(
                path, f"{quoted(name)} has one interface name for the networks of several devices"
            )
        interfaces.add(interface)


@rule("error", "Set the resource's `count` to 1.")
def per_gpu_shared(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets `count: per-gpu` in mode `shared-device`, where 1 is enough.

    An error: one unit of the shared plugin mounts every device of the resource, so no number of
    units gives each GPU its own device.
    """
    for index, resource in enumerate(fabric.resources):
        if fabric.mode == "shared-device" and resource.count == "per-gpu":
            yield Violation(
                ("resources", index, "count"),
                "in mode shared-device, one unit gives the container every device",
            )


@rule("warning", "Set the resource's `count` to 1.")
def many_units(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that sets a `count` above 1 in mode `shared-device`, where 1 is enough.

    A warning: more units add nothing, and exhaust the plugin's `rdmaHcaMax` sooner.
    """
    for index, resource in enumerate(fabric.resources):
        count = resource.count
        if fabric.mode == "shared-device" and count != "per-gpu" and count > 1:
            yield Violation(
                ("resources", index, "count"),
                "in mode shared-device, one unit gives the container every device",
            )


@rule("warning", "Remove the field, or set the resource's `count` to per-gpu.")
def per_gpu_fields(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that sets `gpusPerDevice`, `devicesPerGpu` or `max` without `per-gpu`.

    A warning: these fields have no effect without `count: per-gpu`.
    """
    fields = ("gpus_per_device", "devices_per_gpu", "maximum")
    for index, resource in enumerate(fabric.resources):
        for key, given in zip(("gpusPerDevice", "devicesPerGpu", "max"), fields, strict=True):
            if resource.count != "per-gpu" and given in resource.model_fields_set:
                yield Violation(
                    ("resources", index, key),
                    f"{key} has no effect unless count is per-gpu",
                    f"Remove {key}, or set count to per-gpu.",
                )


@rule("error", "Remove gpusPerDevice or devicesPerGpu from the resource.")
def per_gpu_both_ways(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that sets both `gpusPerDevice` and `devicesPerGpu` for a resource.

    An error: either several GPUs share a device, or a GPU has several devices.
    """
    for index, resource in enumerate(fabric.resources):
        if {"gpus_per_device", "devices_per_gpu"} <= resource.model_fields_set:
            yield Violation(
                ("resources", index, "devicesPerGpu"),
                "devicesPerGpu cannot be combined with gpusPerDevice",
            )


@rule(
    "warning",
    "Set resources[].name to the resource that the device plugin offers, or, if pods get the "
    "device in another way, set resources: [].",
)
def no_resource(fabric: FabricEntry) -> Iterator[Violation]:
    """Warn about a fabric that omits `resources` in a `mode` other than `host-network` or `dra`.

    A warning: no resource mounts a device into the pod, but a site may mount one in another way,
    such as with privileged pods. For an explicit `[]` there is no warning.
    """
    explicit = "resources" in fabric.model_fields_set
    if fabric.mode not in ("host-network", "dra") and not fabric.resources and not explicit:
        yield Violation(("resources",), "resources is empty, so no device gets into the pod")


def _networks(fabric: FabricEntry) -> Iterator[tuple[Path, str, bool]]:
    """Yield each network, and whether pods may get it several times, once for each device."""
    for index, name in enumerate(fabric.networks):
        yield ("networks", index), name, False
    for index, resource in enumerate(fabric.resources):
        if resource.network:
            repeats = resource.count == "per-gpu" or resource.count > 1
            yield ("resources", index, "network"), resource.network, repeats


def _network_counts(fabric: FabricEntry) -> Iterator[int]:
    """Yield the number of networks that each resource adds."""
    for resource in fabric.resources:
        yield 0 if not resource.network else 1 if resource.count == "per-gpu" else resource.count
