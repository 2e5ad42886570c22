"""Two layouts that many tools share: a block for each device, and a line for each port."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from webhook.diagnose.tools.observations import Line, Observation, Origin, PortObservation, Reading
from webhook.diagnose.tools.readers.notation import number

# Read the output of tools that write a block for each device, and in it one for each port.
#
# A key or a port that comes twice belongs to another device, whose header is missing. Nobody knows
# which one it is, so nothing is taken until the next header: a text that was cut in its middle
# gives no port the values of another.

#: The field that a key fills, and how its value is read (None: not understood).
Filling = tuple[str, Callable[[str], object | None]]
#: By its spelling, what a key says; None if it says nothing of use.
Keys = Mapping[str, Filling | None]

_KEY = re.compile(r"\s{0,80}([A-Za-z][\w ]{0,40}?)\s{0,10}:(?:\s{1,80}(\S.{0,200}))?", re.ASCII)
#: Characters of a line; these tools' are shorter.
_LONGEST_KEY_LINE = 400
#: Makes a record of a port from fields that were read under their names.
port_of_fields: Callable[..., PortObservation] = PortObservation


@dataclass
class Block:
    """What stands below the header of a device, or of one of its ports."""

    #: The line of the header.
    line: int
    device: str
    port: int | None
    #: The values, by the fields that they fill.
    fields: dict[str, object] = field(default_factory=dict)
    #: The rows of the port's GID table: the line, the index, the GID, and the version of RoCE.
    gids: list[tuple[int, int, str, str | None]] = field(default_factory=list)


class BlockFormat(NamedTuple):
    """How a tool writes its blocks."""

    #: As in `Origin`.
    tool: str
    #: The line that begins the block of a device, with a group `device`, and perhaps `port`.
    device: re.Pattern[str]
    #: The line that begins the block of a port, with a group `port`.
    port: re.Pattern[str] | None
    about_device: Keys
    about_port: Keys
    #: Keys that another tool writes, too, and the columns where this one does. Where the
    #: indentation is lost, nothing tells whose they are but the block that is open.
    columns: Mapping[str, range] = MappingProxyType({})

    def port_sighting(self, block: Block) -> PortObservation:
        """Make the record of a block whose fields are those of `PortObservation`."""
        origin = Origin(self.tool, block.line)
        return port_of_fields(origin, block.device, block.port, **block.fields)


def takes_none(_line: Line, _block: Block) -> bool:
    """Take no line but those with a known key."""
    return False


def read_blocks(
    lines: Iterable[Line],
    shape: BlockFormat,
    tell: Callable[[Block], Iterable[Observation]],
    takes_other: Callable[[Line, Block], bool] = takes_none,
) -> Reading:
    """Read all blocks.

    `tell` makes the records of a block. `takes_other` is asked about the lines in a block that have
    no known key: whether the line is the tool's.
    """
    found = _Found(shape, takes_other)
    taken = frozenset(line.number for line in lines if found.takes(line))
    return Reading(tuple(one for block in found.blocks for one in tell(block)), taken)


class _Found:
    """The blocks of a text so far."""

    def __init__(self, shape: BlockFormat, takes_other: Callable[[Line, Block], bool]) -> None:
        self._shape, self._takes_other = shape, takes_other
        self.blocks: list[Block] = []
        #: The block that is open; None before the first, and where a header is missing.
        self._open: Block | None = None
        #: The ports of the device so far, and its keys, each with the port that it speaks of.
        self._seen: set[tuple[int | None, str]] = set()

    def takes(self, line: Line) -> bool:
        if len(line.text) > _LONGEST_KEY_LINE:
            return False
        head = self._shape.device.fullmatch(line.text)
        if head is not None:
            self._seen = set()
            return self._begin(line, head["device"], head.groupdict().get("port"))
        if self._open is None:
            return False
        head = self._shape.port.fullmatch(line.text) if self._shape.port else None
        if head is None:
            return self._says(line, self._open)
        device = self._open.device
        return self._is_new(None, head["port"]) and self._begin(line, device, head["port"])

    def _begin(self, line: Line, device: str, port: str | None) -> bool:
        self._open = Block(line.number, device, number(port or ""))
        self.blocks.append(self._open)
        return True

    def _says(self, line: Line, block: Block) -> bool:
        found = _KEY.fullmatch(line.text)
        key, value = (found[1], (found[2] or "").strip()) if found else ("", "")
        keys = self._shape.about_device if block.port is None else self._shape.about_port
        if key in keys and self._is_own(key, line.text):
            return self._is_new(block.port, key) and _fill(block, keys[key], value)
        if key in self._shape.about_device:
            self._open = None  # below a port: it speaks of the next device
            return False
        return self._takes_other(line, block)

    def _is_own(self, key: str, text: str) -> bool:
        text = text.expandtabs()
        column = len(text) - len(text.lstrip())
        return column in (0, *self._shape.columns.get(key, (column,)))

    def _is_new(self, port: int | None, word: str) -> bool:
        new = (port, word) not in self._seen
        self._seen.add((port, word))
        self._open = self._open if new else None
        return new


def _fill(block: Block, filling: Filling | None, value: str) -> bool:
    if filling is None:
        return True
    field_name, understand = filling
    understood = understand(value)
    if understood is not None:
        block.fields[field_name] = understood
    return understood is not None


# Read the output of tools that say all of a port in one line.

#: Characters of a line; a row of a tool is shorter.
_LONGEST_ROW = 2000
#: Texts that are remembered.
_REMEMBERED = 16_384


class RowReading(NamedTuple):
    """What a line says that is certainly a tool's own."""

    sightings: tuple[Observation, ...] = ()
    #: False if a part of it could not be read: the line stays visible as not understood.
    understood: bool = True


RowReader = Callable[[Line], RowReading | None]


def read_rows(lines: Iterable[Line], read_row: RowReader) -> Reading:
    """Read line by line; `read_row` returns None for a line of another tool."""
    sightings: list[Observation] = []
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


def _at(line: Line, sighting: Observation) -> Observation:
    return sighting._replace(origin=sighting.origin._replace(line=line.number))
