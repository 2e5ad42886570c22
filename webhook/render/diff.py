"""A unified diff between the input and what the webhook makes of it."""

from __future__ import annotations

from difflib import unified_diff

_BOLD, _PLAIN = "\033[1m", "\033[0m"
_COLOURS = {"@": "\033[36m", "-": "\033[31m", "+": "\033[32m"}  # cyan, red, green
_HEADING = 2  # lines: `--- a/name` and `+++ b/name`
_UNENDED = "\n\\ No newline at end of file\n"


def diff(name: str, before: str, after: str, *, colour: bool = False) -> str:
    r"""Return the unified diff of one input, "" where nothing changes.

    Lines end with "\n" alone here, as in YAML other line breaks may be text
    inside a value; a last line without one is marked as `diff -u` marks it, so
    that `patch -p1` takes the result.
    """
    changes = unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    lines = [line if line.endswith("\n") else f"{line}{_UNENDED}" for line in changes]
    if colour:
        heading, body = lines[:_HEADING], lines[_HEADING:]
        lines = [_painted(line, _BOLD) for line in heading] + [_coloured(line) for line in body]
    return "".join(lines)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _coloured(line: str) -> str:
    colour = _COLOURS.get(line[0])
    return _painted(line, colour) if colour else line


def _painted(line: str, colour: str) -> str:
    return f"{colour}{line[:-1]}{_PLAIN}\n"
