"""Whether the API server called the webhook when the pod was created, and if not, why."""

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

_AGAIN = "create the pod again"


def call_finding(evidence: PodEvidence) -> Sentence:
    """Tell whether the webhook was called; the code says why not."""
    annotations = evidence.annotations
    if malformed := _malformed_value(evidence):
        return malformed
    if annotations.get(ENABLE) in (None, "false"):
        return _not_asked(evidence)
    if never := _never(evidence):
        return never
    if evidence.status is not None:
        return Sentence("Called", "good", "Yes: the pod has the webhook's rdma.lab/status.")
    if STATUS in annotations:
        text = f"Not certain: {STATUS} is there, but this version of the webhook did not write it."
        return Sentence("StatusUnreadable", "unsure", text, _template(evidence))
    return next(_unseen(evidence))


def _malformed_value(evidence: PodEvidence) -> Sentence | None:
    """Say of a value other than "true" and "false" that the webhook would have denied it."""
    try:
        opted_in(evidence.pod.metadata.annotations)
    except Denial as denial:
        text = f"No: {denial}. The webhook denies such pods, so it was not called for this one."
        remedy = f'Write {ENABLE}: "true" in {_of_template(evidence)}, and {_AGAIN}.'
        return _no(denial.reason.code, text, remedy)
    return None


def _never(evidence: PodEvidence) -> Sentence | None:
    """Name what the API server never calls the webhook for."""
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


def _not_asked(evidence: PodEvidence) -> Sentence:
    """Say why a pod has not opted in: nothing suggests it, or it is misspelt or elsewhere."""
    hint = _hint(evidence)
    copied = (
        " Its rdma.lab/status was copied or written by hand."
        if STATUS in evidence.annotations
        else ""
    )
    where = _of_template(evidence)
    remedy = f'Write {ENABLE}: "true" under metadata.annotations of {where}, and {_AGAIN}.'
    if not hint:
        text = f"No: the pod has no annotation {ENABLE}.{copied}"
        return _no("NotOptedIn", text, remedy)
    refused = evidence.annotations.get(ENABLE) == "false"
    code = "OptedOut" if refused else "AnnotationMisspelt"
    return _no(code, f"No: {hint}.{copied}", remedy)


def _hint(evidence: PodEvidence) -> str:
    for item in (evidence.pod, *evidence.owners):
        for template in _templates(item, own=item is evidence.pod):
            if hint := OptInHints(item.manifest).of(template):
                return hint if item is evidence.pod else f"in {item.title}: {hint}"
    return ""


def _templates(item: KubernetesObject, *, own: bool) -> list[Template]:
    if not own:
        return templates_of(item.manifest)[:8]
    return [Template((), "Pod", item.metadata.name, item.metadata.namespace, item.manifest)]


def _of_template(evidence: PodEvidence) -> str:
    """Name the object whose template the pod was made from, as a place to write something."""
    for owner in reversed(evidence.owners):
        if templates_of(owner.manifest):
            return f"the pod template of {owner.title}"
    controller = evidence.pod.metadata.controller
    return f"the pod template of {controller.kind} {controller.name}" if controller else "the pod"


def _template(evidence: PodEvidence) -> str:
    return f"Remove {STATUS} from {_of_template(evidence)}, and {_AGAIN}."


def _unseen(evidence: PodEvidence) -> Iterator[Sentence]:
    """Yield why a pod that asks was not seen, the most certain reason first."""
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
    found = "" if value is None else f"; its value is {value!r:.80}"
    text = f'No: namespace {name} does not have the label {LABEL}: "true"{found}.'
    remedy = (
        "Ask an administrator of the namespace to run: kubectl label --overwrite namespace "
        f"{name} {LABEL}=true. Then {_AGAIN}."
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
    """Compare when the pod was created with when what it needs came to be."""
    created = evidence.pod.metadata.creation_timestamp
    if not created:
        return
    labelled = evidence.namespace.metadata.label_written(LABEL) if evidence.namespace else ""
    annotated = evidence.pod.metadata.annotation_written(ENABLE)
    installed = min((webhook.created for webhook in evidence.webhooks or ()), default="")
    again = f"{_AGAIN[0].upper()}{_AGAIN[1:]}: the webhook will now be called."
    if installed > created:
        text = (
            f"No: the pod was created at {created}, before the webhook was installed, at "
            f"{installed}."
        )
        yield _no("CreatedBeforeWebhook", text, again)
    if annotated > created:
        text = (
            f"No: the annotation {ENABLE} was written at {annotated}, after the pod had been "
            f"created at {created}; the webhook changes pods only when they are created."
        )
        remedy = f"Write it in {_of_template(evidence)}, and {_AGAIN}."
        yield _no("AnnotatedLater", text, remedy)
    if labelled > created:
        text = (
            f"No: the pod was created at {created}, before namespace {evidence.namespace_name} "
            f"got the label {LABEL} (its labels were last written at {labelled})."
        )
        yield _no("CreatedBeforeLabel", text, again)


def _not_answered(evidence: PodEvidence) -> Iterator[Sentence]:
    if any(one.webhook.failure_policy == "Ignore" for one in evidence.webhooks or ()):
        text = (
            "No: the webhook did not answer when the pod was created, and with failurePolicy "
            "Ignore the API server then creates the pod as it is."
        )
        remedy = f"Check that the webhook is ready, and {_AGAIN}."
        yield _no("DidNotAnswer", text, remedy)
    missing = [
        what
        for what, found in (
            (f"the label of namespace {evidence.namespace_name}", evidence.namespace),
            ("the webhook's configuration", evidence.webhooks),
        )
        if found is None
    ]
    if missing:
        text = (
            "No: the pod has the annotation, but no rdma.lab/status. The reason is not certain, "
            f"since {' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not known."
        )
        remedy = (
            f'Check that the namespace has the label {LABEL}: "true" (kubectl get namespace '
            f"{evidence.namespace_name} --show-labels), and {_AGAIN}."
        )
        yield _no("NotCalled", text, remedy)
    else:
        text = (
            "No: the pod has the annotation and its namespace the label, but it was created "
            "before one of them was set, or before the webhook was installed."
        )
        again = f"{_AGAIN[0].upper()}{_AGAIN[1:]}: the webhook will now be called."
        yield _no("CreatedEarlier", text, again)
