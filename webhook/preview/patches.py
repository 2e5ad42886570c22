"""The patches of a report: proven by an independent library, and applied to its documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jsonpatch

from webhook.model.decision import Decision, PatchOp
from webhook.model.pod import PodManifest, at, pointer
from webhook.preview.formats import MAX_CHARACTERS, check_length
from webhook.preview.report.record import Edit, Report
from webhook.preview.workloads.controllers import controller_pods
from webhook.preview.workloads.controllers.workload import MAIN_CONTAINER, ControllerPod
from webhook.preview.workloads.patch import apply_patches, transfer_to_template
from webhook.preview.workloads.templates import Template
from webhook.text.escape import visible
from webhook.text.yaml.documents import Document
from webhook.text.yaml.splice import splice
from webhook.text.yaml.values import same_json

# An independent proof of the patch: jsonpatch applies it, and the result must be the same pod.
#
# `decide` edits a draft and records each edit as an operation; the API server receives only the
# operations. So a preview shows the pod that results when jsonpatch, an independent library,
# applies them to the original pod, as the API server would. If the result differs from the
# decision's pod, or from the pod in the rewritten document, the webhook has a defect, and there is
# no preview.


class PatchMismatchError(Exception):
    """A defect of the webhook: applying the operations does not give the decision's pod."""


def patch_pod(pod: PodManifest, decision: Decision) -> PodManifest:
    """Apply the decision's operations to `pod` with jsonpatch, and return the result.

    Raises PatchMismatchError if the result is not the decision's pod, and jsonpatch's errors for
    operations that cannot be applied.
    """
    return apply_verified(pod, decision.patch, decision.pod)


def apply_verified(
    pod: PodManifest, ops: Sequence[PatchOp], expected_result: object
) -> PodManifest:
    """Apply operations to `pod` with jsonpatch, verify the result, and return it.

    Raises the same errors as `patch_pod`.
    """
    patched_pod = apply_operations(pod, ops)
    verify_patch(patched_pod, expected_result)
    return patched_pod


def apply_operations(pod: PodManifest, ops: Sequence[PatchOp]) -> PodManifest:
    """Apply operations with jsonpatch to a copy; without operations, return the pod itself."""
    if not ops:
        return pod
    # jsonpatch edits in place, so no two parts may be one object, unlike YAML's aliases.
    unshared = json.loads(json.dumps(pod, ensure_ascii=False))
    patched_pod: PodManifest = jsonpatch.JsonPatch(ops).apply(unshared, in_place=True)
    return patched_pod


def verify_patch(patched_pod: PodManifest, expected_result: object) -> None:
    """Raise PatchMismatchError unless jsonpatch's pod equals the expected one."""
    if not same_json(patched_pod, expected_result):
        raise PatchMismatchError(
            "the operations of the patch do not produce the pod that was decided on"
        )


# The documents of a report with their patches applied, and the patches themselves.


class RewrittenDocument(NamedTuple):
    """One document with the patches of its pods applied."""

    text: str
    warning: str  #: why comments and order are lost; "" if they are kept


def patches(documents: Sequence[Document], report: Report) -> list[list[PatchOp]]:
    """Return the RFC 6902 patch of each document; empty if nothing changes."""
    document_patches: list[list[PatchOp]] = [[] for _ in documents]
    for edit in report.edits:
        base = pointer(edit.template_path)
        for op in edit.ops:
            document_patches[edit.document].append({**op, "path": base + op["path"]})
    return document_patches


def rewrite(
    documents: Sequence[Document], report: Report, *, max_characters: int | None = MAX_CHARACTERS
) -> list[RewrittenDocument]:
    """Return the text of each document with its patches applied, keeping comments and order.

    Raises DocumentError if the texts have more than `max_characters`. A document that has to be
    rewritten completely grows: its indentation changes, and its aliases are expanded.
    """
    changed: list[list[Edit]] = [[] for _ in documents]
    for edit in report.edits:
        if edit.ops:
            changed[edit.document].append(edit)
    rewritten: list[RewrittenDocument] = []
    length = 0
    for document, edits in zip(documents, changed, strict=True):
        rewritten.append(
            _rewrite_document(document, edits) if edits else RewrittenDocument(document.text, "")
        )
        length += len(rewritten[-1].text)
        check_length(length, max_characters)
    return rewritten


def _rewrite_document(document: Document, edits: Sequence[Edit]) -> RewrittenDocument:
    value = apply_patches(document.value, [(edit.template_path, edit.ops) for edit in edits])
    for edit in edits:
        verify_patch(edit.patched_template, at(value, edit.template_path))
    spliced = splice(document, value)
    return RewrittenDocument(spliced.text, spliced.warning)


def layout_remarks(
    documents: Sequence[Document], rewritten: Sequence[RewrittenDocument]
) -> list[tuple[str, str]]:
    """List the documents that lost comments and order, each as a label and an escaped sentence."""
    return [
        ("warning", visible(f"{document.name}:{document.line}: {new.warning}"))
        for document, new in zip(documents, rewritten, strict=True)
        if new.warning
    ]


