"""A unified diff between the input and the same input with the patches applied."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.text.escape import visible, visible_lines
from webhook.text.lines import Lines

_BOLD, _PLAIN = "\033[1m", "\033[0m"
_COLOURS = {"@": "\033[36m", "-": "\033[31m", "+": "\033[32m"}  # cyan, red, green
_HEADING = 2  # lines: `--- a/name` and `+++ b/name`
_CONTEXT = 3  # lines around a change, as `diff -u` and git show
_UNENDED = "\n\\ No newline at end of file\n"


def diff(
    name: str, before: str, after: str, *, colour: bool = False, terminal: bool = False
) -> str:
    r"""Return the unified diff of one input, "" if nothing changes.

    Only "\n" ends a line here, since other line breaks may be text inside a value in YAML. A last
    line without one is marked as `diff -u` marks it. Lines are unchanged, so that `patch -p1`
    accepts the result, but for a `terminal` invisible characters, which could act as commands to
    it, are made visible.
    """
    if terminal:
        before, after = visible_lines(before), visible_lines(after)
    changes = _unified(visible(name), _lines(before), _lines(after))
    lines = [line if line.endswith("\n") else f"{line}{_UNENDED}" for line in changes]
    if colour:
        heading, body = lines[:_HEADING], lines[_HEADING:]
        lines = [_painted(line, _BOLD) for line in heading] + [_coloured(line) for line in body]
    return "".join(lines)


def _unified(name: str, old: list[str], new: list[str]) -> Iterator[str]:
    heading = [f"--- a/{name}\n", f"+++ b/{name}\n"]
    for group in Lines(old, new).get_grouped_opcodes(_CONTEXT):
        yield from heading
        heading = []
        first, last = group[0], group[-1]
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[start:end])
                continue
            yield from (f"-{line}" for line in old[start:end])
            yield from (f"+{line}" for line in new[new_start:new_end])


def _range(start: int, end: int) -> str:
    """Write a range as `diff -u` does: lines count from 1; an empty range names the line before."""
    length = end - start
    begins = start + 1 if length else start
    return f"{begins}" if length == 1 else f"{begins},{length}"


def _lines(text: str) -> list[str]:
    *whole, rest = text.split("\n")
    lines = [f"{line}\n" for line in whole]
    return [*lines, rest] if rest else lines


def _coloured(line: str) -> str:
    colour = _COLOURS.get(line[0])
    return _painted(line, colour) if colour else line


def _painted(line: str, colour: str) -> str:
    return f"{colour}{line[:-1]}{_PLAIN}\n"
