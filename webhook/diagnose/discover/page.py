"""One page, complete in itself, that shows what was discovered: no script, no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from webhook.diagnose.discover.discovery import Discovery, unplaced_nodes
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.site import SiteFinding, listed_nodes, natural
from webhook.diagnose.discover.svg import picture
from webhook.diagnose.discover.used_ports import EqualNodes, PortGroup, equal_nodes
from webhook.text.escape import visible, visible_lines

_STYLE = Path(__file__).with_name("site_page.css")
_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Fabrics</title>
"""


def site_page(found: Discovery) -> str:
    """Return the page."""
    return "".join(_parts(found))


def _parts(found: Discovery) -> Iterator[str]:
    yield f"{_HEAD}<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n"
    yield f"<h1>{len(found.nodes)} nodes, {len(found.fabrics)} fabrics</h1>\n"
    yield f'<div class="picture">\n{picture(found.fabrics)}</div>\n'
    if found.findings:
        yield "<h2>What to fix, and what to know</h2>\n"
        yield f'<ul class="findings">\n{"".join(map(_finding, found.findings))}</ul>\n'
    for plan in found.fabrics:
        yield f"<h2>{_said(plan.name)}</h2>\n<p>{_said(plan.reasons['name'])}</p>\n"
        yield _table(plan)
    if others := "".join(_unplaced(found)):
        yield f"<h2>In no fabric</h2>\n<ul>\n{others}</ul>\n"
    yield f"<h2>fabrics.yaml</h2>\n<pre>{escape(visible_lines(found.text))}</pre>\n"


def _unplaced(found: Discovery) -> Iterator[str]:
    for name, why in unplaced_nodes(found):
        yield f"<li><b>{_said(name)}</b>: {_said(why)}</li>\n"


def _said(words: str) -> str:
    return escape(visible(words))


def _finding(finding: SiteFinding) -> str:
    where = f"<b>{_said(listed_nodes(finding.nodes))}</b>: " if finding.nodes else ""
    remedy = f'<br><span class="remedy">{_said(finding.remedy)}</span>' if finding.remedy else ""
    severity = finding.severity
    return f'<li class="{severity}">{severity}: {where}{_said(finding.message)}{remedy}</li>\n'


def _table(plan: FabricPlan) -> str:
    groups = equal_nodes(plan)
    devices = sorted({port.name for group in groups for port in group.ports}, key=natural)
    machine = ("Machine",) if any(group.machine for group in groups) else ()
    heads = ("Nodes", *machine, "GPUs", "Firmware", *devices)
    heading = "".join(f"<th>{_said(one)}</th>" for one in heads)
    rows = "".join(_row(group, devices, named=bool(machine)) for group in groups)
    return f'<div class="scroll"><table>\n<tr>{heading}</tr>\n{rows}</table></div>\n'


def _row(group: EqualNodes, devices: Sequence[str], *, named: bool) -> str:
    """Return the row of a group; `named`: with the column for the machine."""
    ports = {port.name: port for port in group.ports}
    machine = (group.machine or "-",) if named else ()
    words = (*machine, group.gpus or "unknown", group.firmware or "-")
    cells = "".join(f"<td>{_said(one)}</td>" for one in words)
    shown = "".join(_cell(ports.get(device)) for device in devices)
    return f'<tr><td class="nodes">{_said(group.title)}</td>{cells}{shown}</tr>\n'


def _cell(port: PortGroup | None) -> str:
    if port is None:
        return "<td>-</td>"
    shown = f"({port.words})" if port.standing == "unused" else port.words
    return f'<td class="{port.standing}">{_said(shown)}</td>'
