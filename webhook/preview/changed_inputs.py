"""The changes of each input: aligned lines before and after the patches, with their reasons.

`-o diff` is made of the same hunks as the JSON form, where a line that moves to another mapping is
removed here and added there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from webhook.model.pod import Path
from webhook.preview.line_reasons import (
    Line,
    LineReason,
    TemplateReasons,
    located_lines,
    path_reasons,
)
from webhook.preview.patches import RewrittenDocument
from webhook.preview.report.record import Preview, Report
from webhook.text.line_rows import Hunk, Row, hunks_between, lines_of
from webhook.text.yaml.documents import Document, join_documents


class ReasonedHunk(NamedTuple):
    """Adjacent changes with the lines around them, and the outcomes that made each change."""

    #: The number of lines above it, before and after the patches.
    before_start: int
    after_start: int
    rows: tuple[Row, ...]
    reasons: tuple[tuple[LineReason, ...], ...]  #: of each row; () for a row that stays the same


class ChangedInput(NamedTuple):
    """An input that the patches change."""

    name: str
    hunks: tuple[ReasonedHunk, ...]


_NO_LINE = Line(set(), {})


class InputTexts(NamedTuple):
    """An input, which may contain several documents, before and after the patches."""

    name: str
    documents: tuple[Document, ...]
    before: str
    after: str


def input_texts(
    documents: Sequence[Document], rewritten: Sequence[RewrittenDocument]
) -> Iterator[InputTexts]:
    """Yield the text of each input."""
    pairs = zip(documents, rewritten, strict=True)
    for name, group in groupby(pairs, lambda pair: pair[0].name):
        input_documents, input_rewritten = zip(*group, strict=True)
        yield InputTexts(
            name,
            input_documents,
            join_documents([document.text for document in input_documents]),
            join_documents([new.text for new in input_rewritten]),
        )


def changed_inputs(
    documents: Sequence[Document], rewritten: Sequence[RewrittenDocument], report: Report
) -> Iterator[ChangedInput]:
    """Yield each input that changes."""
    templates = _reasons_by_document(documents, report)
    first = 0
    for texts in input_texts(documents, rewritten):
        numbers = range(first, first + len(texts.documents))
        first = numbers.stop
        if texts.before == texts.after:
            continue
        input_templates = [template for number in numbers for template in templates[number]]
        yield ChangedInput(texts.name, _reasoned_hunks(texts, input_templates))


def _reasoned_hunks(
    texts: InputTexts, templates: Sequence[TemplateReasons]
) -> tuple[ReasonedHunk, ...]:
    hunks = [*hunks_between(lines_of(texts.before), lines_of(texts.after))]
    rows = [row for hunk in hunks for row in hunk.rows]
    before = located_lines(texts.before, templates, {row.before_line for row in rows})
    after = located_lines(texts.after, templates, {row.after_line for row in rows})

    def reasoned(row: Row) -> Iterator[tuple[Row, tuple[LineReason, ...]]]:
        old, new = before.get(row.before_line, _NO_LINE), after.get(row.after_line, _NO_LINE)
        if row.kind != "same":
            yield row, (*old.reasons, *(key for key in new.reasons if key not in old.reasons))
        elif old.paths.isdisjoint(new.paths) and old.paths:  # moved to another mapping
            yield row._replace(after=None, after_line=None), tuple(old.reasons)
            yield row._replace(before=None, before_line=None), tuple(new.reasons)
        else:
            yield row, ()

    return tuple(_reasoned_hunk(hunk, reasoned) for hunk in hunks)


def _reasoned_hunk(
    hunk: Hunk, reasoned: Callable[[Row], Iterable[tuple[Row, tuple[LineReason, ...]]]]
) -> ReasonedHunk:
    rows, reasons = zip(*(pair for row in hunk.rows for pair in reasoned(row)), strict=True)
    return ReasonedHunk(hunk.before_start, hunk.after_start, rows, reasons)


def _reasons_by_document(
    documents: Sequence[Document], report: Report
) -> list[list[TemplateReasons]]:
    """Return the reasons of the edited templates of each document."""
    templates: list[list[TemplateReasons]] = [[] for _ in documents]
    previews: dict[tuple[int, Path], list[tuple[int, Preview]]] = {}
    for number, preview in enumerate(report.previews):
        place = (preview.document, preview.template_path)
        previews.setdefault(place, []).append((number, preview))
    for edit in report.edits:
        if edit.ops:
            reasons = path_reasons(previews[edit.document, edit.template_path])
            base = ("spec",) if edit.spec_only else ()
            index = documents[edit.document].index
            templates[edit.document].append(
                TemplateReasons(index, edit.template_path, base, reasons)
            )
    return templates
