"""The GPU model that the pod selects: whether such nodes are on its fabric.

A fabric that claims `nvidia.com/gpu` may be found by that alone, while the pod's node selection
names GPUs by a label that the fabric does not list. Where no such node is on the fabric, the pod
stays Pending: no node has both its GPU and its RDMA resource.
"""

from __future__ import annotations

import re

from webhook.decide.examine.node_selection import required_labels
from webhook.decide.verdict.judged_pod import Seen
from webhook.model.annotations import FABRIC
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import Fabric
from webhook.model.nodes import GPU_MODEL_LABELS, PRODUCT

GPU_MODEL_UNKNOWN = Reason(
    "GPUModelUnknown",
    "The pod selects a GPU model, and nothing says whether nodes with it are on the pod's fabric.",
    rdma="unsure",
)
GPU_MODEL_REASONS = (GPU_MODEL_UNKNOWN,)

#: v100, h100, a10g, gb200; but not the kind of its socket or memory, as in sxm4 or hbm3.
_MODEL = re.compile(r"(?<![a-z0-9])(?!sxm|hbm)[a-z]{1,4}[0-9]{1,4}[a-z]{0,2}")


def judge_gpu_model(seen: Seen) -> Verdict | None:
    """Return what the pod's node selection leaves open, None if nothing."""
    fabric, spec = seen.fabric, seen.pod["spec"]
    if fabric is None or ("nodeSelector" not in spec and "affinity" not in spec):
        return None
    if seen.scope.requests.fabric is not None:  # the user says where such nodes are
        return None
    for key, values in required_labels(seen.scope.original):
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


def _is_on(fabric: Fabric, key: str, value: str, seen: Seen) -> bool:
    """Return whether a node with this label is on the fabric, or the fabric has such a product."""
    if fabric.name in seen.inventory.by_gpu_model.get((key, value), ()):
        return True
    models = set(_MODEL.findall(value.lower()))
    products = fabric.node_labels.get(PRODUCT, ())
    return any(not models.isdisjoint(_MODEL.findall(one.lower())) for one in products)
