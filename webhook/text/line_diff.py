"""Compare two lists of lines in a time that grows linearly with their length.

difflib's time can grow with the cube of the length, so it compares only short texts. Long texts,
which differ in a few distant places, are compared in one walk over their lines.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

#: The maximum number of lines that difflib compares: half a second even for hostile lines.
_MAX_DIFFLIB_LINES = 1000
#: The number of successive equal lines after a difference that count as the end of it.
_MIN_EQUAL_LINES = 3
#: The maximum number of removed lines that the search skips; a patch removes only a few at a time.
_MAX_REMOVED_LINES = 50


class Opcode(NamedTuple):
    """A range of the old text, and the range of the new text that replaces it."""

    tag: str  #: equal, replace, delete or insert
    old: int
    old_end: int
    new: int
    new_end: int


class LineDiff(SequenceMatcher[str]):
    """A comparison by line, like that of `SequenceMatcher`, but also fast for long texts."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        self._long = max(len(old), len(new)) > _MAX_DIFFLIB_LINES
        if self._long:
            self.a, self.b = old, new
        else:
            super().__init__(None, old, new)

    def get_opcodes(self) -> list[tuple[str, int, int, int, int]]:  # type: ignore[override]
        """Return all changes and unchanged parts, in the order of the texts."""
        if not self._long:
            return list(super().get_opcodes())
        return list(_merge_adjacent(_walk(list(self.a), list(self.b))))


def _walk(old: list[str], new: list[str]) -> Iterator[Opcode]:
    """Yield the equal and the replaced ranges of two texts, in one walk over both."""
    run_starts = _run_starts(new)
    old_index, new_index = 0, 0
    while old_index < len(old) and new_index < len(new):
        equal = _equal_count(old, new, old_index, new_index)
        yield Opcode("equal", old_index, old_index + equal, new_index, new_index + equal)
        old_index, new_index = old_index + equal, new_index + equal
        old_next, new_next = _next_agreement(old, run_starts, old_index, new_index)
        yield Opcode("replace", old_index, old_next, new_index, new_next)
        old_index, new_index = old_next, new_next
    yield Opcode("replace", old_index, len(old), new_index, len(new))


def _run_starts(lines: list[str]) -> dict[tuple[str, ...], list[int]]:
    """Return the indexes at which each run of `_MIN_EQUAL_LINES` lines begins."""
    run_starts: dict[tuple[str, ...], list[int]] = {}
    for index in range(len(lines)):
        run_starts.setdefault(tuple(lines[index : index + _MIN_EQUAL_LINES]), []).append(index)
    return run_starts


def _equal_count(old: list[str], new: list[str], old_index: int, new_index: int) -> int:
    limit = min(len(old) - old_index, len(new) - new_index)
    return next(
        (count for count in range(limit) if old[old_index + count] != new[new_index + count]), limit
    )


def _next_agreement(
    old: list[str], run_starts: dict[tuple[str, ...], list[int]], old_index: int, new_index: int
) -> tuple[int, int]:
    """Return the nearest agreement of both texts; without it, skip `_MAX_REMOVED_LINES` lines."""
    best: tuple[int, int, int] | None = None
    for index in range(old_index, min(old_index + _MAX_REMOVED_LINES, len(old))):
        candidates = run_starts.get(tuple(old[index : index + _MIN_EQUAL_LINES]), [])
        nearest = bisect_left(candidates, new_index)
        if nearest < len(candidates):
            distance = index - old_index + candidates[nearest] - new_index
            best = min(
                best or (distance, index, candidates[nearest]),
                (distance, index, candidates[nearest]),
            )
    return best[1:] if best else (min(old_index + _MAX_REMOVED_LINES, len(old)), new_index)


def _merge_adjacent(changes: Iterator[Opcode]) -> Iterator[Opcode]:
    """Join adjacent changes, and name them as difflib does."""
    last: Opcode | None = None
    for change in changes:
        if change.old == change.old_end and change.new == change.new_end:
            continue
        if last and (last.tag == "equal") == (change.tag == "equal"):
            last = last._replace(old_end=change.old_end, new_end=change.new_end)
            continue
        if last:
            yield _name_change(last)
        last = change
    if last:
        yield _name_change(last)


def _name_change(change: Opcode) -> Opcode:
    if change.tag == "equal":
        return change
    tag = "replace"
    if change.old == change.old_end:
        tag = "insert"
    elif change.new == change.new_end:
        tag = "delete"
    return change._replace(tag=tag)
