"""A configuration to use in place of the site's, made from a pod and its status.

Often the configuration of the admission is unknown: the person may not read it, or it has changed
since. The stand-in has one fabric, with the name in the status and with the RDMA resources and GPUs
that the pod requests. All that depends on the site counts as right, so whatever
`webhook.decide.inspect` reports is in the pod itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.diagnose.why.evidence import StatusAnnotation
from webhook.model.fabric import (
    CompiledConfiguration,
    Defaults,
    Fabric,
    Globs,
    RdmaResource,
    build_configuration,
)
from webhook.model.pod import Container, Pod
from webhook.model.resources import FOREIGN_NIC_RESOURCES

#: The domains of vendors of accelerators. Their resources count as GPUs here, unless the name shows
#: a NIC: the pod was equipped, so one of them is what the fabric's GPUs are called.
_GPU_DOMAINS = ("nvidia.com/", "amd.com/", "gpu.intel.com/", "habana.ai/")
_NICS = Globs(FOREIGN_NIC_RESOURCES)


def stand_in(pod: Pod, status: StatusAnnotation) -> CompiledConfiguration:
    """Return the configuration; raise ShapeError for a pod that no API server has."""
    resources = extended_resources(pod.containers)
    name = status.fabric or "unknown"
    fabric = Fabric(
        name=name,
        gpu_resources=frozenset(filter(is_gpu_name, resources)),
        resources=tuple(
            RdmaResource(name=resource) for resource in resources if not is_gpu_name(resource)
        ),
        inject_resources=False,
    )
    defaults = Defaults(fabric=name, memlock="unlimited")
    return build_configuration((fabric,), defaults=defaults, config_hash=status.config)


def extended_resources(containers: Iterable[Container]) -> list[str]:
    """List the extended resources of containers, sorted."""
    quantities = (container.quantities for container in containers)
    return sorted({name for names in quantities for name in names if "/" in name})


def is_gpu_name(resource: str) -> bool:
    """Return whether a resource is one of an accelerator, as far as its name shows."""
    return resource.startswith(_GPU_DOMAINS) and not _NICS.match(resource)
