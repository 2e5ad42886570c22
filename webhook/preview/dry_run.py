"""What the webhook would do with the pods in some documents, for the command line and over HTTP.

A template is decided on as its controller creates a pod from it (workloads/controllers), and else
as it is written. A missing request counts as its limit, so the patch of a template has the same
effect as the patch of a pod made from it. All that is known about a cluster is in
`PreviewOptions.facts`. The HTTP preview passes no facts, since its callers may not learn what
is in the cluster: so no answer contains anything that the caller did not send, except the fabrics.
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
from webhook.preview.report.record import NO_TEMPLATE, OPTIONS, Edit, Preview, Report, Wording
from webhook.preview.workloads.controllers import controller_of, expected_pods
from webhook.preview.workloads.controllers.workload import Controller, ExpectedPod
from webhook.preview.workloads.hints import OptInHints, notes_of
from webhook.preview.workloads.objects import Header
from webhook.preview.workloads.templates import Template, not_kubernetes, templates_of
from webhook.text.yaml.documents import Document

_NOTHING_READ = LiveFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewOptions:
    """What a preview depends on besides the documents."""

    fabrics: Fabrics
    #: Whether the fabrics are the example's, which the report must say.
    example: bool = False
    #: None: nothing is known about a cluster, and no namespace is taken to restrict its pods.
    facts: Facts | None = None
    #: What was read of a cluster; `facts` and the input take precedence.
    live: LiveFacts = _NOTHING_READ
    #: The namespace of objects that name none.
    namespace: str = "default"
    #: Labels of every pod's namespace; they take precedence over those in `facts` and in the input.
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    #: Decide as if every pod had opted in.
    enable: bool = False
    #: The largest number of pods and pod templates; None: any number.
    most: int | None = None
    #: How the reader requests another report.
    ways: Wording = OPTIONS


class _Home(NamedTuple):
    """The document of some templates, its number, and the hints in it that pods should opt in."""

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
    def asleep(self) -> bool:
        """Whether its pods have not opted in."""
        return all(decision.reason is NOT_OPTED_IN for decision in self.decisions)


def preview_documents(documents: Sequence[Document], options: PreviewOptions) -> Report:
    """Decide on every pod and pod template in the documents of one input or of several.

    Raises DocumentError for a document that `stranger` rejects and for more pods than
    `options.most`, and PatchMismatchError if jsonpatch's result differs from a decision's pod.
    """
    given = options.facts or Facts()
    live = options.live
    known, said = with_input_facts(given, documents, options.namespace, live)
    notes = [*live.notes, *said]
    options = replace(options, facts=known)
    inventory = known.inventory(options.fabrics)
    cases: list[_Case] = []
    for number, document in enumerate(documents):
        if why := stranger(document, options.ways):
            raise DocumentError(why)
        templates = templates_of(document.value)
        if options.most is not None and len(cases) + len(templates) > options.most:
            raise DocumentError(
                f"{document.name}: more than {options.most} pods: send fewer in one request"
            )
        home = _Home(document, number, OptInHints(document.value))
        found = [_case(home, template, inventory, options) for template in templates]
        notes.extend(document.problems)
        notes.extend(dict.fromkeys(filter(None, map(_unknown_controller, found))))
        if not templates and not is_fact(document.value):
            notes.extend(notes_of(document.value) or [_no_template(document)])
        cases.extend(found)
    return Report(
        previews=tuple(preview for case in cases for preview in _previews(case, options)),
        edits=tuple(map(_edit, cases)),
        notes=tuple(notes),
        example=_example(options),
    )


def _example(options: PreviewOptions) -> str:
    """Return the names of the example's fabrics, if the report is about those."""
    return ", ".join(options.fabrics.fabrics) if options.example else ""


