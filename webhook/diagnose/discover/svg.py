"""A picture of the fabrics as SVG: nodes, GPUs, cards, ports with rates and states, the network.

Equal nodes are drawn once, so that 64 nodes are as readable as two. The picture is self-contained:
no script, no font, no other file; its colors follow the viewer's light or dark mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.site import rate_text
from webhook.diagnose.discover.used_ports import EqualNodes, ShownPort, equal_nodes
from webhook.model.names import counted, natural_key
from webhook.text.escape import visible

_WIDTH = 1120
_MARGIN, _GAP = 24, 20
#: The size of a port, and the space to the next port.
_PORT_W, _PORT_H, _PORT_GAP = 100, 44, 10
_GPU = 30
_PER_ROW = 8
#: The heights of a fabric's title and of the bar for its network, and the space below the bar for
#: the line to the ports.
_TITLE, _SWITCH_H, _TRUNK_GAP = 30, 34, 26
#: The padding of a box, the gap for the lines from ports to GPUs, and the text at the bottom.
_PAD, _LINE_GAP, _TEXT_HEIGHT = 14, 34, 46
#: Pixels of a bold letter in a box, and the maximum letters of a port's name, which are set closer
#: if they would not fit.
_LETTER, _NAME = 7.4, 20

_RULES = """
.site text{font:12px system-ui,sans-serif;fill:INK}
.site .title{font-size:16px;font-weight:600}.site .soft{fill:SOFT}
.site .mid{text-anchor:middle}.site .name{font-weight:600}
.site .paper{fill:PAPER}.site .node{fill:BOX;stroke:EDGE}
.site .net{fill:NETWORK_BACK;stroke:NETWORK}.site .gpu{fill:PAPER;stroke:LINE}
.site .fine{fill:FINE_BACK;stroke:FINE}.site .unknown{fill:ODD_BACK;stroke:ODD}
.site .down,.site .slow{fill:BAD_BACK;stroke:BAD}
.site .unused{fill:BOX;stroke:EDGE;stroke-dasharray:4 3}
.site path{fill:none!important;stroke:LINE;stroke-width:1}
.site path.fine{stroke:FINE;stroke-width:2}.site path.trunk{stroke:NETWORK;stroke-width:2}
.site path.slow{stroke:BAD;stroke-width:2}.site path.down{stroke:BAD;stroke-dasharray:5 4}
.site path.unknown{stroke:ODD;stroke-dasharray:5 4}
"""
_LIGHT = {
    "FINE_BACK": "#dafbe1", "BAD_BACK": "#ffebe9", "ODD_BACK": "#fff8c5",
    "NETWORK_BACK": "#ddf4ff", "INK": "#1f2328", "SOFT": "#59636e", "LINE": "#8c959f",
    "BOX": "#f6f8fa", "EDGE": "#d1d9e0", "PAPER": "#ffffff", "FINE": "#1a7f37", "BAD": "#cf222e",
    "ODD": "#9a6700", "NETWORK": "#0969da",
}  # fmt: skip
_DARK = {
    "FINE_BACK": "#12261e", "BAD_BACK": "#25171c", "ODD_BACK": "#272115",
    "NETWORK_BACK": "#121d2f", "INK": "#f0f6fc", "SOFT": "#9198a1", "LINE": "#6e7681",
    "BOX": "#151b23", "EDGE": "#3d444d", "PAPER": "#0d1117", "FINE": "#3fb950", "BAD": "#f85149",
    "ODD": "#d29922", "NETWORK": "#4493f8",
}  # fmt: skip


def _rules_with_colors(colors: Mapping[str, str]) -> str:
    """Return the rules with colors, for viewers without CSS variables."""
    text = _RULES
    for name, color in colors.items():
        text = re.sub(rf"\b{name}\b", color, text)
    return text


_STYLE = (
    f"{_rules_with_colors(_LIGHT)}@media (prefers-color-scheme:dark){{{_rules_with_colors(_DARK)}}}"
)


class _Box(NamedTuple):
    """A drawn group of equal nodes, and its position."""

    nodes: EqualNodes
    x: int
    y: int
    width: int
    height: int


def picture(plans: Sequence[FabricPlan]) -> str:
    """Return the SVG of all fabrics, one below another."""
    parts: list[str] = []
    y = _MARGIN
    for plan in plans:
        drawn, y = _fabric(plan, y)
        parts += drawn
    height = y if plans else 2 * _MARGIN + _TITLE
    if not plans:
        parts.append(_text(_MARGIN, _MARGIN + 16, "No fabrics found.", "soft"))
    names = visible(", ".join(plan.name for plan in plans) or "none")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="site" role="img" width="{_WIDTH}" '
        f'height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f"aria-label={quoteattr(f'The fabrics: {names}')}>"
    )
    paper = f'<rect class="paper" width="{_WIDTH}" height="{height}"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", paper, *parts, "</svg>\n"])


def _fabric(plan: FabricPlan, y: int) -> tuple[list[str], int]:
    """Draw a fabric: its title, the network as a bar, and its nodes in rows below."""
    link = f"{plan.group.card_kind.link_layer} network, {rate_text(plan.group.rate)}"
    count = counted(len(plan.group.nodes), "node")
    about = ", ".join(filter(None, (count, plan.group.product, plan.group.model, plan.mode)))
    bar = y + _TITLE
    parts = [
        _text(_MARGIN, y + 16, f"{plan.name}: {about}", "title"),
        _rect(_MARGIN, bar, _WIDTH - 2 * _MARGIN, _SWITCH_H, "net"),
        _text(_WIDTH // 2, bar + 21, link, "name mid"),
    ]
    rows = _rows(plan)
    top = bar + _SWITCH_H
    trunk_x = _MARGIN + 8
    for row in rows:
        trunk_y = top + _TRUNK_GAP // 2 + 4
        boxes = _boxes_in_row(row, top + _TRUNK_GAP + 10)
        right = max(_last_port(box) for box in boxes)
        parts.append(_path(f"M{trunk_x} {bar + _SWITCH_H}V{trunk_y}H{right}", "trunk"))
        for box in boxes:
            parts += _node(box, trunk_y)
        top = max(box.y + box.height for box in boxes)
    return parts, top + _GAP + _MARGIN


def _rows(plan: FabricPlan) -> list[list[EqualNodes]]:
    """Put as many boxes side by side as fit."""
    rows: list[list[EqualNodes]] = []
    used = 0
    width = _WIDTH - 3 * _MARGIN
    for nodes in equal_nodes(plan):
        needed = _box_width(nodes) + _GAP
        if not rows or used + needed > width + _GAP:
            rows.append([])
            used = 0
        rows[-1].append(nodes)
        used += needed
    return rows


def _box_width(nodes: EqualNodes) -> int:
    columns = max(1, min(_PER_ROW, max(len(nodes.ports), -(-nodes.gpu_count * (_GPU + 6) // 110))))
    return max(2 * _PAD + columns * (_PORT_W + _PORT_GAP) - _PORT_GAP, 330)


def _boxes_in_row(row: Sequence[EqualNodes], y: int) -> list[_Box]:
    boxes, x = [], 2 * _MARGIN
    for nodes in row:
        height = (
            _PAD + _line_count(nodes) * (_PORT_H + _PORT_GAP) + _gpus_height(nodes) + _TEXT_HEIGHT
        )
        boxes.append(_Box(nodes, x, y, _box_width(nodes), height))
        x += boxes[-1].width + _GAP
    return boxes


def _line_count(nodes: EqualNodes) -> int:
    """Return the number of lines of ports."""
    return -(-len(nodes.ports) // _PER_ROW)


def _gpus_height(nodes: EqualNodes) -> int:
    """Return the height of the GPUs; 0 if no tool shows any."""
    has_gpus = nodes.gpu_count or any(port.gpus for port in nodes.ports)
    return _LINE_GAP + _GPU if has_gpus else 0


def _last_port(box: _Box) -> int:
    used = [index for index, port in enumerate(box.nodes.ports) if port.condition != "unused"]
    positions = (
        _port_position(box, index)[0]
        + (_PORT_W // 2 if index < _PER_ROW else _PORT_W + _PORT_GAP // 2)
        for index in used
    )
    return max(positions, default=box.x)


def _port_position(box: _Box, index: int) -> tuple[int, int]:
    column, line = index % _PER_ROW, index // _PER_ROW
    return (
        box.x + _PAD + column * (_PORT_W + _PORT_GAP),
        box.y + _PAD + line * (_PORT_H + _PORT_GAP),
    )


def _node(box: _Box, trunk_y: int) -> Iterator[str]:
    """Draw a box: its ports, their lines to the network and to GPUs, and the text at the bottom."""
    nodes = box.nodes
    yield _rect(box.x, box.y, box.width, box.height, "node")
    gpus = _gpu_positions(box)
    for index, port in enumerate(nodes.ports):
        x, y = _port_position(box, index)
        if port.condition != "unused":
            yield _path(_to_trunk(x, y, trunk_y, first_row=index < _PER_ROW), port.condition)
        for gpu in port.gpus:
            yield _path(_to_gpu(box, index, gpus[gpu]), "near")
    for index, port in enumerate(nodes.ports):
        yield from _port(port, *_port_position(box, index))
    for name, (x, y) in gpus.items():
        yield _rect(x, y, _GPU, _GPU, "gpu")
        yield _text(x + _GPU // 2, y + 19, name.removeprefix("GPU"), "mid soft")
    text_y = box.y + box.height - _TEXT_HEIGHT + 20
    max_length = int((box.width - 2 * _PAD) / _LETTER)
    yield _text(
        box.x + _PAD,
        text_y,
        _title(nodes, max_length),
        "name",
        max_length=max_length,
        full=nodes.title,
    )
    firmware = f"firmware {nodes.firmware}" if nodes.firmware else ""
    about = ", ".join(filter(None, (nodes.machine_type, nodes.gpus, firmware)))
    yield _text(box.x + _PAD, text_y + 17, about or "GPUs unknown", "soft", max_length=max_length)


def _title(nodes: EqualNodes, max_length: int) -> str:
    """Return as many names as fit, and the number of nodes."""
    titles = (nodes.title, nodes.title_of(3), nodes.title_of(2), nodes.title_of(1))
    count = f"{len(nodes.names)} nodes: " if len(nodes.names) > 1 else ""
    return next((title for title in titles if len(title) <= max_length), f"{count}{nodes.names[0]}")


def _to_gpu(box: _Box, index: int, gpu: tuple[int, int]) -> str:
    """Return the line from a port to a GPU, which passes next to any lower line of ports."""
    x, y = _port_position(box, index)
    end = f"L{gpu[0] + _GPU // 2} {gpu[1]}"
    if index // _PER_ROW == _line_count(box.nodes) - 1:
        return f"M{x + _PORT_W // 2} {y + _PORT_H}{end}"
    below = (
        _port_position(box, index % _PER_ROW + (_line_count(box.nodes) - 1) * _PER_ROW)[1] + _PORT_H
    )
    return f"M{x} {y + _PORT_H // 2}h-2V{below}{end}"


def _gpu_positions(box: _Box) -> dict[str, tuple[int, int]]:
    """Return the position of each GPU: below its port, or in a row if no topology is known."""
    named = {gpu for port in box.nodes.ports for gpu in port.gpus}
    counted = {f"GPU{number}" for number in range(box.nodes.gpu_count)}
    names = sorted(named | counted, key=natural_key)
    y = box.y + box.height - _TEXT_HEIGHT - _GPU
    below = _below_ports(box)
    if set(names) == set(below):
        return {name: (below[name], y) for name in names}
    step = min(_GPU + 8, (box.width - 2 * _PAD) // max(len(names), 1))
    return {name: (box.x + _PAD + index * step, y) for index, name in enumerate(names)}


def _below_ports(box: _Box) -> dict[str, int]:
    """Return the x position of each GPU below the first port near it, several side by side.

    {} if the GPUs of a column do not fit below its port.
    """
    gpus_by_column: dict[int, list[str]] = {}
    placed: set[str] = set()
    for index, port in enumerate(box.nodes.ports):
        gpus_by_column.setdefault(index % _PER_ROW, []).extend(
            gpu for gpu in port.gpus if gpu not in placed
        )
        placed.update(port.gpus)
    positions: dict[str, int] = {}
    for column, gpus in gpus_by_column.items():
        middle = _port_position(box, column)[0] + _PORT_W // 2
        left = middle - (len(gpus) * (_GPU + 4) - 4) // 2
        positions |= {gpu: left + index * (_GPU + 4) for index, gpu in enumerate(gpus)}
    return (
        positions
        if all(len(gpus) * (_GPU + 4) <= _PORT_W + 8 for gpus in gpus_by_column.values())
        else {}
    )


def _to_trunk(x: int, y: int, trunk_y: int, *, first_row: bool) -> str:
    """Return the line from a port to the network; from a lower row it passes next to the ports."""
    if first_row:
        return f"M{x + _PORT_W // 2} {y}V{trunk_y}"
    return f"M{x + _PORT_W} {y + _PORT_H // 2}h{_PORT_GAP // 2}V{trunk_y}"


def _port(port: ShownPort, x: int, y: int) -> Iterator[str]:
    yield _rect(x, y, _PORT_W, _PORT_H, port.condition)
    rate = (
        f"{port.rate_or_state} Gb/s"
        if port.rate_or_state.replace(".", "").isdigit()
        else port.rate_or_state
    )
    if port.condition == "unused":
        rate = f"unused, {port.rate_or_state}"
    yield _text(
        x + _PORT_W // 2, y + 18, port.name, "name mid", max_length=_NAME, max_width=_PORT_W - 6
    )
    yield _text(x + _PORT_W // 2, y + 35, rate, "mid soft", max_length=17)


def _rect(x: int, y: int, width: int, height: int, kind: str) -> str:
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'


def _path(commands: str, kind: str) -> str:
    return f'<path class="{kind}" d="{commands}"/>'


def _text(
    x: int,
    y: int,
    text: str,
    kind: str,
    *,
    max_length: int = 140,
    full: str = "",
    max_width: int = 0,
) -> str:
    """Write text, cut to `max_length` characters; the full text becomes the tooltip.

    `max_width` is in pixels; letters that need more are set closer.
    """
    text, full = visible(text), visible(full or text)
    cut = text if len(text) <= max_length else f"{text[: max_length - 1]}…"
    tip = f"<title>{escape(full)}</title>" if cut != full else ""
    close = f' textLength="{max_width}"' if max_width and len(cut) * _LETTER > max_width else ""
    closer = f'{close} lengthAdjust="spacingAndGlyphs"' if close else ""
    return f'<text class="{kind}" x="{x}" y="{y}"{closer}>{tip}{escape(cut)}</text>'
