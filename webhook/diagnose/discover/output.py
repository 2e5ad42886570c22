"""What was discovered, as JSON for programs and as text for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from webhook.diagnose.discover.discovery import Discovery, unplaced_nodes
from webhook.diagnose.discover.fabrics_yaml import others_left_out
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.site import SiteFinding, SiteNode, SitePort, listed_nodes, natural
from webhook.diagnose.discover.used_ports import EqualNodes, PortGroup, equal_nodes, rails_of
from webhook.text.terminal import Sheet, Span, TableColumn

# For programs: stable, and described by `discover.schema.json`.
#
# Keys may be added, but are never renamed. What no tool said is null.

_SCHEMA = Path(__file__).with_name("discover.schema.json")


def discover_form(found: Discovery) -> dict[str, object]:
    """Return what was discovered as plain JSON values."""
    return {
        "nodes": [_node_form(node) for node in found.nodes],
        "fabrics": list(found.entries),
        "findings": [_finding_form(one) for one in found.findings],
    }


def discover_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form."""
    return _SCHEMA.read_text(encoding="utf-8")


def _node_form(node: SiteNode) -> dict[str, object]:
    return {
        "name": node.name,
        "machine": node.machine,
        "gpus": [{"product": gpu.product, "count": gpu.number} for gpu in node.gpus],
        "ports": [_port_form(port) for port in node.ports],
        "findings": [_finding_form(one) for one in node.findings],
    }


def _port_form(port: SitePort) -> dict[str, object]:
    return {
        "device": port.device,
        "port": port.port,
        "netdev": port.netdevs[0] if port.netdevs else None,
        "state": port.state,
        "linkLayer": port.link_layer,
        "rateGbps": port.rate_gbps,
        "pci": port.pci,
        "model": port.model,
        "firmware": port.firmware,
        "numa": port.numa,
        "virtual": port.virtual,
        "sources": list(port.sources),
    }


def _finding_form(finding: SiteFinding) -> dict[str, object]:
    return {
        "severity": finding.severity,
        "nodes": list(finding.nodes),
        "message": finding.message,
        "remedy": finding.remedy,
    }


# What was discovered, for people: what to fix first, then each fabric with its nodes and ports.

_SIGNS = {
    "error": Span("✘", "bold red"),
    "warning": Span("!", "bold yellow"),
    "note": Span("-", "dim"),
}
_WIDEST_CELL = 40
#: Columns of a state such as Down, and for what else there is to say of a node.
_RATE, _DETAILS = 4, 40
_ODD = {"down": "bold red", "slow": "bold red"}


def discover_text(found: Discovery, *, width: int, colour: bool) -> str:
    """Return the report."""
    sheet = Sheet(width, colour=colour)
    sheet.paragraph(Span(_summary(found), "bold"))
    if found.findings:
        sheet.blank()
        sheet.paragraph(
            Span("What to fix first", "bold") if found.needs_a_fix else Span("Findings")
        )
        for finding in found.findings:
            _finding(sheet, finding)
    for plan in found.fabrics:
        _fabric(sheet, plan, width)
    _others(sheet, found)
    return sheet.text


