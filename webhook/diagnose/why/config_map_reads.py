"""Read the ConfigMaps with variables or scripts of a pod, if they may decide; never Secrets."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from webhook.decide.settings.config_map_names import config_map_names
from webhook.decide.settings.script_files import config_maps_with_scripts
from webhook.diagnose.why.config_map_values import changed_config_maps, unchanged_config_maps
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.redecide import unpatched_pod
from webhook.kube.cluster_reads import FactsReader

#: The largest number of ConfigMaps to read for a pod.
MAX_CONFIG_MAPS = 100


def with_config_maps(evidence: PodEvidence, facts_reader: FactsReader) -> PodEvidence:
    """Return the evidence with the ConfigMaps that the pod or its template names."""
    namespace = evidence.namespace_name
    for name in islice(_names(evidence), MAX_CONFIG_MAPS):
        facts_reader.read_config_map(namespace, name)
    if not facts_reader.objects:
        return evidence
    return replace(
        evidence,
        config_maps=unchanged_config_maps(evidence.pod, facts_reader.objects),
        changed_config_maps=changed_config_maps(evidence.pod, facts_reader.objects),
        facts=evidence.facts.with_objects(facts_reader.objects, namespace),
    )


def _names(evidence: PodEvidence) -> list[str]:
    """List the ConfigMaps: of an unsure pod, of a pod's scripts, and of its template."""
    names, status = list[str](), evidence.status
    if status is not None and status.rdma == "unsure":
        names += config_map_names(evidence.pod.manifest)
    elif status is not None and status.rdma != "no":
        names += config_maps_with_scripts(evidence.pod.manifest)
    if evidence.configuration is not None:
        names += config_map_names(unpatched_pod(evidence).manifest or {})
    return list(dict.fromkeys(names))
