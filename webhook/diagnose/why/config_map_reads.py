"""Read the ConfigMaps that give a pod variables, where they may decide; Secrets are never read."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from webhook.diagnose.why.config_map_values import config_maps_of
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.redecide import template_of
from webhook.kube.cluster_reads import BestEffortFacts
from webhook.model.config_maps import config_maps_named_in

#: The largest number of ConfigMaps to read for a pod.
MAX_CONFIG_MAPS = 100


def with_config_maps(evidence: PodEvidence, reads: BestEffortFacts) -> PodEvidence:
    """Return the evidence with the ConfigMaps that the pod or its template names."""
    namespace = evidence.namespace_name
    for name in islice(_names(evidence), MAX_CONFIG_MAPS):
        reads.read_config_map(namespace, name)
    if not reads.objects:
        return evidence
    return replace(
        evidence,
        config_maps=config_maps_of(evidence.pod, reads.objects),
        facts=evidence.facts.with_objects(reads.objects, namespace),
    )


def _names(evidence: PodEvidence) -> list[str]:
    """List the ConfigMaps: for a new decision those of its template, and for an unsure one."""
    names: list[str] = []
    if evidence.status is not None and evidence.status.rdma == "unsure":
        names += config_maps_named_in(evidence.pod.manifest)
    if evidence.configuration is not None:
        names += config_maps_named_in(template_of(evidence)[1] or {})
    return list(filter(None, dict.fromkeys(names)))
