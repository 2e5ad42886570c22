"""The nodes: whether a node of the pod's fabric can run it, according to the known nodes.

A resource that no node offers now may appear: nodes are added when a pod needs them, and a device
plugin that restarts offers nothing for a while. So the verdict is `unsure`, unless the site's nodes
are configured as static. Without known nodes there is no verdict.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from webhook.decide.verdict.patched_pod import PatchedPod
from webhook.model.annotations import FABRIC_ANNOTATION
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import Fabric
from webhook.model.nodes import GPU_MODEL_LABELS, PRODUCT, FabricIndex
from webhook.model.resources import is_gpu, scheduler_requests

_CHECK_PLUGIN = (
    "Ask the cluster administrator to check the RDMA device plugin on the fabric's nodes: kubectl "
    "get nodes -o yaml shows what each node offers."
)
_SAME_NODES = (
    "Request the GPU of the fabric's nodes, or ask the cluster administrator to run the device "
    "plugins of the GPU and of RDMA on the same nodes."
)
_FEWER_DEVICES = (
    "Request fewer devices (rdma.lab/devices), or divide the work among more pods: all containers "
    "of a pod share the devices of one node."
)
NO_NODES = Reason(
    "FabricWithoutNodes",
    "No node belongs to the fabric now.",
    remedy=(
        "Check that this is the fabric you want. If it is, ask the cluster administrator whether "
        "its nodes are down or lack the configured labels."
    ),
    rdma="unsure",
)
NOT_OFFERED = Reason(
    "ResourceNotOffered",
    "No node of the fabric offers the RDMA resource now.",
    remedy=_CHECK_PLUGIN,
    rdma="unsure",
)
NOT_TOGETHER = Reason(
    "ResourceNotBesideGpu",
    "No node of the fabric offers both the pod's GPU and the RDMA resource now.",
    remedy=_SAME_NODES,
    rdma="unsure",
)
TOO_MANY = Reason(
    "ResourceExceedsNodes",
    "The pod requests more of the RDMA resource than any node of the fabric offers now.",
    remedy=_FEWER_DEVICES,
    rdma="unsure",
)
FABRIC_NOWHERE = Reason(
    "FabricNowhere",
    "No node belongs to the fabric, and the configuration has nodes: static.",
    remedy=(
        "Choose another fabric with rdma.lab/fabric, or ask the cluster administrator whether its "
        "nodes are down or lack the configured labels."
    ),
    rdma="no",
)
RESOURCE_NOWHERE = Reason(
    "ResourceNowhere",
    "No node of the fabric offers the RDMA resource, and the configuration has nodes: static.",
    remedy=_CHECK_PLUGIN,
    rdma="no",
)
NEVER_TOGETHER = Reason(
    "ResourceNeverBesideGpu",
    "No node of the fabric offers both the pod's GPU and the RDMA resource, and the configuration "
    "has nodes: static.",
    remedy=_SAME_NODES,
    rdma="no",
)
ALWAYS_TOO_MANY = Reason(
    "ResourceExceedsStaticNodes",
    "The pod requests more of the RDMA resource than any node of the fabric offers, and the "
    "configuration has nodes: static.",
    remedy=_FEWER_DEVICES,
    rdma="no",
)
CAPACITY_REASONS = (
    *(NO_NODES, NOT_OFFERED, NOT_TOGETHER, TOO_MANY),
    *(FABRIC_NOWHERE, RESOURCE_NOWHERE, NEVER_TOGETHER, ALWAYS_TOO_MANY),
)


class _Lack(NamedTuple):
    """What a fabric's nodes lack: the reason if nodes come and go, the reason if not, a message."""

    elastic: Reason
    static: Reason
    message: str


def judge_node_capacity(pod: PatchedPod) -> Verdict | None:
    """Return the verdict on what the fabric's nodes lack, or None, also if that is unknown."""
    if pod.used_fabric is None or not pod.fabric_index.by_node:
        return None
    lack = _lack(pod, pod.used_fabric)
    if lack is None:
        return None
    if pod.analysis.configuration.defaults.nodes == "static":
        return Verdict.of(lack.static, f"{lack.message}, and the nodes are static")
    return Verdict.of(lack.elastic, f"{lack.message} now")


