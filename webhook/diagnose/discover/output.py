"""The discovery as JSON for programs and as a text report."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import TypedDict

from webhook.diagnose.discover.discovery import Discovery, unplaced_nodes
from webhook.diagnose.discover.fabric_entry import FabricEntryForm
from webhook.diagnose.discover.fabrics_yaml import unused_devices
from webhook.diagnose.discover.node_form import NodeForm, node_form
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.used_ports import EqualNodes, ShownPort, equal_nodes, rails_of
from webhook.model.finding import LEVELS
from webhook.model.names import counted, natural_key, shortened_list
from webhook.text.findings import FindingForm, finding_form, tally
from webhook.text.terminal import Sheet, Span, TableColumn, write_finding

# The discovery for programs. Keys and codes may be added, but are never renamed. A value that no
# tool shows, or that tools show differently, is null.


class DiscoveryForm(TypedDict):
    """What tools show of nodes, and the fabrics that follow from it."""

    nodes: list[NodeForm]
    fabrics: list[FabricEntryForm]
    """The fabrics as in the fabrics file, which `rdma-webhook schema fabrics` describes."""
    findings: list[FindingForm]
    """Faults and facts, the most severe first."""


def discover_form(discovery: Discovery) -> DiscoveryForm:
    """Return the discovery as plain JSON values."""
    return DiscoveryForm(
        nodes=[node_form(node) for node in discovery.nodes],
        fabrics=list(discovery.entries),
        findings=[finding_form(finding) for finding in discovery.findings],
    )


def discover_schema() -> str:
    """Return the JSON Schema of the output of `discover -o json`."""
    from webhook.text.schema import form_schema  # noqa: PLC0415 -- only for this output

    return form_schema(DiscoveryForm, "The output of rdma-webhook discover -o json")


# The text report: what to fix first, then each fabric with its nodes and ports.

UNPLACED_TITLE = "Nodes without a fabric"
_MAX_CELL_WIDTH = 40
#: Characters for a state such as Down, and for the other details of a node.
_RATE, _DETAILS = 4, 40
_ODD = {"down": "bold red", "slow": "bold red"}


def discover_text(discovery: Discovery, *, width: int, color: bool) -> str:
    """Return the report."""
    sheet = Sheet(width, color=color)
    sheet.paragraph(Span(summary(discovery), "bold"))
    if discovery.findings:
        sheet.blank()
        sheet.paragraph(Span(findings_title(discovery), "bold"))
        for finding in discovery.findings:
            write_finding(sheet, finding, subject=shortened_list(finding.location.nodes))
    for plan in discovery.fabrics:
        _write_fabric(sheet, plan, width)
    _write_unplaced_nodes(sheet, discovery)
    return sheet.text


def summary(discovery: Discovery) -> str:
    """Count nodes, fabrics and findings: "5 nodes, 2 fabrics, 2 errors, 1 warning"."""
    counts = [
        counted(len(discovery.nodes), "node"),
        counted(len(discovery.fabrics), "fabric"),
        tally((finding.level for finding in discovery.findings), LEVELS[::-1]),
    ]
    return ", ".join(filter(None, counts))


def findings_title(discovery: Discovery) -> str:
    """Return the title of the findings."""
    return "What to fix first" if discovery.needs_a_fix else "Findings"


def _write_fabric(sheet: Sheet, plan: FabricPlan, width: int) -> None:
    sheet.blank()
    sheet.paragraph(Span(f"Fabric {plan.name}", "bold"), Span(f": {plan.description}"))
    sheet.blank()
    _write_nodes_table(sheet, plan, width)
    sheet.blank()
    for field in ("mode", "hcas", "excludeHcas", "hcaPrefixes", "resources"):
        if field in plan.entry:
            value = _entry_text(field, plan)
            sheet.paragraph(
                Span(f"{field} {value}", "bold"), Span(f": {plan.reason_by_field[field]}"), indent=2
            )
    for rail in rails_of(plan):
        sheet.paragraph(Span(rail.text), indent=2)
    for devices, reason in unused_devices(plan):
        sheet.paragraph(Span(devices, "bold"), Span(f": {reason}"), indent=2)
    for needed in plan.requirements:
        sheet.paragraph(Span("needs", "bold"), Span(f" {needed}"), indent=2)


def _entry_text(field: str, plan: FabricPlan) -> str:
    if field == "resources":
        return ", ".join(resource["name"] for resource in plan.entry["resources"])
    value = plan.entry.get(field)
    return ", ".join(value) if isinstance(value, list) else str(value)


def _write_nodes_table(sheet: Sheet, plan: FabricPlan, width: int) -> None:
    """Write a row for each group of equal nodes, with a column for each device if they fit."""
    groups = equal_nodes(plan)
    devices = sorted({port.name for group in groups for port in group.ports}, key=natural_key)
    names = max(min(len(group.title), _MAX_CELL_WIDTH) for group in groups)
    needed = names + sum(max(len(name), _RATE) + 2 for name in devices) + _DETAILS
    if needed <= width:
        columns = [
            TableColumn("NODES", _MAX_CELL_WIDTH),
            *map(TableColumn, devices),
            TableColumn("NODE"),
        ]
        sheet.table(columns, [_matrix_row(group, devices) for group in groups], indent=2)
        return
    columns = [TableColumn("NODES", _MAX_CELL_WIDTH), TableColumn("PORTS")]
    rows = [[Span(group.title), Span(_ports_text(group))] for group in groups]
    sheet.table(columns, rows, indent=2)


def _matrix_row(group: EqualNodes, devices: Sequence[str]) -> list[Span]:
    ports = {port.name: port for port in group.ports}
    cells = [_cell(ports.get(device)) for device in devices]
    return [Span(group.title), *cells, Span(_details(group))]


def _details(group: EqualNodes) -> str:
    firmware = f"firmware {group.firmware}" if group.firmware else ""
    return ", ".join(filter(None, (group.machine_type, group.gpus or "GPUs unknown", firmware)))


def _ports_text(group: EqualNodes) -> str:
    """Return the ports by their rate or state: "400: mlx5_0, mlx5_1; Down: mlx5_2"."""
    by_state: dict[str, list[str]] = {}
    for port in group.ports:
        lead = (
            f"unused ({port.rate_or_state})" if port.condition == "unused" else port.rate_or_state
        )
        by_state.setdefault(lead, []).append(port.name)
    ports = "; ".join(f"{text}: {', '.join(names)}" for text, names in by_state.items())
    return f"{ports}; {_details(group)}"


def _cell(port: ShownPort | None) -> Span:
    """Return the rate of a port, or its state; in parentheses if the fabric does not use it."""
    if port is None:
        return Span("-")
    if port.condition == "unused":
        return Span(f"({port.rate_or_state})", "dim")
    return Span(
        port.rate_or_state, "" if port.condition == "fine" else _ODD.get(port.condition, "yellow")
    )


def _write_unplaced_nodes(sheet: Sheet, discovery: Discovery) -> None:
    """Write the nodes without a fabric."""
    unplaced = [*unplaced_nodes(discovery)]
    if not unplaced:
        return
    sheet.blank()
    sheet.paragraph(Span(UNPLACED_TITLE, "bold"))
    for name, reason in unplaced:
        sheet.paragraph(Span(name, "bold"), Span(f": {reason}"), indent=2)
