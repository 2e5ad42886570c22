"""The preview: what the webhook would do with the pods in some documents.

A template is decided on as the pod that its controller creates (workloads/controllers); without a
known controller, unchanged. A missing request counts as its limit, so the patch of a template has
the same effect as the patch of a pod made from it. `PreviewOptions.facts` has all facts about a
cluster. The HTTP preview passes none, since its callers may not learn the cluster's contents: its
answers contain only the caller's input, and the fabrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from webhook.admission.match import AS_SHIPPED, CallPrediction, predict_call
from webhook.admission.review import KIND, read_review
from webhook.config.model import KIND as FABRICS_KIND
from webhook.decide import decide
from webhook.decide.reasons import NOT_OPTED_IN
from webhook.decide.scope import Context
from webhook.errors import DocumentError, ReviewError
from webhook.model.annotations import ENABLE
from webhook.model.decision import Decision
from webhook.model.fabric import Fabrics
from webhook.model.facts import Facts, NamespaceFacts
from webhook.model.nodes import NodeInventory
from webhook.model.pod import PodManifest, dotted
from webhook.preview.input_facts import LiveFacts, is_fact, with_input_facts
from webhook.preview.patches import template_edit, verified_pod
from webhook.preview.report.record import CLI_WORDING, NO_TEMPLATE, Edit, Preview, Report, Wording
from webhook.preview.workloads.controllers import controller_of, expected_pods
from webhook.preview.workloads.controllers.workload import Controller, ExpectedPod
from webhook.preview.workloads.hints import OptInHints, annotations_location, notes_of
from webhook.preview.workloads.objects import Header
from webhook.preview.workloads.templates import Template, not_kubernetes, templates_of
from webhook.text.yaml.documents import Document

_NOTHING_READ = LiveFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewOptions:
    """The inputs of a preview besides the documents."""

    fabrics: Fabrics
    #: Whether the fabrics are the example's; the report then says so.
    example: bool = False
    #: Facts about a cluster; without them, no namespace is assumed to restrict its pods.
    facts: Facts | None = None
    #: Facts read from a cluster; `facts` and the input take precedence.
    live: LiveFacts = _NOTHING_READ
    #: The namespace of objects without one.
    namespace: str = "default"
    #: Labels of every pod's namespace, which override the labels in `facts` and in the input.
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    #: Whether to decide as if every pod had opted in.
    enable: bool = False
    #: The largest number of pods and pod templates; None: any number.
    max_pods: int | None = None
    #: The reader's words for requesting another report.
    wording: Wording = CLI_WORDING


class _Home(NamedTuple):
    """The document of some templates, its number, and its signs that pods were meant to opt in."""

    document: Document
    number: int
    hints: OptInHints


class _Case(NamedTuple):
    """A template, the pods that its controller makes from it, and the decisions on them."""

    home: _Home
    template: Template
    context: Context
    controller: Controller | None
    pods: tuple[ExpectedPod, ...]
    decisions: tuple[Decision, ...]

    @property
    def not_opted_in(self) -> bool:
        """Whether none of its pods has opted in."""
        return all(decision.reason is NOT_OPTED_IN for decision in self.decisions)


def preview_documents(documents: Sequence[Document], options: PreviewOptions) -> Report:
    """Decide on every pod and pod template in the documents of all inputs.

    Raises DocumentError for a document that `unsupported_reason` rejects and for more pods than
    `options.max_pods`, and PatchMismatchError if jsonpatch's result differs from a decision's pod.
    """
    file_facts = options.facts or Facts()
    live = options.live
    facts, fact_notes = with_input_facts(file_facts, documents, options.namespace, live)
    notes = [*live.notes, *fact_notes]
    options = replace(options, facts=facts)
    inventory = facts.inventory(options.fabrics)
    cases: list[_Case] = []
    for number, document in enumerate(documents):
        if reason := unsupported_reason(document, options.wording):
            raise DocumentError(reason)
        templates = templates_of(document.value)
        if options.max_pods is not None and len(cases) + len(templates) > options.max_pods:
            raise DocumentError(
                f"{document.name}: more than {options.max_pods} pods; send fewer in one request"
            )
        home = _Home(document, number, OptInHints(document.value))
        document_cases = [_case(home, template, inventory, options) for template in templates]
        notes.extend(document.problems)
        notes.extend(dict.fromkeys(filter(None, map(_unknown_controller, document_cases))))
        if not templates and not is_fact(document.value):
            notes.extend(notes_of(document.value) or [_no_template(document)])
        cases.extend(document_cases)
    return Report(
        previews=tuple(preview for case in cases for preview in _previews(case, options)),
        edits=tuple(map(_edit, cases)),
        notes=tuple(notes),
        example=_example(options),
    )


def _example(options: PreviewOptions) -> str:
    """Return the names of the example's fabrics if they are in use; else ""."""
    return ", ".join(options.fabrics.fabrics) if options.example else ""


