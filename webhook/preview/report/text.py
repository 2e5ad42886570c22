"""A report for people: what happens to each pod and why, in a few lines.

Every warning of a decision is also one of its outcomes or its message, so the list of warnings is
not shown separately. Names and messages may contain any character that a document contains; the
sheet makes invisible ones visible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from webhook.decide.examine.targets import TAKEN_FOR_LAUNCHER
from webhook.decide.verdict import EQUIPPED
from webhook.model.annotations import ENABLE
from webhook.model.decision import Decision, Outcome, Status, Verdict
from webhook.model.facts import LABEL
from webhook.model.pod import dotted
from webhook.preview.report.record import (
    NO_TEMPLATE,
    OPTIONS,
    Barrier,
    Preview,
    Report,
    Wording,
    barrier_of,
    first_names,
    folded,
    headline_of,
    not_opted_in,
)
from webhook.text.terminal import Sheet, Span, TableColumn

_STYLES: dict[Status, str] = {
    "applied": "green",
    "already": "cyan",
    "skipped": "dim",
    "warned": "yellow",
    "failed": "bold red",
}
_COLUMNS = (
    TableColumn("mutation"),
    TableColumn("container", 24),
    TableColumn("status"),
    TableColumn("why"),
)
_INDENT = 2
#: A narrower text cannot be read.
_NARROWEST = 40
#: The most notes that are shown.
_NOTES = 200
#: The most names in one remark.
_NAMES = 12
#: The most words that a warning may have beyond a reason and still count as a repetition.
_FEW = 3
#: Below what names reason codes.
_EXPLAINED = "rdma-webhook why CODE explains a code in brackets"
_ATTENTION = Span("!", "yellow")
_OPEN = Span("?", "yellow")


class _Row(NamedTuple):
    """One row for the same outcome in several containers."""

    mutation: str
    status: Status
    warns: bool  #: whether a skipped mutation also has a warning
    message: str
    code: str  #: the reason code of what was skipped or warned of, or failed; else ""


class _Shown(NamedTuple):
    """What was written about some pods: the number of warnings, and of reason codes."""

    warnings: int
    codes: int


def report_text(
    report: Report, *, width: int = 100, colour: bool = False, ways: Wording = OPTIONS
) -> str:
    """Return the report as lines of at most `width` columns; `colour` adds ANSI colours."""
    sheet = Sheet(max(width, _NARROWEST), colour=colour)
    if report.example:
        sheet.paragraph(Span(_example(report.example, ways)), sign=_ATTENTION)
        sheet.blank()
    shown = _Shown(0, 0)
    for preview in report.previews:
        more = _show(sheet, preview, ways)
        shown = _Shown(shown.warnings + more.warnings, shown.codes + more.codes)
        sheet.blank()
    _remark(sheet, report, ways)
    sheet.paragraph(*_summary(report, shown.warnings))
    if shown.codes:
        sheet.paragraph(Span(_EXPLAINED, "dim"))
    return sheet.text


def _example(names: str, ways: Wording) -> str:
    return f"EXAMPLE: these are example fabrics ({names}), not yours; {ways.fabrics}"


def _show(sheet: Sheet, preview: Preview, ways: Wording) -> _Shown:
    """Write all about one pod; return what to say of it below."""
    decision = preview.decision
    barrier = barrier_of(decision)
    loud = [one for one in decision.outcomes if not (one.reason.quiet or barrier.tells(one))]
    _head(sheet, preview)
    _judge(sheet, preview, barrier, ways)
    rows = _rows(loud)
    if rows:
        sheet.table(_COLUMNS, list(_cells(rows)), indent=2 * _INDENT)
    for line in _silent(decision, loud):
        sheet.paragraph(Span(line, "dim"), indent=2 * _INDENT)
    warnings = sum(row.warns or row.status == "warned" for row in rows)
    return _Shown(warnings, sum(bool(row.code) for row in rows) + bool(_code(preview)))


def _head(sheet: Sheet, preview: Preview) -> None:
    """Write which pod it is; who creates it is on a line of its own where there is no room."""
    heading = list(_heading(preview))
    if preview.controller:
        role = f"{preview.role}, " if preview.role else ""
        creator = Span(f"({role}as {preview.controller} creates it)", "dim")
        if sheet.fits(*heading, Span("  "), creator):
            heading += [Span("  "), creator]
        else:
            sheet.paragraph(*heading)
            sheet.paragraph(creator, indent=_INDENT)
            return
    sheet.paragraph(*heading)


def _heading(preview: Preview) -> Iterator[Span]:
    name = f"{preview.namespace}/{preview.name}" if preview.name else f"in {preview.namespace}"
    yield Span(f"{preview.kind} {name}", "bold")
    if preview.path:
        yield Span(f"  {preview.path}")
    yield Span(f"  {preview.source}:{preview.line}", "dim")


def _judge(sheet: Sheet, preview: Preview, barrier: Barrier, ways: Wording) -> None:
    """Write whether the pod will have RDMA; if the webhook is not called, that is why not."""
    headline = headline_of(preview)
    line = [Span(headline.word, headline.style), *_fabric(preview)]
    because = _because(preview, ways)
    if because:
        line.append(Span(f": {because}"))
    line += [Span(_assumed(preview.verdict), "dim"), Span(_code(preview), "dim")]
    sheet.paragraph(*line, sign=Span(headline.sign, headline.style), indent=_INDENT)
    more = [preview.hint, _if_called(preview)]
    if not not_opted_in(preview) and barrier.message not in because:
        more.append(barrier.message)
    for sentence in filter(None, more):
        sheet.paragraph(Span(sentence), sign=_ATTENTION, indent=_INDENT)


def _assumed(verdict: Verdict | None) -> str:
    """Return what an equipped pod's verdict assumes: ", assuming that …", or ""."""
    if verdict is None or verdict.because is not EQUIPPED:
        return ""
    return verdict.message.removeprefix(EQUIPPED.sentence)


