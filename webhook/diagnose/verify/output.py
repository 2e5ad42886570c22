"""An assessment for people."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.verify.results import WORTHS, Assessment, Judgement, Worth
from webhook.text.terminal import Sheet, Span

#: Of a verdict.
SIGNS: dict[Worth, Span] = {
    "pass": Span("✔", "green"),
    "warn": Span("!", "yellow"),
    "inconclusive": Span("?", "yellow"),
    "fail": Span("✘", "bold red"),
}
_ARROW = Span("→", "bold")
_INDENT = 2
_NARROWEST = 40


class Sayable(Protocol):
    """What has a verdict, a reason and a remedy."""

    @property
    def verdict(self) -> Worth:
        """How bad it is."""

    @property
    def because(self) -> str:
        """A sentence."""

    @property
    def remedy(self) -> str:
        """What to do; empty if there is nothing to do."""


def verify_text(assessment: Assessment, *, width: int = 100, colour: bool = False) -> str:
    """Return an assessment as lines of at most `width` columns."""
    sheet = Sheet(max(width, _NARROWEST), colour=colour)
    for one in assessment.judgements:
        heading = [
            Span(title_of(one.measurement), "bold"),
            Span(f"  {where_judged(one)}", "dim"),
        ]
        sheet.paragraph(*heading)
        write_said(sheet, one)
        if one.expected is not None:
            sheet.paragraph(Span(f"expected: {one.source}", "dim"), indent=2 * _INDENT)
        if one.also:
            sheet.paragraph(Span(f"also: {', '.join(one.also)}", "dim"), indent=2 * _INDENT)
    for remark in assessment.remarks:
        sheet.paragraph(Span("All runs", "bold"))
        write_said(sheet, remark)
    sheet.blank()
    write_whole(sheet, assessment)
    return sheet.text


def title_of(run: Measurement | None) -> str:
    """Name a run: its test, device and port."""
    if run is None:
        return "Output"
    name = run.test or run.program
    words = [name, run.device, f"port {run.port}" if run.port is not None else None]
    if run.bidirectional:
        words.append("bidirectional")
    return " ".join(word for word in words if word)


def where_judged(one: Judgement) -> str:
    """Name where a judgement was read: file, line, and machine where there are several."""
    of = f" of {one.node}" if one.node else ""
    return f"{one.file}:{one.lines[0]}{of}"


def write_said(sheet: Sheet, one: Sayable) -> None:
    """Write what is to be said, and what to do."""
    sheet.paragraph(Span(one.because), sign=SIGNS[one.verdict], indent=_INDENT)
    if one.remedy:
        sheet.paragraph(Span(one.remedy), sign=_ARROW, indent=2 * _INDENT)


def write_whole(sheet: Sheet, assessment: Assessment) -> None:
    """Write the last line: what decides, and how many there are of each verdict."""
    worst = assessment.worst
    counted = Counter(one.verdict for one in assessment.everything)
    tally = ", ".join(f"{counted[one]} {one}" for one in WORTHS if counted[one])
    sheet.paragraph(Span(f"{worst.verdict} ({worst.code}): {tally}"), sign=SIGNS[worst.verdict])
