"""The inventory of fabrics for people: a table, then what is wrong, then nodes outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from webhook.model.inventory import FabricCapacity, FabricInventory, UnassignedNodes, some
from webhook.text.terminal import Sheet, Span, TableColumn

_WRONG = Span("✘", "red")
_HEADINGS = ("fabric", "nodes", "GPUs", "RDMA resources")


def fabrics_text(
    found: FabricInventory, *, width: int, colour: bool = False, wide: bool = False
) -> str:
    """Return the inventory as text; `wide`: with the names of all nodes."""
    sheet = Sheet(width, colour=colour)
    if found.fabrics:
        _table(sheet, found.fabrics, wide=wide)
    else:
        sheet.paragraph(Span("There are no fabrics."))
    for fabric in found.fabrics:
        for problem in fabric.problems:
            sheet.paragraph(Span(f"{fabric.name}: {problem.text}"), sign=_WRONG)
    for one in found.unassigned_nodes:
        nodes = ", ".join(one.nodes) if wide else some(one.nodes)
        sheet.paragraph(Span(_misfit(one, nodes)), sign=_WRONG)
    sheet.paragraph(Span(_others(found), "dim"))
    return sheet.text


def anonymous_text(found: FabricInventory, *, width: int) -> str:
    """Return what those may read who may not know the nodes: as `anonymous_form` has it."""
    sheet = Sheet(width)
    rows = [_cells(one) for one in found.fabrics]
    sheet.table([TableColumn(heading) for heading in _HEADINGS], rows)
    for fabric in found.fabrics:
        for problem in fabric.problems:
            sheet.paragraph(Span(f"{fabric.name}: {problem.anonymous}"), sign=_WRONG)
    return sheet.text


def _table(sheet: Sheet, fabrics: Sequence[FabricCapacity], *, wide: bool) -> None:
    known = any(one.free is not None for one in fabrics)
    headings = [*_HEADINGS, *(["free"] if known else []), "which"]
    rows = []
    for one in fabrics:
        free = [Span(_amounts(one.free or {}))] if known else []
        names = ", ".join(one.nodes) if wide else some(one.nodes)
        rows.append([*_cells(one), *free, Span(names)])
    sheet.table([TableColumn(heading) for heading in headings], rows)


def _cells(one: FabricCapacity) -> list[Span]:
    """Return the first cells of a fabric's row, which name no node."""
    amounts = (str(len(one.nodes)), _amounts(one.gpus), _amounts(one.resources))
    return [Span(one.name, "bold"), *map(Span, amounts)]


def _amounts(amounts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {many}" for name, many in amounts.items()) or "none"


def _misfit(one: UnassignedNodes, nodes: str) -> str:
    alone = len(one.nodes) == 1
    who = f"node {nodes} fits" if alone else f"{len(one.nodes)} nodes ({nodes}) fit"
    if one.fits:
        return f"{who} {' and '.join(one.fits)}: {one.why}"
    nearest = f", the nearest is {one.nearest}" if one.nearest else ""
    return f"{who} no fabric{nearest}: {one.why}"


def _others(found: FabricInventory) -> str:
    return " ".join(_sentences(found))


def _sentences(found: FabricInventory) -> Iterator[str]:
    yield f"{found.nodes} {'node' if found.nodes == 1 else 'nodes'} in all"
    if found.others:
        verb = "has" if found.others == 1 else "have"
        yield f"({found.others} of them {verb} neither GPUs nor RDMA resources)"
