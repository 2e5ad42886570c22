"""What readers of many tools share: `Reader`, and the layout whose lines each have a meaning.

`blocks` has the other layout, with a block of lines for each device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from webhook.diagnose.tools.observations import (
    Cut,
    Line,
    Observation,
    Reading,
)

# Read the output of tools whose lines each have a meaning of their own, such as one for each port.

#: The maximum characters of a row.
_MAX_ROW = 2000
#: The number of texts in the cache.
_REMEMBERED = 16_384


class RowReading(NamedTuple):
    """The observations of a line that is certainly the tool's."""

    observations: tuple[Observation, ...] = ()
    #: False if a part of it could not be read: reports list the line as not understood.
    fully_read: bool = True
    #: The device whose line ends too early; "" if it does not.
    cut_within: str = ""


#: The reading of a line that is certainly the tool's, but shows nothing to observe.
RECOGNIZED = RowReading()
RowReader = Callable[[Line], RowReading | None]


def read_rows(lines: Iterable[Line], read_row: RowReader) -> Reading:
    """Read line by line; `read_row` returns None for a line of another tool."""
    observations: list[Observation] = []
    recognized: set[int] = set()
    cuts: list[Cut] = []
    for line in lines:
        row = read_row(line) if len(line.text) <= _MAX_ROW else None
        if row is not None:
            observations.extend(row.observations)
            recognized.update({line.number} if row.fully_read else ())
            if row.cut_within:
                tool = row.observations[0].origin.tool
                cuts.append(Cut(tool, line.number, row.cut_within))
    return Reading(tuple(observations), frozenset(recognized), tuple(cuts))


class Reader(NamedTuple):
    """The reader of one tool's output."""

    #: The tool as typed: "rdma link".
    tool: str
    #: Takes the lines that are certainly this tool's, in time linear in their length. A line with a
    #: value that cannot be read is not taken.
    read: Callable[[Sequence[Line]], Reading]


class LineByLineReader:
    """A reader of lines whose meaning does not depend on other lines."""

    def __init__(self, read_row: RowReader) -> None:
        self.read_row = read_row

    def __call__(self, lines: Sequence[Line]) -> Reading:
        """Take the tool's lines."""
        return read_rows(lines, self.read_row)


def combine_row_readers(readers: Iterable[LineByLineReader]) -> LineByLineReader:
    """Return a reader for the lines of all these tools.

    It caches texts, since the nodes of a fabric show mostly the same ones.
    """
    row_readers = [reader.read_row for reader in readers]

    @lru_cache(_REMEMBERED)
    def read_text(text: str) -> RowReading | None:
        readings = [row for read_row in row_readers if (row := read_row(Line(0, text))) is not None]
        observations = tuple(observation for row in readings for observation in row.observations)
        return (
            RowReading(
                observations,
                any(row.fully_read for row in readings),
                next((row.cut_within for row in readings if row.cut_within), ""),
            )
            if readings
            else None
        )

    def read_row(line: Line) -> RowReading | None:
        reading = read_text(line.text)
        if reading is None or not reading.observations:
            return reading
        return reading._replace(
            observations=tuple(_at(line, observation) for observation in reading.observations)
        )

    return LineByLineReader(read_row)


def _at(line: Line, observation: Observation) -> Observation:
    return observation._replace(origin=observation.origin._replace(line=line.number))
