"""Read the output of tools that say all of a port in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from webhook.diagnose.tools.observations import Line, Reading, Sighting

#: Characters of a line; a row of a tool is shorter.
_LONGEST_ROW = 2000
#: Texts that are remembered.
_REMEMBERED = 16_384


class RowReading(NamedTuple):
    """What a line says that is certainly a tool's own."""

    sightings: tuple[Sighting, ...] = ()
    #: False if a part of it could not be read: the line stays visible as not understood.
    understood: bool = True


RowReader = Callable[[Line], RowReading | None]


def read_rows(lines: Iterable[Line], read_row: RowReader) -> Reading:
    """Read line by line; `read_row` returns None for a line of another tool."""
    sightings: list[Sighting] = []
    taken: set[int] = set()
    for line in lines:
        row = read_row(line) if len(line.text) <= _LONGEST_ROW else None
        if row is not None:
            sightings.extend(row.sightings)
            taken.update({line.number} if row.understood else ())
    return Reading(tuple(sightings), frozenset(taken))


class Reader(NamedTuple):
    """The reader of one tool's output."""

    #: The tool as typed: "rdma link".
    tool: str
    #: Takes the lines that are certainly this tool's, in a time that grows with their length. A
    #: line with a value that cannot be read is not taken.
    read: Callable[[Sequence[Line]], Reading]


class ReadsRows:
    """Reads a tool's lines, each of which says the same wherever it stands."""

    def __init__(self, row: RowReader) -> None:
        self.row = row

    def __call__(self, lines: Sequence[Line]) -> Reading:
        """Take the tool's lines."""
        return read_rows(lines, self.row)


def together(readers: Iterable[ReadsRows]) -> ReadsRows:
    """Return what reads the lines of all these tools.

    It remembers texts: the nodes of a fabric show mostly the same ones.
    """
    rows = [reader.row for reader in readers]

    @lru_cache(_REMEMBERED)
    def said(text: str) -> RowReading | None:
        found = [row for read_row in rows if (row := read_row(Line(0, text))) is not None]
        sightings = tuple(one for row in found for one in row.sightings)
        return RowReading(sightings, any(row.understood for row in found)) if found else None

    def row(line: Line) -> RowReading | None:
        found = said(line.text)
        if found is None or not found.sightings:
            return found
        return found._replace(sightings=tuple(_at(line, one) for one in found.sightings))

    return ReadsRows(row)


def _at(line: Line, sighting: Sighting) -> Sighting:
    return sighting._replace(origin=sighting.origin._replace(line=line.number))
