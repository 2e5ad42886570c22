"""The drawing of a box: its names, ports and GPUs, the lines between them, and its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.diagnose.discover.marks import Mark
from webhook.diagnose.discover.node_box import (
    CLEAR,
    GPU_GAP,
    GPU_H,
    GPU_W,
    LINE,
    PAD,
    PER_ROW,
    PORT_GAP,
    PORT_W,
    ROW_GAP,
    TEXT_LINE,
    Box,
    full_words,
    is_linked,
    mark_lines,
    port_words,
    signed,
)
from webhook.diagnose.discover.svg_parts import path, rect, text, tip
from webhook.diagnose.discover.used_ports import EqualNodes, ShownPort
from webhook.model.names import natural_key
from webhook.text.terminal import SIGNS

#: The maximum letters of a port's name, which are set closer if they would not fit.
_NAME = 20


def draw_frame(box: Box) -> str:
    """Draw what is behind the line of the network."""
    return rect(box.x, box.y, box.width, box.height, "node")


def draw_box(box: Box) -> Iterator[str]:
    """Draw what is in a box: names, ports, their lines to the network and to GPUs, and text."""
    yield from _title_text(box)
    gpus = _gpu_positions(box)
    for index, port in enumerate(box.used_ports):
        if is_linked(port):
            yield path(_to_trunk(box, index), port.condition)
        for gpu, distance in port.links:
            yield path(_to_gpu(box, index, gpus[gpu]), distance.lower())
    for index, port in enumerate(box.used_ports):
        yield from _draw_port(box, port, *box.port_position(index), box.port_height)
    for name, (x, y) in gpus.items():
        yield rect(x, y, GPU_W, GPU_H, "gpu")
        yield text(x + GPU_W // 2, y + 19, name.replace("GPU", "GPU "), "mid soft")
    for index, port in enumerate(box.unused_ports):
        yield from _draw_port(box, port, *box.unused_position(index), box.unused_height)
    yield from _bottom_text(box)


# The text at the top and at the bottom.


def _title_text(box: Box) -> Iterator[str]:
    title = _title(box.nodes, box.max_length)
    x, y = box.x + PAD, box.y + 21
    yield text(x, y, title, "name", max_length=box.max_length, full=box.nodes.title)


def _bottom_text(box: Box) -> Iterator[str]:
    x, y = box.x + PAD, box.y + box.height - box.text_height - 5
    lines = [
        *(("soft", line, line) for line in box.about_lines),
        *mark_lines(box.marked.marks),
    ]
    for number, (kind, line, full) in enumerate(lines, 1):
        line_y = y + TEXT_LINE * number
        yield text(x, line_y, line, kind, max_length=box.max_length, full=full)


def _title(nodes: EqualNodes, max_length: int) -> str:
    """Return as many names as fit, and the number of nodes."""
    titles = (nodes.title, nodes.title_of(3), nodes.title_of(2), nodes.title_of(1))
    count = f"{len(nodes.names)} nodes: " if len(nodes.names) > 1 else ""
    return next((title for title in titles if len(title) <= max_length), f"{count}{nodes.names[0]}")


# Ports.


def _draw_port(box: Box, port: ShownPort, x: int, y: int, height: int) -> Iterator[str]:
    """Draw a port with its name, its rate or state, and the words of its marks."""
    marks = box.marked.marks_of(port)
    yield f"<g>{tip(_about(port, marks))}"
    yield rect(x, y, PORT_W, height, port.condition)
    middle = x + PORT_W // 2
    yield text(middle, y + 18, port.name, "name mid", max_length=_NAME, max_width=PORT_W - 6)
    stated = next((mark for mark in marks if not mark.words), None)
    rate = _rate(port)
    if stated:
        yield text(middle, y + 35, signed(stated, rate), f"mid {stated.level}", max_length=17)
    elif port.condition == "missing":
        yield text(middle, y + 35, f"{SIGNS['error'].text} {rate}", "mid error")
    else:
        yield text(middle, y + 35, rate, "mid soft", max_length=17, max_width=PORT_W - 6)
    for number, (level, words) in enumerate(port_words(marks), 1):
        line_y = y + 35 + number * LINE
        yield text(middle, line_y, words, f"mid {level}", max_length=20, max_width=PORT_W - 6)
    yield "</g>"


def _rate(port: ShownPort) -> str:
    is_number = port.rate_or_state.replace(".", "").isdigit()
    rate = f"{port.rate_or_state} Gb/s" if is_number else port.rate_or_state
    return f"unused, {rate}" if port.condition == "unused" else rate


def _about(port: ShownPort, marks: Sequence[Mark]) -> str:
    """Return the tooltip of a port: its rate or state, its nearest GPUs, and its findings."""
    distance = f" ({port.distance})" if port.distance else ""
    gpus = f"nearest: {', '.join(port.gpus)}{distance}" if port.gpus else ""
    return "\n".join(filter(None, (f"{port.name}: {_rate(port)}", gpus, *map(full_words, marks))))


# Lines, and the places of GPUs.


def _to_trunk(box: Box, index: int) -> str:
    """Return the line from a port to the network; from a lower row it passes to the right of ports.

    It then leaves its port 12 pixels off the middle, so that it does not meet the line from the
    port above to a GPU.
    """
    x, y = box.port_position(index)
    if index < PER_ROW:
        return f"M{x + PORT_W // 2} {y}V{box.trunk_y}"
    gap = x + PORT_W + PORT_GAP // 2
    return f"M{x + PORT_W // 2 + CLEAR} {y}v{CLEAR - ROW_GAP}H{gap}V{box.trunk_y}"


def _to_gpu(box: Box, index: int, gpu: tuple[int, int]) -> str:
    """Return the line from a port to a GPU, which passes to the left of the ports below that port.

    It leaves its port and reaches the GPU at the middle of an edge.
    """
    x, y = box.port_position(index)
    middle, gpu_middle = x + PORT_W // 2, gpu[0] + GPU_W // 2
    below = box.ports_bottom + CLEAR
    end = f"V{below}L{gpu_middle} {gpu[1] - CLEAR}V{gpu[1]}"
    if index + PER_ROW < len(box.used_ports):
        turn = f"V{y + box.port_height + ROW_GAP - CLEAR}H{x - PORT_GAP // 2}"
        return f"M{middle} {y + box.port_height}{turn}{end}"
    return f"M{middle} {y + box.port_height}{end}"


def _gpu_positions(box: Box) -> dict[str, tuple[int, int]]:
    """Return the position of each GPU: below its port, or in a row if no topology is known."""
    named = {gpu for port in box.nodes.ports for gpu in port.gpus}
    named |= {gpu for port in box.nodes.ports for gpu, _ in port.links}
    counted = {f"GPU{number}" for number in range(box.nodes.gpu_count)}
    names = sorted(named | counted, key=natural_key)
    y = box.gpus_top
    below = _below_ports(box)
    if set(names) == set(below):
        return {name: (below[name], y) for name in names}
    step = min(GPU_W + 8, (box.width - 2 * PAD) // max(len(names), 1))
    return {name: (box.x + PAD + index * step, y) for index, name in enumerate(names)}


def _below_ports(box: Box) -> dict[str, int]:
    """Return the x position of each GPU below the first port near it, several side by side.

    {} if the GPUs of a column do not fit below its port.
    """
    gpus_by_column: dict[int, list[str]] = {}
    placed: set[str] = set()
    for index, port in enumerate(box.used_ports):
        gpus_by_column.setdefault(index % PER_ROW, []).extend(
            gpu for gpu in port.gpus if gpu not in placed
        )
        placed.update(port.gpus)
    positions: dict[str, int] = {}
    for column, gpus in gpus_by_column.items():
        middle = box.port_position(column)[0] + PORT_W // 2
        step = GPU_W + GPU_GAP
        left = middle - (len(gpus) * step - GPU_GAP) // 2
        positions |= {gpu: left + index * step for index, gpu in enumerate(gpus)}
    return (
        positions
        if all(
            len(gpus) * (GPU_W + GPU_GAP) <= PORT_W + PORT_GAP for gpus in gpus_by_column.values()
        )
        else {}
    )
