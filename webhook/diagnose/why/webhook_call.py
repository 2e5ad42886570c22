"""Whether the API server called the webhook when the pod was created, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.admission.match import MIRROR
from webhook.admission.registration import EXCLUDED
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.explanation import Sentence
from webhook.kube.objects import KubernetesObject
from webhook.model.annotations import ENABLE, STATUS, opted_in
from webhook.model.decision import Denial
from webhook.model.facts import LABEL
from webhook.preview.workloads.hints import OptInHints
from webhook.preview.workloads.templates import Template, templates_of

_CREATE_AGAIN = "create the pod again"


def call_finding(evidence: PodEvidence) -> Sentence:
    """Return whether the webhook was called; the code is the reason if it was not."""
    annotations = evidence.annotations
    if malformed := _malformed_value(evidence):
        return malformed
    if annotations.get(ENABLE) in (None, "false"):
        return _not_opted_in(evidence)
    if never := _never(evidence):
        return never
    if evidence.status is not None:
        return Sentence("Called", "good", "Yes: the pod has the webhook's rdma.lab/status.")
    if STATUS in annotations:
        text = f"Not certain: {STATUS} is there, but this version of the webhook did not write it."
        return Sentence("StatusUnreadable", "unsure", text, _remove_status(evidence))
    return next(_not_called_reasons(evidence))


def _malformed_value(evidence: PodEvidence) -> Sentence | None:
    """Return a finding if the annotation has a value that the webhook denies."""
    try:
        opted_in(evidence.pod.metadata.annotations)
    except Denial as denial:
        text = f"No: {denial}. The webhook denies such pods, so it was not called for this one."
        remedy = f'Write {ENABLE}: "true" in {_template_title(evidence)}, and {_CREATE_AGAIN}.'
        return _no(denial.reason.code, text, remedy)
    return None


def _never(evidence: PodEvidence) -> Sentence | None:
    """Return a finding if the API server never calls the webhook for such a pod."""
    if MIRROR in evidence.annotations:
        text = "No: the pod is the mirror of a static pod, and a change to it has no effect."
        return _no("MirrorPod", text, "Write what RDMA needs into the file on the node.")
    if evidence.pod.spec.os.name == "windows":
        text = "No: the pod runs on Windows, where there is no RDMA."
        return _no("WindowsPod", text, "Run the job in a Linux container.")
    if evidence.namespace_name in EXCLUDED:
        text = f"No: the webhook is never called for namespace {evidence.namespace_name}."
        return _no("NamespaceExcluded", text, "Run the job in another namespace.")
    return None


def _no(code: str, text: str, remedy: str) -> Sentence:
    return Sentence(code, "problem", text, remedy)


def _not_opted_in(evidence: PodEvidence) -> Sentence:
    """Return why a pod has not opted in: no annotation, or a misspelt or misplaced one."""
    hint = _hint(evidence)
    copied = (
        " Its rdma.lab/status was copied or written by hand."
        if STATUS in evidence.annotations
        else ""
    )
    template = _template_title(evidence)
    remedy = (
        f'Write {ENABLE}: "true" under metadata.annotations of {template}, and {_CREATE_AGAIN}.'
    )
    if not hint:
        text = f"No: the pod has no annotation {ENABLE}.{copied}"
        return _no("NotOptedIn", text, remedy)
    refused = evidence.annotations.get(ENABLE) == "false"
    code = "OptedOut" if refused else "AnnotationMisspelt"
    return _no(code, f"No: {hint}.{copied}", remedy)


def _hint(evidence: PodEvidence) -> str:
    for item in (evidence.pod, *evidence.owners):
        for template in _templates(item, is_pod=item is evidence.pod):
            if hint := OptInHints(item.manifest).of(template):
                return hint if item is evidence.pod else f"in {item.title}: {hint}"
    return ""


def _templates(item: KubernetesObject, *, is_pod: bool) -> list[Template]:
    if not is_pod:
        return templates_of(item.manifest)[:8]
    return [Template((), "Pod", item.metadata.name, item.metadata.namespace, item.manifest)]


def _template_title(evidence: PodEvidence) -> str:
    """Return the name of the template that the pod was created from, as the place to edit."""
    for owner in reversed(evidence.owners):
        if templates_of(owner.manifest):
            return f"the pod template of {owner.title}"
    controller = evidence.pod.metadata.controller
    return f"the pod template of {controller.kind} {controller.name}" if controller else "the pod"


def _remove_status(evidence: PodEvidence) -> str:
    return f"Remove {STATUS} from {_template_title(evidence)}, and {_CREATE_AGAIN}."


def _not_called_reasons(evidence: PodEvidence) -> Iterator[Sentence]:
    """Yield the reasons why a pod with the annotation was missed, the most certain first."""
    yield from _unlabelled(evidence)
    yield from _not_installed(evidence)
    yield from _too_early(evidence)
    yield from _not_answered(evidence)


def _unlabelled(evidence: PodEvidence) -> Iterator[Sentence]:
    if evidence.namespace is None:
        return
    name = evidence.namespace_name
    value = evidence.namespace.metadata.labels.get(LABEL)
    if value == "true":
        return
    suffix = "" if value is None else f"; its value is {value!r:.80}"
    text = f'No: namespace {name} does not have the label {LABEL}: "true"{suffix}.'
    remedy = (
        "Ask an administrator of the namespace to run: kubectl label --overwrite namespace "
        f"{name} {LABEL}=true. Then {_CREATE_AGAIN}."
    )
    yield _no("NamespaceNotLabelled", text, remedy)


def _not_installed(evidence: PodEvidence) -> Iterator[Sentence]:
    if evidence.webhooks == ():
        text = "No: this cluster has no webhook pods.rdma.lab."
        remedy = "Ask whoever runs the cluster to install rdma-webhook: docs/installation.md."
        yield _no("NotInstalled", text, remedy)
    for registration in evidence.webhooks or ():
        if not registration.webhook.client_config.ca_bundle:
            text = "No: the webhook's configuration has no caBundle, so it cannot be called."
            remedy = "Ask whoever runs the cluster to run: rdma-webhook certs status."
            yield _no("NoCaBundle", text, remedy)


def _too_early(evidence: PodEvidence) -> Iterator[Sentence]:
    """Yield the prerequisites that are newer than the pod: webhook, annotation and label."""
    created = evidence.pod.metadata.creation_timestamp
    if not created:
        return
    labelled = evidence.namespace.metadata.label_written(LABEL) if evidence.namespace else ""
    annotated = evidence.pod.metadata.annotation_written(ENABLE)
    installed = min((webhook.created for webhook in evidence.webhooks or ()), default="")
    create_again = f"{_CREATE_AGAIN[0].upper()}{_CREATE_AGAIN[1:]}: the webhook will now be called."
    if installed > created:
        text = (
            f"No: the pod was created at {created}, before the webhook was installed, at "
            f"{installed}."
        )
        yield _no("CreatedBeforeWebhook", text, create_again)
    if annotated > created:
        text = (
            f"No: the annotation {ENABLE} was written at {annotated}, after the pod had been "
            f"created at {created}; the webhook changes pods only when they are created."
        )
        remedy = f"Write it in {_template_title(evidence)}, and {_CREATE_AGAIN}."
        yield _no("AnnotatedLater", text, remedy)
    if labelled > created:
        text = (
            f"No: the pod was created at {created}, before namespace {evidence.namespace_name} "
            f"got the label {LABEL} (its labels were last written at {labelled})."
        )
        yield _no("CreatedBeforeLabel", text, create_again)


def _not_answered(evidence: PodEvidence) -> Iterator[Sentence]:
    if any(
        registration.webhook.failure_policy == "Ignore" for registration in evidence.webhooks or ()
    ):
        text = (
            "No: the webhook did not answer when the pod was created, and with failurePolicy "
            "Ignore the API server then creates the pod as it is."
        )
        remedy = f"Check that the webhook is ready, and {_CREATE_AGAIN}."
        yield _no("DidNotAnswer", text, remedy)
    missing = [
        title
        for title, prerequisite in (
            (f"the label of namespace {evidence.namespace_name}", evidence.namespace),
            ("the webhook's configuration", evidence.webhooks),
        )
        if prerequisite is None
    ]
    if missing:
        text = (
            "No: the pod has the annotation, but no rdma.lab/status. The reason is not certain, "
            f"since {' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not known."
        )
        remedy = (
            f'Check that the namespace has the label {LABEL}: "true" (kubectl get namespace '
            f"{evidence.namespace_name} --show-labels), and {_CREATE_AGAIN}."
        )
        yield _no("NotCalled", text, remedy)
    else:
        text = (
            "No: the pod has the annotation and its namespace the label, but it was created "
            "before one of them was set, or before the webhook was installed."
        )
        create_again = (
            f"{_CREATE_AGAIN[0].upper()}{_CREATE_AGAIN[1:]}: the webhook will now be called."
        )
        yield _no("CreatedEarlier", text, create_again)
