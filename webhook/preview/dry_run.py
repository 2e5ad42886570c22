"""The preview: what the webhook would do with the pods in some documents.

A template is decided on as the pod that its controller creates (workloads/controllers); without a
known controller, unchanged. A missing request counts as its limit, so the patch of a template has
the same effect as the patch of a pod made from it. `PreviewOptions.facts` has all facts about a
cluster. The HTTP preview passes none, since its callers may not learn the cluster's contents: its
answers contain only the caller's input, and the fabrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from webhook.admission.match import AS_SHIPPED, CallPrediction, predict_call
from webhook.admission.review import KIND as REVIEW_KIND
from webhook.admission.review import read_review
from webhook.config.model import KIND as FABRICS_KIND
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.decide.settings.ranks import overridden_by, settings_of_launchers
from webhook.decide.settings.setting import CommandSettings
from webhook.errors import DocumentError, ReviewError
from webhook.model.annotations import ENABLE_ANNOTATION
from webhook.model.decision import Decision
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts, NamespaceFacts
from webhook.model.nodes import FabricIndex
from webhook.model.pod import Path, PodManifest
from webhook.preview.decided_template import DecidedTemplate, DocumentContext, edit_of
from webhook.preview.input_facts import LiveFacts, is_fact, is_used, with_input_facts
from webhook.preview.patches import patch_pod
from webhook.preview.report.record import CLI_WORDING, Preview, Report, Wording
from webhook.preview.workloads.controllers import controller_of, controller_pods
from webhook.preview.workloads.controllers.workload import ControllerPod
from webhook.preview.workloads.derived import derived_templates
from webhook.preview.workloads.fragments import fragments_of
from webhook.preview.workloads.hints import OptInHints, annotations_location
from webhook.preview.workloads.mistakes import SEVERAL_VARIABLES, mistakes_in
from webhook.preview.workloads.notes import (
    no_template_note,
    notes_of,
    unknown_controller_note,
)
from webhook.preview.workloads.runtime_environments import runtime_environments
from webhook.preview.workloads.templates import Template, not_kubernetes_reason, templates_of
from webhook.text.yaml.documents import Document

_NO_LIVE_FACTS = LiveFacts()
#: The remedy for an unexpanded variable.
ENVSUBST = "envsubst"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewOptions:
    """The inputs of a preview besides the documents."""

    configuration: CompiledConfiguration
    #: Whether the fabrics are the example's; the report then says so.
    example: bool = False
    #: Whether the fabrics that were given are those of a bundled example; the JSON then says so.
    given_example: bool = False
    #: Facts about a cluster; without them, no namespace is assumed to restrict its pods.
    facts: Facts | None = None
    #: Facts read from a cluster; `facts` and the input take precedence.
    live_facts: LiveFacts = _NO_LIVE_FACTS
    #: The namespace of objects without one.
    namespace: str = "default"
    #: Labels of every pod's namespace, which override the labels in `facts` and in the input.
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    #: Whether to decide as if every pod had opted in.
    enable: bool = False
    #: The largest number of pods and pod templates; None: any number.
    max_pods: int | None = None
    #: The audience's words for requesting another report.
    wording: Wording = CLI_WORDING


def preview_documents(documents: Sequence[Document], options: PreviewOptions) -> Report:
    """Decide on every pod and pod template in the documents of all inputs.

    Raises DocumentError for a document that `unsupported_reason` rejects and for more pods than
    `options.max_pods`, and PatchMismatchError if jsonpatch's result differs from a decision's pod.
    """
    file_facts = options.facts or Facts()
    live = options.live_facts
    facts, fact_notes = with_input_facts(file_facts, documents, options.namespace, live)
    notes = [*live.notes, *fact_notes]
    options = replace(options, facts=facts)
    fabric_index = facts.fabric_index(options.configuration)
    decided_templates: list[DecidedTemplate] = []
    for number, document in enumerate(documents):
        templates = _templates_of(document, options, len(decided_templates))
        origin = DocumentContext(document, number, OptInHints(document.value))
        decisions = _decide_document(origin, templates, fabric_index, options)
        notes.extend(_document_notes(decisions, templates, facts, options))
        decided_templates.extend(decisions.templates)
    return Report(
        previews=tuple(
            preview for decided in decided_templates for preview in _previews(decided, options)
        ),
        edits=tuple(map(edit_of, decided_templates)),
        notes=tuple(notes),
        example=_fabric_names(options) if options.example else "",
        given_example=_fabric_names(options) if options.given_example else "",
    )


def _templates_of(
    document: Document, options: PreviewOptions, decided: int
) -> tuple[Template, ...]:
    """Return a document's templates, the derived ones last; `decided`: the number of earlier ones.

    Raises DocumentError.
    """
    if reason := unsupported_reason(document, options.wording):
        raise DocumentError(reason)
    templates = (*templates_of(document.value), *derived_templates(document.value))
    if options.max_pods is not None and decided + len(templates) > options.max_pods:
        raise DocumentError(
            f"{document.name}: more than {options.max_pods} pods; send fewer in one request"
        )
    return templates


class _DocumentDecisions(NamedTuple):
    """The decisions on the pod templates of a document."""

    document: Document
    templates: list[DecidedTemplate]
    #: A note on each template that makes no pod by itself.
    fragment_notes: tuple[str, ...]


def _decide_document(
    origin: DocumentContext,
    templates: Sequence[Template],
    fabric_index: FabricIndex,
    options: PreviewOptions,
) -> _DocumentDecisions:
    """Decide on the templates of a document.

    Its launchers' settings reach all of its pods in their namespace, and Ray's environments those
    of their objects.
    """
    document = origin.document
    templates_with_pods = [(template, controller_pods(template)) for template in templates]
    inputs = _inputs_by_namespace(templates_with_pods, fabric_index, options)
    environments = runtime_environments(templates)
    decisions = [
        _decide_on(
            origin,
            template,
            pods,
            _with_environment(inputs[_namespace_name(template, options)], template, environments),
        )
        for template, pods in templates_with_pods
    ]
    without_target = [decided.template for decided in decisions if decided.lacks_target]
    fragments = fragments_of(document.value, without_target)
    kept = [
        decided
        for decided in decisions
        if decided.template.path not in fragments and not decided.is_void
    ]
    return _DocumentDecisions(document, kept, tuple(fragments.values()))


def _inputs_by_namespace(
    templates_with_pods: Iterable[tuple[Template, tuple[ControllerPod, ...]]],
    fabric_index: FabricIndex,
    options: PreviewOptions,
) -> dict[str, DecisionInput]:
    """Return what decisions on a document's pods depend on: the name of a namespace → the input.

    The script of a launcher may be in a ConfigMap, which belongs to a namespace.
    """
    manifests: dict[str, list[PodManifest]] = {}
    for template, pods in templates_with_pods:
        of_namespace = manifests.setdefault(_namespace_name(template, options), [])
        of_namespace.extend(controller_pod.pod for controller_pod in pods)
    namespaces = {name: _namespace(name, options) for name in manifests}
    return {
        name: DecisionInput(
            configuration=options.configuration,
            namespace=namespace,
            fabric_index=fabric_index,
            assume_opted_in=options.enable,
            workload_settings=settings_of_launchers(manifests[name], namespace.config_maps),
        )
        for name, namespace in namespaces.items()
    }


def _with_environment(
    decision_input: DecisionInput, template: Template, environments: Mapping[Path, CommandSettings]
) -> DecisionInput:
    environment = environments.get(template.enclosing.path) if template.enclosing else None
    if environment is None:
        return decision_input
    settings = overridden_by(decision_input.workload_settings, environment)
    return decision_input._replace(workload_settings=settings)


def _document_notes(
    decisions: _DocumentDecisions,
    templates: Sequence[Template],
    facts: Facts,
    options: PreviewOptions,
) -> Iterator[str]:
    document = decisions.document
    yield from document.problems
    yield from decisions.fragment_notes
    yield from dict.fromkeys(filter(None, map(_unknown_controller_note, decisions.templates)))
    has_templates = any(not template.derived for template in templates)
    if not has_templates and not is_fact(document.value):
        decided_paths = {decided.template.path for decided in decisions.templates}
        is_explained = decided_paths or is_used(document.value, facts, options.namespace)
        fallback = [] if is_explained else [no_template_note(document.value)]
        yield from notes_of(document.value, decided_paths) or fallback


def _fabric_names(options: PreviewOptions) -> str:
    return ", ".join(options.configuration.fabrics)


def unsupported_reason(document: Document, wording: Wording = CLI_WORDING) -> str | None:
    """Return why a document cannot be previewed, in a line that begins with the input's name.

    Return None for a document that can be previewed.
    """
    if document.value.get("kind") == FABRICS_KIND:
        location = f"{document.name}: line {document.line}"
        return f"{location}: this is a fabrics file, not a workload; {wording.fabrics_file_advice}"
    return not_kubernetes_reason(document)


def _decide_on(
    origin: DocumentContext,
    template: Template,
    pods: tuple[ControllerPod, ...],
    decision_input: DecisionInput,
) -> DecidedTemplate:
    decisions = tuple(decide(controller_pod.pod, decision_input) for controller_pod in pods)
    return DecidedTemplate(
        origin, template, decision_input, controller_of(template), pods, decisions
    )


def _previews(decided: DecidedTemplate, options: PreviewOptions) -> Iterator[Preview]:
    """Yield a preview of each pod that the template's controller makes."""
    document, number, hints = decided.origin
    template, namespace = decided.template, decided.decision_input.namespace
    call = _predict(document, template, namespace, options)
    hint = hints.of(template) if decided.not_opted_in else ""
    for controller_pod, decision in zip(decided.pods, decided.decisions, strict=True):
        controller = decided.controller if controller_pod.pod is not template.pod else None
        yield Preview(
            source=document.name,
            line=document.line,
            document=number,
            template_path=template.path,
            kind=template.kind,
            name=template.name,
            namespace=namespace.name,
            called=call[0],
            called_because=call[1],
            labels_known=namespace.is_loaded and namespace.labels is not None,
            decision=decision,
            pod=patch_pod(controller_pod.pod, decision),
            hint=hint,
            mistakes=_mistakes(decided, decision),
            annotations_location=annotations_location(template),
            opt_in_assumed=controller_pod.pod
            != _assume_enabled(controller_pod.pod, enable=options.enable),
            namespace_labeled=namespace.is_labeled,
            spec_only=template.spec_only and template.annotations_path is None,
            derived=template.derived,
            controller=controller.name if controller else "",
            role=controller_pod.role,
        )


