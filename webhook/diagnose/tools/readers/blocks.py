"""Read the output of tools that write a block for each device, with a block for each port in it.

A key or a port that occurs twice belongs to another device, whose header is missing. The device
is unknown, so nothing is taken until the next header: in a text that was cut in the middle, no
port gets the values of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from webhook.diagnose.tools.observations import (
    Cut,
    Line,
    Observation,
    Origin,
    PortObservation,
    Reading,
)
from webhook.diagnose.tools.readers.notation import number

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
    #: The keys below the header in their order, and the last of these lines.
    keys: list[str] = field(default_factory=list)
    last_line: int = 0
    #: Whether that line is only the beginning of one.
    is_torn: bool = False
    #: The number of ports that the device has, as the tool writes it.
    port_count: int | None = None


def lacks_nothing(_block: Block) -> bool:
    """Return whether a block lacks lines without a known key: never."""
    return False


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
    #: The first keys of a device. A person who filters lines would not keep all of them; so a
    #: device that has them all, but none of the last keys or no ports, is cut.
    first_keys: frozenset[str] = frozenset()
    last_device_key: str = ""
    last_port_keys: frozenset[str] = frozenset()
    port_count_key: str = ""
    #: What the tool writes for a value that it does not know.
    no_value: str = ""
    #: The beginnings of lines that only `take_other` takes.
    torn: re.Pattern[str] | None = None
    #: Whether a port that has all keys lacks lines that `take_other` takes.
    lacks_end: Callable[[Block], bool] = lacks_nothing

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
    cut = _cut(collector.devices, block_format)
    return Reading(
        tuple(observation for block in collector.blocks for observation in observe(block)),
        recognized,
        (cut,) if cut else (),
    )


class _BlockCollector:
    """The blocks of a text that is being read."""

    def __init__(
        self, block_format: BlockFormat, take_other: Callable[[Line, Block], bool]
    ) -> None:
        self._format, self._take_other = block_format, take_other
        self.blocks: list[Block] = []
        #: The same blocks, those of each device in one list.
        self.devices: list[list[Block]] = []
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
            self.devices.append([])
            return self._begin(line, head["device"], head.groupdict().get("port"))
        if self._open is None:
            return False
        head = self._format.port.fullmatch(line.text) if self._format.port else None
        if head is None:
            return self._take_key(line, self._open)
        device = self._open.device
        return self._record_once(None, head["port"]) and self._begin(line, device, head["port"])

    def _begin(self, line: Line, device: str, port: str | None) -> bool:
        self._open = Block(line.number, device, number(port or ""), last_line=line.number)
        self.blocks.append(self._open)
        self.devices[-1].append(self._open)
        return True

    def _take_key(self, line: Line, block: Block) -> bool:
        match = _KEY.fullmatch(line.text)
        key, value = (match[1], (match[2] or "").strip()) if match else ("", "")
        keys = self._format.about_device if block.port is None else self._format.about_port
        if key in keys and self._in_column(key, line.text):
            return self._record_once(block.port, key) and self._fill(line, block, key, value)
        if key in self._format.about_device:
            self._open = None  # below a port: the key belongs to the next device
            return False
        is_known = self._take_other(line, block)
        if is_known or self._is_torn(line.text, keys):
            block.last_line, block.is_torn = line.number, not is_known
        return is_known

    def _is_torn(self, text: str, keys: Keys) -> bool:
        """Return whether a line is only the beginning of one."""
        torn = self._format.torn
        return any(f"{key}:".startswith(text.strip() or "?") for key in keys) or bool(
            torn and torn.fullmatch(text)
        )

    def _fill(self, line: Line, block: Block, key: str, value: str) -> bool:
        """Store the value of a key; return whether it is understood."""
        keys = self._format.about_device if block.port is None else self._format.about_port
        block.last_line = line.number
        block.keys.append(key)
        if key == self._format.port_count_key:
            block.port_count = number(value)
        is_link_layer = key.replace("_", " ").lower() == "link layer"
        block.is_torn = is_link_layer and any(
            layer.startswith(value) and layer != value for layer in _LINK_LAYERS
        )
        is_absent = value != "" and value == self._format.no_value
        return is_absent or _fill(block, keys[key], value)

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


# Find the device within which an output ends.
#
# Other devices of the same output show what is missing: tools write the same keys for all. Without
# another, the first keys show that nobody filtered the lines.

_LINK_LAYERS = ("InfiniBand", "Ethernet")


def _cut(devices: Sequence[Sequence[Block]], block_format: BlockFormat) -> Cut | None:
    """Return the last device, if its blocks lack lines that the tool always writes."""
    if not devices:
        return None
    *before, last = devices
    block = last[-1]
    cut = Cut(block_format.tool, block.last_line, block.device)
    if block.is_torn or _lacks_keys(last, before, block_format) or _lacks_ports(last, before):
        return cut
    if block.port is not None:
        return cut if block_format.lacks_end(block) else None
    # An option may leave out all ports after the last key of a device.
    if not before and block.port_count and block_format.last_device_key in block.keys:
        return cut._replace(may_be_short_form=True)
    return None


def _lacks_keys(
    last: Sequence[Block], before: Sequence[Sequence[Block]], block_format: BlockFormat
) -> bool:
    block = last[-1]
    ends = {
        earlier.keys[-1] if earlier.keys else ""
        for blocks in (*before, last[:-1])
        for earlier in blocks
        if (earlier.port is None) == (block.port is None)
    }
    if ends:
        return len(ends) == 1 and not ends & {"", *block.keys}
    all_keys = {key for part in last for key in part.keys}
    if not block_format.first_keys <= all_keys:
        return False
    if block.port is None:
        return block_format.last_device_key not in block.keys
    return block_format.last_port_keys.isdisjoint(block.keys)


def _lacks_ports(last: Sequence[Block], before: Sequence[Sequence[Block]]) -> bool:
    """Return whether earlier devices have all their ports, but the last has not."""
    counts = [_port_counts(blocks) for blocks in before]
    ports, count = _port_counts(last)
    if ports == 0:
        return bool(counts) and all(earlier_ports > 0 for earlier_ports, _ in counts)
    return ports < count and any(ports == count > 1 for ports, count in counts)


def _port_counts(blocks: Sequence[Block]) -> tuple[int, int]:
    """Return the number of a device's ports that have a block, and as the tool writes it, or 0."""
    ports = sum(block.port is not None for block in blocks)
    return ports, max(block.port_count or 0 for block in blocks)
