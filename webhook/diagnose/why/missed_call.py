"""Why the API server did not call the webhook for a pod that opted in."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from webhook.admission.match import CallPrediction, predict_call
from webhook.admission.selection import ca_bundle_of
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.pod_status import NO_STATUS
from webhook.diagnose.why.pod_template import template_title, with_rollout
from webhook.kube.objects import KubernetesObject
from webhook.model.annotations import ENABLE_ANNOTATION
from webhook.model.decision import Reason
from webhook.model.facts import OPT_IN_LABEL, NamespaceFacts
from webhook.model.finding import Code, Finding
from webhook.preview.workloads.hints import resembles_enable

NAMESPACE_NOT_LABELED = Code(
    "NamespaceNotLabeled",
    f'The pod\'s namespace lacks the label {OPT_IN_LABEL}: "true".',
    "Ask the cluster administrator to run `kubectl label --overwrite namespace NAME "
    f"{OPT_IN_LABEL}=true`. Then create the pod again.",
)
NOT_INSTALLED = Code(
    "NotInstalled",
    "The webhook is not installed in the cluster.",
    "Ask the cluster administrator to install rdma-webhook (docs/installation.md), or to apply its "
    "manifests again if the webhook configuration was deleted. Then create the pod again.",
)
NO_CA_BUNDLE = Code(
    "NoCaBundle",
    "The webhook configuration has no caBundle, so the API server cannot call the webhook.",
    "Ask the cluster administrator to run `rdma-webhook certs status`, and to correct the "
    "problems that the command reports. Then create the pod again.",
)
#: kubectl apply removes only what it applied itself before.
_RESTORE = (
    "ask the cluster administrator to delete the MutatingWebhookConfiguration zz-rdma-webhook and "
    "to apply the manifests of rdma-webhook again, since `kubectl apply` alone does not remove "
    "what somebody else added"
)
NOT_SELECTED = Code(
    "NotSelected",
    "The webhook configuration in the cluster does not select the pod, or it is unknown whether "
    "it does.",
    "Change the pod or its namespace so that it meets the condition in the message. If that "
    f"condition should not be there, {_RESTORE}. Then create the pod again.",
)
CREATED_BEFORE_WEBHOOK = Code(
    "CreatedBeforeWebhook",
    "The pod was created before the webhook was installed.",
    "Create the pod again; the webhook will then be called.",
)
ANNOTATED_LATER = Code(
    "AnnotatedLater",
    f"The annotation {ENABLE_ANNOTATION} was set after the pod was created.",
    "Set the annotation in the pod's manifest or, for a workload, in the pod template, and create "
    "the pod again.",
)
CREATED_BEFORE_LABEL = Code(
    "CreatedBeforeLabel",
    f"The pod was created before its namespace got the label {OPT_IN_LABEL}.",
    CREATED_BEFORE_WEBHOOK.remedy,
)
CREATED_EARLIER = Code(
    "CreatedEarlier",
    "The pod was created before its annotation or its namespace's label rdma.lab/enable was set, "
    "before the webhook was installed, or while the webhook did not respond and its failurePolicy "
    "was Ignore.",
    "Make sure that the pod's manifest or, for a workload, the pod template has the annotation "
    'rdma.lab/enable: "true", and create the pod again.',
)
DID_NOT_ANSWER = Code(
    "DidNotAnswer",
    "The webhook probably did not respond when the pod was created, and its failurePolicy was "
    "Ignore.",
    "Ask the cluster administrator to check that the webhook is ready (`rdma-webhook "
    "check-install`). Then create the pod again.",
)
NOT_CALLED = Code(
    "NotCalled",
    'The webhook was not called for the pod, which has the annotation rdma.lab/enable: "true", '
    "but not the annotation rdma.lab/status. The reason is unknown.",
    f'Check that the namespace has the label {OPT_IN_LABEL}: "true", and create the pod again.',
)
CODES = (
    NAMESPACE_NOT_LABELED,
    NOT_INSTALLED,
    NO_CA_BUNDLE,
    NOT_SELECTED,
    CREATED_BEFORE_WEBHOOK,
    ANNOTATED_LATER,
    CREATED_BEFORE_LABEL,
    CREATED_EARLIER,
    DID_NOT_ANSWER,
    NOT_CALLED,
)

_CREATE_AGAIN = "create the pod again"
_COMPARE = (
    "Compare its expression with the pod: `kubectl get mutatingwebhookconfigurations -o yaml`. If "
    "the expression leaves the pod out, change the pod so that it meets the expression, or "
    f"{_RESTORE}. Then {_CREATE_AGAIN}."
)


def not_called_finding(code: Code | Reason, text: str, remedy: str = "") -> Finding:
    """Return the finding that the webhook was not called; the remedy of the code is the default."""
    return Finding("error", code.code, text, remedy or code.remedy)


def missed_call_reasons(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield the reasons why a pod with the annotation was missed, the most certain first."""
    if not evidence.pod.status.phase:
        yield not_called_finding(
            NO_STATUS,
            "No: the manifest has no status, so this pod was never created.",
            "Use `rdma-webhook preview` to see what the webhook would change.",
        )
    yield from _missing_label(evidence)
    yield from _missing_installation(evidence)
    yield from _missing_selection(evidence)
    yield from _newer_prerequisites(evidence)
    yield from _unknown_selection(evidence)
    yield from _unanswered_call(evidence)