def _mistakes(decided: DecidedTemplate, decision: Decision) -> tuple[str, ...]:
    """Return the mistakes in the template, unless the decision already asks for the same.

    The decision reads few fields, so it may not name all of several variables.
    """
    if decided.template.derived:
        return ()
    allows_only_known_fields = decided.controller is not None or decided.template.enclosing is None
    return tuple(
        mistake
        for mistake in mistakes_in(
            decided.template, allows_only_known_fields=allows_only_known_fields
        )
        if SEVERAL_VARIABLES in mistake
        or ENVSUBST not in mistake
        or ENVSUBST not in decision.message
    )


def _unknown_controller_note(decided: DecidedTemplate) -> str:
    """Return a note for a kind without a known controller, whose pods may differ; "" for others."""
    if decided.controller is not None or decided.not_opted_in:
        return ""
    return unknown_controller_note(decided.template)


def _namespace_name(template: Template, options: PreviewOptions) -> str:
    return template.namespace or options.namespace


def _namespace(name: str, options: PreviewOptions) -> NamespaceFacts:
    assert options.facts is not None
    facts = options.facts.namespace(name)
    if not options.namespace_labels:
        return facts
    return replace(facts, labels={**(facts.labels or {}), **options.namespace_labels})


def _predict(
    document: Document, template: Template, namespace: NamespaceFacts, options: PreviewOptions
) -> CallPrediction:
    """Predict whether the API server calls the webhook, and why.

    An AdmissionReview is such a call; it counts unless the webhook would ignore it.
    """
    if document.value.get("kind") != REVIEW_KIND:
        pod = _assume_enabled(template.pod, enable=options.enable)
        registrations = options.live_facts.registrations
        return predict_call(pod, namespace, AS_SHIPPED if registrations is None else registrations)
    try:
        ignored = read_review(document.value).ignore_reason
    except ReviewError as error:
        return False, str(error)
    return not ignored, ignored or "the document is a request from the API server"


def _assume_enabled(pod: PodManifest, *, enable: bool) -> PodManifest:
    """Return the pod with the annotation that `enable` assumes; a malformed pod, unchanged."""
    metadata = pod.get("metadata") or {}
    annotations = (metadata.get("annotations") or {}) if isinstance(metadata, dict) else None
    if not enable or not isinstance(annotations, dict):
        return pod
    return {
        **pod,
        "metadata": {**metadata, "annotations": {**annotations, ENABLE_ANNOTATION: "true"}},
    }
