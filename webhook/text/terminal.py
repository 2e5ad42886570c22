"""Text wrapped at a width: paragraphs with a hanging sign, tables, findings.

An export of a cluster has thousands of pods, and rich's tables and renderables take some
milliseconds for each; so rich is used only to measure text and to style it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.color import ColorSystem
from rich.style import Style

from webhook.model.finding import Finding, Level
from webhook.text.escape import visible

_WORD = re.compile("[^ ]+")
_GAP = 2  # spaces between two columns of a table
#: A table whose last column is narrower than this is written as paragraphs instead.
_MIN_LAST_WIDTH = 20


class Span(NamedTuple):
    """Text in one style, written in rich's notation, such as "bold red"; "" for none."""

    text: str
    style: str = ""


class TableColumn(NamedTuple):
    """One column of a table; a cell wider than `max_width` is wrapped."""

    heading: str
    max_width: int | None = None


class Sheet:
    """A text that grows line by line; no line ends with a space, and all characters are visible."""

    def __init__(self, width: int, *, color: bool = False) -> None:
        self._width = width
        self._color = color
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        """All lines so far, each with its line break."""
        return "".join(f"{line}\n" for line in self._lines)

    def fits(self, *spans: Span) -> bool:
        """Return whether spans fit on one line."""
        return sum(cell_len(visible(span.text)) for span in spans) <= self._width

    def blank(self) -> None:
        """Add an empty line."""
        self._lines.append("")

    def paragraph(self, *spans: Span, sign: Span | None = None, indent: int = 0) -> None:
        """Write spans as one paragraph; all lines begin in the same column, after the sign."""
        escaped = [Span(visible(text), style) for text, style in spans]
        lead = " " * indent
        margin = lead
        if sign is not None:
            lead += f"{self._paint(sign)} "
            margin += " " * (cell_len(sign.text) + 1)
        for line in self._wrap(escaped, self._width - len(margin)):
            self._lines.append((lead + line).rstrip(" "))
            lead = margin

    def table(
        self, columns: Sequence[TableColumn], rows: Sequence[Sequence[Span]], *, indent: int = 0
    ) -> None:
        """Write a heading and rows; the last column takes the remaining width."""
        heading = [Span(column.heading, "dim") for column in columns]
        escaped = [[Span(visible(text), style) for text, style in row] for row in rows]
        cells = [heading, *escaped]
        widths = [
            min(max(cell_len(row[index].text) for row in cells), column.max_width or self._width)
            for index, column in enumerate(columns[:-1])
        ]
        last = self._width - indent - sum(widths) - _GAP * len(widths)
        if last < _MIN_LAST_WIDTH:
            self._write_paragraphs(columns, escaped, indent)
            return
        for row in cells:
            self._write_row(row, [*widths, last], " " * indent)

    def grid(self, rows: Sequence[Sequence[Span]], *, gap: int = _GAP, indent: int = 0) -> bool:
        """Write rows of short cells, one line each; write nothing and return False if too wide."""
        escaped = [[Span(visible(text), style) for text, style in row] for row in rows]
        widths = [
            max(cell_len(cell.text) for cell in column) for column in zip(*escaped, strict=True)
        ]
        if indent + sum(widths) + gap * (len(widths) - 1) > self._width:
            return False
        for row in escaped:
            padded = (
                self._paint(cell) + " " * (width - cell_len(cell.text))
                for cell, width in zip(row, widths, strict=True)
            )
            self._lines.append((" " * indent + (" " * gap).join(padded)).rstrip(" "))
        return True

    def _write_row(self, row: Sequence[Span], widths: Sequence[int], lead: str) -> None:
        wrapped = [
            self._pad(cell, width) for cell, width in zip(row[:-1], widths[:-1], strict=True)
        ]
        wrapped.append(self._wrap(row[-1:], widths[-1]))
        empty = [" " * width for width in widths]
        for lines in zip_longest(*wrapped):
            filled = [line or none for line, none in zip(lines, empty, strict=True)]
            self._lines.append((lead + (" " * _GAP).join(filled)).rstrip(" "))

    def _write_paragraphs(
        self, columns: Sequence[TableColumn], rows: Sequence[Sequence[Span]], indent: int
    ) -> None:
        """Write each row as its first cell, then the others after their headings."""
        for first, *cells in rows:
            spans = [first]
            for column, cell in zip(columns[1:], cells, strict=True):
                if cell.text:
                    mark = ": " if len(spans) == 1 else "; "
                    spans += [Span(f"{mark}{column.heading} "), cell]
            self.paragraph(*spans, indent=indent)

    def _pad(self, cell: Span, width: int) -> list[str]:
        pieces = [cell.text[start:end] for start, end in lines_of(cell.text, width)]
        return [
            self._paint(Span(piece, cell.style)) + " " * (width - cell_len(piece))
            for piece in pieces
        ]

    def _wrap(self, spans: Sequence[Span], width: int) -> list[str]:
        text = "".join(span.text for span in spans)
        lines = lines_of(text, width)
        if not self._color:
            return [text[start:end] for start, end in lines]
        return ["".join(map(self._paint, _between(spans, *line))) for line in lines]

    def _paint(self, span: Span) -> str:
        if not self._color or not span.style or not span.text:
            return span.text
        return _style(span.style).render(span.text, color_system=ColorSystem.STANDARD)


