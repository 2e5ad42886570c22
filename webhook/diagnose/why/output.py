"""An explanation as JSON and as text.

The JSON is stable and described by `why.schema.json`: keys may be added, but neither keys nor codes
are ever renamed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from webhook.diagnose.codes import CodeExplanation
from webhook.diagnose.why.explanation import HEADINGS, Explanation, Level, Sentence
from webhook.model.json import JsonObject
from webhook.text.terminal import Sheet, Span

_SCHEMA = Path(__file__).with_name("why.schema.json")


def why_form(explanations: Iterable[Explanation]) -> JsonObject:
    """Return explanations as plain JSON values."""
    return {"pods": [_pod(explanation) for explanation in explanations]}


def _pod(explanation: Explanation) -> JsonObject:
    return {
        "namespace": explanation.namespace,
        "name": explanation.pod,
        "owners": list(explanation.owners),
        "rdma": explanation.rdma,
        "well": explanation.well,
        "answer": _sentence_form(explanation.answer),
        "chapters": [
            {
                "name": chapter.name,
                "sentences": [_sentence_form(sentence) for sentence in chapter.sentences],
            }
            for chapter in explanation.chapters
        ],
    }


def _sentence_form(sentence: Sentence) -> dict[str, str]:
    return {
        "code": sentence.code,
        "level": sentence.level,
        "text": sentence.text,
        "remedy": sentence.remedy,
    }


def code_form(explanation: CodeExplanation) -> JsonObject:
    """Return the meaning of a code as plain JSON values."""
    return {
        "code": explanation.code,
        "rdma": explanation.rdma,
        "meaning": explanation.meaning,
        "rows": [{"part": row.part, "when": row.when} for row in explanation.rows],
        "remedy": explanation.remedy,
    }


def why_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of both forms."""
    return _SCHEMA.read_text(encoding="utf-8")


# An explanation as text.

_SIGNS: dict[Level, Span] = {
    "good": Span("✔", "green"),
    "fact": Span("·", "dim"),
    "unsure": Span("?", "yellow"),
    "problem": Span("✘", "bold red"),
}
_ARROW = Span("→", "bold")
_INDENT = 2
_NARROWEST = 40
_DO_NOTHING = "There is nothing to do."


def why_text(explanations: Iterable[Explanation], *, width: int = 100, colour: bool = False) -> str:
    """Return explanations as lines of at most `width` columns."""
    sheet = Sheet(max(width, _NARROWEST), colour=colour)
    for number, explanation in enumerate(explanations):
        if number:
            sheet.blank()
        _write(sheet, explanation)
    return sheet.text


def _write(sheet: Sheet, explanation: Explanation) -> None:
    heading = [Span(f"Pod {explanation.namespace}/{explanation.pod or '(no name)'}", "bold")]
    if explanation.owners:
        heading.append(Span(f"  (of {', of '.join(explanation.owners)})", "dim"))
    sheet.paragraph(*heading)
    _sentence(sheet, explanation.answer)
    for chapter in explanation.chapters:
        sheet.blank()
        sheet.paragraph(Span(HEADINGS[chapter.name], "bold"))
        for sentence in chapter.sentences:
            remedy = "" if sentence.remedy == explanation.answer.remedy else sentence.remedy
            _sentence(sheet, sentence._replace(remedy=remedy))


def _sentence(sheet: Sheet, sentence: Sentence) -> None:
    sheet.paragraph(Span(sentence.text), sign=_SIGNS[sentence.level], indent=_INDENT)
    if sentence.remedy:
        sheet.paragraph(Span(sentence.remedy), sign=_ARROW, indent=2 * _INDENT)


def code_text(explanation: CodeExplanation, *, width: int = 100, colour: bool = False) -> str:
    """Return the meaning of a reason code as lines of at most `width` columns."""
    sheet = Sheet(max(width, _NARROWEST), colour=colour)
    sheet.paragraph(Span(explanation.code, "bold"))
    if explanation.meaning:
        sheet.paragraph(Span(explanation.meaning), indent=_INDENT)
    whens: dict[str, list[str]] = {}
    for row in explanation.rows:
        whens.setdefault(row.when, []).append(row.part)
    for when, parts in whens.items():
        sheet.paragraph(Span(when), sign=Span(f"{', '.join(parts)}:", "dim"), indent=_INDENT)
    sheet.paragraph(Span(explanation.remedy or _DO_NOTHING), sign=_ARROW, indent=_INDENT)
    return sheet.text
