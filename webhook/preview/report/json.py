"""The JSON form of a preview, the same for `-o json` and the HTTP preview.

Keys and codes may be added, but are never renamed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NotRequired

from typing_extensions import TypedDict

from webhook.model.decision import Outcome, Rdma, Reason, Status, Verdict
from webhook.model.json import JsonObject
from webhook.model.traffic_libraries import TrafficLibrary
from webhook.preview.changed_inputs import ChangedInput, ReasonedHunk
from webhook.preview.formats import MAX_CHARACTERS, check_length
from webhook.preview.line_reasons import LineReason
from webhook.preview.report.record import Preview, Report, headline_of
from webhook.text.escape import visible_json
from webhook.text.line_rows import RowKind


class OperationForm(TypedDict):
    """An operation of RFC 6902."""

    op: str
    path: str
    value: NotRequired[object]


class OutcomeForm(TypedDict):
    """What a mutation did to a container, or to the pod."""

    mutation: str
    """The mutation's name, as in rdma.lab/skip."""
    container: str
    """The container's name; empty for the pod."""
    status: Status
    """applied, already, skipped, failed or warned."""
    reason: str
    """A stable code."""
    message: str
    """The reason as a sentence, with names and values."""
    ops: list[OperationForm]
    """The operations of this outcome; empty unless it is applied."""


class BecauseForm(TypedDict):
    """The reason for a verdict."""

    reason: str
    """A stable code."""
    message: str
    """The reason as a sentence, with a remedy."""


class VerdictForm(TypedDict):
    """A verdict and its reason; written out, since the schema omits inherited descriptions."""

    rdma: Rdma
    """yes, no, unsure or none; only in `ifCalled`."""
    reason: str
    """A stable code."""
    message: str
    """The reason as a sentence, with a remedy."""


class DecisionForm(TypedDict):
    """The decision on a pod."""

    document: int
    """The number of the document, counted from 0 over all inputs."""
    path: str
    """The path of the pod template in its document, such as spec.template; empty for a pod."""
    kind: str
    """The kind of the object that contains the template."""
    name: str
    """The object's name or generateName; empty if it has neither."""
    namespace: str
    """The pod's own namespace, or the namespace given for objects without one."""
    controller: str
    """The controller whose additions the decision includes; empty for a pod as in the document."""
    role: str
    """The kind of pod, if a controller makes several kinds from one template; otherwise empty."""
    derived: bool
    """Whether the pod was derived from a container, or from a part that resembles a pod spec,
    outside any pod template: its operator may add more."""
    called: bool | None
    """Whether the API server would call the webhook for the pod; null if the namespace's labels are
    unknown, or if a matchCondition of the cluster's webhook cannot be evaluated."""
    calledBecause: str
    """The reason for `called`, as a sentence."""
    hint: str
    """For a pod that has not opted in: the apparent attempt to opt in; empty without one."""
    mistakes: list[str]
    """Sentences on mistakes in the pod or template that no webhook sees: fields that Kubernetes
    does not know, with the nearest known one, and unexpanded variables."""
    headline: str
    """The verdict in a few words, such as `equipped for RDMA`, `no RDMA`, or `not opted in`."""
    rdma: Rdma | None
    """Whether the pod is equipped for RDMA, as far as admission can see: `yes`, `no`, `unsure`;
    `none`: it only starts ranks in other pods; null: it has not opted in. `no` if `called` is
    false."""
    because: BecauseForm | None
    """The reason for the verdict, an object with `reason` and `message`; null if the pod has not
    opted in."""
    ifCalled: VerdictForm | None
    """The verdict if the webhook were called, an object with `rdma`, `reason` and `message`; null
    unless `called` is false for a pod that opted in."""
    libraries: list[TrafficLibrary]
    """The libraries that move the pod's data between nodes, as far as the pod shows: the verdict is
    about them. Empty if the pod is denied, has no container that needs RDMA, or has not opted
    in."""
    allowed: bool
    """false: the webhook denies the pod."""
    reason: str
    """The stable code of the decision as a whole."""
    message: str
    """The reason as a sentence; may be empty."""
    fabric: str | None
    """The pod's fabric; null if unknown."""
    evidence: str
    """The evidence for the fabric; may be empty."""
    outcomes: list[OutcomeForm]
    """For each mutation and container, one outcome with the status applied, already, skipped or
    failed, then any number with the status warned."""
    warnings: list[str]
    """The warnings that the user sees when the pod is created."""
    patch: list[OperationForm]
    """The operations on the pod as its controller creates it: those of the outcomes in order, then
    the status annotation. (-o patch has the operations on the document.)"""
    object: JsonObject
    """The pod after the patch, including its controller's additions."""


class RowReasonForm(TypedDict):
    """An applied outcome that changed a line."""

    decision: int
    """The decision's index in `decisions`."""
    mutation: str
    """The mutation's name."""
    container: str
    """The container's name; empty for the pod."""
    reason: str
    """A stable code."""


class RowForm(TypedDict):
    """A line of an input before and after the patch."""

    kind: RowKind
    """same, changed, added or removed."""
    before: str | None
    """The line without its line break; null if there is none."""
    after: str | None
    """The line after the patch; null if there is none."""
    reasons: list[RowReasonForm]
    """The outcomes that changed the line, as far as they are known; empty for the same line."""


class HunkForm(TypedDict):
    """Adjacent changes, with three lines above and below."""

    beforeLine: int
    """The number of the first line in the input, counted from 1."""
    afterLine: int
    """The number of the first line after the patch."""
    rows: list[RowForm]
    """The lines, before and after the patch."""


class ChangesForm(TypedDict):
    """The changes of an input."""

    input: str
    """The name of the input, such as a file."""
    hunks: list[HunkForm]
    """The changes, in the order of the input."""


