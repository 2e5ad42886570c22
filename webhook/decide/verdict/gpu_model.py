"""The GPU: whether the nodes of the pod's fabric have the GPU that the pod requests or selects.

The evidence for a fabric may be its claim to `nvidia.com/gpu` alone, while the pod's node
selection names GPUs by a label that the fabric does not list. Where no such node is on the
fabric, the pod stays Pending: no node has both its GPU and its RDMA resource.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.decide.examine.gpu_conflict import GPU_NOT_ON_FABRIC, lacks_gpu
from webhook.decide.verdict.patched_pod import PatchedPod
from webhook.model.annotations import FABRIC_ANNOTATION
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import Fabric
from webhook.model.nodes import GPU_MODEL_LABELS, PRODUCT
from webhook.model.resources import accelerators_of, is_accelerator, is_rdma

GPU_MODEL_UNKNOWN = Reason(
    "GPUModelUnknown",
    "The pod selects a GPU model, but whether the pod's fabric has nodes with it is unknown.",
    remedy=(
        "If the fabric has such nodes, set rdma.lab/fabric on the pod to the name of the fabric, "
        "or ask the cluster administrator to list, in the fabric's nodeLabels, the node label that "
        "the pod uses to select the GPU model. Otherwise, select a GPU model that the fabric has."
    ),
    rdma="unsure",
)
RESOURCE_AS_LABEL = Reason(
    "ResourceAsLabel",
    "The pod selects nodes by a label whose key is the name of a resource and whose value is a "
    "GPU product.",
    remedy=(
        "Select nodes by the label nvidia.com/gpu.product (for AMD GPUs, "
        "amd.com/gpu.product-name), whose value is the product. A node offers nvidia.com/gpu as a "
        "resource, not as a label."
    ),
    rdma="unsure",
)
GPU_MODEL_REASONS = (GPU_NOT_ON_FABRIC, RESOURCE_AS_LABEL, GPU_MODEL_UNKNOWN)

#: v100, h100, a10g, gb200; but not a kind of socket or memory, such as sxm4 or hbm3.
_MODEL = re.compile(r"(?<![a-z0-9])(?!sxm|hbm)[a-z]{1,4}[0-9]{1,4}[a-z]{0,2}")


def judge_gpu(pod: PatchedPod) -> Verdict | None:
    """Return the verdict if the fabric's nodes do not offer a GPU that the pod requests, or None.

    This applies whatever the evidence for the fabric: a default, or the pod's own annotation.
    """
    fabric = pod.used_fabric
    if fabric is None:
        return None
    for gpu in _accelerators(pod):
        if lacks_gpu(fabric, gpu, pod.fabric_index):
            message = f"the pod requests {gpu}, which no known node of fabric {fabric.name} offers"
            return Verdict.of(GPU_NOT_ON_FABRIC, message)
    return None


def _accelerators(pod: PatchedPod) -> Iterator[str]:
    for container in pod.view.containers:
        yield from accelerators_of(container, pod.analysis.configuration)


def judge_resource_label(pod: PatchedPod) -> Verdict | None:
    """Return the verdict if a label that the pod requires is surely meant as the product's.

    `nvidia.com/gpu: NVIDIA-H200` is such a label; `nvidia.com/gpu: "true"` is not, since some sites
    label their nodes that way, and neither is a label that some node has.
    """
    for key, values in pod.analysis.original.required_labels():
        if not is_resource_label(key, pod) or not any(map(_models, values)):
            continue
        message = f"nodes are selected by the label {key:.40}={values[0]:.30}; use {PRODUCT}"
        return Verdict.of(RESOURCE_AS_LABEL, message)
    return None


def is_resource_label(key: str, pod: PatchedPod) -> bool:
    """Return whether a label has the name of a GPU or an RDMA resource, and no node has it."""
    configuration = pod.analysis.configuration
    is_resource = is_accelerator(key, configuration) or is_rdma(key, configuration)
    return is_resource and key not in pod.fabric_index.label_keys


def judge_gpu_model(pod: PatchedPod) -> Verdict | None:
    """Return the verdict if it is unclear whether the selected GPU is on the fabric, else None.

    Where the nodes of the fabric are known, the pod's selection is compared with them instead.
    """
    fabric = pod.used_fabric
    if fabric is None or fabric.name in pod.fabric_index.node_classes.by_fabric:
        return None
    if pod.analysis.annotations.fabric is not None:  # the user declares where such nodes are
        return None
    for key, values in pod.analysis.original.required_labels():
        if not values or key not in GPU_MODEL_LABELS or _is_listed(key, fabric):
            continue
        if not any(_is_on(fabric, key, value, pod) for value in values):
            message = (
                f"GPU {values[0]:.30} might not be on fabric {fabric.name}; if it is, set "
                f"{FABRIC_ANNOTATION} (the pod selects that GPU by label {key})"
            )
            return Verdict.of(GPU_MODEL_UNKNOWN, message)
    return None


def _is_listed(key: str, fabric: Fabric) -> bool:
    """Return whether the fabric itself names the label, which was then evidence for the fabric."""
    return key in fabric.node_labels or key in (fabric.pin_selector or ())


def _is_on(fabric: Fabric, key: str, value: str, pod: PatchedPod) -> bool:
    """Return whether a node with this label is on the fabric, or the fabric has such a product."""
    if fabric.name in pod.fabric_index.by_gpu_model.get((key, value), ()):
        return True
    models = _models(value)
    products = fabric.node_labels.get(PRODUCT, ())
    return any(not models.isdisjoint(_models(product)) for product in products)


def _models(value: str) -> set[str]:
    """Return the GPU models that a label's value names."""
    return set(_MODEL.findall(value.lower()))