def _code(preview: Preview) -> str:
    """Return the code that explains why a pod has no RDMA, or may have none; else ""."""
    verdict = preview.verdict
    if verdict is None or verdict.rdma in ("yes", "none"):
        return ""
    return f" [{verdict.because.code}]"


def _because(preview: Preview, ways: Wording) -> str:
    """Say why a pod will have no RDMA, or may have none; "" if it is equipped."""
    verdict = preview.verdict
    if verdict is None and preview.bare:
        return (
            "their controller writes the pods' metadata; to preview them as if they had opted "
            f"in, use {ways.enable}"
        )
    if verdict is None:
        where = dotted((*preview.steps, "metadata", "annotations"))
        return (
            f'add {ENABLE}: "true" to {where}; to preview the pod as if it had opted in, use '
            f"{ways.enable}"
        )
    return "" if verdict.rdma == "yes" else verdict.message


def _if_called(preview: Preview) -> str:
    """Say what the verdict would be if the webhook were called."""
    verdict = preview.decision.verdict
    if verdict is None or preview.verdict is verdict:
        return ""
    called = headline_of(replace(preview, called=None))
    rest = f": {verdict.message}" if verdict.rdma != "yes" else _assumed(verdict)
    return f"if it were called: {called.word}{rest}"


def _fabric(preview: Preview) -> Iterator[Span]:
    decision = preview.decision
    if decision.fabric is not None and preview.verdict is decision.verdict:
        yield Span(f" over {decision.fabric}")
        if decision.evidence:
            yield Span(f" ({decision.evidence})", "dim")


def _cells(rows: Mapping[_Row, list[str]]) -> Iterator[list[Span]]:
    previous = ""
    for row, containers in rows.items():
        yield [
            Span("" if row.mutation == previous else row.mutation),
            Span(", ".join(containers)),
            Span(f"{row.status} !", "yellow")
            if row.warns
            else Span(row.status, _STYLES[row.status]),
            Span(f"{row.message} [{row.code}]" if row.code else row.message),
        ]
        previous = row.mutation


