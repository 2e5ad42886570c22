"""The comparison of two configurations for people."""

from __future__ import annotations

from webhook.preview.comparison import Comparison, PodChange, Side
from webhook.preview.leaves import Leaf
from webhook.text.terminal import Sheet, Span

_NARROWEST = 40
#: Differences of one pod that are listed; the rest are counted.
_MOST = 12
#: Characters of a value that are shown.
_LONGEST = 60
_STYLES = {"yes": "green", "none": "green", "unsure": "yellow", "no": "bold red"}


def changes_text(found: Comparison, *, width: int = 100, colour: bool = False) -> str:
    """Return a comparison as lines of at most `width` columns."""
    sheet = Sheet(max(width, _NARROWEST), colour=colour)
    for change in found.changes:
        _write(sheet, change)
        sheet.blank()
    for note in found.notes:
        sheet.paragraph(Span(note), sign=Span("·", "dim"))
    sheet.paragraph(Span(_sum(found), "bold"))
    return sheet.text


def _sum(found: Comparison) -> str:
    if not found.compared:
        return "There are no pods to compare: none has opted in."
    changed, pods = len(found.changes), _counted(found.compared, "pod")
    if not changed:
        return f"Nothing changes: {pods} would be decided as today."
    worse = sum(one.before.rdma == "yes" != one.after.rdma for one in found.changes)
    lost = f", {worse} of them would lose RDMA" if worse else ""
    return f"{changed} of {pods} would be decided differently{lost}."


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _write(sheet: Sheet, change: PodChange) -> None:
    place = " ".join(filter(None, (change.path, change.role)))
    heading = [Span(f"{change.kind} {change.namespace}/{change.name}", "bold")]
    sheet.paragraph(*heading, *([Span(f"  {place}", "dim")] if place else []))
    before, after = change.before, change.after
    if before == after:
        sheet.paragraph(Span("RDMA as before: "), _verdict(after), indent=2)
    else:
        sheet.paragraph(Span("RDMA "), _verdict(before), Span(" → "), _verdict(after), indent=2)
    if (after.rdma, after.because) != (before.rdma, before.because):
        sheet.paragraph(Span(after.message), indent=2)
    if before.fabric != after.fabric:
        fabrics = f"fabric {before.fabric or 'none'} → {after.fabric or 'none'}"
        sheet.paragraph(Span(fabrics), indent=2)
    for leaf in change.leaves[:_MOST]:
        sheet.paragraph(Span(_leaf(leaf)), sign=_sign(leaf), indent=2)
    if len(change.leaves) > _MOST:
        sheet.paragraph(Span(f"and {len(change.leaves) - _MOST} more"), indent=4)


def _verdict(side: Side) -> Span:
    if not side.allowed:
        return Span(f"denied ({side.because})", "bold red")
    return Span(f"{side.rdma} ({side.because})", _STYLES[side.rdma])


def _sign(leaf: Leaf) -> Span:
    if leaf.before is None:
        return Span("+", "green")
    return Span("-", "red") if leaf.after is None else Span("~", "yellow")


def _leaf(leaf: Leaf) -> str:
    if leaf.before is None or leaf.after is None:
        return f"{leaf.place}: {_short(leaf.after or leaf.before or '')}"
    return f"{leaf.place}: {_short(leaf.before)} → {_short(leaf.after)}"


def _short(value: str) -> str:
    shown = value or '""'
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
