"""What ConfigMaps decide about a pod that is running: variables, NCCL's files, and scripts.

Admission reads no ConfigMaps, so its verdict is `unsure`, or assumes that a script is harmless. A
container gets the values when it starts. So a ConfigMap that was changed after the pod was created
shows nothing about the pod, unless none of its containers has started.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webhook.decide.verdict.libraries import ENV_UNSEEN, FILE_UNSEEN, VALUE_UNSEEN
from webhook.diagnose.why.comparison import admission_configuration, verdict_of
from webhook.diagnose.why.evidence import PodEvidence, StatusAnnotation
from webhook.kube.objects import KubernetesObject, Manifest, PodRecord
from webhook.model.config_maps import ConfigMaps, config_map_data
from webhook.model.decision import Verdict
from webhook.model.finding import Code, Finding

CONFIG_MAP_CHANGED = Code(
    "ConfigMapChanged",
    "A ConfigMap with variables or a script of the pod was changed after the pod was created, so "
    "it is unknown which version the pod got.",
    "Create the pod again, so that it gets the ConfigMap's current data.",
)
CODES = (CONFIG_MAP_CHANGED,)

_UNSEEN = (ENV_UNSEEN.code, FILE_UNSEEN.code, VALUE_UNSEEN.code)


def unchanged_config_maps(pod: PodRecord, manifests: Iterable[Manifest]) -> ConfigMaps:
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
    edits = (
        edit.time
        for edit in metadata.managed_fields
        if edit.fields_v1.data or edit.fields_v1.binary_data
    )
    return max(metadata.creation_timestamp, *edits, "")


def _is_newer(config_map: KubernetesObject, pod: PodRecord) -> bool:
    """Return whether the data of a ConfigMap was written after a container may have got it.

    Times of the API server are RFC 3339 in UTC and in whole seconds, so they compare as text.
    """
    return _may_have_started(pod) and _written_at(config_map) > pod.metadata.creation_timestamp


def _may_have_started(pod: PodRecord) -> bool:
    """Return whether a container of a pod has started, as far as its status shows."""
    states = [
        state
        for status in pod.status.container_statuses
        for state in (status.state, status.last_state)
    ]
    has_started = any(state.running or state.terminated for state in states)
    return pod.status.phase != "Pending" or has_started


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
        is_worse = verdict.rdma != "yes"
        is_by_config_maps = is_worse and _has_same_verdict_without_config_maps(evidence, status)
        return verdict if is_by_config_maps else None
    if verdict.rdma == "no":
        return verdict
    is_configuration_known = admission_configuration(evidence, status) is not None
    was_unseen, is_unseen = (
        code in _UNSEEN for code in (status.verdict_reason, verdict.because.code)
    )
    return verdict if is_configuration_known and was_unseen and not is_unseen else None


def _has_same_verdict_without_config_maps(evidence: PodEvidence, status: StatusAnnotation) -> bool:
    """Return whether the verdict without ConfigMaps is still that of admission.

    If it is, only ConfigMaps make the verdict with them worse.
    """
    verdict = verdict_of(evidence, status)
    return verdict is not None and verdict.rdma == status.rdma


def correction(verdict: Verdict) -> str:
    """Return how to correct what a key of a ConfigMap has; the verdict has the key."""
    assert verdict.key is not None
    place = f"{verdict.key.key} in ConfigMap {verdict.key.config_map}"
    override = (
        ""
        if verdict.overrides_env
        else ", or set the variable in the container's env, which overrides it"
    )
    return f"Correct {place}{override}. Then create the pod again."


def changed_finding(
    evidence: PodEvidence, status: StatusAnnotation, verdict: Verdict | None
) -> Finding | None:
    """Return the finding on a ConfigMap that may decide, and was changed since; or None.

    `verdict` is the present one, and `status` that of admission with `verdict` in it.
    """
    if verdict is None or not (status.rdma == "yes" or status.verdict_reason in _UNSEEN):
        return None
    changed, key = evidence.changed_config_maps, verdict.unread_script or verdict.key
    if key is None or key.config_map not in changed:
        return None
    name = key.config_map
    clause = f"ConfigMap {name} was changed at {changed[name]}, after the pod was created"
    present, remedy = _with_present_values(evidence)
    text = f"{clause}, so it is unknown which version the pod got.{present}"
    return CONFIG_MAP_CHANGED.finding("unsure", text, remedy)


def _with_present_values(evidence: PodEvidence) -> tuple[str, str]:
    """Return a sentence on what the ConfigMaps have now, after a space, and the remedy."""
    assert evidence.status is not None
    present = evidence.facts.namespace(evidence.namespace_name).config_maps
    verdict = verdict_of(evidence, evidence.status, config_maps=present)
    if verdict is None or verdict.rdma in ("yes", "none"):
        return "", CONFIG_MAP_CHANGED.remedy
    outcome = "there is no RDMA" if verdict.rdma == "no" else "RDMA is not certain"
    is_read = verdict.key is not None and verdict.key.key in present.get(verdict.key.config_map, {})
    remedy = correction(verdict) if is_read else f"{verdict.remedy} Then create the pod again."
    return f" With what it has now, {outcome}: {verdict.message}.", remedy