def _lack(pod: PatchedPod, fabric: Fabric) -> _Lack | None:
    if fabric.name not in pod.fabric_index.inhabited:
        return _Lack(NO_NODES, FABRIC_NOWHERE, f"no node belongs to fabric {fabric.name}")
    requested = scheduler_requests(pod.view)
    gpus = [
        name
        for name, amount in requested.items()
        if amount and is_gpu(name, pod.analysis.configuration)
    ]
    names = (resource.name for resource in fabric.resources if requested.get(resource.name))
    lacks = (
        _resource_shortage(name, requested[name], gpus, fabric.name, pod.fabric_index)
        for name in names
    )
    return next(filter(None, lacks), None)


def _resource_shortage(
    name: str, amount: int, gpus: list[str], fabric: str, fabric_index: FabricIndex
) -> _Lack | None:
    """Return what a fabric's nodes lack for an amount of a resource together with GPUs."""
    offered = fabric_index.offering.get(name, {}).get(fabric, 0)
    if not offered:
        return _Lack(NOT_OFFERED, RESOURCE_NOWHERE, f"no node of fabric {fabric} offers {name}")
    for gpu in gpus:
        if fabric not in fabric_index.offering_with_rdma.get((gpu, name), ()):
            message = f"no node of fabric {fabric} offers both {gpu} and {name}"
            return _Lack(NOT_TOGETHER, NEVER_TOGETHER, message)
    if amount > offered:
        message = (
            f"the pod requests {amount} of {name}, but no node of fabric {fabric} offers more than "
            f"{offered}"
        )
        return _Lack(TOO_MANY, ALWAYS_TOO_MANY, message)
    return None


# The GPU model that the pod selects: whether nodes with it are on its fabric.
#
# The evidence for a fabric may be its claim to `nvidia.com/gpu` alone, while the pod's node
# selection names GPUs by a label that the fabric does not list. Where no such node is on the
# fabric, the pod stays Pending: no node has both its GPU and its RDMA resource.

GPU_MODEL_UNKNOWN = Reason(
    "GPUModelUnknown",
    "The pod selects a GPU model, but whether the pod's fabric has nodes with it is unknown.",
    remedy=(
        "If the fabric has such nodes, set rdma.lab/fabric: NAME on the pod, or ask the cluster "
        "administrator to add the label to the fabric's nodeLabels."
    ),
    rdma="unsure",
)
GPU_MODEL_REASONS = (GPU_MODEL_UNKNOWN,)

#: v100, h100, a10g, gb200; but not a kind of socket or memory, such as sxm4 or hbm3.
_MODEL = re.compile(r"(?<![a-z0-9])(?!sxm|hbm)[a-z]{1,4}[0-9]{1,4}[a-z]{0,2}")


def judge_gpu_model(pod: PatchedPod) -> Verdict | None:
    """Return the verdict if it is unclear whether the selected GPU is on the fabric, else None."""
    fabric = pod.used_fabric
    if fabric is None:
        return None
    if pod.analysis.annotations.fabric is not None:  # the user declares where such nodes are
        return None
    for key, values in pod.analysis.original.required_labels():
        if not values or key not in GPU_MODEL_LABELS or _is_listed(key, fabric):
            continue
        if not any(_is_on(fabric, key, value, pod) for value in values):
            selection = f"selects GPU {values[0]:.30}, which may not be on fabric {fabric.name}"
            message = f"the pod {selection}: set {FABRIC_ANNOTATION} (label {key})"
            return Verdict.of(GPU_MODEL_UNKNOWN, message)
    return None


def _is_listed(key: str, fabric: Fabric) -> bool:
    """Return whether the fabric itself names the label, which was then evidence for the fabric."""
    return key in fabric.node_labels or key in (fabric.pin or ())


def _is_on(fabric: Fabric, key: str, value: str, pod: PatchedPod) -> bool:
    """Return whether a node with this label is on the fabric, or the fabric has such a product."""
    if fabric.name in pod.fabric_index.by_gpu_model.get((key, value), ()):
        return True
    models = set(_MODEL.findall(value.lower()))
    products = fabric.node_labels.get(PRODUCT, ())
    return any(not models.isdisjoint(_MODEL.findall(product.lower())) for product in products)
