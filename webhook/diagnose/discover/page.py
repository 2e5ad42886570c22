"""The discovery as one self-contained HTML page: no script, no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from webhook.diagnose.discover.discovery import Discovery, unplaced_nodes
from webhook.diagnose.discover.output import UNPLACED_TITLE, findings_title, summary
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.svg import picture
from webhook.diagnose.discover.used_ports import EqualNodes, ShownPort, equal_nodes
from webhook.model.finding import Finding
from webhook.model.names import natural_key, shortened_list
from webhook.text.escape import visible, visible_lines

_STYLE = Path(__file__).with_name("site_page.css")
_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Fabrics</title>
"""


def site_page(discovery: Discovery) -> str:
    """Return the page."""
    return "".join(_parts(discovery))


def _parts(discovery: Discovery) -> Iterator[str]:
    yield f"{_HEAD}<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n"
    yield f"<h1>{summary(discovery)}</h1>\n"
    yield f'<div class="picture">\n{picture(discovery.fabrics)}</div>\n'
    if discovery.findings:
        yield f"<h2>{findings_title(discovery)}</h2>\n"
        yield f'<ul class="findings">\n{"".join(map(_finding_item, discovery.findings))}</ul>\n'
    for plan in discovery.fabrics:
        yield f"<h2>{_escape(plan.name)}</h2>\n<p>{_escape(plan.description)}</p>\n"
        yield _table(plan)
    if unplaced := "".join(_unplaced_items(discovery)):
        yield f"<h2>{UNPLACED_TITLE}</h2>\n<ul>\n{unplaced}</ul>\n"
    yield f"<h2>fabrics.yaml</h2>\n<pre>{escape(visible_lines(discovery.text))}</pre>\n"


def _unplaced_items(discovery: Discovery) -> Iterator[str]:
    for name, reason in unplaced_nodes(discovery):
        yield f"<li><b>{_escape(name)}</b>: {_escape(reason)}</li>\n"


def _escape(text: str) -> str:
    return escape(visible(text))


def _finding_item(finding: Finding) -> str:
    names = shortened_list(finding.location.nodes)
    nodes = f"<b>{_escape(names)}</b>: " if names else ""
    remedy = f'<br><span class="remedy">{_escape(finding.remedy)}</span>' if finding.remedy else ""
    level = finding.level
    return f'<li class="{level}">{level}: {nodes}{_escape(finding.text)}{remedy}</li>\n'


def _table(plan: FabricPlan) -> str:
    groups = equal_nodes(plan)
    devices = sorted({port.name for group in groups for port in group.ports}, key=natural_key)
    machine_type = ("Machine type",) if any(group.machine_type for group in groups) else ()
    heads = ("Nodes", *machine_type, "GPUs", "Firmware", *devices)
    heading = "".join(f"<th>{_escape(head)}</th>" for head in heads)
    rows = "".join(_row(group, devices, named=bool(machine_type)) for group in groups)
    return f'<div class="scroll"><table>\n<tr>{heading}</tr>\n{rows}</table></div>\n'


def _row(group: EqualNodes, devices: Sequence[str], *, named: bool) -> str:
    """Return the row of a group; `named` adds the column for the machine type."""
    ports = {port.name: port for port in group.ports}
    machine_type = (group.machine_type or "-",) if named else ()
    texts = (*machine_type, group.gpus or "unknown", group.firmware or "-")
    cells = "".join(f"<td>{_escape(text)}</td>" for text in texts)
    port_cells = "".join(_cell(ports.get(device)) for device in devices)
    return f'<tr><td class="nodes">{_escape(group.title)}</td>{cells}{port_cells}</tr>\n'


def _cell(port: ShownPort | None) -> str:
    if port is None:
        return "<td>-</td>"
    text = f"({port.rate_or_state})" if port.condition == "unused" else port.rate_or_state
    return f'<td class="{port.condition}">{_escape(text)}</td>'
