"""Rules for the RDMA devices: HCA names, resources, networks, and the mode that they stand in.

Sources: NCCL's env.rst (NCCL_IB_HCA) and net_ib, k8s-rdma-shared-dev-plugin,
Multus, and reports of RoCE in a pod's network namespace (its issues 72, 101, 112).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from webhook.config import names
from webhook.config.model import FabricEntry
from webhook.config.rules.parts import Parts, Problem, per_fabric
from webhook.core.path import Path

#: MAX_IB_DEVS of NCCL's net_ib.
_MAX_HCAS = 32
#: In these modes each pod sees its own device, whose name nobody knows before.
_OWN_DEVICE = ("sr-iov", "host-device")


@per_fabric
def hca_names(fabric: FabricEntry) -> Iterator[Problem]:
    """Refuse devices that are not `name[:port]`: globs, `=`, `^`, spaces.

    An error: NCCL finds no device, and falls back to sockets without a word.
    """
    for key, place, written in _hcas(fabric):
        if key == "hcaPrefixes":
            fits, wanted = names.is_hca_prefix(written), "a prefix: write ibp"
        else:
            fits, wanted = bool(names.split_hca(written)), "a device: write mlx5_0 or mlx5_0:1"
        if not fits:
            yield Problem(
                (key, place),
                f"{written!r:.80} is not {wanted} (exclusions go into excludeHcas, beginnings "
                "into hcaPrefixes)",
            )


@per_fabric
def one_hca_list(fabric: FabricEntry) -> Iterator[Problem]:
    """Refuse more than one of `hcas`, `excludeHcas` and `hcaPrefixes`.

    An error: NCCL_IB_HCA is either a list, an exclusion, or prefixes.
    """
    given = list(dict.fromkeys(key for key, _, _ in _hcas(fabric)))
    for other in given[1:]:
        yield Problem((other,), f"stands beside {given[0]}: NCCL takes one of them, remove one")


@per_fabric
def hcas_without_names(fabric: FabricEntry) -> Iterator[Problem]:
    """Refuse HCA names in `sr-iov` and `host-device`.

    An error: the name differs from pod to pod, so a fixed list is wrong in most of them.
    """
    if fabric.mode in _OWN_DEVICE:
        for key in dict.fromkeys(key for key, _, _ in _hcas(fabric)):
            yield Problem(
                (key,), f"device names differ between pods in mode {fabric.mode}: remove it"
            )


@per_fabric
def hca_limit(fabric: FabricEntry) -> Iterator[Problem]:
    """Refuse more than 32 devices, or one twice.

    An error: NCCL reads no more than 32.
    """
    counts = Counter((key, written) for key, _, written in _hcas(fabric))
    for (key, written), times in counts.items():
        if times > 1:
            yield Problem((key,), f"{written!r:.80} is listed {times} times: once will do")
    if len(fabric.hcas) > _MAX_HCAS:
        yield Problem(("hcas",), f"{len(fabric.hcas)} devices: NCCL uses at most {_MAX_HCAS}")


@per_fabric
def open_prefixes(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of a prefix that also matches devices that it hardly means.

    A warning: `mlx5_1` is also mlx5_10 to mlx5_19, `mlx5` also the bond mlx5_bond_0, but
    on this site's nodes there may be none of those.
    """
    for place, prefix in enumerate(fabric.hca_prefixes):
        if prefix[-1:].isdigit() and "_" in prefix:
            also = f"{prefix}0 to {prefix}9"
        elif "mlx5_bond_0".startswith(prefix):
            also = "an Ethernet bond, mlx5_bond_0"
        else:
            continue
        yield Problem(
            ("hcaPrefixes", place),
            f"{prefix!r:.80} also matches {also}: list exact names in hcas where you can",
        )


def prefixes_of_others(parts: Parts) -> Iterator[Problem]:
    """Warn of a prefix that also matches a device that another fabric names.

    A warning: the other fabric's nodes may be other nodes.
    """
    named = [
        (fabric.name, key, written)
        for _, fabric in parts.fabrics()
        for key, _, written in _hcas(fabric)
        if key != "hcaPrefixes"
    ]
    for path, fabric in parts.fabrics():
        for place, prefix in enumerate(fabric.hca_prefixes):
            for owner, key, written in named:
                if owner != fabric.name and written.startswith(prefix):
                    yield Problem(
                        (*path, "hcaPrefixes", place),
                        f"{prefix!r:.80} also matches {written!r} of {key} in fabric {owner!r}: "
                        "make it longer, or list exact names in hcas",
                    )


