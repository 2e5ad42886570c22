"""Tell whether the API server would call us for a pod, by emulating a webhook configuration.

    rules               the creation of pods
    namespaceSelector   rdma.lab/enable: "true", and not one of the excluded namespaces
    matchConditions     the annotation rdma.lab/enable is there and not "false";
                        not a mirror pod, not a Windows pod

This is what our manifests register; where the cluster's own configuration is known, that counts.
Its matchConditions are evaluated if their expressions are the manifests', since others need CEL.
If the namespace's labels or a condition are unknown, so is the answer (None), unless something else
decides it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.admission.registration import (
    ASKS,
    NAME_LABEL,
    NO_MIRROR,
    NOT_WINDOWS,
    SHIPPED,
    WEBHOOK_NAME,
    Requirement,
    WebhookSetup,
)
from webhook.admission.review import mapping_at
from webhook.model.annotations import ENABLE
from webhook.model.facts import LABEL, NamespaceFacts
from webhook.model.pod import PodManifest

#: The kubelet sets this on the mirror pod of a static pod in the API server.
MIRROR = "kubernetes.io/config.mirror"
#: What is taken to be registered where the cluster's own configuration is not known.
AS_SHIPPED = (SHIPPED,)
#: Whether the API server calls us, None if that is not known, and why in a sentence.
CallPrediction = tuple[bool | None, str]


class _SelectedPod(NamedTuple):
    """What selectors and conditions read of a pod; a field with a wrong type counts as absent."""

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
    pod: PodManifest, namespace: NamespaceFacts, webhooks: Sequence[WebhookSetup] = AS_SHIPPED
) -> CallPrediction:
    """Return whether the API server would call us (None if unknown), and a sentence that says why.

    `webhooks` are all that are registered. Never raise: a field with a wrong type counts as absent.
    """
    selected = _read(pod)
    answers = [_called_by(setup, selected, namespace) for setup in webhooks]
    for wanted in (True, None):
        for answer in answers:
            if answer[0] is wanted:
                return answer
    return answers[0] if answers else (False, f"this cluster has no webhook {WEBHOOK_NAME}")


def _called_by(setup: WebhookSetup, pod: _SelectedPod, namespace: NamespaceFacts) -> CallPrediction:
    unknown: CallPrediction | None = None
    for answer in _obstacles(setup, pod, namespace):
        if answer[0] is False:
            return answer
        unknown = unknown or answer
    return unknown or (True, _selected(setup, pod, namespace))


def _selected(setup: WebhookSetup, pod: _SelectedPod, namespace: NamespaceFacts) -> str:
    """Say why we are called; a site may have written other selectors and conditions."""
    if _labels(namespace.labels).get(LABEL) == "true" and not _not_asking(pod):
        return f"{_shown(namespace)} has the label and the pod the annotation {ENABLE}"
    return f"the selectors and conditions of the webhook in {setup.name} select the pod"


def _obstacles(
    setup: WebhookSetup, pod: _SelectedPod, namespace: NamespaceFacts
) -> Iterator[CallPrediction]:
    """Yield what keeps the API server from calling us, or may do so."""
    if not setup.creation_of_pods:
        yield False, f"no rule of the webhook in {setup.name} is for the creation of pods"
    required = setup.namespace_selector
    yield from _named(required, namespace)
    yield from _conditions(setup, pod)
    yield from _labelled([label for label in required if label.key != NAME_LABEL], namespace)
    for label in setup.object_selector:
        if not label.met(pod.labels):
            yield False, f"the pod does not match the webhook's objectSelector: it needs {label}"


def _named(required: Sequence[Requirement], namespace: NamespaceFacts) -> Iterator[CallPrediction]:
    """Yield what is required of the namespace's name, and not met."""
    for one in required:
        if one.key == NAME_LABEL and not one.met({NAME_LABEL: namespace.name}):
            if one.operator == "NotIn":
                yield False, f"namespace {namespace.name} is never touched"
            else:
                yield False, f"{_shown(namespace)} is not selected; it needs {one}"


def _labelled(required: list[Requirement], namespace: NamespaceFacts) -> Iterator[CallPrediction]:
    """Yield what is required of the namespace's other labels, and not met or not known."""
    shown = _shown(namespace)
    if namespace.labels is None or not namespace.known:
        if required:
            needed = ", ".join(map(str, required))
            yield None, f"the labels of {shown} are not known; it needs {needed}"
        return
    labels = _labels(namespace.labels)
    for one in required:
        if not one.met(labels):
            value = labels.get(one.key)
            found = (
                "is not labelled" if value is None else f"has the label {one.key}: {value!r:.80}"
            )
            yield False, f"{shown} {found}; it needs {one}"


def _shown(namespace: NamespaceFacts) -> str:
    return f"namespace {namespace.name}" if namespace.name else "the namespace"


def _labels(labels: object) -> dict[str, str]:
    if not isinstance(labels, dict):
        return {}
    return {key: value for key, value in labels.items() if isinstance(value, str)}


def _conditions(setup: WebhookSetup, pod: _SelectedPod) -> Iterator[CallPrediction]:
    """Yield which of the matchConditions fail, and which cannot be evaluated."""
    for name, expression in setup.conditions:
        emulation = _EMULATED.get(expression)
        if emulation is None:
            yield (
                None,
                f"the matchCondition {name} of the webhook in {setup.name} is not evaluated here",
            )
        elif obstacle := emulation(pod):
            yield False, obstacle


def _not_asking(pod: _SelectedPod) -> str:
    enable = pod.annotations.get(ENABLE)
    if enable is None:
        return f'the pod has no annotation {ENABLE}: "true"'
    return f'the pod has the annotation {ENABLE}: "false"' if enable == "false" else ""


def _mirror(pod: _SelectedPod) -> str:
    return "the pod is the mirror of a static pod" if MIRROR in pod.annotations else ""


def _windows(pod: _SelectedPod) -> str:
    return "the pod runs on Windows" if pod.os == "windows" else ""


#: The manifests' expressions → what keeps the webhook from being called for a pod; "" if nothing.
_EMULATED: dict[str, Callable[[_SelectedPod], str]] = {
    ASKS: _not_asking,
    NO_MIRROR: _mirror,
    NOT_WINDOWS: _windows,
}
