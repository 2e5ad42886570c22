"""The work of an earlier call: what the pod carries of the fabric that its status names.

A user may write a status with a fabric, past `onAmbiguous: deny` and a site's policy on
`rdma.lab/fabric`. So the fabric counts only if the pod carries something that a call puts only into
pods of this fabric: an RDMA resource, a variable, a network, a claim or a node label.
"""

from __future__ import annotations

from webhook.decide.analysis import EarlierCall
from webhook.decide.fabric_variables import plan_for
from webhook.model.annotations import NCCL_CONF_ANNOTATION, NETWORKS_ANNOTATION
from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.pod import Container, Pod, at
from webhook.model.pod.container import env_item


def fabric_of_earlier_call(
    pod: Pod, earlier: EarlierCall, configuration: CompiledConfiguration
) -> str | None:
    """Return the fabric of the earlier call if the pod shows its work, else None."""
    fabric = configuration.fabrics.get(earlier.fabric or "")
    if fabric is None:
        return None
    shown = (
        _has_resource(pod, fabric)
        or _has_variable(pod, fabric, configuration)
        or _has_network(pod, fabric)
        or _has_claim(pod, fabric)
        or _has_node_label(pod, fabric)
    )
    return fabric.name if shown else None


def _has_resource(pod: Pod, fabric: Fabric) -> bool:
    return any(
        resource.name in container.limits
        for resource in fabric.resources
        for container in pod.containers
    )


def _has_variable(pod: Pod, fabric: Fabric, configuration: CompiledConfiguration) -> bool:
    """Return whether `env` or the text of /etc/nccl.conf has a variable of this fabric alone."""
    settings = _own_settings(pod, fabric, configuration)
    items = [env_item(name, value) for name, value in settings]
    if any(item in items for container in pod.containers for item in _env(container)):
        return True
    lines = _annotation(pod, NCCL_CONF_ANNOTATION).splitlines()
    return any(f"{name}={value}" in lines for name, value in settings)


# A mistake in these fields matters only to the mutations that read them.


def _env(container: Container) -> list[object]:
    """Return the list in `env`; [] for anything else."""
    written = container.manifest.get("env")
    return written if isinstance(written, list) else []


def _annotation(pod: Pod, key: str) -> str:
    """Return an annotation; "" for anything but text."""
    written = at(pod.manifest, ("metadata", "annotations", key))
    return written if isinstance(written, str) else ""


def _own_settings(
    pod: Pod, fabric: Fabric, configuration: CompiledConfiguration
) -> list[tuple[str, str]]:
    """Return the variables that neither the site nor another fabric sets to the same value."""
    others = {
        pair
        for other in configuration.fabrics.values()
        if other is not fabric
        for pair in plan_for(other, host_network=pod.host_network).settings
    }.union(fabric.env.site_variables)
    settings = plan_for(fabric, host_network=pod.host_network).settings
    return [pair for pair in settings if pair not in others]


def _has_network(pod: Pod, fabric: Fabric) -> bool:
    of_resources = (resource.network for resource in fabric.resources)
    networks = (*fabric.networks, *filter(None, of_resources))
    written = _annotation(pod, NETWORKS_ANNOTATION)
    return any(network.partition("@")[0].rpartition("/")[2] in written for network in networks)


def _has_claim(pod: Pod, fabric: Fabric) -> bool:
    templates = [reference.template for reference in fabric.claim_templates]
    # Without templates, the first call does not read the pod's claims either.
    claims = pod.resource_claims if templates else ()
    return any(claim.get("resourceClaimTemplateName") in templates for claim in claims)


def _has_node_label(pod: Pod, fabric: Fabric) -> bool:
    pinned = (fabric.pin_selector or {}).items()
    return bool(pinned) and pinned <= pod.node_selector.items()
