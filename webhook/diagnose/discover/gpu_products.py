"""The products of GPUs, each in one spelling, and their node labels.

GPU feature discovery writes nvidia.com/gpu.product, AMD's node labeller amd.com/gpu.product-name;
AMD's tools and its labeller spell one product differently. Sources: NVIDIA/k8s-device-plugin,
internal/lm; ROCm/k8s-device-plugin, cmd/k8s-node-labeller/main.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from webhook.diagnose.tools.gpus import AMD_ID
from webhook.diagnose.tools.observations import GpuObservation

NVIDIA_LABEL, AMD_LABEL = "nvidia.com/gpu.product", "amd.com/gpu.product-name"
#: What AMD's device plugin offers; ROCm/k8s-device-plugin, README.
AMD_RESOURCE = "amd.com/gpu"
#: Characters that GPU feature discovery removes from a product.
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9\-_. ]")
#: "MI300X" in "AMD Instinct MI300X VF", in "AMD_Instinct_MI300X_OAM" and in lspci's name.
_INSTINCT = re.compile(r"\bMI\d{2,3}[A-Z]?(?![A-Z0-9])", re.ASCII)


def product_label(product: str) -> str:
    """Return a GPU's product as GPU feature discovery spells it in nvidia.com/gpu.product."""
    return "-".join(_NOT_IN_LABELS.sub("", product).split())


def amd_label(product: str) -> str | None:
    """Return one of AMD's products as "AMD-Instinct-MI300X"; None for the name of several."""
    words = product.replace("_", " ")
    models = set(_INSTINCT.findall(words.upper()))
    if models:
        return f"AMD-Instinct-{models.pop()}" if len(models) == 1 else None
    return product_label(f"AMD {words.removeprefix('AMD ')}")


def product_of_gpu(gpu: GpuObservation) -> str | None:
    """Return the product that a tool shows, in its spelling in reports; None if it shows none."""
    if gpu.product is None:
        return None
    return amd_label(gpu.product) if gpu.vendor_id == AMD_ID else product_label(gpu.product)


def product_of_labels(labels: Mapping[str, str]) -> tuple[str, str]:
    """Return the label with a node's product, and the product; two empty strings without one.

    `-SHARED` and `-MIG-...` belong to parts of GPUs. A node with two products of AMD has no label
    with a single one.
    """
    if nvidia := labels.get(NVIDIA_LABEL):
        return NVIDIA_LABEL, re.sub(r"(-SHARED|-MIG-.*)+$", "", nvidia)
    product = amd_label(labels[AMD_LABEL]) if labels.get(AMD_LABEL) else None
    return (AMD_LABEL, product) if product else ("", "")
