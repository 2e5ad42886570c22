"""What readers of many tools share: `Reader`, and two layouts.

In the one, each device has a block of lines; in the other, each line has a meaning of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from webhook.diagnose.tools.observations import Line, Observation, Origin, PortObservation, Reading
from webhook.diagnose.tools.readers.notation import number

# Read the output of tools that write a block for each device, with a block for each port in it.
#
# A key or a port that occurs twice belongs to another device, whose header is missing. The device
# is unknown, so nothing is taken until the next header: in a text that was cut in the middle, no
# port gets the values of another.

#: The field of a key, and the function that reads its value (None: not understood).
FieldReader = tuple[str, Callable[[str], object | None]]
#: Key as spelled → the reader of its field; None if the value is ignored.
Keys = Mapping[str, FieldReader | None]

_KEY = re.compile(r"\s{0,80}([A-Za-z][\w ]{0,40}?)\s{0,10}:(?:\s{1,80}(\S.{0,200}))?", re.ASCII)
#: The maximum characters of a line of these tools.
_MAX_KEY_LINE = 400
#: Makes an observation of a port from fields by name.
port_of_fields: Callable[..., PortObservation] = PortObservation


@dataclass
class Block:
    """The lines below the header of a device, or of one of its ports."""

    #: The line of the header.
    line: int
    device: str
    port: int | None
    #: Field → value.
    fields: dict[str, object] = field(default_factory=dict)
    #: The rows of the port's GID table: line, index, GID and RoCE version.
    gids: list[tuple[int, int, str, str | None]] = field(default_factory=list)


class BlockFormat(NamedTuple):
    """The format of a tool's blocks."""

    #: As in `Origin`.
    tool: str
    #: The first line of a device's block, with a group `device` and possibly `port`.
    device: re.Pattern[str]
    #: The first line of a port's block, with a group `port`.
    port: re.Pattern[str] | None
    about_device: Keys
    about_port: Keys
    #: Keys that another tool also writes, and their columns in this tool's output. If the
    #: indentation is lost, only the open block shows whose they are.
    columns: Mapping[str, range] = MappingProxyType({})

    def port_observation(self, block: Block) -> PortObservation:
        """Make the observation of a block with the fields of `PortObservation`."""
        origin = Origin(self.tool, block.line)
        return port_of_fields(origin, block.device, block.port, **block.fields)


def take_none(_line: Line, _block: Block) -> bool:
    """Take no line without a known key."""
    return False


def read_blocks(
    lines: Iterable[Line],
    block_format: BlockFormat,
    observe: Callable[[Block], Iterable[Observation]],
    take_other: Callable[[Line, Block], bool] = take_none,
) -> Reading:
    """Read all blocks.

    `observe` makes the observations of a block. `take_other` stores a line of a block without a
    known key, and returns whether it is the tool's.
    """
    collector = _BlockCollector(block_format, take_other)
    recognized = frozenset(line.number for line in lines if collector.take(line))
    return Reading(
        tuple(observation for block in collector.blocks for observation in observe(block)),
        recognized,
    )


class _BlockCollector:
    """The blocks of a text that is being read."""

    def __init__(
        self, block_format: BlockFormat, take_other: Callable[[Line, Block], bool]
    ) -> None:
        self._format, self._take_other = block_format, take_other
        self.blocks: list[Block] = []
        #: The open block; None before the first, and if a header is missing.
        self._open: Block | None = None
        #: The ports of the device so far, and its keys, each with its port.
        self._seen: set[tuple[int | None, str]] = set()

    def take(self, line: Line) -> bool:
        """Store a line; return whether it is recognized."""
        if len(line.text) > _MAX_KEY_LINE:
            return False
        head = self._format.device.fullmatch(line.text)
        if head is not None:
            self._seen = set()
            return self._begin(line, head["device"], head.groupdict().get("port"))
        if self._open is None:
            return False
        head = self._format.port.fullmatch(line.text) if self._format.port else None
        if head is None:
            return self._take_key(line, self._open)
        device = self._open.device
        return self._record_once(None, head["port"]) and self._begin(line, device, head["port"])

    def _begin(self, line: Line, device: str, port: str | None) -> bool:
        self._open = Block(line.number, device, number(port or ""))
        self.blocks.append(self._open)
        return True

    def _take_key(self, line: Line, block: Block) -> bool:
        match = _KEY.fullmatch(line.text)
        key, value = (match[1], (match[2] or "").strip()) if match else ("", "")
        keys = self._format.about_device if block.port is None else self._format.about_port
        if key in keys and self._in_column(key, line.text):
            return self._record_once(block.port, key) and _fill(block, keys[key], value)
        if key in self._format.about_device:
            self._open = None  # below a port: the key belongs to the next device
            return False
        return self._take_other(line, block)

    def _in_column(self, key: str, text: str) -> bool:
        text = text.expandtabs()
        column = len(text) - len(text.lstrip())
        return column in (0, *self._format.columns.get(key, (column,)))

    def _record_once(self, port: int | None, word: str) -> bool:
        """Record a port or key; if it occurred before, close the block, and return False."""
        new = (port, word) not in self._seen
        self._seen.add((port, word))
        self._open = self._open if new else None
        return new


def _fill(block: Block, field_reader: FieldReader | None, value: str) -> bool:
    if field_reader is None:
        return True
    field_name, understand = field_reader
    understood = understand(value)
    if understood is not None:
        block.fields[field_name] = understood
    return understood is not None


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


#: The reading of a line that is certainly the tool's, but shows nothing to observe.
RECOGNIZED = RowReading()
RowReader = Callable[[Line], RowReading | None]


def read_rows(lines: Iterable[Line], read_row: RowReader) -> Reading:
    """Read line by line; `read_row` returns None for a line of another tool."""
    observations: list[Observation] = []
    recognized: set[int] = set()
    for line in lines:
        row = read_row(line) if len(line.text) <= _MAX_ROW else None
        if row is not None:
            observations.extend(row.observations)
            recognized.update({line.number} if row.fully_read else ())
    return Reading(tuple(observations), frozenset(recognized))


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
            RowReading(observations, any(row.fully_read for row in readings)) if readings else None
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
