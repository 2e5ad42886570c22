"""The report as text for people: a few lines for each pod.

Every warning of a decision is also one of its outcomes or its message, so the list of warnings is
not shown separately. Names and messages may contain any character of a document; the sheet makes
invisible characters visible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from webhook.decide.examine.targets import TAKEN_FOR_LAUNCHER
from webhook.decide.verdict import EQUIPPED
from webhook.model.annotations import ENABLE_ANNOTATION
from webhook.model.decision import REQUEST_CHECK, Decision, Outcome, Status, Verdict
from webhook.model.facts import OPT_IN_LABEL
from webhook.model.names import counted, first_names
from webhook.preview.report.record import (
    CLI_WORDING,
    Preview,
    Report,
    SkipReason,
    Wording,
    headline_of,
    merge_sentences,
    not_opted_in,
    skip_reason_of,
)
from webhook.preview.workloads.notes import NO_TEMPLATE
from webhook.text.terminal import Sheet, Span, TableColumn

_STYLES: dict[Status, str] = {
    "applied": "green",
    "already": "cyan",
    "skipped": "dim",
    "warned": "yellow",
    "failed": "bold red",
}
#: The names of mutations and statuses in the table, where people read them differently.
_LABELS = {REQUEST_CHECK: "pod", "already": "unchanged"}
_COLUMNS = (
    TableColumn("mutation"),
    TableColumn("container", 24),
    TableColumn("status"),
    TableColumn("why"),
)
_INDENT = 2
#: Narrower text is hard to read.
_MIN_WIDTH = 40
#: The largest number of notes to show.
_MAX_NOTES = 200
#: The largest number of names in one remark.
_MAX_NAMES = 12
#: The largest number of words that a warning may add to the reason and still repeat it.
_MAX_NEW_WORDS = 3
#: The line below a report with reason codes.
_CODES_HINT = "rdma-webhook why CODE explains a code in brackets"
_WARNING_SIGN = Span("!", "yellow")
_UNSURE_SIGN = Span("?", "yellow")


class _Row(NamedTuple):
    """One row for the same outcome in several containers."""

    mutation: str
    status: Status
    warns: bool  #: whether a skipped mutation also has a warning
    message: str
    code: str  #: the reason code of a skipped, warned or failed outcome; else ""


class _Counts(NamedTuple):
    """The numbers of warnings and of reason codes in the text so far."""

    warnings: int
    codes: int


def report_text(
    report: Report, *, width: int = 100, color: bool = False, wording: Wording = CLI_WORDING
) -> str:
    """Return the report as lines of at most `width` columns; `color` adds ANSI colors."""
    sheet = Sheet(max(width, _MIN_WIDTH), color=color)
    if report.example:
        sheet.paragraph(Span(_example_warning(report.example, wording)), sign=_WARNING_SIGN)
        sheet.blank()
    counts = _Counts(0, 0)
    for preview in report.previews:
        pod_counts = _write_pod(sheet, preview, wording)
        counts = _Counts(counts.warnings + pod_counts.warnings, counts.codes + pod_counts.codes)
        sheet.blank()
    _write_notes(sheet, report, wording)
    sheet.paragraph(*_summary(report, counts.warnings))
    if counts.codes:
        sheet.paragraph(Span(_CODES_HINT, "dim"))
    return sheet.text


def _example_warning(names: str, wording: Wording) -> str:
    return f"EXAMPLE: these are example fabrics ({names}), not yours; {wording.fabrics_advice}"


def _write_pod(sheet: Sheet, preview: Preview, wording: Wording) -> _Counts:
    """Write the paragraphs about one pod; return its counts for the summary."""
    decision = preview.decision
    skip_reason = skip_reason_of(decision)
    shown = [
        outcome
        for outcome in decision.outcomes
        if outcome.reason.reportable and not skip_reason.explains(outcome)
    ]
    _write_heading(sheet, preview)
    _write_verdict(sheet, preview, skip_reason, wording)
    rows = _rows(shown)
    if rows:
        sheet.table(_COLUMNS, list(_cells(rows)), indent=2 * _INDENT)
    for line in _lines_without_rows(decision, shown):
        sheet.paragraph(Span(line, "dim"), indent=2 * _INDENT)
    warnings = sum(row.warns or row.status == "warned" for row in rows)
    return _Counts(warnings, sum(bool(row.code) for row in rows) + bool(_verdict_code(preview)))


def _write_heading(sheet: Sheet, preview: Preview) -> None:
    """Write the pod's identity and its creator, which gets a separate line if there is no room."""
    heading = list(_heading(preview))
    if preview.controller or preview.derived:
        role = f"{preview.role}, " if preview.role else ""
        origin = f"({role}as {preview.controller} creates it)"
        creator = Span("(derived; an operator makes it)" if preview.derived else origin, "dim")
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


