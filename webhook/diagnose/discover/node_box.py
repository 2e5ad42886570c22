"""A box of the picture: equal nodes with their ports, GPUs, and what findings name in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.discover.marks import Mark, MarkedNodes
from webhook.diagnose.discover.svg_parts import LETTER, path, rect, text, tip
from webhook.diagnose.discover.used_ports import EqualNodes, ShownPort
from webhook.model.finding import Level
from webhook.model.names import natural_key
from webhook.text.terminal import SIGNS

MARGIN, GAP = 24, 20
#: The size of a port, and the space to the next port; each line of words makes ports higher.
_PORT_W, _PORT_H, _PORT_GAP, _LINE = 100, 44, 10, 16
_GPU = 30
_PER_ROW = 8
#: The padding of a box, the gap for the lines from ports to GPUs, and the text at the bottom.
_PAD, _LINE_GAP, _TEXT_HEIGHT, _TEXT_LINE = 14, 34, 46, 17
#: The maximum letters of a port's name, which are set closer if they would not fit.
_NAME = 20
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
    def port_height(self) -> int:
        """The height of each port, with the words of the port that has the most."""
        return _PORT_H + _LINE * max(
            (len(_words(self.marked.marks_of(port))) for port in self.nodes.ports), default=0
        )

    @property
    def text_height(self) -> int:
        """The height of the text at the bottom."""
        lines = len(self.about_lines) + len(_lines(self.marked.marks))
        return _TEXT_HEIGHT + _TEXT_LINE * (lines - 1)

    @property
    def max_length(self) -> int:
        """The most letters that fit into a line of text."""
        return int((self.width - 2 * _PAD) / LETTER)

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
        ports = self.line_count * (self.port_height + _PORT_GAP)
        return _PAD + ports + _gpus_height(self.nodes) + self.text_height

    @property
    def line_count(self) -> int:
        """The number of lines of ports."""
        return -(-len(self.nodes.ports) // _PER_ROW)

    @property
    def last_port(self) -> int:
        """The x position of the rightmost line to the network."""
        positions = (
            self.port_position(index)[0]
            + (_PORT_W // 2 if index < _PER_ROW else _PORT_W + _PORT_GAP // 2)
            for index, port in enumerate(self.nodes.ports)
            if _is_linked(port)
        )
        return max(positions, default=self.x)

    def port_position(self, index: int) -> tuple[int, int]:
        """Return the top left corner of a port."""
        column, line = index % _PER_ROW, index // _PER_ROW
        return (
            self.x + _PAD + column * (_PORT_W + _PORT_GAP),
            self.y + _PAD + line * (self.port_height + _PORT_GAP),
        )


def box_width(nodes: EqualNodes) -> int:
    """Return the width of a box in pixels."""
    columns = max(1, min(_PER_ROW, max(len(nodes.ports), -(-nodes.gpu_count * (_GPU + 6) // 110))))
    return max(2 * _PAD + columns * (_PORT_W + _PORT_GAP) - _PORT_GAP, 330)


def draw_box(box: Box, trunk_y: int) -> Iterator[str]:
    """Draw a box: its ports, their lines to the network and to GPUs, and the text at the bottom."""
    nodes = box.nodes
    yield rect(box.x, box.y, box.width, box.height, "node")
    gpus = _gpu_positions(box)
    for index, port in enumerate(nodes.ports):
        if _is_linked(port):
            yield path(_to_trunk(box, index, trunk_y), port.condition)
        for gpu, distance in port.links:
            yield path(_to_gpu(box, index, gpus[gpu]), distance.lower())
    for index, port in enumerate(nodes.ports):
        yield from _draw_port(box, port, *box.port_position(index))
    for name, (x, y) in gpus.items():
        yield rect(x, y, _GPU, _GPU, "gpu")
        yield text(x + _GPU // 2, y + 19, name.removeprefix("GPU"), "mid soft")
    yield from _bottom_text(box)


def _is_linked(port: ShownPort) -> bool:
    """Return whether a port has a line to the network."""
    return port.condition not in ("unused", "missing")


def _gpus_height(nodes: EqualNodes) -> int:
    """Return the height of the GPUs; 0 if no tool shows any."""
    has_gpus = nodes.gpu_count or any(port.gpus for port in nodes.ports)
    return _LINE_GAP + _GPU if has_gpus else 0


# The text at the bottom.


def _bottom_text(box: Box) -> Iterator[str]:
    nodes = box.nodes
    x, y = box.x + _PAD, box.y + box.height - box.text_height + 20
    title = _title(nodes, box.max_length)
    yield text(x, y, title, "name", max_length=box.max_length, full=nodes.title)
    lines = [
        *(("soft", line, line) for line in box.about_lines),
        *_lines(box.marked.marks),
    ]
    for number, (kind, line, full) in enumerate(lines, 1):
        line_y = y + _TEXT_LINE * number
        yield text(x, line_y, line, kind, max_length=box.max_length, full=full)


def _title(nodes: EqualNodes, max_length: int) -> str:
    """Return as many names as fit, and the number of nodes."""
    titles = (nodes.title, nodes.title_of(3), nodes.title_of(2), nodes.title_of(1))
    count = f"{len(nodes.names)} nodes: " if len(nodes.names) > 1 else ""
    return next((title for title in titles if len(title) <= max_length), f"{count}{nodes.names[0]}")


def _lines(marks: Sequence[Mark]) -> list[tuple[Level, str, str]]:
    """Return the level, the words and the full words of each line about marks."""
    count = len(marks) if len(marks) <= _MAX_LINES else _MAX_LINES - 1
    lines = [(mark.level, _signed(mark, mark.line), _full(mark)) for mark in marks[:count]]
    if omitted := marks[count:]:
        full = "\n".join(map(_full, omitted))
        lines.append((omitted[0].level, f"and {len(omitted)} more findings", full))
    return lines


def _signed(mark: Mark, words: str) -> str:
    return f"{SIGNS[mark.level].text} {words}"


def _full(mark: Mark) -> str:
    return _signed(mark, "\n".join(mark.texts))


# Ports.


def _draw_port(box: Box, port: ShownPort, x: int, y: int) -> Iterator[str]:
    """Draw a port with its name, its rate or state, and the words of its marks."""
    marks = box.marked.marks_of(port)
    yield f"<g>{tip(_about(port, marks))}"
    yield rect(x, y, _PORT_W, box.port_height, port.condition)
    middle = x + _PORT_W // 2
    yield text(middle, y + 18, port.name, "name mid", max_length=_NAME, max_width=_PORT_W - 6)
    stated = next((mark for mark in marks if not mark.words), None)
    rate = _rate(port)
    if stated:
        yield text(middle, y + 35, _signed(stated, rate), f"mid {stated.level}", max_length=17)
    else:
        kind = "error" if port.condition == "missing" else "soft"
        yield text(middle, y + 35, rate, f"mid {kind}", max_length=17)
    for number, (level, words) in enumerate(_words(marks), 1):
        line_y = y + 35 + number * _LINE
        yield text(middle, line_y, words, f"mid {level}", max_length=20, max_width=_PORT_W - 6)
    yield "</g>"


def _words(marks: Sequence[Mark]) -> list[tuple[Level, str]]:
    """Return the level and the words of each mark with words."""
    return [(mark.level, _signed(mark, mark.words)) for mark in marks if mark.words]


def _rate(port: ShownPort) -> str:
    if port.condition == "unused":
        return f"unused, {port.rate_or_state}"
    is_number = port.rate_or_state.replace(".", "").isdigit()
    return f"{port.rate_or_state} Gb/s" if is_number else port.rate_or_state


def _about(port: ShownPort, marks: Sequence[Mark]) -> str:
    """Return the tooltip of a port: its rate or state, its nearest GPUs, and its findings."""
    distance = f" ({port.distance})" if port.distance else ""
    gpus = f"nearest: {', '.join(port.gpus)}{distance}" if port.gpus else ""
    return "\n".join(filter(None, (f"{port.name}: {_rate(port)}", gpus, *map(_full, marks))))


# Lines, and the places of GPUs.


def _to_trunk(box: Box, index: int, trunk_y: int) -> str:
    """Return the line from a port to the network; from a lower row it passes next to the ports."""
    x, y = box.port_position(index)
    if index < _PER_ROW:
        return f"M{x + _PORT_W // 2} {y}V{trunk_y}"
    return f"M{x + _PORT_W} {y + _PORT_H // 2}h{_PORT_GAP // 2}V{trunk_y}"


def _to_gpu(box: Box, index: int, gpu: tuple[int, int]) -> str:
    """Return the line from a port to a GPU, which passes next to the ports below that port."""
    x, y = box.port_position(index)
    last = index % _PER_ROW + (box.line_count - 1) * _PER_ROW
    below = box.port_position(last)[1] + box.port_height
    end = f"V{below}L{gpu[0] + _GPU // 2} {gpu[1]}"
    if index + _PER_ROW < len(box.nodes.ports):
        return f"M{x} {y + _PORT_H // 2}h-2{end}"
    return f"M{x + _PORT_W // 2} {y + box.port_height}{end}"


def _gpu_positions(box: Box) -> dict[str, tuple[int, int]]:
    """Return the position of each GPU: below its port, or in a row if no topology is known."""
    named = {gpu for port in box.nodes.ports for gpu in port.gpus}
    named |= {gpu for port in box.nodes.ports for gpu, _ in port.links}
    counted = {f"GPU{number}" for number in range(box.nodes.gpu_count)}
    names = sorted(named | counted, key=natural_key)
    y = box.y + box.height - box.text_height - _GPU
    below = _below_ports(box)
    if set(names) == set(below):
        return {name: (below[name], y) for name in names}
    step = min(_GPU + 8, (box.width - 2 * _PAD) // max(len(names), 1))
    return {name: (box.x + _PAD + index * step, y) for index, name in enumerate(names)}


def _below_ports(box: Box) -> dict[str, int]:
    """Return the x position of each GPU below the first port near it, several side by side.

    {} if the GPUs of a column do not fit below its port.
    """
    gpus_by_column: dict[int, list[str]] = {}
    placed: set[str] = set()
    for index, port in enumerate(box.nodes.ports):
        if port.condition == "unused":
            continue
        gpus_by_column.setdefault(index % _PER_ROW, []).extend(
            gpu for gpu in port.gpus if gpu not in placed
        )
        placed.update(port.gpus)
    positions: dict[str, int] = {}
    for column, gpus in gpus_by_column.items():
        middle = box.port_position(column)[0] + _PORT_W // 2
        left = middle - (len(gpus) * (_GPU + 4) - 4) // 2
        positions |= {gpu: left + index * (_GPU + 4) for index, gpu in enumerate(gpus)}
    return (
        positions
        if all(len(gpus) * (_GPU + 4) <= _PORT_W + 8 for gpus in gpus_by_column.values())
        else {}
    )
