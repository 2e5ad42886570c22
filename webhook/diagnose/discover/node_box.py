"""A box of the picture: equal nodes with their ports, GPUs, and what findings name in them.

From top to bottom: the nodes' names, the line of the network, the ports that the fabric uses, the
GPUs, the unused ports, and the text. Gaps are so wide that lines keep `CLEAR` pixels from ports and
GPUs to which they do not belong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from webhook.diagnose.discover.marks import Mark, MarkedNodes
from webhook.diagnose.discover.svg_parts import LETTER
from webhook.diagnose.discover.used_ports import EqualNodes, ShownPort
from webhook.model.finding import Level
from webhook.text.terminal import SIGNS

MARGIN, GAP = 24, 20
#: The space between a line and the nearest box that it does not belong to.
CLEAR = 12
#: The size of a port, and the space to the next port; each line of words makes ports higher.
PORT_W, PORT_H, PORT_GAP, LINE = 100, 44, 2 * CLEAR, 16
#: The space between two rows of ports: a line to a GPU turns below a line to the network.
ROW_GAP = 3 * CLEAR
#: The size of a GPU, and the space to the next one.
GPU_W, GPU_H, GPU_GAP = 48, 30, 4
PER_ROW = 8
#: The padding of a box, the height of the names and of the network's line above the ports, and
#: the gap for the lines from ports to GPUs.
PAD, _HEAD, _TRUNK_GAP, _LINE_GAP = 2 * CLEAR, 32, 16, 4 * CLEAR
#: The height of a line of text, and the space below the last.
TEXT_LINE, _TEXT_PAD = 17, 12
#: The most marks of a box that are written out.
_MAX_LINES = 3


class Box(NamedTuple):
    """A drawn group of equal nodes, and its position."""

    marked: MarkedNodes
    x: int
    y: int

    @property
    def nodes(self) -> EqualNodes:
        """The nodes."""
        return self.marked.nodes

    @property
    def width(self) -> int:
        """The width in pixels."""
        return box_width(self.nodes)

    @property
    def used_ports(self) -> list[ShownPort]:
        """The ports that the fabric uses, or should have."""
        return [port for port in self.nodes.ports if port.condition != "unused"]

    @property
    def unused_ports(self) -> list[ShownPort]:
        """The other ports."""
        return [port for port in self.nodes.ports if port.condition == "unused"]

    @property
    def port_height(self) -> int:
        """The height of each used port, with the words of the port that has the most."""
        return self._port_height(self.used_ports)

    @property
    def unused_height(self) -> int:
        """The height of each unused port."""
        return self._port_height(self.unused_ports)

    def _port_height(self, ports: Sequence[ShownPort]) -> int:
        counts = (len(port_words(self.marked.marks_of(port))) for port in ports)
        return PORT_H + LINE * max(counts, default=0)

    @property
    def text_height(self) -> int:
        """The height of the text at the bottom."""
        lines = len(self.about_lines) + len(mark_lines(self.marked.marks))
        return TEXT_LINE * lines + _TEXT_PAD

    @property
    def max_length(self) -> int:
        """The most letters that fit into a line of text."""
        return int((self.width - 2 * PAD) / LETTER)

    @property
    def about_lines(self) -> list[str]:
        """The machines, GPUs and firmware: in a line, or the firmware below if that is too long."""
        nodes = self.nodes
        machines = ", ".join(filter(None, (nodes.machine_type, nodes.gpus))) or "GPUs unknown"
        if not nodes.firmware:
            return [machines]
        firmware = f"firmware {nodes.firmware}"
        joined = f"{machines}, {firmware}"
        return [joined] if len(joined) <= self.max_length else [machines, firmware]

    @property
    def height(self) -> int:
        """The height in pixels."""
        unused = _rows_height(len(self.unused_ports), self.unused_height)
        return self.unused_top + unused + self.text_height - self.y

    @property
    def trunk_y(self) -> int:
        """The y position of the network's line."""
        return self.y + _HEAD

    @property
    def ports_bottom(self) -> int:
        """The y position below the last row of ports that the fabric uses."""
        rows = _rows_height(len(self.used_ports), self.port_height)
        return self.trunk_y + _TRUNK_GAP + rows - PORT_GAP

    @property
    def gpus_top(self) -> int:
        """The y position of the GPUs."""
        return self.ports_bottom + _LINE_GAP

    @property
    def unused_top(self) -> int:
        """The y position of the unused ports."""
        has_gpus = self.nodes.gpu_count or any(port.gpus for port in self.nodes.ports)
        return (self.gpus_top + GPU_H if has_gpus else self.ports_bottom) + PORT_GAP

    @property
    def last_port(self) -> int:
        """The x position of the rightmost line to the network."""
        positions = (
            self.port_position(index)[0]
            + (PORT_W // 2 if index < PER_ROW else PORT_W + PORT_GAP // 2)
            for index, port in enumerate(self.used_ports)
            if is_linked(port)
        )
        return max(positions, default=self.x)

    def port_position(self, index: int) -> tuple[int, int]:
        """Return the top left corner of a port that the fabric uses."""
        return self._in_grid(index, self.trunk_y + _TRUNK_GAP, self.port_height)

    def unused_position(self, index: int) -> tuple[int, int]:
        """Return the top left corner of an unused port."""
        return self._in_grid(index, self.unused_top, self.unused_height)

    def _in_grid(self, index: int, top: int, height: int) -> tuple[int, int]:
        column, line = index % PER_ROW, index // PER_ROW
        x = self.x + PAD + column * (PORT_W + PORT_GAP)
        return x, top + line * (height + ROW_GAP)


def _rows_height(count: int, height: int) -> int:
    """Return the height of rows of ports of this height, with the space below the last row."""
    rows = -(-count // PER_ROW)
    return rows * (height + ROW_GAP) - (ROW_GAP - PORT_GAP if rows else 0)


def is_linked(port: ShownPort) -> bool:
    """Return whether a port that the fabric uses has a line to the network."""
    return port.condition != "missing"


def box_width(nodes: EqualNodes) -> int:
    """Return the width of a box in pixels."""
    unused = sum(port.condition == "unused" for port in nodes.ports)
    ports = max(len(nodes.ports) - unused, unused)
    gpus = -(-nodes.gpu_count * (GPU_W + GPU_GAP) // (PORT_W + PORT_GAP))
    columns = max(1, min(PER_ROW, max(ports, gpus)))
    return max(2 * PAD + columns * (PORT_W + PORT_GAP) - PORT_GAP, 330)


def mark_lines(marks: Sequence[Mark]) -> list[tuple[Level, str, str]]:
    """Return the level, the words and the full words of each line about marks."""
    count = len(marks) if len(marks) <= _MAX_LINES else _MAX_LINES - 1
    lines = [(mark.level, signed(mark, mark.line), full_words(mark)) for mark in marks[:count]]
    if omitted := marks[count:]:
        full = "\n".join(map(full_words, omitted))
        lines.append((omitted[0].level, f"and {len(omitted)} more findings", full))
    return lines


def signed(mark: Mark, words: str) -> str:
    """Return words after the sign of a mark."""
    return f"{SIGNS[mark.level].text} {words}"


def full_words(mark: Mark) -> str:
    """Return the sign of a mark and all of its sentences."""
    return signed(mark, "\n".join(mark.texts))


def port_words(marks: Sequence[Mark]) -> list[tuple[Level, str]]:
    """Return the level and the words of each mark with words."""
    return [(mark.level, signed(mark, mark.words)) for mark in marks if mark.words]
