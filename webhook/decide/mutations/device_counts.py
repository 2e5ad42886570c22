"""Compute how many devices a target gets of each of its fabric's RDMA resources."""

from __future__ import annotations

from webhook.decide.scope import Target
from webhook.model.fabric import Fabric, RdmaResource


def devices_for(target: Target, fabric: Fabric, wanted: int | None) -> list[tuple[str, int]]:
    """Return (resource, quantity) for a target; `wanted` is the pod's rdma.lab/devices.

    Devices that the pod requests are spread over the fabric's resources in their order: three
    devices over two resources are two of the first and one of the second.
    """
    if wanted is None:
        return [(resource.name, _count(target, resource)) for resource in fabric.resources]
    if not fabric.resources:
        return []
    each, rest = divmod(wanted, len(fabric.resources))
    shares = [
        (resource.name, each + (index < rest)) for index, resource in enumerate(fabric.resources)
    ]
    return [(name, count) for name, count in shares if count]


def _count(target: Target, resource: RdmaResource) -> int:
    """Return the number of devices of one resource: a fixed number, or per GPU, but at least one.

    Slices of a GPU do not count as GPUs.
    """
    if resource.count is not None:
        return resource.count
    needed = max(1, -(-target.gpus * resource.devices_per_gpu // resource.gpus_per_device))
    return needed if resource.maximum is None else min(needed, resource.maximum)
