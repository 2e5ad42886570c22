"""Whether the API server called the webhook when the pod was created, or the reason why not."""

from __future__ import annotations

from webhook.admission.match import MIRROR
from webhook.admission.registration import EXCLUDED_NAMESPACES
from webhook.decide.examine import MIRROR_POD, WINDOWS_POD
from webhook.decide.reasons import NOT_OPTED_IN
from webhook.decide.status import is_complete
from webhook.diagnose.why.comparison import Comparison
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.missed_call import (
    label_remedy,
    missed_call_reasons,
    not_called_finding,
    unlabeled_clause,
)
from webhook.diagnose.why.old_template import not_replaced_predicate
from webhook.diagnose.why.pod_template import (
    controller_with_template,
    template_title,
    with_rollout,
)
from webhook.diagnose.why.replacement import (
    REPLACING_KINDS,
    has_old_template,
    replacement_remedy,
)
from webhook.kube.objects import KubernetesObject
from webhook.model.annotations import ENABLE_ANNOTATION, STATUS_ANNOTATION, opted_in
from webhook.model.decision import Denial
from webhook.model.finding import Code, Finding
from webhook.model.names import enumerated
from webhook.model.pod import dotted
from webhook.preview.workloads.hints import OptInHints
from webhook.preview.workloads.objects import ObjectMetadata
from webhook.preview.workloads.templates import Template, templates_of

CALLED = Code(
    "Called", "The webhook was called for the pod: it wrote the pod's annotation rdma.lab/status."
)
STATUS_UNREADABLE = Code(
    "StatusUnreadable",
    "The pod has an annotation rdma.lab/status that this version of rdma-webhook cannot read.",
    "Use the version of rdma-webhook that runs in the cluster. If that version cannot read the "
    "annotation either, remove the annotation from the manifest that the pod was created from, "
    "and create the pod again.",
)
STATUS_NOT_OURS = Code(
    "StatusNotOurs",
    "The pod has an annotation rdma.lab/status that does not prove that the webhook was called: "
    "the annotation is incomplete, none of the changes that it names is in the pod, or the pod's "
    'namespace lacks the label rdma.lab/enable: "true".',
    "Remove the annotation rdma.lab/status from the manifest that the pod was created from, and "
    "create the pod again. If the namespace lacks the label, ask the cluster administrator to add "
    "it first.",
)
OPTED_OUT = Code(
    "OptedOut",
    f'The pod sets {ENABLE_ANNOTATION}: "false".',
    f'If the pod needs RDMA, set {ENABLE_ANNOTATION}: "true" in its manifest or, for a workload, '
    "in the pod template, and create the pod again.",
)
ANNOTATION_MISSPELLED = Code(
    "AnnotationMisspelled",
    f"The pod or its controller has an annotation or a label similar to {ENABLE_ANNOTATION}, or "
    f"has {ENABLE_ANNOTATION} where it has no effect.",
    f'Set {ENABLE_ANNOTATION}: "true" under metadata.annotations of the pod\'s manifest or, for a '
    "workload, of the pod template, and create the pod again.",
)
NAMESPACE_EXCLUDED = Code(
    "NamespaceExcluded",
    "The API server never calls the webhook for pods in the pod's namespace.",
    "Run the job in another namespace.",
)
CODES = (
    CALLED,
    STATUS_UNREADABLE,
    STATUS_NOT_OURS,
    OPTED_OUT,
    ANNOTATION_MISSPELLED,
    NAMESPACE_EXCLUDED,
)

_UNANNOTATED = f"has no annotation {ENABLE_ANNOTATION}"
#: Templates of a controller that are searched for misspelled annotations.
_MAX_TEMPLATES = 8


def call_finding(evidence: PodEvidence, comparison: Comparison) -> Finding:
    """Return whether the webhook was called; the code is the reason if it was not."""
    if malformed := _malformed_value(evidence):
        return malformed
    if not evidence.has_opted_in:
        return _not_opted_in_finding(evidence)
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
    return next(missed_call_reasons(evidence))


def _by_status(evidence: PodEvidence, comparison: Comparison) -> Finding:
    """Return whether a status proves a call: anybody can copy one, or write it by hand."""
    copied = f"{STATUS_ANNOTATION} was copied from another pod, or written by hand"
    if not is_complete(evidence.pod.metadata.annotations):
        text = f"No: {copied}, since it lacks fields that the webhook writes."
        return STATUS_NOT_OURS.finding("error", text, _remove_status(evidence))
    unlabeled = unlabeled_clause(evidence)
    if comparison.nothing_left and unlabeled:
        remedy = f"{label_remedy(evidence)} {_remove_status(evidence)}"
        return STATUS_NOT_OURS.finding("error", f"No: {copied}, since {unlabeled}.", remedy)
    if comparison.nothing_left:
        text = (
            f"No: {copied}, or all that it names was removed, since nothing of it is left in the "
            "pod."
        )
        return STATUS_NOT_OURS.finding("error", text, _remove_status(evidence))
    if unlabeled:
        text = f"Not certain: {unlabeled}. The label was removed later, or {copied}."
        return STATUS_NOT_OURS.finding("unsure", text, label_remedy(evidence))
    return CALLED.finding("ok", "Yes: the webhook has set rdma.lab/status on the pod.")


def _malformed_value(evidence: PodEvidence) -> Finding | None:
    """Return a finding if the annotation has a value that the webhook denies."""
    try:
        opted_in(evidence.pod.metadata.annotations)
    except Denial as denial:
        text = f"No: {denial}. The webhook denies such pods, so it was not called for this one."
        change = f'Set {ENABLE_ANNOTATION}: "true" in {template_title(evidence)}'
        remedy = with_rollout(change, evidence)
        return not_called_finding(denial.reason, text, remedy)
    return None


