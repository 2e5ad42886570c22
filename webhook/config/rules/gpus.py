"""Rules against GPUs where an RDMA resource belongs.

Sources: the names of NVIDIA's, AMD's and Intel's GPU device plugins; what sites call GPUs
that they tell apart by k8s-device-plugin's `resources.gpus[].name`. An RDMA resource may be
of nvidia.com as well: `nvidia.com/hostdev`, and what the SR-IOV device plugin is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.config.explain import quoted
from webhook.config.model import FabricEntry
from webhook.config.rules.rule import Parts, Problem
from webhook.decision.resources import MIG, VIRTUAL_GPU
from webhook.pod.path import Path

_GPU_DOMAIN = "gpu.intel.com"
_GPU_NAMES = ("gpu", "gpu.shared")
#: h200, a100-80gb, V100, gb200, l40s, rtx-4090, mi300x. Models of one digit that a port may be
#: called as well (l2, p4) are left out.
_MODEL = re.compile(
    r"(?:nvidia|amd)\.com/(?:nvidia[-_.])?(?:tesla[-_.])?"
    r"(?:(?:gb|gh|[abhv])[0-9]{3}|a(?:10|16|30|40)g?|h20|l(?:20|40)s?|p40|p100|k80|[lt]4"
    r"|(?:geforce|quadro|rtx)[-_.0-9].*+|mi[0-9]{2,3}[ax]?)"
    r"(?:[-_.](?:sxm[0-9]?|pcie|nvl|hbm[0-9]e?|[0-9]+gb?|shared))*",
    re.IGNORECASE,
)


def gpu_as_rdma(parts: Parts) -> Iterator[Problem]:
    """Refuse a GPU as an RDMA resource, or as an alias of one.

    An error: pods would ask for more GPUs instead of RDMA, or theirs would be renamed.
    """
    claimed = _claimed(parts)
    for path, name in _resources(parts):
        if _is_gpu(name, claimed):
            yield Problem(
                path,
                f"{quoted(name)} is a GPU, or a share of one: write what the RDMA device plugin "
                "offers, such as rdma/ib",
            )


def gpu_model_as_rdma(parts: Parts) -> Iterator[Problem]:
    """Warn of an RDMA resource, or an alias, that is called like a model of GPU: `nvidia.com/h200`.

    A warning: a site may call a device for the nodes with that GPU so.
    """
    claimed = _claimed(parts)
    for path, name in _resources(parts):
        if _MODEL.fullmatch(name) and not _is_gpu(name, claimed):
            yield Problem(
                path,
                f"{quoted(name)} looks like a GPU (which belongs into match.gpuResources): write "
                "what the RDMA device plugin offers, such as rdma/ib",
            )


def _is_gpu(name: str, claimed: frozenset[str]) -> bool:
    domain, _, short = name.partition("/")
    return (
        name in claimed
        or name in VIRTUAL_GPU
        or short in _GPU_NAMES
        or domain == _GPU_DOMAIN
        or name.startswith(MIG)
    )


def _claimed(parts: Parts) -> frozenset[str]:
    return frozenset(gpu for _, fabric in parts.fabrics() for gpu in fabric.match.gpu_resources)


def _resources(parts: Parts) -> Iterator[tuple[Path, str]]:
    for home, fabric in parts.fabrics():
        for path, name in _names(fabric):
            yield (*home, "resources", *path), name


def _names(fabric: FabricEntry) -> Iterator[tuple[Path, str]]:
    for place, resource in enumerate(fabric.resources):
        yield (place, "name"), resource.name
        for position, alias in enumerate(resource.aliases):
            yield (place, "aliases", position), alias
