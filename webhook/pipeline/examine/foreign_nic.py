"""Detect a NIC of another vendor in a pod; no fabric's settings are right for it."""

from __future__ import annotations

from webhook.decision.outcome import Reason
from webhook.decision.resources import Usage, is_foreign_annotation
from webhook.fabric.records import Fabrics
from webhook.pod.manifest import Container, PodManifest, at, items, mapping

FOREIGN_NIC = Reason(
    "ForeignNIC", "The pod uses another vendor's NIC, which no fabric claims.", rdma="unsure"
)


def foreign_nic(pairs: list[tuple[Container, Usage]], pod: PodManifest, fabrics: Fabrics) -> str:
    """Say which other vendor's NIC the pod uses; return "" if none."""
    for container, usage in pairs:
        if usage.foreign:
            return f"{usage.foreign[0]} in container {container.name}"
    for key in mapping(pod, ("metadata", "annotations")):
        if is_foreign_annotation(key, fabrics.foreign_annotations):
            return f"annotation {key}"
    return _nic_claim(pod, pairs)


def _nic_claim(pod: PodManifest, pairs: list[tuple[Container, Usage]]) -> str:
    """Find a NIC that comes from a DRA claim, by the name of the claim.

    The device class is not in the pod.
    """
    if not at(pod, ("spec", "resourceClaims")):
        return ""
    for container, _ in pairs:
        for claim in items(container.manifest, ("resources", "claims"), container.path):
            name = str(claim.get("name", ""))
            lowered = name.lower()
            if any(word in lowered for word in _NIC_WORDS):
                return f"resource claim {name} in container {container.name}"
    return ""


_NIC_WORDS = ("nic", "rdma", "roce", "sriov", "hca", "efa", "infiniband")
