"""What ConfigMaps decide about a pod that is running: values of `valueFrom` and `envFrom`.

Admission reads no ConfigMaps, so its verdict is then `unsure`. A container gets the values when it
starts. So a ConfigMap that was changed after the pod was created shows nothing about the pod.
"""

from __future__ import annotations

from collections.abc import Iterable

from webhook.decide.verdict.libraries import ENV_UNSEEN, VALUE_UNSEEN
from webhook.diagnose.why.comparison import configuration_of, verdict_of
from webhook.diagnose.why.evidence import PodEvidence
from webhook.kube.objects import KubernetesObject, Manifest, PodRecord
from webhook.model.config_maps import ConfigMaps, config_map_data
from webhook.model.decision import Verdict

_UNSEEN = (ENV_UNSEEN.code, VALUE_UNSEEN.code)


def config_maps_of(pod: PodRecord, manifests: Iterable[Manifest]) -> ConfigMaps:
    """Return the ConfigMaps among objects that are as they were when a pod was created."""
    records = [KubernetesObject.read(manifest) for manifest in manifests]
    return {
        record.metadata.name: config_map_data(record.manifest)
        for record in records
        if record.kind == "ConfigMap"
        and record.metadata.namespace in ("", pod.metadata.namespace)
        and not is_newer(record, pod)
    }


def is_newer(config_map: KubernetesObject, pod: PodRecord) -> bool:
    """Return whether a ConfigMap was written after a pod was created.

    Times of the API server are RFC 3339 in UTC and in whole seconds, so they compare as text.
    """
    metadata = config_map.metadata
    times = (metadata.creation_timestamp, *(edit.time for edit in metadata.managed_fields))
    return max(times) > pod.metadata.creation_timestamp


def verdict_with_config_maps(evidence: PodEvidence) -> Verdict | None:
    """Return the verdict that ConfigMaps decide; None if they decide nothing.

    `no` if a value turns RDMA off; `yes` if only these values were unknown at admission.
    """
    status = evidence.status
    if status is None or status.rdma != "unsure" or not evidence.config_maps:
        return None
    verdict = verdict_of(evidence, status, config_maps=evidence.config_maps)
    if verdict is None or verdict.rdma == "no":
        return verdict
    is_known = configuration_of(evidence, status) is not None
    is_decided = verdict.rdma == "yes" and is_known and status.verdict_reason in _UNSEEN
    return verdict if is_decided else None
