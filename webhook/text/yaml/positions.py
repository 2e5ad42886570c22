"""Line numbers of offsets in a text."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate

#: A line is counted from the beginning of its block; an entry for every line would take forty
#: times the memory of a text of empty lines.
_BLOCK = 4096  # characters


class LineIndex:
    r"""The lines of a text; as in editors, only "\n" ends one.

    The text is searched when a line is first asked for, which a text without mistakes may never be.
    `above`: how many lines of its file precede the text.
    """

    def __init__(self, text: str, above: int = 0) -> None:
        self._text = text
        self._above = above

    def line(self, offset: int) -> int:
        """Return the number, from 1, of the line that an offset is on."""
        block = offset // _BLOCK
        ended = self._before[block] + self._text.count("\n", block * _BLOCK, offset)
        return 1 + self._above + ended

    def column(self, offset: int) -> int:
        """Return the column, from 1, of an offset on its line, in characters."""
        return offset - self._text.rfind("\n", 0, offset)

    @cached_property
    def _before(self) -> list[int]:
        """How many lines end before each block."""
        starts = range(0, len(self._text), _BLOCK)
        counts = (self._text.count("\n", start, start + _BLOCK) for start in starts)
        return list(accumulate(counts, initial=0))
