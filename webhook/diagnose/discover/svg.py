"""A picture of the fabrics as SVG: nodes, GPUs, cards, ports with rates and states, the network.

Equal nodes are drawn once, so that 64 nodes are as readable as two. What findings name is marked.
The picture is self-contained: no script, no font, no other file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from webhook.diagnose.discover.box_drawing import draw_box, draw_frame
from webhook.diagnose.discover.discovery import Discovery
from webhook.diagnose.discover.marks import MarkedNodes, findings_by_node, marked_nodes
from webhook.diagnose.discover.node_box import GAP, MARGIN, Box, box_width
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.site import rate_text
from webhook.diagnose.discover.svg_parts import LETTER, path, rect, style, text
from webhook.model.finding import Level
from webhook.model.names import counted
from webhook.text.escape import visible
from webhook.text.terminal import SIGNS

_WIDTH = 1120
#: The heights of a fabric's title and of the bar for its network, and the space above a row.
_TITLE, _SWITCH_H, _ROW_GAP = 30, 34, 16
#: Kind of port or line → what it means.
_PORT_LEGEND = {
    "fine": "Active",
    "down": "not Active, or slower than the fabric",
    "missing": "missing on this node",
    "unknown": "state unknown",
    "unused": "not used by the fabric",
}
_LINE_LEGEND = {
    "PIX": "at most one PCIe bridge to the GPU (PIX)",
    "PXB": "several PCIe bridges to the GPU (PXB)",
}
_SIGN_LEGEND: dict[Level, str] = {
    "warning": "works, but should be corrected",
    "unsure": "cannot be determined",
    "error": "does not work as it should",
}
_GPU_LEGEND = "GPU, with its number in nvidia-smi"
_LEGEND_LINE = 22


class _Strip(NamedTuple):
    """A part of the picture that is as wide as the whole, from its top to its bottom."""

    top: int
    bottom: int
    parts: Sequence[str]


def picture(discovery: Discovery) -> str:
    """Return the SVG of all fabrics, one below another, and of what their signs mean."""
    strips = _strips(discovery)
    parts = [part for strip in strips for part in strip.parts]
    everything = _Strip(0, strips[-1].bottom, parts)
    return _svg(everything, f'role="img" aria-label={quoteattr(_name(discovery))}', style())


def picture_strips(discovery: Discovery) -> Iterator[str]:
    """Yield the same picture in SVGs that belong below each other, so that pages end between them.

    The first has the name of the picture, and the style of all.
    """
    strips = _strips(discovery)
    name = f'role="img" aria-label={quoteattr(_name(discovery))}'
    for number, strip in enumerate(strips):
        yield _svg(strip, 'aria-hidden="true"', "") if number else _svg(strip, name, style())


def _name(discovery: Discovery) -> str:
    names = ", ".join(plan.name for plan in discovery.fabrics)
    return visible(f"The fabrics: {names or 'none'}")


def _svg(strip: _Strip, attributes: str, rules: str) -> str:
    top, height = strip.top, strip.bottom - strip.top
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="site" width="{_WIDTH}" '
        f'height="{height}" viewBox="0 {top} {_WIDTH} {height}" {attributes}>{rules}'
    )
    paper = f'<rect class="paper" y="{top}" width="{_WIDTH}" height="{height}"/>'
    return "\n".join([head, paper, *strip.parts, "</svg>\n"])


def _strips(discovery: Discovery) -> list[_Strip]:
    """Draw each row of boxes, and the legend."""
    named = findings_by_node(discovery.findings)
    strips: list[_Strip] = []
    drawn: list[MarkedNodes] = []
    for plan in discovery.fabrics:
        groups = marked_nodes(plan, named)
        strips += _fabric(plan, groups, strips[-1].bottom if strips else 0)
        drawn += groups
    if not drawn:
        sentence = text(MARGIN, MARGIN + 16, "No fabrics found.", "soft")
        return [_Strip(0, 2 * MARGIN + _TITLE, [sentence])]
    return [*strips, _legend(drawn, strips[-1].bottom)]


def _fabric(plan: FabricPlan, groups: Sequence[MarkedNodes], top: int) -> Iterator[_Strip]:
    """Draw a fabric: its title, the network as a bar, and its nodes in rows below."""
    link = f"{plan.group.card_kind.link_layer} network, {rate_text(plan.group.rate)}"
    count = counted(len(plan.group.nodes), "node")
    about = ", ".join(filter(None, (count, plan.group.product, plan.group.model, plan.mode)))
    bar = top + MARGIN + _TITLE
    parts = [
        text(MARGIN, top + MARGIN + 16, f"{plan.name}: {about}", "title"),
        rect(MARGIN, bar, _WIDTH - 2 * MARGIN, _SWITCH_H, "net"),
        text(_WIDTH // 2, bar + 21, link, "name mid"),
    ]
    rows = _rows(groups)
    row_top = bar + _SWITCH_H
    for number, row in enumerate(rows, 1):
        bottom, row_parts = _row(row, row_top, is_last=number == len(rows))
        yield _Strip(top, bottom, [*parts, *row_parts])
        top = row_top = bottom
        parts = []


def _row(row: Sequence[MarkedNodes], top: int, *, is_last: bool) -> tuple[int, list[str]]:
    """Return the bottom of a row, and its boxes with their line to the network."""
    boxes = list(_boxes_in_row(row, top + _ROW_GAP))
    trunk_x, trunk_y = MARGIN + 8, boxes[0].trunk_y
    bottom = max(box.y + box.height for box in boxes) + (GAP if is_last else 0)
    right = max(box.last_port for box in boxes)
    trunk = f"M{trunk_x} {top}V{trunk_y if is_last else bottom}M{trunk_x} {trunk_y}H{right}"
    frames = map(draw_frame, boxes)
    return bottom, [
        *frames,
        path(trunk, "trunk"),
        *(part for box in boxes for part in draw_box(box)),
    ]


def _rows(groups: Iterable[MarkedNodes]) -> list[list[MarkedNodes]]:
    """Put as many boxes side by side as fit."""
    rows: list[list[MarkedNodes]] = []
    used = 0
    width = _WIDTH - 3 * MARGIN
    for marked in groups:
        needed = box_width(marked.nodes) + GAP
        if not rows or used + needed > width + GAP:
            rows.append([])
            used = 0
        rows[-1].append(marked)
        used += needed
    return rows


def _boxes_in_row(row: Sequence[MarkedNodes], y: int) -> Iterator[Box]:
    x = 2 * MARGIN
    for marked in row:
        yield Box(marked, x, y)
        x += box_width(marked.nodes) + GAP


def _legend(groups: Iterable[MarkedNodes], top: int) -> _Strip:
    """Explain the ports, GPUs, lines and signs that are drawn, in as many lines as needed."""
    groups = list(groups)
    ports = [port for marked in groups for port in marked.nodes.ports]
    conditions = {"down" if port.condition == "slow" else port.condition for port in ports}
    distances = {distance for port in ports for _, distance in port.links}
    symbols = [
        *(("port", kind, meaning) for kind, meaning in _PORT_LEGEND.items() if kind in conditions),
        *([("port", "gpu", _GPU_LEGEND)] if any(map(_has_gpus, groups)) else ()),
        *(("line", kind, meaning) for kind, meaning in _LINE_LEGEND.items() if kind in distances),
        *(
            (SIGNS[level].text, level, meaning)
            for level, meaning in _SIGN_LEGEND.items()
            if level in set(_levels(groups))
        ),
    ]
    parts: list[str] = []
    x, y = MARGIN, top + MARGIN // 2
    for symbol, kind, meaning in symbols:
        width = 26 + round(len(meaning) * LETTER * 0.85) + GAP
        if x + width > _WIDTH:
            x, y = MARGIN, y + _LEGEND_LINE
        parts.append(_symbol(symbol, kind, x, y))
        parts.append(text(x + 26, y + 11, meaning, "soft"))
        x += width
    return _Strip(top, y + _LEGEND_LINE + MARGIN // 2, parts)


def _symbol(symbol: str, kind: str, x: int, y: int) -> str:
    """Draw what the legend explains: a port or a GPU, a line, or the sign of a level."""
    if symbol == "port":
        return rect(x, y, 18, 14, kind)
    if symbol == "line":
        return path(f"M{x} {y + 7}h18", kind.lower())
    return text(x + 9, y + 11, symbol, f"mid {kind}")


def _has_gpus(marked: MarkedNodes) -> bool:
    nodes = marked.nodes
    return nodes.gpu_count > 0 or any(port.gpus for port in nodes.ports)


def _levels(groups: Iterable[MarkedNodes]) -> Iterator[Level]:
    """Yield the levels whose signs are drawn."""
    for marked in groups:
        for marks in (marked.marks, *marked.marks_by_device.values()):
            yield from (mark.level for mark in marks)
