"""The inventory of fabrics for people: a table, then what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.fabric_findings import without_nodes
from webhook.model.finding import Finding
from webhook.model.inventory import FabricCapacity, FabricInventory
from webhook.model.names import counted, first_names, shortened_list
from webhook.text.findings import text_with_nodes
from webhook.text.terminal import Sheet, Span, TableColumn, write_finding

#: How many devices that no fabric lists are named.
_MAX_DEVICES = 8
_HEADINGS = ("fabric", "nodes", "GPUs", "RDMA resources")


def fabrics_text(
    inventory: FabricInventory, *, width: int, color: bool = False, wide: bool = False
) -> str:
    """Return the inventory as text; `wide` adds the names of all nodes."""
    sheet = Sheet(width, color=color)
    if inventory.fabrics:
        _table(sheet, inventory.fabrics, wide=wide)
    else:
        sheet.paragraph(Span("There are no fabrics."))
    for fabric in inventory.fabrics:
        _write(sheet, fabric.findings, subject=fabric.name, wide=wide)
    _write(sheet, inventory.findings, wide=wide)
    sheet.paragraph(Span(_node_counts(inventory), "dim"))
    return sheet.text


def anonymous_text(inventory: FabricInventory, *, width: int) -> str:
    """Return the content of `anonymous_form` as text."""
    sheet = Sheet(width)
    rows = [_cells(fabric) for fabric in inventory.fabrics]
    sheet.table([TableColumn(heading) for heading in _HEADINGS], rows)
    for fabric in inventory.fabrics:
        for finding in fabric.problems:
            write_finding(sheet, without_nodes(finding), subject=fabric.name)
    return sheet.text


def text_without_nodes(configuration: CompiledConfiguration, *, width: int) -> str:
    """Return the fabrics of a configuration with their GPU and RDMA resources, without amounts."""
    sheet = Sheet(width)
    rows = [
        list(map(Span, _cells_without_nodes(fabric))) for fabric in configuration.fabrics.values()
    ]
    sheet.table([TableColumn(heading) for heading in _HEADINGS], rows)
    sheet.paragraph(Span("The nodes are unknown: this server has read none."))
    return sheet.text


def _cells_without_nodes(fabric: Fabric) -> tuple[str, ...]:
    gpus = ", ".join(sorted(fabric.gpu_resources)) or "none"
    resources = ", ".join(resource.name for resource in fabric.resources) or "none"
    return fabric.name, "unknown", gpus, resources


def _write(
    sheet: Sheet, findings: Iterable[Finding], *, subject: str = "", wide: bool = False
) -> None:
    for finding in findings:
        named = finding._replace(text=text_with_nodes(finding, every=wide))
        write_finding(sheet, named, subject)


def _table(sheet: Sheet, fabrics: Sequence[FabricCapacity], *, wide: bool) -> None:
    has_free = any(fabric.free is not None for fabric in fabrics)
    headings = [*_HEADINGS, *(["free"] if has_free else []), "node names"]
    rows = []
    for fabric in fabrics:
        free = [Span(_amounts(fabric.free or {}))] if has_free else []
        names = ", ".join(fabric.nodes) if wide else shortened_list(fabric.nodes)
        rows.append([*_cells(fabric), *free, Span(names)])
    sheet.table([TableColumn(heading) for heading in headings], rows)


def _cells(fabric: FabricCapacity) -> list[Span]:
    """Return the first cells of a fabric's row, which contain no node names."""
    amounts = (_node_count(fabric), _amounts(fabric.gpus), _amounts(fabric.resources))
    return [Span(fabric.name, "bold"), *map(Span, amounts)]


def _node_count(fabric: FabricCapacity) -> str:
    """Count the nodes that take pods: "2 of 3", or "3" if all do."""
    available, unavailable = len(fabric.nodes), len(fabric.unavailable_nodes)
    return f"{available} of {available + unavailable}" if unavailable else str(available)


def _amounts(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {amount}" for name, amount in amounts.items()) or "none"


def _node_counts(inventory: FabricInventory) -> str:
    return " ".join(_node_count_sentences(inventory))


def _node_count_sentences(inventory: FabricInventory) -> Iterator[str]:
    yield f"{counted(inventory.nodes, 'node')} in total"
    if not inventory.unrelated_nodes:
        return
    offer, match = ("offers", "matches") if inventory.unrelated_nodes == 1 else ("offer", "match")
    listed = " that a fabric lists" if inventory.unlisted_devices else ""
    yield (
        f"({inventory.unrelated_nodes} of them {offer} no GPU and no RDMA resource{listed}, and "
        f"{match} no fabric's labels{_unlisted(inventory.unlisted_devices)})"
    )


def _unlisted(devices: Mapping[str, int]) -> str:
    """Return the devices that no fabric lists: "; no fabric lists amd.com/gpu (2 nodes)"."""
    names = [f"{name} ({counted(nodes, 'node')})" for name, nodes in devices.items()]
    return f"; no fabric lists {first_names(names, max_names=_MAX_DEVICES)}" if names else ""