def _missing_label(evidence: PodEvidence) -> Iterator[Finding]:
    if unlabeled := unlabeled_clause(evidence):
        yield not_called_finding(NAMESPACE_NOT_LABELED, f"No: {unlabeled}.", label_remedy(evidence))


def unlabeled_clause(evidence: PodEvidence) -> str:
    """Return a clause if the namespace is known to lack the label; else ""."""
    if evidence.namespace is None:
        return ""
    value = evidence.namespace.metadata.labels.get(OPT_IN_LABEL)
    if value == "true":
        return ""
    hint = f" (its value is {value!r:.80})"
    if value is None:
        hint = _similar_label(evidence.namespace)
    return f'namespace {evidence.namespace_name} lacks the label {OPT_IN_LABEL}: "true"{hint}'


def _similar_label(namespace: KubernetesObject) -> str:
    """Return a note on a label with a similar key, or ""."""
    key = next(filter(resembles_enable, namespace.metadata.labels), "")
    return f" (did you mean {OPT_IN_LABEL} by {key!r}?)" if key else ""


def label_remedy(evidence: PodEvidence) -> str:
    """Return how to label the pod's namespace."""
    return (
        "Ask the cluster administrator to run `kubectl label --overwrite namespace "
        f"{shlex.quote(evidence.namespace_name)} {OPT_IN_LABEL}=true`. Then {_CREATE_AGAIN}."
    )


def _missing_installation(evidence: PodEvidence) -> Iterator[Finding]:
    if evidence.registrations == ():
        yield not_called_finding(NOT_INSTALLED, "No: the cluster has no webhook pods.rdma.lab.")
    for registration in evidence.registrations or ():
        if not ca_bundle_of(registration):
            text = (
                "No: the webhook configuration has no caBundle, so the API server cannot call the "
                "webhook."
            )
            yield not_called_finding(NO_CA_BUNDLE, text)