# Write the decisions on a template's pods into the template, as far as possible.
#
# If a controller adds to its pods, the operations on them are repeated on the template as far as
# they have a place there (`workloads.patch`), and jsonpatch proves the result as it proves a pod.


class TemplateEdit(NamedTuple):
    """The operations on a template, and the mutations left to admission."""

    ops: tuple[PatchOp, ...]  #: with paths below the template
    patched_template: PodManifest  #: the template with the operations, which jsonpatch applied
    deferred: tuple[str, ...] = ()  #: the mutations with operations that have no place there


def template_edit(
    template: Template,
    pods: Sequence[ControllerPod],
    decisions: Sequence[Decision],
    decide_on: Callable[[PodManifest], Decision],
) -> TemplateEdit:
    """Return the edit of a template, given its pods and the decisions on them.

    If a controller makes several kinds of pods from one template, each is decided on again with
    the edits for its predecessors, so that nothing is written twice. Pods with the template's
    own command come first: a variable that the template got for another pod, such as hcoll's,
    would keep mutations from editing that command. Raises PatchMismatchError.

    The status is left out: it describes the admission of one pod by one configuration. In a
    template it would soon be stale, and its pods would look as if the webhook had been called for
    them.
    """
    if template.spec_only:
        return _spec_edit(template, *decisions)
    if len(pods) == 1 and pods[0].pod is template.pod:
        ops = tuple(_outcome_operations(decisions[0]))
        return TemplateEdit(ops, apply_operations(template.pod, ops))
    patched_template, all_ops = template.pod, list[PatchOp]()
    withheld = _needed_by_some(decisions)
    deferred = dict.fromkeys(withheld)
    for index in sorted(range(len(pods)), key=lambda index: _writes_command(pods[index], template)):
        if all_ops:
            controller_pod = controller_pods(template._replace(pod=patched_template))[index]
            current_decision = decide_on(controller_pod.pod)
        else:
            controller_pod, current_decision = pods[index], decisions[index]
        template_patch = transfer_to_template(
            patched_template,
            controller_pod.pod,
            _outcome_operations(current_decision, without=withheld),
        )
        patched_template = apply_verified(
            patched_template, template_patch.ops, template_patch.patched_template
        )
        all_ops += template_patch.ops
        deferred.update(dict.fromkeys(_mutations_of(current_decision, template_patch.deferred)))
    return TemplateEdit(tuple(all_ops), patched_template, tuple(deferred))


def _spec_edit(template: Template, decision: Decision) -> TemplateEdit:
    """Edit a pod spec without metadata: there is no place for mutations that annotate the pod."""
    pod_ops = _outcome_operations(decision)
    annotating = set(
        _mutations_of(decision, [op for op in pod_ops if not op["path"].startswith(_SPEC)])
    )
    annotating_ops = [
        op for outcome in decision.outcomes if outcome.mutation in annotating for op in outcome.ops
    ]
    template_ops = [op for op in pod_ops if not any(op is other for other in annotating_ops)]
    template_patch = transfer_to_template(template.pod, template.pod, template_ops)
    ops: list[PatchOp] = [
        {**op, "path": op["path"].removeprefix(_SPEC[:-1])} for op in template_patch.ops
    ]
    spec = apply_verified(template.pod["spec"], ops, template_patch.patched_template["spec"])
    return TemplateEdit(tuple(ops), spec, tuple(sorted(annotating)))


_SPEC = "/spec/"


def _writes_command(controller_pod: ControllerPod, template: Template) -> bool:
    """Return whether the controller writes the command of the pod's first container."""
    command = (*MAIN_CONTAINER, "command")
    return bool(at(controller_pod.pod, command) != at(template.pod, command))


def _needed_by_some(decisions: Sequence[Decision]) -> list[str]:
    """List the mutations that give a NIC or a node to a pod, and not to all pods of a template.

    In the template, they would also give it to a launcher, which would wait for a NIC that it
    does not use.
    """
    applied = [
        {outcome.mutation for outcome in decision.outcomes if outcome.status == "applied"}
        for decision in decisions
    ]
    return [
        mutation
        for mutation in _BINDING_MUTATIONS
        if 0 < sum(mutation in mutations for mutations in applied) < len(applied)
    ]


#: The mutations that tie a pod to a NIC or to nodes.
_BINDING_MUTATIONS = ("claims", "networks", "placement")


def _outcome_operations(decision: Decision, without: Sequence[str] = ()) -> list[PatchOp]:
    """List the operations of the outcomes: the patch without the status."""
    outcomes = [outcome for outcome in decision.outcomes if outcome.mutation not in without]
    return [op for outcome in outcomes for op in outcome.ops] if decision.patch else []


def _mutations_of(decision: Decision, ops: Sequence[PatchOp]) -> Iterator[str]:
    """Yield the mutations that these operations belong to."""
    for outcome in decision.outcomes:
        if any(outcome_op is op for outcome_op in outcome.ops for op in ops):
            yield outcome.mutation
