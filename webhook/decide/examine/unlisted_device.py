"""A device that no fabric lists, in a pod without evidence for a fabric."""

from __future__ import annotations

from collections.abc import Sequence

from webhook.decide.analysis import DecisionInput
from webhook.decide.examine.gpu_conflict import lacks_gpu
from webhook.model.annotations import CONTAINERS_ANNOTATION, FABRIC_ANNOTATION
from webhook.model.names import enumerated, shortened_list
from webhook.model.quantity import is_zero
from webhook.model.resources import ContainerDevices

#: Setting the fabric alone would not help: the pod would still request the unknown resource.
UNLISTED_RDMA_REMEDY = (
    "rename it to the fabric's resource, or remove it and set "
    f"{FABRIC_ANNOTATION} and {CONTAINERS_ANNOTATION}"
)


def unlisted_device(container_devices: ContainerDevices, decision_input: DecisionInput) -> str:
    """Name a GPU, or else an RDMA resource, of a pod without evidence for a fabric; or "".

    No fabric lists such a device, or it would be evidence.
    """
    for container, requested in container_devices:
        names = [*requested.gpus, *(name for name, amount in requested.rdma if not is_zero(amount))]
        if names:
            remedy = UNLISTED_RDMA_REMEDY
            if requested.gpus:
                remedy = _gpu_remedy(names[0], decision_input)
            return (
                f"container {container.name} requests {names[0]}, which no fabric lists; {remedy}"
            )
    return ""


def choice_of(fabrics: Sequence[str]) -> str:
    """Return the remedy to choose one of these fabrics."""
    return f"set {FABRIC_ANNOTATION} to the fabric of its nodes, {enumerated(fabrics, 'or')}"


def _gpu_remedy(gpu: str, decision_input: DecisionInput) -> str:
    """Return the remedy for a GPU: a fabric that may have it, or else the GPUs of all fabrics.

    A fabric whose nodes do not offer the GPU would be no remedy: the pod would stay Pending.
    """
    fabrics = decision_input.configuration.fabrics.values()
    index = decision_input.fabric_index
    suitable = [fabric.name for fabric in fabrics if not lacks_gpu(fabric, gpu, index)]
    if suitable:
        return choice_of(suitable)
    offers = [
        f"{shortened_list(sorted(fabric.gpu_resources), 2)} ({fabric.name})"
        for fabric in fabrics
        if fabric.gpu_resources
    ]
    request = f"request {shortened_list(offers)}, or " if offers else ""
    return f"{request}add {gpu} to gpuResources of the fabric that has it"