def _write_verdict(
    sheet: Sheet, preview: Preview, skip_reason: SkipReason, wording: Wording
) -> None:
    """Write whether the pod will have RDMA, and why not, such as a webhook that is not called."""
    headline = headline_of(preview)
    because = reason = _verdict_reason(preview, wording)
    line = [Span(headline.text, headline.style)]
    if because.startswith(f"{headline.text} ("):  # of a launcher, with the evidence for that
        evidence, _, reason = because.removeprefix(headline.text).partition(": ")
        line.append(Span(evidence))
    line += _fabric(preview)
    if reason:
        line.append(Span(f": {reason}"))
    line += [Span(_assumptions(preview.verdict), "dim"), Span(_verdict_code(preview), "dim")]
    sheet.paragraph(*line, sign=Span(headline.sign, headline.style), indent=_INDENT)
    sentences = [because, preview.hint, _if_called(preview)]
    if not not_opted_in(preview) and not any(skip_reason.message in text for text in sentences):
        sentences.append(skip_reason.message)
    for sentence in filter(None, (*sentences[1:], *preview.mistakes)):
        sheet.paragraph(Span(sentence), sign=_WARNING_SIGN, indent=_INDENT)


def _assumptions(verdict: Verdict | None) -> str:
    """Return the assumptions of an equipped pod's verdict: ", assuming that …", or ""."""
    if verdict is None or verdict.because is not EQUIPPED:
        return ""
    return verdict.message.removeprefix(EQUIPPED.sentence)


def _verdict_code(preview: Preview) -> str:
    """Return the reason code of a pod that has no RDMA, or may have none; else ""."""
    verdict = preview.verdict
    if verdict is None or verdict.rdma in ("yes", "none"):
        return ""
    return f" [{verdict.because.code}]"


def _verdict_reason(preview: Preview, wording: Wording) -> str:
    """Return why a pod will have no RDMA, may have none, or has it anyway; "" if it is equipped."""
    verdict = preview.verdict
    if verdict is None and preview.spec_only:
        cause = preview.annotations_location or "the controller writes the pods' metadata"
        return f"{cause}; to preview them as if they had opted in, use {wording.opt_in_option}"
    if verdict is None:
        return (
            f'add {ENABLE_ANNOTATION}: "true" to {preview.annotations_location}; to preview the '
            f"pod as if it had opted in, use {wording.opt_in_option}"
        )
    return "" if verdict.because.code == EQUIPPED.code else verdict.message


def _if_called(preview: Preview) -> str:
    """Return the verdict that a called webhook would give; "" if the webhook may be called."""
    verdict = preview.decision.verdict
    if verdict is None or preview.verdict is verdict:
        return ""
    called = headline_of(replace(preview, called=None))
    equipped = verdict.because.code == EQUIPPED.code
    detail = _assumptions(verdict) if equipped else f": {verdict.message}"
    return f"if the webhook were called, {called.conditional}{detail}"


def _fabric(preview: Preview) -> Iterator[Span]:
    decision = preview.decision
    if decision.fabric is not None and preview.verdict is decision.verdict:
        yield Span(f" over {decision.fabric}")
        if decision.fabric_evidence:
            yield Span(f" ({decision.fabric_evidence})", "dim")


def _cells(rows: Mapping[_Row, list[str]]) -> Iterator[list[Span]]:
    previous = ""
    for row, containers in rows.items():
        yield [
            Span("" if row.mutation == previous else _LABELS.get(row.mutation, row.mutation)),
            Span(", ".join(containers)),
            Span(f"{row.status} !", "yellow")
            if row.warns
            else Span(_LABELS.get(row.status, row.status), _STYLES[row.status]),
            Span(f"{row.message} [{row.code}]" if row.code else row.message),
        ]
        previous = row.mutation


def _rows(outcomes: Iterable[Outcome]) -> dict[_Row, list[str]]:
    """Merge equal outcomes of several containers, and a warning into the row that it repeats."""
    skipped: dict[tuple[str, str], Outcome] = {}
    warns: set[tuple[str, str]] = set()
    row_outcomes: list[Outcome] = []
    for outcome in outcomes:
        key = (outcome.mutation, outcome.container)
        if outcome.status == "skipped":
            skipped[key] = outcome
        elif outcome.status == "warned" and key in skipped and _repeats(outcome, skipped[key]):
            warns.add(key)
            continue
        row_outcomes.append(outcome)
    rows: dict[_Row, list[str]] = {}
    for outcome in row_outcomes:
        warns_too = outcome.status == "skipped" and (outcome.mutation, outcome.container) in warns
        # A recognized launcher needs no explanation.
        plain = outcome.status in ("applied", "already") or outcome.reason is TAKEN_FOR_LAUNCHER
        code = "" if plain else outcome.reason.code
        row = _Row(
            outcome.mutation,
            outcome.status,
            warns_too,
            outcome.message or outcome.reason.sentence,
            code,
        )
        rows.setdefault(row, []).append(outcome.container or "(pod)")
    return rows


