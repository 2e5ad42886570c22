"""Compare two reports on the same documents: which pods would be decided differently.

The result has two forms: one for programs, and one for people.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from webhook.model.annotations import STATUS
from webhook.model.pod import PodManifest
from webhook.preview.report.record import Preview, Report
from webhook.preview.workloads.objects import Header
from webhook.text.terminal import Sheet, Span

# Compare two reports.


class Side(NamedTuple):
    """What one configuration makes of a pod."""

    allowed: bool
    #: yes, no, unsure or none.
    rdma: str
    because: str  #: a reason code
    message: str
    fabric: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodChange:
    """A pod that would be decided differently."""

    kind: str
    namespace: str
    name: str
    path: str  #: of the template in its object; "" for a pod
    role: str
    before: Side
    after: Side
    #: What differs in the pods that would be created.
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of comparing two configurations."""

    #: How many pods were decided on: those that opted in and that the webhook is called for.
    compared: int
    changes: tuple[PodChange, ...]
    #: Sentences on what was read, and what could not be compared.
    notes: tuple[str, ...] = ()


def compared(before: Report, after: Report, notes: Iterable[str] = ()) -> Comparison:
    """Compare reports on the same documents, made with two configurations."""
    pairs = [
        (one, other)
        for one, other in zip(before.previews, after.previews, strict=True)
        if one.decision.verdict is not None and one.called is not False
    ]
    return Comparison(
        compared=len(pairs),
        changes=tuple(_changes(pairs)),
        notes=tuple(dict.fromkeys([*notes, *before.notes])),
    )


def _changes(pairs: Iterable[tuple[Preview, Preview]]) -> Iterator[PodChange]:
    for one, other in pairs:
        before, after = _side(one), _side(other)
        leaves = differing(_without_status(one), _without_status(other))
        if leaves or before != after:
            yield PodChange(
                kind=one.kind,
                namespace=one.namespace,
                name=one.name,
                path=one.path,
                role=one.role,
                before=before,
                after=after,
                leaves=tuple(leaves),
            )


def _side(preview: Preview) -> Side:
    verdict = preview.decision.verdict
    assert verdict is not None  # whether a pod opted in does not depend on the configuration
    return Side(
        allowed=preview.decision.allowed,
        rdma=verdict.rdma,
        because=verdict.because.code,
        message=verdict.message,
        fabric=preview.decision.fabric,
    )


def _without_status(preview: Preview) -> PodManifest:
    """Return the pod without the status, which names the configuration and so always differs."""
    pod = preview.pod
    annotations = Header.of(pod).annotations
    if STATUS not in annotations:
        return pod
    rest = {key: value for key, value in annotations.items() if key != STATUS}
    metadata: dict[str, object] = {**pod["metadata"], "annotations": rest}
    return {**pod, "metadata": metadata}


# The comparison of two configurations for programs: stable, and described by a JSON Schema.

_SCHEMA = Path(__file__).with_name("changes.schema.json")


def changes_form(found: Comparison) -> dict[str, object]:
    """Return a comparison as plain JSON values."""
    return {
        "compared": found.compared,
        "changes": [_change(one) for one in found.changes],
        "notes": list(found.notes),
    }


def _change(change: PodChange) -> dict[str, object]:
    return {
        "kind": change.kind,
        "namespace": change.namespace,
        "name": change.name,
        "path": change.path,
        "role": change.role,
        "before": _side_form(change.before),
        "after": _side_form(change.after),
        "leaves": [
            {"place": leaf.place, "before": leaf.before, "after": leaf.after}
            for leaf in change.leaves
        ],
    }


def _side_form(side: Side) -> dict[str, object]:
    return {
        "allowed": side.allowed,
        "rdma": side.rdma,
        "because": side.because,
        "message": side.message,
        "fabric": side.fabric,
    }


def changes_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form."""
    return _SCHEMA.read_text(encoding="utf-8")


# The comparison of two configurations for people.

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


# The values in which two pods differ, each with its place.

#: Lists whose items Kubernetes merges by this key have it in the place, and their order is free.
_KEY = "name"


class Leaf(NamedTuple):
    """A value that differs; None: it is not there. Lists without names are compared whole."""

    place: str  #: `spec.containers[trainer].env[NCCL_IB_HCA].value`
    before: str | None
    after: str | None


def differing(before: object, after: object) -> list[Leaf]:
    """Return the leaves that differ, in the order of the second value, then of the first."""
    was, now = dict(_leaves(before, "")), dict(_leaves(after, ""))
    places = [*now, *(place for place in was if place not in now)]
    found = (Leaf(place, was.get(place), now.get(place)) for place in places)
    return [one for one in found if one.before != one.after]


def _leaves(node: object, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from _leaves(value, _step(place, key))
    elif isinstance(node, list) and _named(node):
        for item in node:
            for key, value in item.items():
                if key != _KEY or len(item) == 1:
                    yield from _leaves(value, _step(f"{place}[{item[_KEY]}]", key))
    elif place:
        yield place, node if isinstance(node, str) else _json(node)


def _json(node: object) -> str:
    """Write a value that is not text; Python's own module takes integers of any size."""
    return json.dumps(node, ensure_ascii=False, separators=(",", ":"))


def _step(place: str, key: str) -> str:
    """Add a key to a place; one that has dots or slashes is put into brackets, to stay readable."""
    if not key.replace("_", "").isalnum():
        return f"{place}[{key}]"
    return f"{place}.{key}" if place else key


def _named(items: list[object]) -> bool:
    """Return whether each item is a mapping with a name of its own."""
    names = [one.get(_KEY) for one in items if isinstance(one, dict)]
    strings = {one for one in names if isinstance(one, str)}
    return bool(items) and len(strings) == len(items)