def _exclusion(evidence: PodEvidence) -> Finding | None:
    """Return a finding if the API server never calls the webhook for such a pod."""
    if MIRROR in evidence.annotations:
        text = "No: this is the mirror pod of a static pod, so changing it has no effect."
        return not_called_finding(
            MIRROR_POD, text, "Add what RDMA needs to the static pod's file on the node."
        )
    if evidence.pod.spec.os.name == "windows":
        text = "No: the pod runs on Windows; the webhook equips only Linux pods."
        return not_called_finding(WINDOWS_POD, text, "Run the job in a Linux container.")
    if evidence.namespace_name in EXCLUDED_NAMESPACES:
        text = (
            f"No: the API server never calls the webhook for namespace {evidence.namespace_name}."
        )
        return not_called_finding(NAMESPACE_EXCLUDED, text)
    return None


def _not_opted_in_finding(evidence: PodEvidence) -> Finding:
    """Return why a pod has not opted in: no annotation, or a misspelled or misplaced one."""
    if corrected := _corrected_controller(evidence):
        return _not_replaced_finding(evidence, corrected)
    hint = _hint(evidence)
    copied = (
        " Its rdma.lab/status was copied or set by hand."
        if STATUS_ANNOTATION in evidence.annotations
        else ""
    )
    others = _other_templates(evidence)
    title = template_title(evidence)
    if others or _has_many_templates(evidence):
        title = f"each {title.removeprefix('the ')}"
    place = f"metadata.annotations of {title}"
    remedy = with_rollout(f'Set {ENABLE_ANNOTATION}: "true" under {place}', evidence)
    if not hint:
        text = f"No: the pod {_UNANNOTATED}{others}.{copied}"
        return not_called_finding(NOT_OPTED_IN, text, remedy)
    has_opted_out = evidence.annotations.get(ENABLE_ANNOTATION) == "false"
    code = OPTED_OUT if has_opted_out else ANNOTATION_MISSPELLED
    return not_called_finding(code, f"No: {hint}.{copied}", remedy)


def _corrected_controller(evidence: PodEvidence) -> KubernetesObject | None:
    """Return the controller whose template has got the annotation since, if that is known."""
    controller = controller_with_template(evidence)
    if controller is None or controller.kind not in REPLACING_KINDS:
        return None
    if not _annotated_fields(controller):
        return None
    index = evidence.owners.index(controller)
    copies = [
        template
        for owner in evidence.owners[:index]
        for template in _templates(owner, is_pod=False)
    ]
    is_old = bool(copies) and not any(map(_sets_annotation, copies))
    return controller if is_old or has_old_template(evidence) else None


def _not_replaced_finding(evidence: PodEvidence, controller: KubernetesObject) -> Finding:
    """Return the finding on a pod that is older than the annotation in its template."""
    places = _annotated_fields(controller)
    has_opted_out = ENABLE_ANNOTATION in evidence.annotations
    state = f'sets {ENABLE_ANNOTATION}: "false"' if has_opted_out else _UNANNOTATED
    text = (
        f"No: the pod {state}. {controller.title} has {ENABLE_ANNOTATION} in {places} now, but "
        f"{not_replaced_predicate(controller, evidence)}."
    )
    remedy = replacement_remedy(controller, evidence)
    return not_called_finding(OPTED_OUT if has_opted_out else NOT_OPTED_IN, text, remedy)


def _hint(evidence: PodEvidence) -> str:
    # A controller copies its annotations to the ReplicaSets that it creates.
    for source in (evidence.pod, *reversed(evidence.owners)):
        is_pod = source is evidence.pod
        # Those with the annotation are as they should be, for the pods of that template.
        templates = [
            template
            for template in _templates(source, is_pod=is_pod)
            if not _sets_annotation(template)
        ]
        for template in templates:
            others = [other for other in templates if other is not template]
            if hint := OptInHints(source.manifest).of(template, others):
                return hint if is_pod or source.title in hint else f"in {source.title}: {hint}"
    return ""


def _has_many_templates(evidence: PodEvidence) -> bool:
    """Return whether it is unknown from which template of its controller a pod comes."""
    controller = controller_with_template(evidence)
    return controller is not None and len(_templates(controller, is_pod=False)) > 1


def _other_templates(evidence: PodEvidence) -> str:
    """Return a clause on the templates of the controller that have the annotation."""
    for owner in reversed(evidence.owners):
        if places := _annotated_fields(owner):
            return (
                f"; {owner.title} has it in {places}, but the pod was created from another "
                "template, or before"
            )
    return ""


def _annotated_fields(controller: KubernetesObject) -> str:
    """Return the fields of a controller's templates that have the annotation; "" without any."""
    paths = [
        dotted((*template.path, "metadata", "annotations"))
        for template in _templates(controller, is_pod=False)
        if _sets_annotation(template)
    ]
    return enumerated(paths) if paths else ""


def _sets_annotation(template: Template) -> bool:
    return ObjectMetadata.of(template.pod).annotations.get(ENABLE_ANNOTATION) == "true"


def _templates(source: KubernetesObject, *, is_pod: bool) -> list[Template]:
    if not is_pod:
        return templates_of(source.manifest)[:_MAX_TEMPLATES]
    return [Template((), "Pod", source.metadata.name, source.metadata.namespace, source.manifest)]


def _remove_status(evidence: PodEvidence) -> str:
    return with_rollout(f"Remove {STATUS_ANNOTATION} from {template_title(evidence)}", evidence)
