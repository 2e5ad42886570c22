"""What was discovered, for people: what to fix first, then each fabric with its nodes and ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.discover.choice import NodeChoice
from webhook.discover.discovery import Discovery
from webhook.discover.fabric_plan import FabricPlan, Refused
from webhook.discover.fabrics_yaml import others_left_out
from webhook.discover.rails import rails_of
from webhook.discover.site import FoundNode, FoundPort, SiteFinding, listed_nodes, natural
from webhook.render.table import Column, Sheet, Span

_SIGNS = {
    "error": Span("✘", "bold red"),
    "warning": Span("!", "bold yellow"),
    "note": Span("-", "dim"),
}
_WIDEST_NODES = 40


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
        _fabric(sheet, plan)
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


def _fabric(sheet: Sheet, plan: FabricPlan) -> None:
    sheet.blank()
    sheet.paragraph(Span(f"Fabric {plan.name}", "bold"), Span(f": {plan.reasons['name']}"))
    sheet.blank()
    _nodes_table(sheet, plan)
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
    value = plan.entry[field]
    if field == "resources":
        return ", ".join(str(one["name"]) for one in value)
    return ", ".join(value) if isinstance(value, list) else str(value)


def _nodes_table(sheet: Sheet, plan: FabricPlan) -> None:
    """Write a row for each node and a column for each device; equal nodes share a row."""
    devices = _devices(plan)
    rows: dict[tuple[str, ...], list[str]] = {}
    for choice in plan.group.choices:
        cells = tuple(_cell(choice, device) for device in devices)
        row = (choice.node.machine or "-", _gpus(choice.node), _firmwares(choice), *cells)
        rows.setdefault(row, []).append(choice.node.name)
    heading = ["MACHINE", "GPUS", "FIRMWARE", *devices]
    columns = [Column("NODES", _WIDEST_NODES), *(Column(name) for name in heading), Column("")]
    sheet.table(
        columns,
        [
            [
                Span(_together(names)),
                *(Span(cell, _style(cell)) for cell in row),
                Span(""),
            ]
            for row, names in rows.items()
        ],
        indent=2,
    )


def _devices(plan: FabricPlan) -> list[str]:
    names = {
        port.name for choice in plan.group.choices for port in choice.node.ports if port.device
    }
    return sorted(names, key=natural)


def _together(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{listed_nodes(tuple(names))} ({len(names)})"


def _cell(choice: NodeChoice, device: str) -> str:
    """Return the rate of a port, or its state; in parentheses if the fabric does not use it."""
    port = next((one for one in choice.node.ports if one.device and one.name == device), None)
    if port is None:
        return "-"
    shown = _state(port)
    return shown if port in choice.ports else f"({shown})"


def _state(port: FoundPort) -> str:
    if port.state is None:
        return "unknown" if port.rate_gbps is None else f"{port.rate_gbps:g}?"
    if port.state != "Active":
        return port.state
    return f"{port.rate_gbps:g}" if port.rate_gbps is not None else "Active"


def _style(cell: str) -> str:
    if cell in ("Down", "Initializing", "Armed"):
        return "bold red"
    return "dim" if cell.startswith("(") else ""


def _gpus(node: FoundNode) -> str:
    return (
        ", ".join(f"{gpu.number or '?'} {gpu.product or 'of unknown product'}" for gpu in node.gpus)
        or "unknown"
    )


def _firmwares(choice: NodeChoice) -> str:
    return ", ".join(sorted({port.firmware for port in choice.ports if port.firmware})) or "-"


def _others(sheet: Sheet, found: Discovery) -> None:
    """Write the nodes that are in no fabric, with what is known of their ports."""
    placed = {name for plan in found.fabrics for name in plan.group.nodes}
    refused = {
        name for plan in found.plans if isinstance(plan, Refused) for name in plan.group.nodes
    }
    others = [choice for choice in found.choices if choice.node.name not in placed]
    if not others:
        return
    sheet.blank()
    sheet.paragraph(Span("In no fabric", "bold"))
    for choice in others:
        why = "refused, see above" if choice.node.name in refused else "; ".join(_lacking(choice))
        sheet.paragraph(Span(choice.node.name, "bold"), Span(f": {why}"), indent=2)


def _lacking(choice: NodeChoice) -> Iterator[str]:
    if not choice.node.ports:
        yield "no RDMA device"
    for port, because in choice.left_out.items():
        yield f"{port.name} ({_state(port)}): {because}"
