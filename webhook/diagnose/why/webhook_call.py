"""Whether the API server called the webhook when the pod was created, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.admission.match import MIRROR
from webhook.admission.registration import EXCLUDED_NAMESPACES
from webhook.admission.selection import ca_bundle_of
from webhook.decide.examine import MIRROR_POD, WINDOWS_POD
from webhook.decide.reasons import NOT_OPTED_IN
from webhook.decide.status import is_complete
from webhook.diagnose.why.comparison import Comparison
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.pod_status import NO_STATUS
from webhook.diagnose.why.pod_template import template_title
from webhook.kube.objects import KubernetesObject
from webhook.model.annotations import ENABLE_ANNOTATION, STATUS_ANNOTATION, opted_in
from webhook.model.decision import Denial, Reason
from webhook.model.facts import OPT_IN_LABEL
from webhook.model.finding import Code, Finding
from webhook.preview.workloads.hints import OptInHints
from webhook.preview.workloads.templates import Template, templates_of

CALLED = Code("Called", "The webhook was called for the pod, which has its rdma.lab/status.")
STATUS_UNREADABLE = Code(
    "StatusUnreadable",
    "The pod has an rdma.lab/status that this version of rdma-webhook cannot read.",
    "Remove rdma.lab/status from the pod's template, and create the pod again.",
)
STATUS_NOT_OURS = Code(
    "StatusNotOurs",
    "The pod has an rdma.lab/status that does not prove a call: it is incomplete, nothing in the "
    "pod is left of what it names, or the pod's namespace lacks the label.",
    "Remove rdma.lab/status from the manifest that the pod was created from, and create the pod "
    "again.",
)
OPTED_OUT = Code(
    "OptedOut",
    f'The pod sets {ENABLE_ANNOTATION}: "false".',
    f'If the pod needs RDMA, set {ENABLE_ANNOTATION}: "true" in its template, and create the pod '
    "again.",
)
ANNOTATION_MISSPELLED = Code(
    "AnnotationMisspelled",
    f"The pod or its controller has a key similar to {ENABLE_ANNOTATION}, or has "
    f"{ENABLE_ANNOTATION} where it has no effect.",
    f'Set {ENABLE_ANNOTATION}: "true" under metadata.annotations of the pod template, and create '
    "the pod again.",
)
NAMESPACE_EXCLUDED = Code(
    "NamespaceExcluded",
    "The API server never calls the webhook for the pod's namespace.",
    "Run the job in another namespace.",
)
NAMESPACE_NOT_LABELED = Code(
    "NamespaceNotLabeled",
    f'The pod\'s namespace lacks the label {OPT_IN_LABEL}: "true".',
    "Ask an administrator of the namespace to run: kubectl label namespace NAME "
    f"{OPT_IN_LABEL}=true. Then create the pod again.",
)
NOT_INSTALLED = Code(
    "NotInstalled",
    "The webhook is not installed in the cluster.",
    "Ask the cluster administrator to install rdma-webhook (docs/installation.md).",
)
NO_CA_BUNDLE = Code(
    "NoCaBundle",
    "The webhook configuration has no caBundle, so the API server cannot call the webhook.",
    "Ask the cluster administrator to run: rdma-webhook certs status.",
)
CREATED_BEFORE_WEBHOOK = Code(
    "CreatedBeforeWebhook",
    "The pod was created before the webhook was installed.",
    "Create the pod again; the webhook will then be called.",
)
ANNOTATED_LATER = Code(
    "AnnotatedLater",
    f"The annotation {ENABLE_ANNOTATION} was set after the pod was created.",
    "Set the annotation in the pod's template, and create the pod again.",
)
CREATED_BEFORE_LABEL = Code(
    "CreatedBeforeLabel",
    f"The pod was created before its namespace got the label {OPT_IN_LABEL}.",
    CREATED_BEFORE_WEBHOOK.remedy,
)
CREATED_EARLIER = Code(
    "CreatedEarlier",
    "The pod was created before the annotation or the label was set, or before the webhook was "
    "installed.",
    CREATED_BEFORE_WEBHOOK.remedy,
)
DID_NOT_ANSWER = Code(
    "DidNotAnswer",
    "The webhook did not respond when the pod was created, and its failurePolicy is Ignore.",
    "Check that the webhook is ready, and create the pod again.",
)
NOT_CALLED = Code(
    "NotCalled",
    "The pod has the annotation, but no rdma.lab/status. The reason is unknown.",
    f'Check that the namespace has the label {OPT_IN_LABEL}: "true", and create the pod again.',
)
CODES = (
    CALLED,
    STATUS_UNREADABLE,
    STATUS_NOT_OURS,
    OPTED_OUT,
    ANNOTATION_MISSPELLED,
    NAMESPACE_EXCLUDED,
    NAMESPACE_NOT_LABELED,
    NOT_INSTALLED,
    NO_CA_BUNDLE,
    CREATED_BEFORE_WEBHOOK,
    ANNOTATED_LATER,
    CREATED_BEFORE_LABEL,
    CREATED_EARLIER,
    DID_NOT_ANSWER,
    NOT_CALLED,
)

_CREATE_AGAIN = "create the pod again"
#: Templates of a controller that are searched for misspelled annotations.
_MAX_TEMPLATES = 8


def call_finding(evidence: PodEvidence, comparison: Comparison) -> Finding:
    """Return whether the webhook was called; the code is the reason if it was not."""
    if malformed := _malformed_value(evidence):
        return malformed
    if not evidence.has_opted_in:
        return _not_opted_in(evidence)
    if exclusion := _exclusion(evidence):
        return exclusion
    if evidence.status is not None:
        return _by_status(evidence, comparison)
    if STATUS_ANNOTATION in evidence.annotations:
        text = (
            f"Not certain: the pod has an {STATUS_ANNOTATION} that this version of rdma-webhook "
            "cannot read."
        )
        return STATUS_UNREADABLE.finding("unsure", text, _remove_status(evidence))
    return next(_not_called_reasons(evidence))


def _by_status(evidence: PodEvidence, comparison: Comparison) -> Finding:
    """Return whether a status proves a call: anybody can copy one, or write it by hand."""
    copied = f"{STATUS_ANNOTATION} was copied from another pod, or written by hand"
    if not is_complete(evidence.pod.metadata.annotations):
        text = f"No: {copied}, since it lacks fields that the webhook writes."
        return STATUS_NOT_OURS.finding("error", text, _remove_status(evidence))
    unlabeled = _unlabeled(evidence)
    if comparison.nothing_left and unlabeled:
        remedy = f"{_label_remedy(evidence)} {_remove_status(evidence)}"
        return STATUS_NOT_OURS.finding("error", f"No: {copied}, since {unlabeled}.", remedy)
    if comparison.nothing_left:
        text = f"No: {copied}, or all that it names was removed: nothing of it is left in the pod."
        return STATUS_NOT_OURS.finding("error", text, _remove_status(evidence))
    if unlabeled:
        text = f"Not certain: {unlabeled}. The label was removed later, or {copied}."
        return STATUS_NOT_OURS.finding("unsure", text, _label_remedy(evidence))
    return CALLED.finding("ok", "Yes: the webhook has set rdma.lab/status on the pod.")


def _malformed_value(evidence: PodEvidence) -> Finding | None:
    """Return a finding if the annotation has a value that the webhook denies."""
    try:
        opted_in(evidence.pod.metadata.annotations)
    except Denial as denial:
        text = f"No: {denial}. The webhook denies such pods, so it was not called for this one."
        remedy = (
            f'Set {ENABLE_ANNOTATION}: "true" in {template_title(evidence)}, and {_CREATE_AGAIN}.'
        )
        return _not_called(denial.reason, text, remedy)
    return None


def _exclusion(evidence: PodEvidence) -> Finding | None:
    """Return a finding if the API server never calls the webhook for such a pod."""
    if MIRROR in evidence.annotations:
        text = "No: this is the mirror pod of a static pod, so changing it has no effect."
        return _not_called(
            MIRROR_POD, text, "Add what RDMA needs to the static pod's file on the node."
        )
    if evidence.pod.spec.os.name == "windows":
        text = "No: the pod runs on Windows; the webhook equips only Linux pods."
        return _not_called(WINDOWS_POD, text, "Run the job in a Linux container.")
    if evidence.namespace_name in EXCLUDED_NAMESPACES:
        text = (
            f"No: the API server never calls the webhook for namespace {evidence.namespace_name}."
        )
        return _not_called(NAMESPACE_EXCLUDED, text)
    return None


def _not_called(code: Code | Reason, text: str, remedy: str = "") -> Finding:
    """Return the finding that the webhook was not called; the remedy of the code is the default."""
    return Finding("error", code.code, text, remedy or code.remedy)


def _not_opted_in(evidence: PodEvidence) -> Finding:
    """Return why a pod has not opted in: no annotation, or a misspelled or misplaced one."""
    hint = _hint(evidence)
    copied = (
        " Its rdma.lab/status was copied or set by hand."
        if STATUS_ANNOTATION in evidence.annotations
        else ""
    )
    template = template_title(evidence)
    place = f"metadata.annotations of {template}"
    remedy = f'Set {ENABLE_ANNOTATION}: "true" under {place}, and {_CREATE_AGAIN}.'
    if not hint:
        text = f"No: the pod has no annotation {ENABLE_ANNOTATION}.{copied}"
        return _not_called(NOT_OPTED_IN, text, remedy)
    has_opted_out = evidence.annotations.get(ENABLE_ANNOTATION) == "false"
    code = OPTED_OUT if has_opted_out else ANNOTATION_MISSPELLED
    return _not_called(code, f"No: {hint}.{copied}", remedy)


def _hint(evidence: PodEvidence) -> str:
    for source in (evidence.pod, *evidence.owners):
        is_pod = source is evidence.pod
        for template in _templates(source, is_pod=is_pod):
            if hint := OptInHints(source.manifest).of(template):
                return hint if is_pod else f"in {source.title}: {hint}"
    return ""


def _templates(source: KubernetesObject, *, is_pod: bool) -> list[Template]:
    if not is_pod:
        return templates_of(source.manifest)[:_MAX_TEMPLATES]
    return [Template((), "Pod", source.metadata.name, source.metadata.namespace, source.manifest)]


def _remove_status(evidence: PodEvidence) -> str:
    return f"Remove {STATUS_ANNOTATION} from {template_title(evidence)}, and {_CREATE_AGAIN}."


def _not_called_reasons(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield the reasons why a pod with the annotation was missed, the most certain first."""
    if not evidence.pod.status.phase:
        yield _not_called(
            NO_STATUS,
            "No: the manifest has no status, so this pod was never created.",
            "Use rdma-webhook preview to see what the webhook would change.",
        )
    yield from _missing_label(evidence)
    yield from _missing_installation(evidence)
    yield from _newer_prerequisites(evidence)
    yield from _unanswered_call(evidence)


