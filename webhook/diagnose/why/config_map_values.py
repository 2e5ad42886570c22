"""What ConfigMaps decide about a pod that is running: variables, NCCL's files, and scripts.

Admission reads no ConfigMaps, so its verdict is `unsure`, or assumes that a script is harmless. A
container gets the values when it starts. So a ConfigMap that was changed after the pod was created
shows nothing about the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webhook.decide.verdict.libraries import ENV_UNSEEN, FILE_UNSEEN, VALUE_UNSEEN
from webhook.diagnose.why.comparison import configuration_of, verdict_of
from webhook.diagnose.why.evidence import PodEvidence, StatusAnnotation
from webhook.kube.objects import KubernetesObject, Manifest, PodRecord
from webhook.model.config_maps import ConfigMaps, DataKey, config_map_data
from webhook.model.decision import Verdict
from webhook.model.finding import Code, Finding

CONFIG_MAP_CHANGED = Code(
    "ConfigMapChanged",
    "A ConfigMap with variables or a script of the pod was changed after the pod was created, so "
    "it is unknown what the pod got from it.",
    "Create the pod again, so that it gets what the ConfigMap has now.",
)
CODES = (CONFIG_MAP_CHANGED,)

_UNSEEN = (ENV_UNSEEN.code, FILE_UNSEEN.code, VALUE_UNSEEN.code)


def config_maps_of(pod: PodRecord, manifests: Iterable[Manifest]) -> ConfigMaps:
    """Return the ConfigMaps among objects that are as they were when a pod was created."""
    return {
        record.metadata.name: config_map_data(record.manifest)
        for record in _config_maps(pod, manifests)
        if not _is_newer(record, pod)
    }


def changed_config_maps(pod: PodRecord, manifests: Iterable[Manifest]) -> dict[str, str]:
    """Return the other ConfigMaps of the pod's namespace, and when they were changed last."""
    return {
        record.metadata.name: _written_at(record)
        for record in _config_maps(pod, manifests)
        if _is_newer(record, pod)
    }


def _config_maps(pod: PodRecord, manifests: Iterable[Manifest]) -> Iterator[KubernetesObject]:
    for record in map(KubernetesObject.read, manifests):
        is_in_namespace = record.metadata.namespace in ("", pod.metadata.namespace)
        if record.kind == "ConfigMap" and is_in_namespace:
            yield record


def _written_at(config_map: KubernetesObject) -> str:
    metadata = config_map.metadata
    return max(metadata.creation_timestamp, *(edit.time for edit in metadata.managed_fields), "")


def _is_newer(config_map: KubernetesObject, pod: PodRecord) -> bool:
    """Return whether a ConfigMap was written after a pod was created.

    Times of the API server are RFC 3339 in UTC and in whole seconds, so they compare as text.
    """
    return _written_at(config_map) > pod.metadata.creation_timestamp


def verdict_with_config_maps(evidence: PodEvidence) -> Verdict | None:
    """Return the verdict that ConfigMaps decide; None if they decide nothing.

    `no` or `unsure` if something in them turns RDMA off, or may do so; `yes` if nothing does, and
    only that was unknown at admission.
    """
    status = evidence.status
    if status is None or status.rdma == "no" or not evidence.config_maps:
        return None
    verdict = verdict_of(evidence, status, config_maps=evidence.config_maps)
    if verdict is None or verdict.rdma == "none":
        return None
    if status.rdma != "unsure":
        return verdict if verdict.rdma != "yes" and _was_right(evidence, status) else None
    if verdict.rdma == "no":
        return verdict
    is_known = configuration_of(evidence, status) is not None
    was_unseen, is_unseen = (
        code in _UNSEEN for code in (status.verdict_reason, verdict.because.code)
    )
    return verdict if is_known and was_unseen and not is_unseen else None


def _was_right(evidence: PodEvidence, status: StatusAnnotation) -> bool:
    """Return whether only ConfigMaps can be why a verdict is worse than that of admission."""
    verdict = verdict_of(evidence, status)
    return verdict is not None and verdict.rdma == status.rdma


def deciding_key(evidence: PodEvidence, verdict: Verdict) -> DataKey | None:
    """Return the key of a ConfigMap that the message of a verdict names, or None."""
    keys = (
        DataKey(config_map, key)
        for config_map, data in evidence.config_maps.items()
        for key in data
    )
    named = [key for key in keys if key.title in verdict.message]
    return max(named, key=lambda key: len(key.title), default=None)


def unread_script(evidence: PodEvidence, status: StatusAnnotation) -> DataKey | None:
    """Return the script in a ConfigMap that a `yes` of admission assumes to be harmless, or None.

    Only a script that could not be read counts.
    """
    if status.rdma != "yes":
        return None
    verdict = verdict_of(evidence, status, config_maps=evidence.config_maps)
    return verdict.unread if verdict else None


def changed_finding(evidence: PodEvidence, status: StatusAnnotation) -> Finding | None:
    """Return the finding on a ConfigMap that decides, and was changed since; or None."""
    changed = evidence.changed_config_maps
    if not changed or not (status.rdma == "yes" or status.verdict_reason in _UNSEEN):
        return None
    verdict = verdict_of(evidence, status, config_maps=evidence.config_maps)
    unread = unread_script(evidence, status)
    text = unread.title if unread else verdict.message if verdict else ""
    named = [name for name in changed if f"ConfigMap {name}" in text]
    if not named:
        return None
    name = max(named, key=len)
    clause = f"ConfigMap {name} was changed at {changed[name]}, after the pod was created"
    text = f"{clause}, so what the pod got from it is unknown."
    return CONFIG_MAP_CHANGED.finding("unsure", text, _remedy(evidence, status))


def _remedy(evidence: PodEvidence, status: StatusAnnotation) -> str:
    """Return the remedy for a changed ConfigMap, by what the ConfigMaps have now."""
    present = evidence.facts.namespace(evidence.namespace_name).config_maps
    verdict = verdict_of(evidence, status, config_maps=present)
    if verdict is None or verdict.rdma != "no":
        return CONFIG_MAP_CHANGED.remedy
    return f"With what it has now, there is no RDMA: {verdict.message}. Then create the pod again."