def _rows(outcomes: Iterable[Outcome]) -> dict[_Row, list[str]]:
    """Merge equal outcomes of several containers, and a warning into the row that it repeats."""
    skipped: dict[tuple[str, str], Outcome] = {}
    warns: set[tuple[str, str]] = set()
    said: list[Outcome] = []
    for outcome in outcomes:
        key = (outcome.mutation, outcome.container)
        if outcome.status == "skipped":
            skipped[key] = outcome
        elif outcome.status == "warned" and key in skipped and _repeats(outcome, skipped[key]):
            warns.add(key)
            continue
        said.append(outcome)
    rows: dict[_Row, list[str]] = {}
    for one in said:
        mark = one.status == "skipped" and (one.mutation, one.container) in warns
        # Who was recognized as a launcher needs no explanation.
        plain = one.status in ("applied", "already") or one.reason is TAKEN_FOR_LAUNCHER
        code = "" if plain else one.reason.code
        row = _Row(one.mutation, one.status, mark, one.message or one.reason.sentence, code)
        rows.setdefault(row, []).append(one.container or "(pod)")
    return rows


def _repeats(warned: Outcome, skipped: Outcome) -> bool:
    """Whether a warning only repeats why the mutation was skipped.

    The reason that nvlink gives contains all its warnings; ipc-lock's has the same words in another
    order. The warning of env also names variables, so it is shown.
    """
    if warned.message in skipped.message:
        return True
    new = set(warned.message.split()) - set(skipped.message.split())
    return warned.reason.code == skipped.reason.code and len(new) <= _FEW


def _silent(decision: Decision, loud: Iterable[Outcome]) -> Iterator[str]:
    """Name the mutations without a row: held back for the verdict's reason, or not needed."""
    shown = {outcome.mutation for outcome in loud}
    silent = [
        outcome
        for outcome in decision.outcomes
        if outcome.mutation not in shown and outcome.status != "warned"
    ]
    also = dict.fromkeys(one.message for one in silent if one.status == "applied")
    if also:
        yield f"also {', '.join(also)}"
        silent = [one for one in silent if one.message not in also]
    held = {outcome.mutation: None for outcome in silent if not outcome.reason.quiet}
    idle = {outcome.mutation: None for outcome in silent if outcome.mutation not in held}
    for label, names in (("held back", held), ("nothing to do", idle)):
        if names:
            yield f"{label}: {', '.join(names)}"


def _remark(sheet: Sheet, report: Report, ways: Wording) -> None:
    """Write remarks on several pods or none: unknown namespaces, notes, objects without pods."""
    unsure = [one for one in report.previews if one.called is None and not not_opted_in(one)]
    unknown = dict.fromkeys(one.namespace for one in unsure if not one.labels_known)
    if unknown:
        sheet.paragraph(Span(_unknown(list(unknown), ways)), sign=Span("note:", "dim"))
    for why in dict.fromkeys(one.called_because for one in unsure if one.labels_known):
        sheet.paragraph(
            Span(f"it is not known whether the webhook would be called: {why}"), sign=_OPEN
        )
    suffix = f": {NO_TEMPLATE}"
    empty = [note.removesuffix(suffix) for note in report.notes if note.endswith(suffix)]
    notes = folded((note for note in report.notes if not note.endswith(suffix)), most=_NAMES)
    if empty:
        notes.append(f"{NO_TEMPLATE} in {first_names(empty, most=_NAMES)}")
    for note in [*notes[:_NOTES], *_others(len(notes))]:
        sheet.paragraph(Span(note), sign=Span("note:", "dim"))


def _others(notes: int) -> list[str]:
    return [f"{notes - _NOTES:,} more notes (see the JSON output)"] if notes > _NOTES else []


def _unknown(namespaces: list[str], ways: Wording) -> str:
    names = first_names(namespaces, most=_NAMES)
    which = f"namespace {names} has" if len(namespaces) == 1 else f"namespaces {names} have"
    return (
        f'the webhook is called only if {which} the label {LABEL}: "true", which is not known '
        f"here: {ways.labels}"
    )


def _summary(report: Report, warnings: int) -> Iterator[Span]:
    if not report.previews:
        yield Span("the input has no pods and no pod templates", "yellow")
        return
    yield Span(f"{_count(len(report.previews), 'pod')}: ")
    headlines = [headline_of(preview) for preview in report.previews]
    counts = Counter(headline.counted for headline in headlines)
    styles = {headline.counted: headline.style for headline in headlines}
    for index, (counted, number) in enumerate(sorted(counts.items())):
        yield Span(", " if index else "")
        yield Span(f"{number} {counted}", styles[counted])
    if warnings:
        yield Span("; ")
        yield Span(_count(warnings, "warning"), "yellow")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
