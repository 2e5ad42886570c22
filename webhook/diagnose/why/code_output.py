"""The meaning of codes, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from typing_extensions import TypedDict

from webhook.model.decision import REQUEST_CHECK, Rdma
from webhook.model.finding import Code
from webhook.text.terminal import Sheet, Span, write_remedy

_PARTS = {
    "verdict": "a verdict",
    "decision": "a decision",
    REQUEST_CHECK: "the checks that precede the mutations",
    "log": "a log",
}


class CodeRow(NamedTuple):
    """A code, in one tool or in one part of a decision."""

    #: "webhook" for decisions on pods, else the command that prints the code.
    tool: str
    #: In a decision: "verdict", "decision", the name of a mutation, or REQUEST_CHECK. For a line
    #: of a library's log: "log". Else "".
    part: str
    code: Code
    #: The verdict that the code explains, if any.
    rdma: Rdma | None = None

    @property
    def label(self) -> str:
        """The most exact place where the code occurs, after "in"."""
        if self.part:
            return _PARTS.get(self.part, f"the mutation `{self.part}`")
        return f"the output of {self.tool}"


class CodeExplanation(NamedTuple):
    """All rows of a code."""

    code: str
    #: The verdict that the code explains, if any; the same in all rows that have one.
    rdma: Rdma | None
    #: What the code says about a pod's RDMA, as a sentence; "" for codes that are not reasons.
    effect: str
    rows: tuple[CodeRow, ...]


class CodeRowForm(TypedDict):
    """A code, in one tool or in one part of a decision."""

    tool: str
    """webhook for decisions on pods, else the command that prints the code."""
    part: str
    """Of a decision: a mutation, verdict, decision or request; log for a line of a log; else ""."""
    meaning: str
    """When a finding or an outcome has the code."""
    remedy: str
    """What to do; empty if no action is needed."""


class CodeForm(TypedDict):
    """The meaning of a code."""

    code: str
    rdma: Rdma | None
    """The verdict that the code explains, if any."""
    effect: str
    """What the code says about a pod's RDMA; empty for codes that are not reasons of decisions."""
    rows: list[CodeRowForm]


def code_form(explanation: CodeExplanation) -> CodeForm:
    """Return the meaning of a code as plain JSON values."""
    return CodeForm(
        code=explanation.code,
        rdma=explanation.rdma,
        effect=explanation.effect,
        rows=[
            CodeRowForm(
                tool=row.tool, part=row.part, meaning=row.code.meaning, remedy=row.code.remedy
            )
            for row in explanation.rows
        ],
    )


_INDENT = 2
_MIN_WIDTH = 40
_GAP = 2
_MIN_MEANING_WIDTH = 20
_MAX_WIDTH = 10_000
_NO_ACTION = "No action is needed."


def code_text(explanation: CodeExplanation, *, width: int = 100, color: bool = False) -> str:
    """Return the meaning of a code as lines of at most `width` columns."""
    sheet = Sheet(max(width, _MIN_WIDTH), color=color)
    sheet.paragraph(Span(explanation.code, "bold"))
    if explanation.effect:
        sheet.paragraph(Span(explanation.effect), indent=_INDENT)
    meanings_by_remedy: dict[str, dict[str, list[str]]] = {}
    for row in explanation.rows:
        meanings = meanings_by_remedy.setdefault(row.code.remedy, {})
        meanings.setdefault(row.code.meaning, []).append(row.label)
    for remedy, meanings in meanings_by_remedy.items():
        for meaning, parts in meanings.items():
            place = Span(f"In {' or '.join(', '.join(parts).rsplit(', ', 1))}: ", "dim")
            sheet.paragraph(place, Span(meaning), indent=_INDENT)
        write_remedy(sheet, remedy or _NO_ACTION)
    return sheet.text


def codes_text(
    explanations: Iterable[CodeExplanation], *, width: int | None = None, color: bool = False
) -> str:
    """Return a line for each code and tool, with the code's first meaning there.

    Meanings are cut to `width` columns; None is for files and pipes, such as to grep.
    """
    meanings: dict[tuple[str, str], str] = {}
    for explanation in explanations:
        for row in explanation.rows:
            meanings.setdefault((explanation.code, row.tool), row.code.meaning)
    names = max(len(code) for code, _ in meanings)
    tools = max(len(tool) for _, tool in meanings)
    room = None if width is None else max(width - names - tools - 2 * _GAP, _MIN_MEANING_WIDTH)
    sheet = Sheet(_MAX_WIDTH, color=color)
    sheet.grid(
        [
            (Span(code, "bold"), Span(tool), Span(_cut(meaning, room)))
            for (code, tool), meaning in meanings.items()
        ],
        gap=_GAP,
    )
    return sheet.text


def _cut(sentence: str, room: int | None) -> str:
    if room is None or len(sentence) <= room:
        return sentence
    return f"{sentence[: room - 1].rstrip()}…"
