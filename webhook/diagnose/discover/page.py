"""The discovery as one self-contained HTML page: no script, no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from webhook.diagnose.discover.discovery import Discovery, unplaced_nodes
from webhook.diagnose.discover.marks import Mark, MarkedNodes, findings_by_node, marked_nodes
from webhook.diagnose.discover.output import UNPLACED_TITLE, findings_title, summary
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.svg import picture_strips
from webhook.diagnose.discover.used_ports import ShownPort
from webhook.model.names import natural_key
from webhook.text.web_page import (
    Heading,
    document,
    finding_list,
    html_sentence,
    html_sign,
    html_text,
    html_words,
    scrolling,
    text_block,
)

_STYLE = Path(__file__).with_name("site_page.css")
_LEAD = "The RDMA fabrics that follow from what tools show of the nodes."


_CAPTION = "Rates in Gb/s, or states; in parentheses where the fabric does not use the device."
_NEXT = (
    "Next: write this file with `rdma-webhook discover ... -o yaml > fabrics.yaml`, read the "
    "reasons in its comments, and check it with `rdma-webhook check-config fabrics.yaml`."
)


def site_page(discovery: Discovery, written_at: datetime) -> str:
    """Return the page, with the time in its header."""
    counts = summary(discovery)
    title = f"Fabrics: {counts}"
    heading = Heading("rdma-webhook discover", title, html_text(counts), written_at, _LEAD)
    return "".join(document(heading, _STYLE, _main(discovery)))


def _main(discovery: Discovery) -> Iterator[str]:
    if discovery.findings:
        yield f"<h2>{findings_title(discovery)}</h2>\n"
        yield from finding_list(discovery.findings)
    yield "<h2>Picture</h2>\n"
    yield scrolling("Picture of the fabrics", "".join(picture_strips(discovery)), "picture")
    named = findings_by_node(discovery.findings)
    for plan in discovery.fabrics:
        yield f"<h2>{html_words(plan.name)}</h2>\n<p>{html_words(plan.description)}</p>\n"
        yield f'<p class="caption">{_CAPTION}</p>\n'
        yield _table(plan, marked_nodes(plan, named))
    if unplaced := "".join(_unplaced_nodes(discovery)):
        yield f"<h2>{UNPLACED_TITLE}</h2>\n<ul>\n{unplaced}</ul>\n"
    yield "<h2>fabrics.yaml</h2>\n"
    if discovery.entries:
        yield f'<p class="next">{html_sentence(_NEXT)}</p>\n'
    yield text_block("fabrics.yaml", discovery.text)


def _unplaced_nodes(discovery: Discovery) -> Iterator[str]:
    for name, reason in unplaced_nodes(discovery):
        yield f"<li><b>{html_words(name)}</b>: {html_words(reason)}</li>\n"


def _table(plan: FabricPlan, groups: Sequence[MarkedNodes]) -> str:
    devices = sorted({port.name for group in groups for port in group.nodes.ports}, key=natural_key)
    is_named = any(group.nodes.machine_type for group in groups)
    machine_type = ("Machine type",) if is_named else ()
    heads = ("Nodes", *machine_type, "GPUs", "Firmware", *devices)
    heading = "".join(f'<th scope="col">{html_text(head)}</th>' for head in heads)
    rows = "".join(_row(group, devices, is_named=is_named) for group in groups)
    table = f"<table>\n<thead><tr>{heading}</tr></thead>\n<tbody>\n{rows}</tbody></table>"
    return scrolling(f"Nodes of {plan.name}", table)


def _row(group: MarkedNodes, devices: Sequence[str], *, is_named: bool) -> str:
    """Return the row of a group; `is_named` adds the column for the machine type."""
    nodes = group.nodes
    ports = {port.name: port for port in nodes.ports}
    machine_type = (nodes.machine_type or "-",) if is_named else ()
    texts = (*machine_type, nodes.gpus or "unknown", nodes.firmware or "-")
    cells = "".join(f'<td class="words">{html_text(text)}</td>' for text in texts)
    port_cells = "".join(_cell(group, ports.get(device)) for device in devices)
    head = f'<th scope="row" class="nodes">{html_words(nodes.title)}{_marks(group.marks)}</th>'
    return f"<tr>{head}{cells}{port_cells}</tr>\n"


def _cell(group: MarkedNodes, port: ShownPort | None) -> str:
    if port is None:
        return "<td>-</td>"
    marks = group.marks_of(port)
    without_words = (mark.level for mark in marks if not mark.words)
    level = "error" if port.condition == "missing" else next(without_words, None)
    sign = html_sign(level) if level else ""
    text = f"({port.rate_or_state})" if port.condition == "unused" else port.rate_or_state
    signed = f"{sign} {html_text(text)}".lstrip()
    return f'<td class="{port.condition}">{signed}{_marks(marks)}</td>'


def _marks(marks: Sequence[Mark]) -> str:
    """Return the signs and words of the marks that have words."""
    return "".join(
        f'<span class="marks {mark.level}">{html_sign(mark.level)} {html_text(mark.words)}</span>'
        for mark in marks
        if mark.words
    )
