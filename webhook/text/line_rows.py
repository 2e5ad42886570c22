"""Two versions of a text side by side: aligned rows of lines, in hunks with some context."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Literal, NamedTuple

from webhook.text.line_diff import LineDiff, Opcode

#: Lines around a change, as `diff -u` and git show.
_CONTEXT_LINES = 3

RowKind = Literal["same", "changed", "added", "removed"]


class Row(NamedTuple):
    """A line before and after the change; None on a side without one."""

    #: With their line breaks.
    before: str | None
    after: str | None
    #: The lines' numbers, which count from 0.
    before_line: int | None
    after_line: int | None

    @property
    def kind(self) -> RowKind:
        """How the line changes."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        return "same" if self.before == self.after else "changed"


class Hunk(NamedTuple):
    """Adjacent changes, with the lines around them."""

    #: The number of lines above it, before and after the change.
    before_start: int
    after_start: int
    rows: tuple[Row, ...]

    @property
    def before(self) -> list[str]:
        """All lines before the change."""
        return [row.before for row in self.rows if row.before is not None]

    @property
    def after(self) -> list[str]:
        """All lines after the change."""
        return [row.after for row in self.rows if row.after is not None]


def hunks_between(before: list[str], after: list[str]) -> Iterator[Hunk]:
    """Yield the differences of two lists of lines; nothing if they are equal."""
    for group in LineDiff(before, after).get_grouped_opcodes(_CONTEXT_LINES):
        opcodes = [Opcode(*opcode) for opcode in group]
        rows = (row for opcode in opcodes for row in _rows(before, after, opcode))
        yield Hunk(opcodes[0].old, opcodes[0].new, tuple(rows))


def _rows(before: list[str], after: list[str], opcode: Opcode) -> Iterator[Row]:
    old_lines = range(opcode.old, opcode.old_end)
    new_lines = range(opcode.new, opcode.new_end)
    for old, new in zip_longest(old_lines, new_lines):
        yield Row(
            before=None if old is None else before[old],
            after=None if new is None else after[new],
            before_line=old,
            after_line=new,
        )


def lines_of(text: str) -> list[str]:
    r"""Return the lines with their breaks; only "\n" ends one, as in `diff -u`."""
    *full_lines, rest = text.split("\n")
    lines = [f"{line}\n" for line in full_lines]
    return [*lines, rest] if rest else lines