def stranger(document: Document, ways: Wording = OPTIONS) -> str | None:
    """Return why a document cannot be previewed, in a line that begins with the input's name.

    Return None if it can be.
    """
    if document.value.get("kind") == FABRICS_KIND:
        where = f"{document.name}: line {document.line}"
        return f"{where}: this is a fabrics file, not a workload: {ways.fabrics_file}"
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
    verdict = _called(document, template, namespace, options)
    hint = hints.of(template) if case.asleep else ""
    for expected, decision in zip(case.pods, case.decisions, strict=True):
        adding = case.controller if expected.pod is not template.pod else None
        yield Preview(
            source=document.name,
            line=document.line,
            document=number,
            steps=template.path,
            kind=template.kind,
            name=template.name,
            namespace=namespace.name,
            called=verdict[0],
            called_because=verdict[1],
            labels_known=namespace.known and namespace.labels is not None,
            decision=decision,
            pod=verified_pod(expected.pod, decision),
            hint=hint,
            bare=template.bare,
            controller=adding.name if adding else "",
            role=expected.role,
        )


def _edit(case: _Case) -> Edit:
    """Return what can be written into the template, and say what cannot."""
    template = case.template
    made = template_edit(template, case.pods, case.decisions, lambda pod: decide(pod, case.context))
    held = ""
    if made.held:
        where = f"{case.context.namespace.name}/{template.name} {dotted(template.path)}".rstrip()
        held = f"{template.kind} {where}: {', '.join(made.held)}: {_why_held(case)}"
    return Edit(
        document=case.home.number, steps=template.path, ops=made.ops, pod=made.pod, held=held
    )


def _why_held(case: _Case) -> str:
    if case.template.bare:
        return (
            "applied only at admission, since the document has no place for the pods' annotations"
        )
    name = case.controller.name if case.controller else "the controller"
    return f"applied in part only at admission, since {name} writes the fields that change"


def _unknown_controller(case: _Case) -> str:
    """Say of a kind that no controller is known for that its pods may differ; "" for others."""
    template = case.template
    if case.controller is not None or template.owner is None or case.asleep:
        return ""
    if template.kind == KIND:
        return ""
    if template.kind.endswith(_RUNTIME):
        adding = "a TrainJob adds GPUs, a command and variables, so"
    else:
        adding = "if its controller adds a command, labels or variables,"
    return (
        f"{template.kind} {template.name}: decided as written: {adding} the live pod may get a "
        "different decision"
    )


#: TrainingRuntime and ClusterTrainingRuntime (kubeflow/trainer): a TrainJob is merged into one.
_RUNTIME = "TrainingRuntime"


def _namespace(name: str, options: PreviewOptions) -> NamespaceFacts:
    assert options.facts is not None
    known = options.facts.namespace(name)
    if not options.namespace_labels:
        return known
    return replace(known, labels={**(known.labels or {}), **options.namespace_labels})


def _called(
    document: Document, template: Template, namespace: NamespaceFacts, options: PreviewOptions
) -> CallPrediction:
    """Return whether the API server calls the webhook, and why.

    An AdmissionReview is itself such a call; it counts unless the webhook would ignore it.
    """
    if document.value.get("kind") != KIND:
        pod, webhooks = _as_if(template.pod, enable=options.enable), options.live.webhooks
        return predict_call(pod, namespace, AS_SHIPPED if webhooks is None else webhooks)
    try:
        ignored = read_review(document.value).ignored
    except ReviewError as error:
        return False, str(error)
    return not ignored, ignored or "the document is a request of the API server"


def _as_if(pod: PodManifest, *, enable: bool) -> PodManifest:
    """Return the pod with the annotation that `enable` assumes; leave a malformed pod as it is."""
    metadata = pod.get("metadata") or {}
    annotations = (metadata.get("annotations") or {}) if isinstance(metadata, dict) else None
    if not enable or not isinstance(annotations, dict):
        return pod
    return {**pod, "metadata": {**metadata, "annotations": {**annotations, ENABLE: "true"}}}
