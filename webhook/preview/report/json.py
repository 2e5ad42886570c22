"""The JSON form of a preview, the same for `-o json` and the HTTP preview.

It is stable and described by `form.schema.json`: keys may be added, but are never renamed.
"""

from __future__ import annotations

import json
from pathlib import Path

from webhook.errors import DocumentError
from webhook.model.decision import Outcome, Verdict
from webhook.model.json import JsonObject
from webhook.preview.report.record import Preview, Report
from webhook.text.escape import visible_json

#: The largest number of characters of an answer over HTTP; beyond it, writing stops at once.
LONGEST = 32 << 20
_SCHEMA = Path(__file__).with_name("form.schema.json")


def form(report: Report) -> JsonObject:
    """Return a report as plain JSON values, which share parts with the pods."""
    return {
        "decisions": [_decision(preview) for preview in report.previews],
        "notes": list(report.notes),
        "example": bool(report.example),
    }


def form_text(report: Report, *, max_characters: int | None = LONGEST) -> str:
    """Return a report as indented JSON; DocumentError if it has more than `max_characters`.

    The standard library writes it, since orjson rejects integers beyond 64 bits and nesting beyond
    254, and a document may have both. It writes piece by piece, so an overlong text is never
    completely in memory. Invisible characters are escaped, which does not change their meaning.
    """
    pieces: list[str] = []
    length = 0
    for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(form(report)):
        pieces.append(piece)
        length += len(piece)
        check_length(length, max_characters)
    return visible_json("".join((*pieces, "\n")))


def check_length(length: int, max_characters: int | None) -> None:
    """Raise DocumentError if an answer has too many characters; None: no limit."""
    if max_characters is not None and length > max_characters:
        raise DocumentError(
            f"the answer is longer than {max_characters >> 20} MiB: send fewer pods in one request"
        )


def form_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form."""
    return _SCHEMA.read_text(encoding="utf-8")


def _decision(preview: Preview) -> JsonObject:
    decision = preview.decision
    return {
        "document": preview.document,
        "path": preview.path,
        "kind": preview.kind,
        "name": preview.name,
        "namespace": preview.namespace,
        "controller": preview.controller,
        "role": preview.role,
        "called": preview.called,
        "calledBecause": preview.called_because,
        "hint": preview.hint,
        "rdma": preview.verdict.rdma if preview.verdict else None,
        "because": _because(preview.verdict) if preview.verdict else None,
        "ifCalled": _if_called(preview),
        "allowed": decision.allowed,
        "reason": decision.reason.code,
        "message": decision.message,
        "fabric": decision.fabric,
        "evidence": decision.evidence,
        "outcomes": [_outcome(outcome) for outcome in decision.outcomes],
        "warnings": list(decision.warnings),
        "patch": list(decision.patch),
        "object": preview.pod,
    }


def _if_called(preview: Preview) -> dict[str, str] | None:
    """Return the decision's verdict if the preview's differs since the webhook is not called."""
    verdict = preview.decision.verdict
    if verdict is None or preview.verdict is verdict:
        return None
    return {"rdma": verdict.rdma, **_because(verdict)}


def _because(verdict: Verdict) -> dict[str, str]:
    return {"reason": verdict.because.code, "message": verdict.message}


def _outcome(outcome: Outcome) -> JsonObject:
    return {
        "mutation": outcome.mutation,
        "container": outcome.container,
        "status": outcome.status,
        "reason": outcome.reason.code,
        "message": outcome.message,
        "ops": list(outcome.ops),
    }
