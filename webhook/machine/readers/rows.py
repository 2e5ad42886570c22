"""Read the output of tools that say all of a port in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from webhook.machine.sightings import Line, Reading, Sighting

#: Characters of a line; a row of a tool is shorter.
_LONGEST = 2000


class RowReading(NamedTuple):
    """What a line says that is certainly a tool's own."""

    sightings: tuple[Sighting, ...] = ()
    #: False if a part of it could not be read: the line stays visible as not understood.
    understood: bool = True


def read_rows(lines: Iterable[Line], read_row: Callable[[Line], RowReading | None]) -> Reading:
    """Read line by line; `read_row` returns None for a line of another tool."""
    sightings: list[Sighting] = []
    taken: set[int] = set()
    for line in lines:
        row = read_row(line) if len(line.text) <= _LONGEST else None
        if row is not None:
            sightings.extend(row.sightings)
            taken.update({line.number} if row.understood else ())
    return Reading(tuple(sightings), frozenset(taken))
