"""Predict whether the API server would call the webhook for a pod, from its registration.

    rules               the creation of pods
    namespaceSelector   rdma.lab/enable: "true", and not one of the excluded namespaces
    matchConditions     the annotation rdma.lab/enable is present and not "false";
                        not a mirror pod, not a Windows pod

The manifests register these; the cluster's own webhook configuration, if known, takes precedence.
Of its matchConditions, only expressions from the manifests are evaluated, since others need CEL. If
the namespace's labels or a condition are unknown, so is the answer (None), unless something else
decides it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.admission.registration import (
    NAME_LABEL,
    NO_MIRROR,
    NOT_WINDOWS,
    OPT_IN_CONDITION,
    SHIPPED,
    WEBHOOK_NAME,
    Registration,
    Requirement,
)
from webhook.admission.review import mapping_at
from webhook.model.annotations import ENABLE_ANNOTATION
from webhook.model.facts import OPT_IN_LABEL, NamespaceFacts
from webhook.model.pod import PodManifest

#: The kubelet sets this on the mirror pod of a static pod in the API server.
MIRROR = "kubernetes.io/config.mirror"
#: The assumed registration if the cluster's own configuration is unknown.
AS_SHIPPED = (SHIPPED,)
#: Whether the API server calls the webhook (None if unknown), and the reason as a sentence.
CallPrediction = tuple[bool | None, str]


class _SelectedPod(NamedTuple):
    """The parts of a pod that selectors and conditions read; a wrong type counts as absent."""

    labels: Mapping[str, str]
    annotations: Mapping[str, object]
    os: object


def _read(pod: PodManifest) -> _SelectedPod:
    metadata = mapping_at(pod, "metadata")
    return _SelectedPod(
        labels=_labels(metadata.get("labels")),
        annotations=mapping_at(metadata, "annotations"),
        os=mapping_at(mapping_at(pod, "spec"), "os").get("name"),
    )


def predict_call(
    pod: PodManifest, namespace: NamespaceFacts, registrations: Sequence[Registration] = AS_SHIPPED
) -> CallPrediction:
    """Return whether the API server would call the webhook (None if unknown), and the reason.

    `registrations` are all of the webhook's. Never raise: a field with a wrong type counts as
    absent.
    """
    selected = _read(pod)
    answers = [_called_by(registration, selected, namespace) for registration in registrations]
    for called in (True, None):
        for answer in answers:
            if answer[0] is called:
                return answer
    return answers[0] if answers else (False, f"this cluster has no webhook {WEBHOOK_NAME}")


def _called_by(
    registration: Registration, pod: _SelectedPod, namespace: NamespaceFacts
) -> CallPrediction:
    unknown: CallPrediction | None = None
    for answer in _obstacles(registration, pod, namespace):
        if answer[0] is False:
            return answer
        unknown = unknown or answer
    return unknown or (True, _call_reason(registration, pod, namespace))


def _call_reason(registration: Registration, pod: _SelectedPod, namespace: NamespaceFacts) -> str:
    """Return the reason for a call; a site may have other selectors and conditions."""
    if _labels(namespace.labels).get(OPT_IN_LABEL) == "true" and not _reason_not_opted_in(pod):
        subject = _subject(namespace)
        return f"{subject} has the label, and the pod has the annotation {ENABLE_ANNOTATION}"
    name = registration.webhook_configuration_name
    return f"the selectors and conditions of the webhook in {name} match the pod"


def _obstacles(
    registration: Registration, pod: _SelectedPod, namespace: NamespaceFacts
) -> Iterator[CallPrediction]:
    """Yield the certain (False) and the possible (None) obstacles to a call."""
    if not registration.selects_creation_of_pods:
        name = registration.webhook_configuration_name
        yield False, f"no rule of the webhook in {name} covers the creation of pods"
    required = registration.namespace_selector
    yield from _name_obstacles(required, namespace)
    yield from _conditions(registration, pod)
    other_labels = [requirement for requirement in required if requirement.key != NAME_LABEL]
    yield from _label_obstacles(other_labels, namespace)
    for requirement in registration.object_selector:
        if not requirement.met(pod.labels):
            message = "the pod does not match the webhook's objectSelector"
            yield False, f"{message}; it needs {requirement}"


def _name_obstacles(
    required: Sequence[Requirement], namespace: NamespaceFacts
) -> Iterator[CallPrediction]:
    """Yield the unmet requirements on the namespace's name."""
    for requirement in required:
        if requirement.key == NAME_LABEL and not requirement.met({NAME_LABEL: namespace.name}):
            if requirement.operator == "NotIn":
                yield False, f"namespace {namespace.name} is always excluded"
            else:
                yield False, f"{_subject(namespace)} is not selected; it needs {requirement}"


def _label_obstacles(
    required: list[Requirement], namespace: NamespaceFacts
) -> Iterator[CallPrediction]:
    """Yield the unmet and the unknown requirements on the namespace's other labels."""
    subject = _subject(namespace)
    if namespace.labels is None or not namespace.is_loaded:
        if required:
            needed = ", ".join(map(str, required))
            yield None, f"the labels of {subject} are unknown; it needs {needed}"
        return
    labels = _labels(namespace.labels)
    for requirement in required:
        if requirement.met(labels):
            continue
        value = labels.get(requirement.key)
        if value is None:
            yield False, f"{subject} lacks {requirement}"
        else:
            label = f"{requirement.key}: {value!r:.80}"
            yield False, f"{subject} has the label {label}, but it needs {requirement}"


def _subject(namespace: NamespaceFacts) -> str:
    return f"namespace {namespace.name}" if namespace.name else "the namespace"


def _labels(labels: object) -> dict[str, str]:
    if not isinstance(labels, dict):
        return {}
    return {key: value for key, value in labels.items() if isinstance(value, str)}


def _conditions(registration: Registration, pod: _SelectedPod) -> Iterator[CallPrediction]:
    """Yield the matchConditions that fail, and those not evaluated here."""
    webhook_configuration = registration.webhook_configuration_name
    for name, expression in registration.conditions:
        emulation = _EMULATED.get(expression)
        if emulation is None:
            place = f"the matchCondition {name} of the webhook in {webhook_configuration}"
            yield None, f"{place} cannot be evaluated here"
        elif obstacle := emulation(pod):
            yield False, obstacle


def _reason_not_opted_in(pod: _SelectedPod) -> str:
    enable = pod.annotations.get(ENABLE_ANNOTATION)
    if enable is None:
        return f'the pod has no annotation {ENABLE_ANNOTATION}: "true"'
    return f'the pod has the annotation {ENABLE_ANNOTATION}: "false"' if enable == "false" else ""


def _mirror(pod: _SelectedPod) -> str:
    return "the pod is the mirror of a static pod" if MIRROR in pod.annotations else ""


def _windows(pod: _SelectedPod) -> str:
    return "the pod runs on Windows" if pod.os == "windows" else ""


#: Expression of the manifests → function that returns the obstacle to a call for a pod, or "".
_EMULATED: dict[str, Callable[[_SelectedPod], str]] = {
    OPT_IN_CONDITION: _reason_not_opted_in,
    NO_MIRROR: _mirror,
    NOT_WINDOWS: _windows,
}