def _missing_label(evidence: PodEvidence) -> Iterator[Finding]:
    if unlabeled := _unlabeled(evidence):
        yield _not_called(NAMESPACE_NOT_LABELED, f"No: {unlabeled}.", _label_remedy(evidence))


def _unlabeled(evidence: PodEvidence) -> str:
    """Return a clause if the namespace is known to lack the label; else ""."""
    if evidence.namespace is None:
        return ""
    value = evidence.namespace.metadata.labels.get(OPT_IN_LABEL)
    if value == "true":
        return ""
    suffix = "" if value is None else f" (its value is {value!r:.80})"
    return f'namespace {evidence.namespace_name} lacks the label {OPT_IN_LABEL}: "true"{suffix}'


def _label_remedy(evidence: PodEvidence) -> str:
    return (
        "Ask an administrator of the namespace to run: kubectl label --overwrite namespace "
        f"{evidence.namespace_name} {OPT_IN_LABEL}=true. Then {_CREATE_AGAIN}."
    )


def _missing_installation(evidence: PodEvidence) -> Iterator[Finding]:
    if evidence.registrations == ():
        yield _not_called(NOT_INSTALLED, "No: the cluster has no webhook pods.rdma.lab.")
    for registration in evidence.registrations or ():
        if not ca_bundle_of(registration):
            text = (
                "No: the webhook configuration has no caBundle, so the API server cannot call the "
                "webhook."
            )
            yield _not_called(NO_CA_BUNDLE, text)


