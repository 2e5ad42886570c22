"""The nodes: whether one of the pod's fabric can take it, by what the inventory knows of them.

What no node offers now may come: nodes are added when a pod needs them, and a device plugin that
restarts offers nothing for a while. So it is not certain, unless the site says that its nodes are
static. Without an inventory, nothing is known, and nothing is said.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from webhook.decide.verdict.judged_pod import JudgedPod
from webhook.model.annotations import FABRIC
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import Fabric
from webhook.model.nodes import GPU_MODEL_LABELS, PRODUCT, NodeInventory
from webhook.model.resources import is_gpu, scheduler_requests

NO_NODES = Reason("FabricWithoutNodes", "No node belongs to the fabric now.", rdma="unsure")
NOT_OFFERED = Reason(
    "ResourceNotOffered", "No node of the fabric offers the RDMA resource now.", rdma="unsure"
)
APART = Reason(
    "ResourceNotBesideGpu",
    "No node of the fabric offers both the pod's GPU and the RDMA resource now.",
    rdma="unsure",
)
TOO_MANY = Reason(
    "ResourceExceedsNodes",
    "The pod requests more of the RDMA resource than any node of the fabric offers now.",
    rdma="unsure",
)
FABRIC_NOWHERE = Reason(
    "FabricNowhere",
    "No node belongs to the fabric, and the configuration says nodes: static.",
    rdma="no",
)
RESOURCE_NOWHERE = Reason(
    "ResourceNowhere",
    "No node of the fabric offers the RDMA resource, and the configuration says nodes: static.",
    rdma="no",
)
ALWAYS_APART = Reason(
    "ResourceNeverBesideGpu",
    "No node of the fabric offers both the pod's GPU and the RDMA resource, and the configuration"
    " says nodes: static.",
    rdma="no",
)
ALWAYS_TOO_MANY = Reason(
    "ResourceExceedsStaticNodes",
    "The pod requests more of the RDMA resource than any node of the fabric offers, and the"
    " configuration says nodes: static.",
    rdma="no",
)
CAPACITY_REASONS = (
    *(NO_NODES, NOT_OFFERED, APART, TOO_MANY),
    *(FABRIC_NOWHERE, RESOURCE_NOWHERE, ALWAYS_APART, ALWAYS_TOO_MANY),
)


class _Lack(NamedTuple):
    """What the nodes lack: the reason where nodes come and go, that where they do not, and how."""

    elastic: Reason
    static: Reason
    message: str


def judge_node_capacity(seen: JudgedPod) -> Verdict | None:
    """Return what the nodes of the pod's fabric lack, None if nothing, or if it is not known."""
    if seen.fabric is None or not seen.inventory.by_node:
        return None
    lack = _lack(seen, seen.fabric)
    if lack is None:
        return None
    if seen.scope.fabrics.defaults.nodes == "static":
        return Verdict.of(lack.static, f"{lack.message}, and the nodes are static")
    return Verdict.of(lack.elastic, f"{lack.message} now")


def _lack(seen: JudgedPod, fabric: Fabric) -> _Lack | None:
    if fabric.name not in seen.inventory.inhabited:
        return _Lack(NO_NODES, FABRIC_NOWHERE, f"no node belongs to fabric {fabric.name}")
    requested = scheduler_requests(seen.pod)
    gpus = [name for name, many in requested.items() if many and is_gpu(name, seen.scope.fabrics)]
    wanted = (one.name for one in fabric.resources if requested.get(one.name))
    lacks = (_of(name, requested[name], gpus, fabric.name, seen.inventory) for name in wanted)
    return next(filter(None, lacks), None)


def _of(
    name: str, many: int, gpus: list[str], fabric: str, inventory: NodeInventory
) -> _Lack | None:
    """Return what the nodes of a fabric lack for so many of a resource, beside these GPUs."""
    offered = inventory.offering.get(name, {}).get(fabric, 0)
    if not offered:
        return _Lack(NOT_OFFERED, RESOURCE_NOWHERE, f"no node of fabric {fabric} offers {name}")
    for gpu in gpus:
        if fabric not in inventory.together.get((gpu, name), ()):
            message = f"no node of fabric {fabric} offers both {gpu} and {name}"
            return _Lack(APART, ALWAYS_APART, message)
    if many > offered:
        message = f"the pod requests {name}: {many}, and no node of {fabric} offers over {offered}"
        return _Lack(TOO_MANY, ALWAYS_TOO_MANY, message)
    return None


# The GPU model that the pod selects: whether such nodes are on its fabric.
#
# A fabric that claims `nvidia.com/gpu` may be found by that alone, while the pod's node selection
# names GPUs by a label that the fabric does not list. Where no such node is on the fabric, the
# pod stays Pending: no node has both its GPU and its RDMA resource.

GPU_MODEL_UNKNOWN = Reason(
    "GPUModelUnknown",
    "The pod selects a GPU model, and nothing says whether nodes with it are on the pod's fabric.",
    rdma="unsure",
)
GPU_MODEL_REASONS = (GPU_MODEL_UNKNOWN,)

#: v100, h100, a10g, gb200; but not the kind of its socket or memory, as in sxm4 or hbm3.
_MODEL = re.compile(r"(?<![a-z0-9])(?!sxm|hbm)[a-z]{1,4}[0-9]{1,4}[a-z]{0,2}")


def judge_gpu_model(seen: JudgedPod) -> Verdict | None:
    """Return what the pod's node selection leaves open, None if nothing."""
    fabric = seen.fabric
    if fabric is None:
        return None
    if seen.scope.requests.fabric is not None:  # the user says where such nodes are
        return None
    for key, values in seen.scope.original.required_labels():
        if not values or key not in GPU_MODEL_LABELS or _is_listed(key, fabric):
            continue
        if not any(_is_on(fabric, key, value, seen) for value in values):
            told = f"selects GPU {values[0]:.30}, which may not be on fabric {fabric.name}"
            message = f"the pod {told}: set {FABRIC} (label {key})"
            return Verdict.of(GPU_MODEL_UNKNOWN, message)
    return None


def _is_listed(key: str, fabric: Fabric) -> bool:
    """Return whether the fabric itself names the label, so that it was evidence for the fabric."""
    return key in fabric.node_labels or key in (fabric.pin or ())


def _is_on(fabric: Fabric, key: str, value: str, seen: JudgedPod) -> bool:
    """Return whether a node with this label is on the fabric, or the fabric has such a product."""
    if fabric.name in seen.inventory.by_gpu_model.get((key, value), ()):
        return True
    models = set(_MODEL.findall(value.lower()))
    products = fabric.node_labels.get(PRODUCT, ())
    return any(not models.isdisjoint(_MODEL.findall(one.lower())) for one in products)