def _summary(found: Discovery) -> str:
    counts = [
        _count(len(found.nodes), "node"),
        _count(len(found.fabrics), "fabric"),
        *(
            _count(number, severity)
            for severity in ("error", "warning", "note")
            if (number := sum(one.severity == severity for one in found.findings))
        ),
    ]
    return ", ".join(counts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _finding(sheet: Sheet, finding: SiteFinding) -> None:
    where = f"{listed_nodes(finding.nodes)}: " if finding.nodes else ""
    sheet.paragraph(Span(where, "bold"), Span(finding.message), sign=_SIGNS[finding.severity])
    if finding.remedy:
        sheet.paragraph(Span(finding.remedy), sign=Span("→"), indent=2)


def _fabric(sheet: Sheet, plan: FabricPlan, width: int) -> None:
    sheet.blank()
    sheet.paragraph(Span(f"Fabric {plan.name}", "bold"), Span(f": {plan.reasons['name']}"))
    sheet.blank()
    _nodes_table(sheet, plan, width)
    sheet.blank()
    for field in ("mode", "hcas", "excludeHcas", "hcaPrefixes", "resources"):
        if field in plan.entry:
            value = _shown(field, plan)
            sheet.paragraph(
                Span(f"{field} {value}", "bold"), Span(f": {plan.reasons[field]}"), indent=2
            )
    for rail in rails_of(plan):
        sheet.paragraph(Span(rail.words), indent=2)
    for device, because in (*plan.devices.left_out.items(), *others_left_out(plan).items()):
        sheet.paragraph(Span(f"left out {device}", "bold"), Span(f": {because}"), indent=2)
    for needed in plan.requirements:
        sheet.paragraph(Span("needs", "bold"), Span(f" {needed}"), indent=2)


def _shown(field: str, plan: FabricPlan) -> str:
    if field == "resources":
        return ", ".join(one["name"] for one in plan.entry["resources"])
    value = plan.entry.get(field)
    return ", ".join(value) if isinstance(value, list) else str(value)


def _nodes_table(sheet: Sheet, plan: FabricPlan, width: int) -> None:
    """Write a row for each node, equal nodes in one; a column for each device if they fit."""
    groups = equal_nodes(plan)
    devices = sorted({port.name for group in groups for port in group.ports}, key=natural)
    names = max(min(len(group.title), _WIDEST_CELL) for group in groups)
    needed = names + sum(max(len(name), _RATE) + 2 for name in devices) + _DETAILS
    if needed <= width:
        columns = [
            TableColumn("NODES", _WIDEST_CELL),
            *map(TableColumn, devices),
            TableColumn("NODE"),
        ]
        sheet.table(columns, [_matrix_row(group, devices) for group in groups], indent=2)
        return
    columns = [TableColumn("NODES", _WIDEST_CELL), TableColumn("PORTS")]
    rows = [[Span(group.title), Span(_ports_words(group))] for group in groups]
    sheet.table(columns, rows, indent=2)


def _matrix_row(group: EqualNodes, devices: Sequence[str]) -> list[Span]:
    ports = {port.name: port for port in group.ports}
    cells = [_cell(ports.get(device)) for device in devices]
    return [Span(group.title), *cells, Span(_details(group))]


def _details(group: EqualNodes) -> str:
    firmware = f"firmware {group.firmware}" if group.firmware else ""
    return ", ".join(filter(None, (group.machine, group.gpus or "GPUs unknown", firmware)))


def _ports_words(group: EqualNodes) -> str:
    """Return the ports by their rate or state: "400: mlx5_0, mlx5_1; Down: mlx5_2"."""
    found: dict[str, list[str]] = {}
    for port in group.ports:
        lead = f"not used ({port.words})" if port.standing == "unused" else port.words
        found.setdefault(lead, []).append(port.name)
    ports = "; ".join(f"{words}: {', '.join(names)}" for words, names in found.items())
    return f"{ports}; {_details(group)}"


def _cell(port: PortGroup | None) -> Span:
    """Return the rate of a port, or its state; in parentheses if the fabric does not use it."""
    if port is None:
        return Span("-")
    if port.standing == "unused":
        return Span(f"({port.words})", "dim")
    return Span(port.words, "" if port.standing == "fine" else _ODD.get(port.standing, "yellow"))


def _others(sheet: Sheet, found: Discovery) -> None:
    """Write the nodes that are in no fabric."""
    others = [*unplaced_nodes(found)]
    if not others:
        return
    sheet.blank()
    sheet.paragraph(Span("In no fabric", "bold"))
    for name, why in others:
        sheet.paragraph(Span(name, "bold"), Span(f": {why}"), indent=2)