def lines_of(text: str, width: int) -> list[tuple[int, int]]:
    """Return the start and the end of each line of a text; split a word wider than a line."""
    if text.isascii() and len(text) <= width:
        return [(0, len(text))]
    lines: list[tuple[int, int]] = []
    begin = end = 0
    for word in _WORD.finditer(text):
        if end > begin and cell_len(text[begin : word.end()]) > width:
            lines.append((begin, end))
            begin = word.start()
        end = word.end()
        if cell_len(text[begin:end]) > width:
            begin = word.start()
            *pieces, _ = chop_cells(word[0], width)
            for piece in pieces:
                lines.append((begin, begin + len(piece)))
                begin += len(piece)
    return [*lines, (begin, end)]


def _between(spans: Iterable[Span], start: int, end: int) -> Iterable[Span]:
    """Yield the parts of the spans between two offsets into their joined text."""
    offset = 0
    for text, style in spans:
        piece = text[max(start - offset, 0) : max(end - offset, 0)]
        if piece:
            yield Span(piece, style)
        offset += len(text)


@cache
def _style(name: str) -> Style:
    return Style.parse(name)


# Findings.

#: The sign of each level.
SIGNS: dict[Level, Span] = {
    "ok": Span("✔", "green"),
    "info": Span("·", "dim"),
    "warning": Span("!", "yellow"),
    "unsure": Span("?", "yellow"),
    "error": Span("✘", "bold red"),
}
#: Levels whose findings may need action.
_ACTIONABLE: frozenset[Level] = frozenset({"warning", "unsure", "error"})
_ARROW = Span("→", "bold")
_INDENT = 2


def write_finding(sheet: Sheet, finding: Finding, subject: str = "") -> None:
    """Write a finding as a paragraph after its sign, and its remedy after an arrow.

    `subject` is what the finding is about, such as a fabric or nodes; it comes first, in bold.
    A finding that may need action ends with its code, for `rdma-webhook why CODE`.
    """
    heading = [Span(f"{subject}: ", "bold")] if subject else []
    code = [Span(f" [{finding.code}]", "dim")] if finding.level in _ACTIONABLE else []
    sheet.paragraph(*heading, Span(finding.text), *code, sign=SIGNS[finding.level], indent=_INDENT)
    write_remedy(sheet, finding.remedy)


def write_remedy(sheet: Sheet, remedy: str) -> None:
    """Write a remedy after an arrow; nothing for ""."""
    if remedy:
        sheet.paragraph(Span(remedy), sign=_ARROW, indent=2 * _INDENT)
