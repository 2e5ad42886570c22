"""A template with the decisions on its pods, and the edit of the template that they make."""

from __future__ import annotations

from typing import NamedTuple

from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.decide.examine.targets import DEVICE_NOT_LISTED, NO_TARGET
from webhook.decide.reasons import INVALID_POD, NOT_OPTED_IN
from webhook.model.decision import Decision, Reason
from webhook.model.pod import dotted
from webhook.preview.patches import template_edit
from webhook.preview.report.record import Edit
from webhook.preview.workloads.controllers.workload import Controller, ControllerPod
from webhook.preview.workloads.hints import OptInHints
from webhook.preview.workloads.templates import Template
from webhook.text.yaml.documents import Document


class DocumentContext(NamedTuple):
    """The document of some templates, its number, and its hints on pods meant to opt in."""

    document: Document
    number: int
    hints: OptInHints


class DecidedTemplate(NamedTuple):
    """A template, the pods that its controller makes from it, and the decisions on them."""

    origin: DocumentContext
    template: Template
    decision_input: DecisionInput
    controller: Controller | None
    pods: tuple[ControllerPod, ...]
    decisions: tuple[Decision, ...]

    @property
    def not_opted_in(self) -> bool:
        """Whether none of its pods has opted in."""
        return self.has_reason(NOT_OPTED_IN)

    @property
    def lacks_target(self) -> bool:
        """Whether none of its pods has a container to equip."""
        return self.has_reason(NO_TARGET) or self.has_reason(DEVICE_NOT_LISTED)

    @property
    def is_void(self) -> bool:
        """Whether the decision says nothing about the pods that an operator makes.

        A part that resembles a pod may have fields of another shape, and the operator may add
        devices.
        """
        return self.template.derived and (self.lacks_target or self.has_reason(INVALID_POD))

    def has_reason(self, reason: Reason) -> bool:
        """Whether all decisions have this reason."""
        return all(decision.reason is reason for decision in self.decisions)


def edit_of(decided: DecidedTemplate) -> Edit:
    """Return the edit of the template, with a note on what only admission can apply."""
    template = decided.template
    if template.derived:
        return _no_edit(decided)
    edit = template_edit(
        template, decided.pods, decided.decisions, lambda pod: decide(pod, decided.decision_input)
    )
    note = ""
    if edit.deferred:
        namespace = decided.decision_input.namespace.name
        full_name = f"{namespace}/{template.name} {dotted(template.path)}".rstrip()
        note = f"{template.kind} {full_name}: {_admission_only(decided, ', '.join(edit.deferred))}"
    return Edit(
        document=decided.origin.number,
        template_path=template.path,
        ops=edit.ops,
        patched_template=edit.patched_template,
        note=note,
        spec_only=template.spec_only,
    )


def _no_edit(decided: DecidedTemplate) -> Edit:
    """Return an empty edit: the operator may not know the fields that the patch would add."""
    template, (decision,) = decided.template, decided.decisions
    namespace = decided.decision_input.namespace.name
    subject = f"{template.kind} {namespace}/{template.name} {dotted(template.path)}"
    note = f"{subject}: derived pods are patched only at admission" if decision.patch else ""
    return Edit(
        document=decided.origin.number,
        template_path=template.path,
        ops=(),
        patched_template=template.pod,
        note=note,
    )


def _admission_only(decided: DecidedTemplate, mutations: str) -> str:
    if decided.template.spec_only:
        return (
            f"only admission applies {mutations}, since the document has no place for the pods' "
            "annotations"
        )
    name = decided.controller.name if decided.controller else "the controller"
    if len(decided.pods) > 1:
        return (
            f"only admission completes {mutations}, since {name} makes several kinds of pods from "
            "the template"
        )
    return f"only admission completes {mutations}, since {name} writes some of the fields"
