"""The position at which a parser of YAML stopped, with the lines around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from webhook.text.yaml.tree import NotYamlError

_INDENT = re.compile(r"[ ]*")


class Line(NamedTuple):
    """One line of the text, without its line break."""

    start: int  #: its offset
    text: str

    @property
    def indent(self) -> int:
        """The number of spaces at its start."""
        return len(_INDENT.match(self.text)[0])  # type: ignore[index]  # it matches ""

    @property
    def content(self) -> str:
        """The line without the spaces around it."""
        return self.text.strip()


class ErrorPosition:
    """The position where the parser stopped, and the lines around it."""

    def __init__(self, text: str, error: NotYamlError) -> None:
        self.text = text
        self.problem, self.context = error.problem, error.context or ""
        self.offset = min(error.offset or 0, len(text))
        self.context_start = error.context_offset
        self.line = self._line(self.offset)

    @property
    def char(self) -> str:
        """The character that the parser could not read; "" at the end of the text."""
        return self.text[self.offset : self.offset + 1]

    @property
    def context_line(self) -> Line:
        """The line on which the unfinished construct began."""
        return self.line if self.context_start is None else self._line(self.context_start)

    def lines(self) -> list[Line]:
        """List the lines that may have the mistake, in the order of the text."""
        above = next(self.above(), self.line)
        return sorted({self.context_line, above, self.line})

    def above(self) -> Iterator[Line]:
        """Yield the lines above, nearest first, without blank ones and comments."""
        start = self.line.start
        while start > 0:
            line = self._line(start - 1)
            start = line.start
            if line.content and not line.content.startswith("#"):
                yield line

    def number(self, offset: int) -> int:
        """Return the number, from 1, of the line that an offset is on."""
        return self.text.count("\n", 0, offset) + 1

    def _line(self, offset: int) -> Line:
        start = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", offset)
        return Line(start, self.text[start : end if end >= 0 else None].rstrip("\r"))