@per_fabric
def bond_on_infiniband(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of `mlx5_bond_*` among the devices of an InfiniBand fabric.

    A warning: such a bond is Ethernet (InfiniBand ports cannot be its members), often a
    slow one, and NCCL refuses or mixes link layers. But someone may have renamed a device.
    """
    for place, written in enumerate(fabric.hcas):
        if fabric.link_layer == "InfiniBand" and "_bond_" in written:
            yield Problem(
                ("hcas", place),
                f"{written!r:.80} is an Ethernet bond: leave it out of an InfiniBand fabric",
            )


@per_fabric
def roce_networks(fabric: FabricEntry) -> Iterator[Problem]:
    """Refuse RoCE in `shared-device` with fewer networks than devices.

    An error: without an interface of its own in the pod's network namespace a device has
    an empty GID table there, and connecting fails. host-network and sr-iov do without.
    """
    if fabric.mode != "shared-device" or fabric.link_layer != "Ethernet":
        return
    rails = max(1, len({written.partition(":")[0] for written in fabric.hcas}))
    networks = len(fabric.networks) + sum(_networks_of(fabric))
    if networks < rails:
        yield Problem(
            ("networks",),
            f"{networks} for {rails} RoCE device{'s' * (rails > 1)}: in a pod network each needs a "
            "Multus network (macvlan on its interface), or else mode host-network or sr-iov",
        )


@per_fabric
def networks_on_host(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of `networks` and `socketInterface` in `host-network`.

    A warning: they have no effect on pods with hostNetwork, the only ones in that mode.
    """
    if fabric.mode != "host-network":
        return
    for key, given in (
        ("networks", fabric.networks or any(item.network for item in fabric.resources)),
        ("socketInterface", fabric.socket_interface),
    ):
        if given:
            remedy = ": write hostSocketInterface" if key == "socketInterface" else ": remove it"
            yield Problem((key,), f"has no effect on pods with hostNetwork{remedy}")


@per_fabric
def own_device_networks(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of `sr-iov` and `host-device` without a network.

    A warning: a device gets into the pod's network by a Multus network, but another
    webhook may append that.
    """
    if fabric.mode in _OWN_DEVICE and not fabric.networks and not any(_networks_of(fabric)):
        yield Problem(
            ("networks",),
            f"none in mode {fabric.mode}: name the NetworkAttachmentDefinition in "
            "resources[].network, or else nothing moves the device into the pod",
        )


@per_fabric
def network_interfaces(fabric: FabricEntry) -> Iterator[Problem]:
    """Refuse an `@interface` that would be there twice.

    An error: the second network of that interface fails, and the pod never starts.
    """
    seen: set[str] = set()
    for path, name, times in _networks(fabric):
        interface = name.partition("@")[2]
        if interface and (times > 1 or interface in seen):
            yield Problem(
                path, f"{name!r:.80} gives the interface {interface!r} twice: leave @ out"
            )
        seen.add(interface)


@per_fabric
def per_gpu_shared(fabric: FabricEntry) -> Iterator[Problem]:
    """Refuse `count: per-gpu` in `shared-device`.

    An error: one unit of the shared plugin mounts every device of the resource, so that no
    number of them gives each GPU its own.
    """
    for place, resource in enumerate(fabric.resources):
        if fabric.mode == "shared-device" and resource.count == "per-gpu":
            yield Problem(
                ("resources", place, "count"),
                "per-gpu in mode shared-device: one unit holds all devices already, write 1",
            )


@per_fabric
def many_units(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of a count above 1 in `shared-device`.

    A warning: more units add nothing and use up the plugin's `rdmaHcaMax` sooner.
    """
    for place, resource in enumerate(fabric.resources):
        count = resource.count
        if fabric.mode == "shared-device" and count != "per-gpu" and count > 1:
            yield Problem(
                ("resources", place, "count"),
                f"{count} in mode shared-device: one unit holds all devices already, write 1",
            )


@per_fabric
def per_gpu_fields(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of `gpusPerDevice` and `max` without `count: per-gpu`.

    A warning: without it they have no effect.
    """
    for place, resource in enumerate(fabric.resources):
        for key, given in (("gpusPerDevice", "gpus_per_device"), ("max", "maximum")):
            if resource.count != "per-gpu" and given in resource.model_fields_set:
                yield Problem(
                    ("resources", place, key), "has no effect without count: per-gpu: remove it"
                )


@per_fabric
def no_resource(fabric: FabricEntry) -> Iterator[Problem]:
    """Warn of a fabric without a resource, but for `host-network`.

    A warning: nothing mounts a device into the pod, but a site may do so in another way.
    """
    if fabric.mode != "host-network" and not fabric.resources:
        yield Problem(
            ("resources",), "none: no device gets into the pod, name what the device plugin offers"
        )


def _hcas(fabric: FabricEntry) -> Iterator[tuple[str, int, str]]:
    for key, written in (
        ("hcas", fabric.hcas),
        ("excludeHcas", fabric.exclude_hcas),
        ("hcaPrefixes", fabric.hca_prefixes),
    ):
        for place, name in enumerate(written):
            yield key, place, name


def _networks(fabric: FabricEntry) -> Iterator[tuple[Path, str, int]]:
    """Give each network with how often it is appended, at least."""
    for place, name in enumerate(fabric.networks):
        yield ("networks", place), name, 1
    for place, resource in enumerate(fabric.resources):
        if resource.network:
            times = 2 if resource.count == "per-gpu" else resource.count
            yield ("resources", place, "network"), resource.network, times


def _networks_of(fabric: FabricEntry) -> Iterator[int]:
    """Give how many networks each resource brings along."""
    for resource in fabric.resources:
        yield 0 if not resource.network else 1 if resource.count == "per-gpu" else resource.count
