"""A report for people: what happens to each pod and why, in a few lines.

Every warning of a decision is one of its outcomes or its message, so the list of
warnings is not shown besides. Names and messages may hold anything that a document
holds, so what a terminal could take for a command is written as an escape sequence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from webhook.core.annotations import ENABLE
from webhook.core.decision import Decision, Outcome, Status
from webhook.core.path import dotted
from webhook.render.report import NO_TEMPLATE, Preview, Report, let_through

_STYLES: dict[Status, str] = {
    "applied": "green",
    "already": "cyan",
    "skipped": "yellow",
    "warned": "yellow",
    "failed": "bold red",
}
_INDENT = 2
#: Narrower than this, no table can be read.
_NARROWEST = 40


class _Verdict(NamedTuple):
    """One word on a pod, which the summary counts, and how it is drawn."""

    word: str
    sign: str
    style: str


_BROKEN = _Verdict("failed", "✘", "bold red")
_DENIED = _Verdict("denied", "✘", "bold red")
_NOT_OPTED_IN = _Verdict("not opted in", "○", "yellow")
_PATCHED = _Verdict("patched", "✔", "bold green")
_PARTLY = _Verdict("patched in part", "✔", "bold yellow")
_UNCHANGED = _Verdict("unchanged", "○", "bold")


class _Row(NamedTuple):
    """Outcomes that say the same of several containers, as one row."""

    mutation: str
    status: Status
    message: str


def text(report: Report, *, width: int = 100, colour: bool = False) -> str:
    """Return the report as lines of at most `width` columns, with ANSI colours where asked."""
    stream = StringIO()
    console = _console(stream, max(width, _NARROWEST), colour=colour)
    for preview in report.previews:
        _show(console, preview)
        console.print()
    for line in _remarks(report):
        console.print(line)
    console.print(_summary(report))
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().splitlines())


def _console(stream: StringIO, width: int, *, colour: bool) -> Console:
    # A height besides the width, since rich else believes a dumb terminal to have 80 columns.
    return Console(
        file=stream,
        width=width,
        height=25,
        color_system="standard" if colour else None,
        force_terminal=colour,
        no_color=not colour,
        emoji=False,
        highlight=False,
        markup=False,
        legacy_windows=False,
    )


def _show(console: Console, preview: Preview) -> None:
    loud = [one for one in preview.decision.outcomes if not _told(one, preview.decision)]
    console.print(_heading(preview))
    console.print(Padding(_findings(preview), (0, 0, 0, _INDENT)))
    if loud:
        console.print(Padding(_table(loud), (0, 0, 0, 2 * _INDENT)))
    for line in _silent(preview.decision, loud):
        console.print(Padding(line, (0, 0, 0, 2 * _INDENT)))


def _told(outcome: Outcome, decision: Decision) -> bool:
    """Whether an outcome needs no row: nothing was to do, or the verdict says why."""
    return outcome.reason.quiet or (
        outcome.status == "skipped" and outcome.reason.code == decision.reason.code
    )


def _heading(preview: Preview) -> Text:
    name = f"{preview.namespace}/{preview.name}" if preview.name else f"in {preview.namespace}"
    heading = Text.assemble((_clean(f"{preview.kind} {name}"), "bold"))
    if preview.path:
        heading.append(_clean(f"  {preview.path}"))
    return heading.append(_clean(f"  {preview.source}:{preview.line}"), "dim")


def _verdict(preview: Preview) -> _Verdict:
    decision = preview.decision
    if decision.error is not None:
        return _BROKEN
    if not let_through(decision):
        return _DENIED
    if decision.reason.code == "NotOptedIn":
        return _NOT_OPTED_IN
    if all(outcome.status != "applied" for outcome in decision.outcomes):
        return _UNCHANGED
    return _PATCHED if decision.reason.code == "Patched" else _PARTLY


def _findings(preview: Preview) -> Table:
    """Say what happens to the pod, and where the API server would not even call us."""
    found = Table.grid(padding=(0, 1, 0, 0))
    verdict = _verdict(preview)
    found.add_row(Text(verdict.sign, verdict.style), _verdict_line(preview, verdict))
    if preview.called is False and verdict is not _NOT_OPTED_IN:
        because = f"the webhook is not called: {preview.called_because}"
        found.add_row(Text("!", "yellow"), Text(_clean(because)))
    return found


def _verdict_line(preview: Preview, verdict: _Verdict) -> Text:
    decision = preview.decision
    line = Text.assemble((verdict.word, verdict.style))
    if decision.fabric is not None:
        line.append(_clean(f" for fabric {decision.fabric}"))
        if decision.evidence:
            line.append(_clean(f" ({decision.evidence})"), "dim")
    if verdict is _NOT_OPTED_IN:
        where = dotted((*preview.steps, "metadata", "annotations"))
        line.append(_clean(f': add {ENABLE}: "true" to {where}, or ask what if with --enable'))
    elif decision.message:
        line.append(_clean(f": {decision.message}"))
    return line


def _table(outcomes: Iterable[Outcome]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("mutation", no_wrap=True)
    table.add_column("container", overflow="fold", max_width=24)
    table.add_column("status", no_wrap=True)
    table.add_column("why", overflow="fold", ratio=1)
    previous = ""
    for row, containers in _rows(outcomes).items():
        table.add_row(
            Text("" if row.mutation == previous else row.mutation),
            Text(_clean(", ".join(containers))),
            Text(row.status, _STYLES[row.status]),
            Text(_clean(row.message)),
        )
        previous = row.mutation
    return table


def _rows(outcomes: Iterable[Outcome]) -> dict[_Row, list[str]]:
    rows: dict[_Row, list[str]] = {}
    for outcome in outcomes:
        row = _Row(outcome.mutation, outcome.status, outcome.message or outcome.reason.code)
        rows.setdefault(row, []).append(outcome.container or "(pod)")
    return rows


def _silent(decision: Decision, loud: Iterable[Outcome]) -> Iterator[Text]:
    """Name the mutations that have no row: held back by the verdict's reason, or idle."""
    shown = {outcome.mutation for outcome in loud}
    silent = [outcome for outcome in decision.outcomes if outcome.mutation not in shown]
    held = {outcome.mutation: None for outcome in silent if not outcome.reason.quiet}
    idle = {outcome.mutation: None for outcome in silent if outcome.mutation not in held}
    for label, names in (("held back", held), ("nothing to do", idle)):
        if names:
            yield Text(f"{label}: {', '.join(names)}", "dim")