def _newer_prerequisites(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield the prerequisites that are newer than the pod: webhook, annotation and label."""
    created = evidence.pod.metadata.creation_timestamp
    if not created:
        return
    labeled = (
        evidence.namespace.metadata.label_written_at(OPT_IN_LABEL) if evidence.namespace else ""
    )
    annotated = evidence.pod.metadata.annotation_written_at(ENABLE_ANNOTATION)
    registrations = evidence.registrations or ()
    installed = min((registration.created for registration in registrations), default="")
    if installed > created:
        text = (
            f"No: the pod was created at {created}, before the webhook was installed, at "
            f"{installed}."
        )
        yield _not_called(CREATED_BEFORE_WEBHOOK, text)
    if annotated > created:
        text = (
            f"No: the annotation {ENABLE_ANNOTATION} was set at {annotated}, after the pod was "
            f"created at {created}; the webhook changes pods only when they are created."
        )
        remedy = f"Set it in {template_title(evidence)}, and {_CREATE_AGAIN}."
        yield _not_called(ANNOTATED_LATER, text, remedy)
    if labeled > created:
        text = (
            f"No: the pod was created at {created}, before namespace {evidence.namespace_name} "
            f"got the label {OPT_IN_LABEL} (its labels were last changed at {labeled})."
        )
        yield _not_called(CREATED_BEFORE_LABEL, text)


def _unanswered_call(evidence: PodEvidence) -> Iterator[Finding]:
    if any(
        registration.failure_policy == "Ignore" for registration in evidence.registrations or ()
    ):
        text = (
            "No: the webhook did not respond when the pod was created. With failurePolicy: Ignore, "
            "the API server then creates the pod unchanged."
        )
        yield _not_called(DID_NOT_ANSWER, text)
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
            "No: the pod has the annotation, but no rdma.lab/status. The reason is unknown, since "
            f"rdma-webhook did not read {' or '.join(missing)}."
        )
        remedy = (
            f'Check that the namespace has the label {OPT_IN_LABEL}: "true" (kubectl get namespace '
            f"{evidence.namespace_name} --show-labels), and {_CREATE_AGAIN}."
        )
        yield _not_called(NOT_CALLED, text, remedy)
    else:
        text = (
            "No: the pod has the annotation and its namespace the label, but it was created "
            "before one of them was set, or before the webhook was installed."
        )
        yield _not_called(CREATED_EARLIER, text)
