"""Rules for the names of RDMA resources: repetitions, aliases, and names of GPUs.

Sources: the names in NVIDIA's, AMD's and Intel's GPU device plugins; the names that sites give
to GPUs with k8s-device-plugin's `resources.gpus[].name`. An RDMA resource may be in nvidia.com
as well: `nvidia.com/hostdev`, and any name that the SR-IOV device plugin is configured with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.config.messages import shortened
from webhook.config.model import FabricEntry
from webhook.config.rules.rule import ParsedSpec, Violation, file_rule, rule
from webhook.model.pod import Path
from webhook.model.quoting import quoted
from webhook.model.resources import MIG, VIRTUAL_GPU

_GPU_DOMAIN = "gpu.intel.com"
_GPU_NAMES = ("gpu", "gpu.shared")
#: h200, a100-80gb, V100, gb200, l40s, rtx-4090, mi300x. Models that could also be the name of a
#: port (l2, p4) are left out.
_MODEL = re.compile(
    r"(?:nvidia|amd)\.com/(?:nvidia[-_.])?(?:tesla[-_.])?"
    r"(?:(?:gb|gh|[abhv])[0-9]{3}|a(?:10|16|30|40)g?|h20|l(?:20|40)s?|p40|p100|k80|[lt]4"
    r"|(?:geforce|quadro|rtx)[-_.0-9].*+|mi[0-9]{2,3}[ax]?)"
    r"(?:[-_.](?:sxm[0-9]?|pcie|nvl|hbm[0-9]e?|[0-9]+gb?|shared))*",
    re.IGNORECASE,
)


@file_rule("error", "Remove the alias from one of the two resources.")
def aliases_of_two(spec: ParsedSpec) -> Iterator[Violation]:
    """Reject a fabric that lists the same alias for two of its resources.

    An error: an alias cannot be renamed to two resources. Two fabrics may share an alias: the pod's
    fabric decides which resource the alias becomes.
    """
    for path, fabric in spec.fabrics():
        owners: dict[str, str] = {}
        for index, resource in enumerate(fabric.resources):
            for position, alias in enumerate(resource.aliases):
                owner = owners.setdefault(alias, resource.name)
                if owner != resource.name:
                    yield Violation(
                        (*path, "resources", index, "aliases", position),
                        f"{quoted(alias)} is already an alias of {shortened(owner)}",
                    )


@file_rule("error", "Remove the alias from the `aliases` of the resource that lists it.")
def alias_is_resource(spec: ParsedSpec) -> Iterator[Violation]:
    """Reject a fabric that lists an alias that is itself a resource of this or another fabric.

    An error: a pod that requests the real resource would get a different one.
    """
    real = {resource.name: f for _, f in spec.fabrics() for resource in f.resources}
    for path, fabric in spec.fabrics():
        for index, resource in enumerate(fabric.resources):
            for position, alias in enumerate(resource.aliases):
                if alias in real:
                    yield Violation(
                        (*path, "resources", index, "aliases", position),
                        f"{quoted(alias)} is a resource of fabric {quoted(real[alias].name)}",
                    )


@rule("error", "List each RDMA resource once, with its count.")
def repeated_resources(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that lists an RDMA resource twice.

    An error: the counts would contradict each other.
    """
    names: set[str] = set()
    for index, resource in enumerate(fabric.resources):
        if resource.name in names:
            yield Violation(
                ("resources", index, "name"),
                f"{quoted(resource.name)} is already listed",
            )
        names.add(resource.name)


@file_rule(
    "error",
    "In `resources`, write the resource that the RDMA device plugin offers, such as rdma/ib.",
)
def gpu_as_rdma(spec: ParsedSpec) -> Iterator[Violation]:
    """Reject a fabric that lists a GPU as an RDMA resource, or as an alias of one.

    An error: pods would request more GPUs instead of RDMA, or their GPUs would be renamed.
    """
    gpus = _listed_gpus(spec)
    for path, name in _resources(spec):
        if _is_gpu(name, gpus):
            yield Violation(path, f"{quoted(name)} is a GPU, or a share of one")


@file_rule(
    "warning",
    "In `resources`, write the resource that the RDMA device plugin offers, such as rdma/ib, "
    "remove GPUs from `aliases`, and list GPUs in match.gpuResources.",
)
def gpu_model_as_rdma(spec: ParsedSpec) -> Iterator[Violation]:
    """Warn about a fabric that names a resource or alias, such as `nvidia.com/h200`, after a GPU.

    A warning: pods would probably request GPUs instead of RDMA, but a site may name an RDMA device
    after the GPU of its nodes.
    """
    gpus = _listed_gpus(spec)
    for path, name in _resources(spec):
        if _MODEL.fullmatch(name) and not _is_gpu(name, gpus):
            yield Violation(path, f"{quoted(name)} looks like a GPU")


def _is_gpu(name: str, gpus: frozenset[str]) -> bool:
    domain, _, short = name.partition("/")
    return (
        name in gpus
        or name in VIRTUAL_GPU
        or short in _GPU_NAMES
        or domain == _GPU_DOMAIN
        or name.startswith(MIG)
    )


def _listed_gpus(spec: ParsedSpec) -> frozenset[str]:
    return frozenset(gpu for _, fabric in spec.fabrics() for gpu in fabric.match.gpu_resources)


def _resources(spec: ParsedSpec) -> Iterator[tuple[Path, str]]:
    for parent_path, fabric in spec.fabrics():
        for path, name in _names(fabric):
            yield (*parent_path, "resources", *path), name


def _names(fabric: FabricEntry) -> Iterator[tuple[Path, str]]:
    for index, resource in enumerate(fabric.resources):
        yield (index, "name"), resource.name
        for position, alias in enumerate(resource.aliases):
            yield (index, "aliases", position), alias