class CodeForm(TypedDict):
    """The explanation of a code."""

    meanings: dict[str, str]
    """What the code stands for, as a sentence for each mutation that has it; the mutation is empty
    for a verdict or a decision."""
    remedy: str
    """What to do; empty for nothing."""


class PreviewForm(TypedDict):
    """The webhook's decision on each pod and pod template of the input."""

    decisions: list[DecisionForm]
    """One for each pod or pod template, in the order of the input."""
    changes: list[ChangesForm]
    """The lines that change in each input, as in `-o diff`; inputs without changes are missing."""
    codes: dict[str, CodeForm]
    """The explanation of each reason code in the decisions."""
    notes: list[str]
    """Sentences about documents without a pod template, about objects that cannot be previewed, and
    about objects of a cluster that could not be read."""
    example: bool
    """Whether the fabrics are an example, because none were given."""


def report_form(report: Report, changes: Iterable[ChangedInput] = ()) -> PreviewForm:
    """Return a report as plain JSON values, which share parts with the pods."""
    return {
        "decisions": [_decision(preview) for preview in report.previews],
        "changes": [_changes(changed_input) for changed_input in changes],
        "codes": _codes(report),
        "notes": list(report.notes),
        "example": bool(report.example),
    }


def report_json(
    report: Report,
    changes: Iterable[ChangedInput] = (),
    *,
    max_characters: int | None = MAX_CHARACTERS,
) -> str:
    """Return a report as indented JSON; raise DocumentError if it has more than `max_characters`.

    The standard library writes it, since orjson rejects integers beyond 64 bits and nesting beyond
    254, and a document may have both. It writes piece by piece, so an overlong text is never
    completely in memory. Invisible characters are escaped, which does not change their meaning.
    """
    pieces: list[str] = []
    length = 0
    form = report_form(report, changes)
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(form):
        pieces.append(piece)
        length += len(piece)
        check_length(length, max_characters)
    return visible_json("".join((*pieces, "\n")))


def preview_schema() -> str:
    """Return the JSON Schema of the form."""
    from webhook.text.schema import form_schema  # noqa: PLC0415 -- only for this output

    return form_schema(PreviewForm, "The output of rdma-webhook preview -o json")


def _decision(preview: Preview) -> DecisionForm:
    decision = preview.decision
    return {
        "document": preview.document,
        "path": preview.path,
        "kind": preview.kind,
        "name": preview.name,
        "namespace": preview.namespace,
        "controller": preview.controller,
        "role": preview.role,
        "derived": preview.derived,
        "called": preview.called,
        "calledBecause": preview.called_because,
        "hint": preview.hint,
        "mistakes": list(preview.mistakes),
        "headline": headline_of(preview).text,
        "rdma": preview.verdict.rdma if preview.verdict else None,
        "because": _because(preview.verdict) if preview.verdict else None,
        "ifCalled": _if_called(preview),
        "libraries": list(decision.verdict.libraries) if decision.verdict else [],
        "allowed": decision.allowed,
        "reason": decision.reason.code,
        "message": decision.message,
        "fabric": decision.fabric,
        "evidence": decision.fabric_evidence,
        "outcomes": [_outcome(outcome) for outcome in decision.outcomes],
        "warnings": list(decision.warnings),
        "patch": list(decision.patch),
        "object": preview.pod,
    }


def _if_called(preview: Preview) -> VerdictForm | None:
    """Return the decision's verdict if the preview's differs since the webhook is not called."""
    verdict = preview.decision.verdict
    if verdict is None or preview.verdict is verdict:
        return None
    return {"rdma": verdict.rdma, **_because(verdict)}


def _because(verdict: Verdict) -> BecauseForm:
    return {"reason": verdict.because.code, "message": verdict.message}


def _outcome(outcome: Outcome) -> OutcomeForm:
    return {
        "mutation": outcome.mutation,
        "container": outcome.container,
        "status": outcome.status,
        "reason": outcome.reason.code,
        "message": outcome.message,
        "ops": list(outcome.ops),
    }


def _codes(report: Report) -> dict[str, CodeForm]:
    codes: dict[str, CodeForm] = {}
    for mutation, reason in (pair for preview in report.previews for pair in _reasons(preview)):
        code = codes.setdefault(reason.code, {"meanings": {}, "remedy": reason.remedy})
        code["meanings"][mutation] = reason.meaning
    return codes


def _reasons(preview: Preview) -> Iterator[tuple[str, Reason]]:
    """Yield the reasons whose codes are in the form of a decision, each with its mutation."""
    decision = preview.decision
    yield "", decision.reason
    yield from (("", verdict.because) for verdict in (preview.verdict, decision.verdict) if verdict)
    yield from ((outcome.mutation, outcome.reason) for outcome in decision.outcomes)


def _changes(changed_input: ChangedInput) -> ChangesForm:
    return {"input": changed_input.name, "hunks": [_hunk(hunk) for hunk in changed_input.hunks]}


def _hunk(hunk: ReasonedHunk) -> HunkForm:
    return {
        "beforeLine": hunk.before_start + 1,
        "afterLine": hunk.after_start + 1,
        "rows": [
            {
                "kind": row.kind,
                "before": _without_break(row.before),
                "after": _without_break(row.after),
                "reasons": [_row_reason(reason) for reason in reasons],
            }
            for row, reasons in zip(hunk.rows, hunk.reasons, strict=True)
        ],
    }


def _without_break(line: str | None) -> str | None:
    return line if line is None else line.removesuffix("\n").removesuffix("\r")


def _row_reason(reason: LineReason) -> RowReasonForm:
    return {
        "decision": reason.decision,
        "mutation": reason.mutation,
        "container": reason.container,
        "reason": reason.code,
    }