def _missing_selection(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield why the selectors and rules of the installed webhook leave the pod out."""
    called, reason = _selection(evidence)
    if called is False:
        yield not_called_finding(NOT_SELECTED, f"No: {reason}.")


def _unknown_selection(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield a condition of the installed webhook that may leave the pod out, since it needs CEL."""
    called, reason = _selection(evidence)
    if called is None and evidence.namespace is not None:
        yield not_called_finding(
            NOT_SELECTED, f"No: {reason}, and may leave the pod out.", _COMPARE
        )


def _selection(evidence: PodEvidence) -> CallPrediction:
    """Return whether the webhook, as it is installed now, would be called for the pod."""
    if not evidence.registrations:
        return True, ""  # missing or unread, for which there are other findings
    labels = None if evidence.namespace is None else evidence.namespace.metadata.labels
    facts = NamespaceFacts(name=evidence.namespace_name, labels=labels)
    return predict_call(evidence.pod.manifest, facts, evidence.registrations)


def _newer_prerequisites(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield the prerequisites that are newer than the pod: webhook, annotation and label."""
    created = evidence.pod.metadata.creation_timestamp
    if not created:
        return
    installed, annotated, labeled = _prerequisites(evidence)
    if installed > created:
        text = (
            f"No: the pod was created at {created}, before the webhook was installed, at "
            f"{installed}."
        )
        yield not_called_finding(CREATED_BEFORE_WEBHOOK, text)
    if annotated > created:
        text = (
            f"No: the annotation {ENABLE_ANNOTATION} was set at {annotated}, after the pod was "
            f"created at {created}; the webhook changes pods only when they are created."
        )
        remedy = with_rollout(f"Set it in {template_title(evidence)}", evidence)
        yield not_called_finding(ANNOTATED_LATER, text, remedy)
    if labeled > created:
        text = (
            f"No: the pod was created at {created}, before namespace {evidence.namespace_name} "
            f"got the label {OPT_IN_LABEL} (its labels were last changed at {labeled})."
        )
        yield not_called_finding(CREATED_BEFORE_LABEL, text)


def _unanswered_call(evidence: PodEvidence) -> Iterator[Finding]:
    if any(
        registration.failure_policy == "Ignore" for registration in evidence.registrations or ()
    ):
        text = (
            "No: the webhook did not respond when the pod was created. With failurePolicy: Ignore, "
            "the API server then creates the pod unchanged."
        )
        yield not_called_finding(DID_NOT_ANSWER, text)
    missing = [
        title
        for title, prerequisite in (
            (f"the labels of namespace {evidence.namespace_name}", evidence.namespace),
            ("the webhook configuration", evidence.registrations),
        )
        if prerequisite is None
    ]
    if missing:
        text = (
            f"No: the pod has the annotation {ENABLE_ANNOTATION}, but not the annotation "
            "rdma.lab/status. The reason is unknown, since rdma-webhook did not read "
            f"{' or '.join(missing)}."
        )
        remedy = (
            f'Check that the namespace has the label {OPT_IN_LABEL}: "true" (kubectl get namespace '
            f"{shlex.quote(evidence.namespace_name)} --show-labels), and {_CREATE_AGAIN}."
        )
        yield not_called_finding(NOT_CALLED, text, remedy)
    elif _has_older_prerequisites(evidence):
        text = (
            "No: the annotation, the label of its namespace and the webhook configuration are "
            "older than the pod. The webhook probably did not respond when the pod was created, "
            "while its failurePolicy was Ignore."
        )
        yield not_called_finding(DID_NOT_ANSWER, text)
    else:
        text = (
            "No: the pod has the annotation and its namespace the label, but it was created "
            "before one of them was set, before the webhook was installed, or while the webhook "
            "did not respond, with failurePolicy: Ignore."
        )
        yield not_called_finding(CREATED_EARLIER, text)


def _has_older_prerequisites(evidence: PodEvidence) -> bool:
    """Return whether a pod is known to be newer than all that makes the API server call."""
    installed, annotated, labeled = _prerequisites(evidence)
    times = (installed, annotated, labeled)
    return all(times) and max(times) <= evidence.pod.metadata.creation_timestamp


def _prerequisites(evidence: PodEvidence) -> tuple[str, str, str]:
    """Return when the webhook was installed, and annotation and label were set; "" if unknown."""
    registrations, namespace = evidence.registrations or (), evidence.namespace
    installed = min((registration.creation_time for registration in registrations), default="")
    annotated = evidence.pod.metadata.annotation_written_at(ENABLE_ANNOTATION)
    labeled = namespace.metadata.label_written_at(OPT_IN_LABEL) if namespace else ""
    return installed, annotated, labeled
