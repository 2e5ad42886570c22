"""The discovery as JSON for programs and as a text report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from webhook.diagnose.discover.discovery import Discovery, unplaced_nodes
from webhook.diagnose.discover.fabrics_yaml import others_left_out
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.site import SiteFinding, SiteNode, SitePort
from webhook.diagnose.discover.used_ports import EqualNodes, PortGroup, equal_nodes, rails_of
from webhook.model.names import natural_key, shortened_list
from webhook.text.terminal import Sheet, Span, TableColumn

# The stable JSON form, described by `discover.schema.json`.
#
# Keys may be added, but are never renamed. A value that no tool showed is null.

_SCHEMA = Path(__file__).with_name("discover.schema.json")


def discover_form(discovery: Discovery) -> dict[str, object]:
    """Return the discovery as plain JSON values."""
    return {
        "nodes": [_node_form(node) for node in discovery.nodes],
        "fabrics": list(discovery.entries),
        "findings": [_finding_form(finding) for finding in discovery.findings],
    }


def discover_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form."""
    return _SCHEMA.read_text(encoding="utf-8")


def _node_form(node: SiteNode) -> dict[str, object]:
    return {
        "name": node.name,
        "machineType": node.machine_type,
        "gpus": [{"product": gpu.product, "count": gpu.number} for gpu in node.gpus],
        "ports": [_port_form(port) for port in node.ports],
        "findings": [_finding_form(finding) for finding in node.findings],
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


# The text report: what to fix first, then each fabric with its nodes and ports.

_SIGNS = {
    "error": Span("✘", "bold red"),
    "warning": Span("!", "bold yellow"),
    "note": Span("-", "dim"),
}
_WIDEST_CELL = 40
#: Characters for a state such as Down, and for the other details of a node.
_RATE, _DETAILS = 4, 40
_ODD = {"down": "bold red", "slow": "bold red"}


def discover_text(discovery: Discovery, *, width: int, colour: bool) -> str:
    """Return the report."""
    sheet = Sheet(width, colour=colour)
    sheet.paragraph(Span(_summary(discovery), "bold"))
    if discovery.findings:
        sheet.blank()
        sheet.paragraph(
            Span("What to fix first", "bold") if discovery.needs_a_fix else Span("Findings")
        )
        for finding in discovery.findings:
            _finding(sheet, finding)
    for plan in discovery.fabrics:
        _fabric(sheet, plan, width)
    _unplaced(sheet, discovery)
    return sheet.text


def _summary(discovery: Discovery) -> str:
    counts = [
        _count(len(discovery.nodes), "node"),
        _count(len(discovery.fabrics), "fabric"),
        *(
            _count(number, severity)
            for severity in ("error", "warning", "note")
            if (number := sum(finding.severity == severity for finding in discovery.findings))
        ),
    ]
    return ", ".join(counts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _finding(sheet: Sheet, finding: SiteFinding) -> None:
    nodes = f"{shortened_list(finding.nodes)}: " if finding.nodes else ""
    sheet.paragraph(Span(nodes, "bold"), Span(finding.message), sign=_SIGNS[finding.severity])
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
            value = _entry_text(field, plan)
            sheet.paragraph(
                Span(f"{field} {value}", "bold"), Span(f": {plan.reasons[field]}"), indent=2
            )
    for rail in rails_of(plan):
        sheet.paragraph(Span(rail.words), indent=2)
    for device, because in (*plan.devices.left_out.items(), *others_left_out(plan).items()):
        sheet.paragraph(Span(f"left out {device}", "bold"), Span(f": {because}"), indent=2)
    for needed in plan.requirements:
        sheet.paragraph(Span("needs", "bold"), Span(f" {needed}"), indent=2)


def _entry_text(field: str, plan: FabricPlan) -> str:
    if field == "resources":
        return ", ".join(resource["name"] for resource in plan.entry["resources"])
    value = plan.entry.get(field)
    return ", ".join(value) if isinstance(value, list) else str(value)


def _nodes_table(sheet: Sheet, plan: FabricPlan, width: int) -> None:
    """Write a row for each group of equal nodes, with a column for each device if they fit."""
    groups = equal_nodes(plan)
    devices = sorted({port.name for group in groups for port in group.ports}, key=natural_key)
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
    return ", ".join(filter(None, (group.machine_type, group.gpus or "GPUs unknown", firmware)))


def _ports_words(group: EqualNodes) -> str:
    """Return the ports by their rate or state: "400: mlx5_0, mlx5_1; Down: mlx5_2"."""
    by_state: dict[str, list[str]] = {}
    for port in group.ports:
        lead = f"not used ({port.words})" if port.standing == "unused" else port.words
        by_state.setdefault(lead, []).append(port.name)
    ports = "; ".join(f"{words}: {', '.join(names)}" for words, names in by_state.items())
    return f"{ports}; {_details(group)}"


def _cell(port: PortGroup | None) -> Span:
    """Return the rate of a port, or its state; in parentheses if the fabric does not use it."""
    if port is None:
        return Span("-")
    if port.standing == "unused":
        return Span(f"({port.words})", "dim")
    return Span(port.words, "" if port.standing == "fine" else _ODD.get(port.standing, "yellow"))


def _unplaced(sheet: Sheet, discovery: Discovery) -> None:
    """Write the nodes without a fabric."""
    unplaced = [*unplaced_nodes(discovery)]
    if not unplaced:
        return
    sheet.blank()
    sheet.paragraph(Span("In no fabric", "bold"))
    for name, reason in unplaced:
        sheet.paragraph(Span(name, "bold"), Span(f": {reason}"), indent=2)
