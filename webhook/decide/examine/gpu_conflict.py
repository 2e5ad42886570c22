"""A GPU that the nodes of a fabric do not offer, in a pod with evidence for that fabric.

The GPU and the evidence contradict each other. Where the nodes are static, the pod is denied, as
for every contradiction. Elsewhere the RDMA resource may be that of another pool's own device
plugin, so the pod keeps it, and gets nothing of the fabric. A user who names the fabric is
believed: nodes that offer both may come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from webhook.decide.analysis import DecisionInput
from webhook.model.annotations import FABRIC_ANNOTATION
from webhook.model.decision import Reason
from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.nodes import PRODUCT, FabricIndex
from webhook.model.quantity import is_zero
from webhook.model.resources import (
    GPU,
    ContainerDevices,
    accelerators_of,
    is_slice,
    vendor_of,
)

GPU_NOT_ON_FABRIC = Reason(
    "GPUNotOnFabric",
    "The pod requests a GPU that no known node of the pod's fabric offers.",
    remedy=(
        "If the pod is meant for the fabric's nodes, request a type of GPU that they have. If the "
        "pod is meant for other nodes, remove the annotation rdma.lab/fabric if it is set; an RDMA "
        "resource that those nodes offer may stay in the pod."
    ),
    rdma="unsure",
)


class GpuConflict(NamedTuple):
    """A GPU that contradicts the pod's evidence for a fabric."""

    message: str
    #: The evidence and the GPU; the user may remove either: "rdma/ib or amd.com/gpu".
    removable: str
    #: Whether no node will ever offer both; the pod is then denied.
    is_permanent: bool


def lacks_gpu(fabric: Fabric, gpu: str, fabric_index: FabricIndex) -> bool:
    """Return whether the nodes of a fabric do not offer a GPU, as far as is known.

    `gpuResources` lists what they offer; a product label of NVIDIA's names the vendor; a fabric
    with neither is known by its nodes. A slice may be on each node with NVIDIA's GPUs.
    """
    if gpu in fabric.gpu_resources or fabric.name in fabric_index.offering.get(gpu, ()):
        return False
    vendors = {vendor_of(name) for name in fabric.gpu_resources}
    if PRODUCT in fabric.node_labels:
        vendors.add(vendor_of(GPU))
    if vendors and vendor_of(gpu) not in vendors:
        return True
    if is_slice(gpu):
        return False
    return bool(fabric.gpu_resources) or fabric.name in fabric_index.inhabited_fabrics


def gpu_conflict(
    container_devices: ContainerDevices,
    fabric: Fabric | None,
    decision_input: DecisionInput,
    *,
    named: bool,
) -> GpuConflict | None:
    """Return the first GPU of the pod that contradicts its evidence for a fabric, or None.

    `named`: whether the user names the fabric by annotation. Else the evidence is an RDMA resource
    of the fabric; without one there is no contradiction.
    """
    if fabric is None:
        return None
    evidence = _own_resource(container_devices, fabric)
    if evidence is not None:
        source, shown = evidence.source, evidence.written
    elif named:
        source, shown = f"annotation {FABRIC_ANNOTATION}={fabric.name}", "the annotation"
    else:
        return None
    is_permanent = _is_permanent(fabric, decision_input)
    for gpu, container in _gpus(container_devices, decision_input.configuration):
        if lacks_gpu(fabric, gpu, decision_input.fabric_index):
            offer = f"no known node of the fabric offers {gpu}"
        elif is_permanent and _are_apart(gpu, evidence, fabric, decision_input.fabric_index):
            offer = f"no node of the fabric offers both {shown} and {gpu}"
        else:
            continue
        message = (
            f"{source} implies fabric {fabric.name}, but {offer}, which container {container} "
            "requests"
        )
        return GpuConflict(message, f"{shown} or {gpu}", is_permanent)
    return None


class _OwnResource(NamedTuple):
    """An RDMA resource of a fabric that the pod requests."""

    name: str  #: in the cluster
    written: str  #: in the pod: the same, or an alias
    source: str  #: with the container: "rdma/ib in container trainer"


def _own_resource(container_devices: ContainerDevices, fabric: Fabric) -> _OwnResource | None:
    names = {
        written: resource.name
        for resource in fabric.resources
        for written in (resource.name, *resource.aliases)
    }
    for container, requested in container_devices:
        for written, amount in requested.rdma:
            if written in names and not is_zero(amount):
                source = f"{written} in container {container.name}"
                return _OwnResource(names[written], written, source)
    return None


def _gpus(
    container_devices: ContainerDevices, configuration: CompiledConfiguration
) -> Iterator[tuple[str, str]]:
    """Yield the GPUs and other accelerators of a pod, each with the container."""
    for container, _ in container_devices:
        for name in accelerators_of(container, configuration):
            yield name, container.name


def _are_apart(
    gpu: str, resource: _OwnResource | None, fabric: Fabric, fabric_index: FabricIndex
) -> bool:
    """Return whether nodes of a fabric offer the GPU, others the resource, but none both."""
    if resource is None:
        return False
    pair = (gpu, resource.name)
    offered = all(fabric.name in fabric_index.offering.get(name, ()) for name in pair)
    return offered and fabric.name not in fabric_index.offering_with_rdma.get(pair, ())


def _is_permanent(fabric: Fabric, decision_input: DecisionInput) -> bool:
    """Return whether a contradiction stays: the fabric's nodes are known, and never change."""
    static = decision_input.configuration.defaults.nodes == "static"
    return static and fabric.name in decision_input.fabric_index.inhabited_fabrics
