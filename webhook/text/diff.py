"""A unified diff between the input and the same input with the patches applied, in linear time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from webhook.text.escape import visible, visible_lines
from webhook.text.line_rows import Row, hunks_between, lines_of

_BOLD, _PLAIN = "\033[1m", "\033[0m"
_COLORS = {"@": "\033[36m", "-": "\033[31m", "+": "\033[32m"}  # cyan, red, green
_HEADING_LINES = 2  # lines: `--- a/name` and `+++ b/name`
_NO_FINAL_NEWLINE = "\n\\ No newline at end of file\n"


def diff(name: str, before: str, after: str, *, color: bool = False, terminal: bool = False) -> str:
    r"""Return the unified diff of one input, "" if nothing changes.

    Only "\n" ends a line here, since other line breaks may be text inside a value in YAML. A last
    line without one has the mark of `diff -u`. Lines are unchanged, so that `patch -p1` accepts
    the result, except that for a `terminal` invisible characters are made visible, because they
    could act as commands to it.
    """
    if terminal:
        before, after = visible_lines(before), visible_lines(after)
    changes = _unified_lines(visible(name), lines_of(before), lines_of(after))
    lines = [line if line.endswith("\n") else f"{line}{_NO_FINAL_NEWLINE}" for line in changes]
    if color:
        heading, body = lines[:_HEADING_LINES], lines[_HEADING_LINES:]
        lines = [_paint(line, _BOLD) for line in heading] + [_color_line(line) for line in body]
    return "".join(lines)


def _unified_lines(name: str, old: list[str], new: list[str]) -> Iterator[str]:
    heading = [f"--- a/{name}\n", f"+++ b/{name}\n"]
    for hunk in hunks_between(old, new):
        yield from heading
        heading = []
        ranges = (
            _format_range(hunk.before_start, len(hunk.before)),
            _format_range(hunk.after_start, len(hunk.after)),
        )
        yield f"@@ -{ranges[0]} +{ranges[1]} @@\n"
        for unchanged, group in groupby(hunk.rows, lambda row: row.kind == "same"):
            yield from _unified_rows([*group], unchanged=unchanged)


def _unified_rows(rows: Sequence[Row], *, unchanged: bool) -> Iterator[str]:
    if unchanged:
        yield from (f" {row.before}" for row in rows)
        return
    yield from (f"-{row.before}" for row in rows if row.before is not None)
    yield from (f"+{row.after}" for row in rows if row.after is not None)


def _format_range(start: int, length: int) -> str:
    """Format a range like `diff -u`: lines count from 1; an empty range names the line before."""
    begins = start + 1 if length else start
    return f"{begins}" if length == 1 else f"{begins},{length}"


def _color_line(line: str) -> str:
    color = _COLORS.get(line[0])
    return _paint(line, color) if color else line


def _paint(line: str, color: str) -> str:
    return f"{color}{line[:-1]}{_PLAIN}\n"