def _remarks(report: Report) -> Iterator[Table]:
    """Say once what concerns many pods or none: unknown namespaces, notes, what holds no pods."""
    suffix = f": {NO_TEMPLATE}"
    asked = (preview for preview in report.previews if _verdict(preview) is not _NOT_OPTED_IN)
    unknown = (preview.called_because for preview in asked if preview.called is None)
    empty = [note.removesuffix(suffix) for note in report.notes if note.endswith(suffix)]
    remarks = [("?", "yellow", sentence) for sentence in dict.fromkeys(unknown)]
    remarks += [("note:", "dim", note) for note in report.notes if not note.endswith(suffix)]
    if empty:
        remarks.append(("note:", "dim", f"{NO_TEMPLATE} in {', '.join(empty)}"))
    for label, style, sentence in remarks:
        line = Table.grid(padding=(0, 1, 0, 0))
        line.add_row(Text(label, style), Text(_clean(sentence)))
        yield line


def _summary(report: Report) -> Text:
    if not report.previews:
        return Text("no pod and no pod template in the input", "yellow")
    verdicts = [_verdict(preview) for preview in report.previews]
    line = Text(f"{_count(len(verdicts), 'pod')}: ")
    counts = Counter(verdicts)
    for index, (verdict, number) in enumerate(
        sorted(counts.items(), key=lambda item: item[0].word)
    ):
        line.append(", " if index else "").append(f"{number} {verdict.word}", verdict.style)
    if warnings := sum(_warned(preview) for preview in report.previews):
        line.append("; ").append(_count(warnings, "warning"), "yellow")
    return line


def _warned(preview: Preview) -> int:
    return sum(outcome.status == "warned" for outcome in preview.decision.outcomes)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _clean(words: str) -> str:
    """Write what is not printable (escape sequences, text direction marks) as Python would."""
    if words.isprintable():
        return words
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)