def _repeats(warned: Outcome, skipped: Outcome) -> bool:
    """Whether a warning only repeats why the mutation was skipped.

    The reason of nvlink contains all its warnings; ipc-lock's has the same words in another order.
    The warning of env also names variables, so it is shown.
    """
    if warned.message in skipped.message:
        return True
    new_words = set(warned.message.split()) - set(skipped.message.split())
    return warned.reason.code == skipped.reason.code and len(new_words) <= _MAX_NEW_WORDS


def _lines_without_rows(decision: Decision, shown: Iterable[Outcome]) -> Iterator[str]:
    """Yield lines on the mutations without a row: skipped because of the verdict, or not needed."""
    mutations_with_rows = {outcome.mutation for outcome in shown}
    unshown = [
        outcome
        for outcome in decision.outcomes
        if outcome.mutation not in mutations_with_rows and outcome.status != "warned"
    ]
    applied = dict.fromkeys(
        (outcome.mutation, outcome.message) for outcome in unshown if outcome.status == "applied"
    )
    for mutation, message in applied:
        yield f"the mutation {mutation} also {message}"
    unshown = [outcome for outcome in unshown if (outcome.mutation, outcome.message) not in applied]
    skipped = {outcome.mutation: None for outcome in unshown if outcome.reason.reportable}
    idle = {outcome.mutation: None for outcome in unshown if outcome.mutation not in skipped}
    for label, names in (("skipped because of the verdict", skipped), ("nothing to do", idle)):
        if names:
            yield f"{label}: {', '.join(names)}"


def _write_notes(sheet: Sheet, report: Report, wording: Wording) -> None:
    """Write remarks on several pods or none: unknown namespaces, notes, objects without pods."""
    unsure = [
        preview
        for preview in report.previews
        if preview.called is None and not not_opted_in(preview)
    ]
    unknown = dict.fromkeys(preview.namespace for preview in unsure if not preview.labels_known)
    if unknown:
        sheet.paragraph(Span(_assumed_labels(list(unknown), wording)), sign=Span("note:", "dim"))
    for reason in dict.fromkeys(
        preview.called_because for preview in unsure if preview.labels_known
    ):
        sheet.paragraph(
            Span(f"it is unknown whether the webhook would be called: {reason}"), sign=_UNSURE_SIGN
        )
    suffix = f": {NO_TEMPLATE}"
    empty = [note.removesuffix(suffix) for note in report.notes if note.endswith(suffix)]
    notes = merge_sentences(
        (note for note in report.notes if not note.endswith(suffix)), max_names=_MAX_NAMES
    )
    if empty:
        notes.append(f"{NO_TEMPLATE} in {first_names(empty, max_names=_MAX_NAMES)}")
    for note in [*notes[:_MAX_NOTES], *_hidden_notes(len(notes))]:
        sheet.paragraph(Span(note), sign=Span("note:", "dim"))


def _hidden_notes(notes: int) -> list[str]:
    hidden = notes - _MAX_NOTES
    return [f"{counted(hidden, 'more note')} (see the JSON output)"] if hidden > 0 else []


def _assumed_labels(namespaces: list[str], wording: Wording) -> str:
    names = first_names(namespaces, max_names=_MAX_NAMES)
    subject = f"namespaces {names} are" if len(namespaces) > 1 else f"namespace {names} is"
    return f"{subject} assumed to have the label {OPT_IN_LABEL}=true; {wording.label_advice}"


def _summary(report: Report, warnings: int) -> Iterator[Span]:
    if not report.previews:
        yield Span("the input has neither pods nor pod templates", "yellow")
        return
    yield Span(f"{counted(len(report.previews), 'pod')}: ")
    headlines = [headline_of(preview) for preview in report.previews]
    counts = Counter(headline.summary for headline in headlines)
    styles = {headline.summary: headline.style for headline in headlines}
    for index, (summary, number) in enumerate(sorted(counts.items())):
        yield Span(", " if index else "")
        plural = "s" if summary == "launcher" and number > 1 else ""
        yield Span(f"{number} {summary}{plural}", styles[summary])
    if warnings:
        yield Span("; ")
        yield Span(counted(warnings, "warning"), "yellow")
