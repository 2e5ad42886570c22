"""The JSON form of a preview, the same for `-o json` and the HTTP preview."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from webhook.model.decision import Outcome, Reason, Verdict
from webhook.preview.changed_inputs import ChangedInput, ReasonedHunk
from webhook.preview.formats import MAX_CHARACTERS, check_length
from webhook.preview.line_reasons import LineReason
from webhook.preview.report.forms import (
    BecauseForm,
    ChangesForm,
    CodeForm,
    DecisionForm,
    HunkForm,
    OutcomeForm,
    PreviewForm,
    RowReasonForm,
    VerdictForm,
)
from webhook.preview.report.record import Preview, Report, headline_of
from webhook.text.escape import visible_json


def report_form(report: Report, changes: Iterable[ChangedInput] = ()) -> PreviewForm:
    """Return a report as plain JSON values, which share parts with the pods."""
    return {
        "decisions": [_decision(preview) for preview in report.previews],
        "changes": [_changes(changed_input) for changed_input in changes],
        "codes": _codes(report),
        "notes": list(report.notes),
        "example": bool(report.example),
        "exampleFabrics": report.example or report.given_example,
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
        "line": preview.line,
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
        "annotationsLocation": preview.annotations_location,
        "optInAssumed": preview.opt_in_assumed,
        "namespaceLabeled": preview.namespace_labeled,
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