def unsupported_reason(document: Document, wording: Wording = CLI_WORDING) -> str | None:
    """Return why a document cannot be previewed, in a line that begins with the input's name.

    Return None for a document that can be previewed.
    """
    if document.value.get("kind") == FABRICS_KIND:
        place = f"{document.name}: line {document.line}"
        return f"{place}: this is a fabrics file, not a workload; {wording.fabrics_file}"
    return not_kubernetes(document)


def _no_template(document: Document) -> str:
    header = Header.of(document.value)
    return f"{header.kind} {header.place}".rstrip() + f": {NO_TEMPLATE}"


def _case(
    home: _Home, template: Template, inventory: NodeInventory, options: PreviewOptions
) -> _Case:
    namespace = _namespace(template.namespace or options.namespace, options)
    context = Context(
        fabrics=options.fabrics, namespace=namespace, inventory=inventory, enable=options.enable
    )
    pods = expected_pods(template)
    decisions = tuple(decide(expected.pod, context) for expected in pods)
    return _Case(home, template, context, controller_of(template), pods, decisions)


def _previews(case: _Case, options: PreviewOptions) -> Iterator[Preview]:
    """Yield a preview of each pod that the template's controller makes."""
    (document, number, hints), template, namespace = (
        case.home,
        case.template,
        case.context.namespace,
    )
    call = _called(document, template, namespace, options)
    hint = hints.of(template) if case.not_opted_in else ""
    for expected, decision in zip(case.pods, case.decisions, strict=True):
        controller = case.controller if expected.pod is not template.pod else None
        yield Preview(
            source=document.name,
            line=document.line,
            document=number,
            steps=template.path,
            kind=template.kind,
            name=template.name,
            namespace=namespace.name,
            called=call[0],
            called_because=call[1],
            labels_known=namespace.is_loaded and namespace.labels is not None,
            decision=decision,
            pod=verified_pod(expected.pod, decision),
            hint=hint,
            annotations_location=annotations_location(template),
            bare=template.bare,
            controller=controller.name if controller else "",
            role=expected.role,
        )


def _edit(case: _Case) -> Edit:
    """Return the edit of the template, with a note on what only admission can apply."""
    template = case.template
    edit = template_edit(template, case.pods, case.decisions, lambda pod: decide(pod, case.context))
    admission_note = ""
    if edit.deferred:
        place = f"{case.context.namespace.name}/{template.name} {dotted(template.path)}".rstrip()
        admission_note = (
            f"{template.kind} {place}: {_admission_only(case, ', '.join(edit.deferred))}"
        )
    return Edit(
        document=case.home.number,
        steps=template.path,
        ops=edit.ops,
        pod=edit.pod,
        admission_note=admission_note,
    )


def _admission_only(case: _Case, mutations: str) -> str:
    if case.template.bare:
        return (
            f"only admission applies {mutations}, since the document has no place for the pods' "
            "annotations"
        )
    name = case.controller.name if case.controller else "the controller"
    return f"only admission completes {mutations}, since {name} writes some of the fields"


def _unknown_controller(case: _Case) -> str:
    """Return a note for a kind without a known controller, whose pods may differ; "" for others."""
    template = case.template
    if case.controller is not None or template.owner is None or case.not_opted_in:
        return ""
    if template.kind == KIND:
        return ""
    if template.kind.endswith(_RUNTIME):
        condition = "a TrainJob adds GPUs, a command and variables, so"
    else:
        condition = "if its controller adds a command, labels or variables,"
    return (
        f"{template.kind} {template.name}: decided on as written; {condition} the live pod may get "
        "a different decision"
    )


#: The end of TrainingRuntime and ClusterTrainingRuntime (kubeflow/trainer), merged with a TrainJob.
_RUNTIME = "TrainingRuntime"


def _namespace(name: str, options: PreviewOptions) -> NamespaceFacts:
    assert options.facts is not None
    facts = options.facts.namespace(name)
    if not options.namespace_labels:
        return facts
    return replace(facts, labels={**(facts.labels or {}), **options.namespace_labels})


def _called(
    document: Document, template: Template, namespace: NamespaceFacts, options: PreviewOptions
) -> CallPrediction:
    """Predict whether the API server calls the webhook, and why.

    An AdmissionReview is such a call; it counts unless the webhook would ignore it.
    """
    if document.value.get("kind") != KIND:
        pod, webhooks = (
            _assuming_enabled(template.pod, enable=options.enable),
            options.live.webhooks,
        )
        return predict_call(pod, namespace, AS_SHIPPED if webhooks is None else webhooks)
    try:
        ignored = read_review(document.value).ignored
    except ReviewError as error:
        return False, str(error)
    return not ignored, ignored or "the document is a request from the API server"


def _assuming_enabled(pod: PodManifest, *, enable: bool) -> PodManifest:
    """Return the pod with the annotation that `enable` assumes; a malformed pod, unchanged."""
    metadata = pod.get("metadata") or {}
    annotations = (metadata.get("annotations") or {}) if isinstance(metadata, dict) else None
    if not enable or not isinstance(annotations, dict):
        return pod
    return {**pod, "metadata": {**metadata, "annotations": {**annotations, ENABLE: "true"}}}
