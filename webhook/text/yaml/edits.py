"""Replacements in a text, collected in any order and made at once; where its lines are."""

from __future__ import annotations

import re
from bisect import bisect_left


class Edits:
    """A text and the replacements in it; every offset is one in the original text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self._edits: list[tuple[int, int, str]] = []

    def replace(self, start: int, end: int, new: str) -> None:
        """Replace what stands from `start` to `end` with `new`."""
        self._edits.append((start, end, new))

    def insert_lines(self, offset: int, lines: list[str]) -> None:
        """Insert lines below the line of `offset`; those of a later call come after them."""
        end = self.line_end(offset)
        self.replace(end, end, "".join(self.newline + line for line in lines))

    def remove_lines(self, start: int, end: int) -> None:
        """Remove the lines from that of `start` to that of `end`.

        The line break above them goes, and the one below stays: lines may be inserted there.
        """
        above = self.line_start(start)
        if above == 0:
            self.replace(0, self.next_line(end), "")
        else:
            self.replace(self.line_end(above - 1), self.line_end(end), "")

    def result(self) -> str:
        """Return the text with all replacements; at one offset, insertions come first."""
        parts: list[str] = []
        done = 0
        for start, end, new in sorted(self._edits, key=lambda edit: edit[:2]):
            parts += (self.text[done:start], new)
            done = max(done, end)
        return "".join((*parts, self.text[done:]))

    def line_start(self, offset: int) -> int:
        """Return where the line of `offset` begins."""
        before = bisect_left(self._breaks, offset)
        return self._breaks[before - 1] + 1 if before else 0

    def line_end(self, offset: int) -> int:
        """Return where the line of `offset` ends, before its line break."""
        end = self._break(offset)
        if end == len(self.text):
            return end
        return end - 1 if end > 0 and self.text[end - 1] == "\r" else end

    def next_line(self, offset: int) -> int:
        """Return where the line below that of `offset` begins, at most the end of the text."""
        return min(self._break(offset) + 1, len(self.text))

    def _break(self, offset: int) -> int:
        """Return where the next line break is, the end of the text where there is none."""
        below = bisect_left(self._breaks, offset)
        return self._breaks[below] if below < len(self._breaks) else len(self.text)

    def skip(self, offset: int, characters: str) -> int:
        """Return the offset of the first character, from `offset` on, not among `characters`."""
        while offset < len(self.text) and self.text[offset] in characters:
            offset += 1
        return offset

    def column(self, offset: int) -> int:
        """Return the number of characters before `offset` on its line."""
        return offset - self.line_start(offset)

    def first_on_line(self, offset: int) -> bool:
        """Return whether only spaces stand before `offset` on its line."""
        start = self.line_start(offset)
        while offset > start and self.text[offset - 1] in " \t":
            offset -= 1
        return offset == start

    def after_comments(self, offset: int, column: int) -> int:
        """Return the end of the line of `offset`, or of the comments below it deeper than `column`.

        Such a comment is often a field that is commented out; it belongs to the entry above it.
        """
        end = self.line_end(offset)
        while (start := self.next_line(end)) < len(self.text):
            line = self.text[start : self.line_end(start)]
            bare = line.lstrip(" ")
            if not bare.startswith("#") or len(line) - len(bare) <= column:
                break
            end = self.line_end(start)
        return end

    def before_comments(self, offset: int) -> int:
        """Return the start of the line of `offset`, or of the comments directly above it."""
        start = self.line_start(offset)
        while start > 0:
            above = self.line_start(start - 1)
            if not self.text[above:start].lstrip(" ").startswith("#"):
                break
            start = above
        return start
