"""The comparison of two reports on the same documents: the pods that would be decided differently.

The result has two forms: one for programs, and one for people.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from typing_extensions import TypedDict

from webhook.model.annotations import STATUS_ANNOTATION
from webhook.model.decision import Rdma
from webhook.model.names import counted
from webhook.model.pod import PodManifest
from webhook.preview.report.record import Preview, Report
from webhook.preview.workloads.objects import ObjectMetadata
from webhook.text.terminal import Sheet, Span

# Compare two reports.


class ConfiguredDecision(NamedTuple):
    """The decision on a pod with one configuration."""

    allowed: bool
    rdma: Rdma
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
    before: ConfiguredDecision
    after: ConfiguredDecision
    #: The differences between the pods that would be created.
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of comparing two configurations."""

    #: The number of pods that opted in, without those for which the webhook is known not to be
    #: called.
    compared: int
    changes: tuple[PodChange, ...]
    #: Sentences on the objects read, and on omissions.
    notes: tuple[str, ...] = ()


def compare_reports(before: Report, after: Report, notes: Iterable[str] = ()) -> Comparison:
    """Compare reports on the same documents, made with two configurations."""
    pairs = [
        (old, new)
        for old, new in zip(before.previews, after.previews, strict=True)
        if old.decision.verdict is not None and old.called is not False
    ]
    return Comparison(
        compared=len(pairs),
        changes=tuple(_changes(pairs)),
        notes=tuple(dict.fromkeys([*notes, *before.notes])),
    )


def _changes(pairs: Iterable[tuple[Preview, Preview]]) -> Iterator[PodChange]:
    for old, new in pairs:
        before, after = _configured_decision(old), _configured_decision(new)
        differences = differences_between(_without_status(old), _without_status(new))
        # A denial for the same reason leaves the pod denied, whatever its message.
        denied = not before.allowed and not after.allowed and before.because == after.because
        if differences or (before != after and not denied):
            yield PodChange(
                kind=old.kind,
                namespace=old.namespace,
                name=old.name,
                path=old.path,
                role=old.role,
                before=before,
                after=after,
                differences=tuple(differences),
            )


def _configured_decision(preview: Preview) -> ConfiguredDecision:
    verdict = preview.decision.verdict
    assert verdict is not None  # whether a pod opted in does not depend on the configuration
    return ConfiguredDecision(
        allowed=preview.decision.allowed,
        rdma=verdict.rdma,
        because=verdict.because.code,
        message=verdict.message,
        fabric=preview.decision.fabric,
    )


def _without_status(preview: Preview) -> PodManifest:
    """Return the pod without the status, which names the configuration and so always differs."""
    pod = preview.pod
    annotations = ObjectMetadata.of(pod).annotations
    if STATUS_ANNOTATION not in annotations:
        return pod
    other_annotations = {
        key: value for key, value in annotations.items() if key != STATUS_ANNOTATION
    }
    metadata: dict[str, object] = {**pod["metadata"], "annotations": other_annotations}
    return {**pod, "metadata": metadata}


# The comparison of two configurations for programs. Keys may be added, but are never renamed.


class SideForm(TypedDict):
    """The decision on a pod with one configuration."""

    allowed: bool
    rdma: Rdma
    because: str
    """A reason code."""
    message: str
    fabric: str | None


class DifferenceForm(TypedDict):
    """A value that differs; null if it is missing."""

    path: str
    """The path, such as `spec.containers[trainer].env[NCCL_IB_HCA].value`."""
    before: str | None
    after: str | None


class ChangeForm(TypedDict):
    """A pod that would be decided differently."""

    kind: str
    namespace: str
    name: str
    path: str
    """The path of the template in the object, such as spec.template; empty for a pod."""
    role: str
    """The kind of pod, if the template makes several kinds."""
    before: SideForm
    after: SideForm
    differences: list[DifferenceForm]
    """The differences between the pods."""


class ChangesForm(TypedDict):
    """The pods that a new configuration would change."""

    compared: int
    """The number of pods that opted in, without those for which the webhook is known not to be
    called."""
    changes: list[ChangeForm]
    notes: list[str]
    """Notes on the objects read, and on pods that could not be compared."""


def changes_form(comparison: Comparison) -> ChangesForm:
    """Return a comparison as plain JSON values."""
    return {
        "compared": comparison.compared,
        "changes": [_change_form(change) for change in comparison.changes],
        "notes": list(comparison.notes),
    }


def _change_form(change: PodChange) -> ChangeForm:
    return {
        "kind": change.kind,
        "namespace": change.namespace,
        "name": change.name,
        "path": change.path,
        "role": change.role,
        "before": _decision_form(change.before),
        "after": _decision_form(change.after),
        "differences": [
            {"path": difference.path, "before": difference.before, "after": difference.after}
            for difference in change.differences
        ],
    }


def _decision_form(decision: ConfiguredDecision) -> SideForm:
    return {
        "allowed": decision.allowed,
        "rdma": decision.rdma,
        "because": decision.because,
        "message": decision.message,
        "fabric": decision.fabric,
    }


def changes_schema() -> str:
    """Return the JSON Schema of the form."""
    from webhook.text.schema import form_schema  # noqa: PLC0415 -- only for this output

    return form_schema(ChangesForm, "The output of rdma-webhook diff-config -o json")


# The comparison of two configurations for people.

_MIN_WIDTH = 40
#: The number of differences listed for one pod; the rest are counted.
_MAX_DIFFERENCES = 12
#: The number of characters shown of a value.
_MAX_VALUE_LENGTH = 60
_STYLES = {"yes": "green", "none": "green", "unsure": "yellow", "no": "bold red"}


def changes_text(comparison: Comparison, *, width: int = 100, color: bool = False) -> str:
    """Return a comparison as lines of at most `width` columns."""
    sheet = Sheet(max(width, _MIN_WIDTH), color=color)
    for change in comparison.changes:
        _write_change(sheet, change)
        sheet.blank()
    for note in comparison.notes:
        sheet.paragraph(Span(note), sign=Span("·", "dim"))
    sheet.paragraph(Span(_summary(comparison), "bold"))
    return sheet.text


def _summary(comparison: Comparison) -> str:
    if not comparison.compared:
        return (
            "There are no pods to compare: none has opted in, or the webhook is not called for "
            "those that have."
        )
    changed, pods = len(comparison.changes), counted(comparison.compared, "pod")
    if not changed:
        return f"No change: {pods} would get the same decision."
    equipped = [change for change in comparison.changes if change.before.rdma == "yes"]
    lost = sum(change.after.rdma == "no" for change in equipped)
    doubtful = sum(change.after.rdma == "unsure" for change in equipped)
    losses = f"; {lost} of them would lose RDMA" * bool(lost)
    losses += f"; RDMA would become unsure for {doubtful} of them" * bool(doubtful)
    return f"{changed} of {pods} would get a different decision{losses}."


def _write_change(sheet: Sheet, change: PodChange) -> None:
    template = " ".join(filter(None, (change.path, change.role)))
    heading = [Span(f"{change.kind} {change.namespace}/{change.name}", "bold")]
    sheet.paragraph(*heading, *([Span(f"  {template}", "dim")] if template else []))
    before, after = change.before, change.after
    if before == after:
        sheet.paragraph(Span("RDMA as before: "), _verdict_span(after), indent=2)
    else:
        sheet.paragraph(
            Span("RDMA "), _verdict_span(before), Span(" → "), _verdict_span(after), indent=2
        )
    if (after.rdma, after.because) != (before.rdma, before.because):
        sheet.paragraph(Span(after.message), indent=2)
    if before.fabric != after.fabric:
        fabrics = f"fabric {before.fabric or 'none'} → {after.fabric or 'none'}"
        sheet.paragraph(Span(fabrics), indent=2)
    for difference in change.differences[:_MAX_DIFFERENCES]:
        sheet.paragraph(
            Span(_describe_difference(difference)), sign=_difference_sign(difference), indent=2
        )
    if len(change.differences) > _MAX_DIFFERENCES:
        sheet.paragraph(Span(f"and {len(change.differences) - _MAX_DIFFERENCES} more"), indent=4)


def _verdict_span(decision: ConfiguredDecision) -> Span:
    if not decision.allowed:
        return Span(f"denied ({decision.because})", "bold red")
    return Span(f"{decision.rdma} ({decision.because})", _STYLES[decision.rdma])


def _difference_sign(difference: Difference) -> Span:
    if difference.before is None:
        return Span("+", "green")
    return Span("-", "red") if difference.after is None else Span("~", "yellow")


def _describe_difference(difference: Difference) -> str:
    if difference.before is None or difference.after is None:
        return f"{difference.path}: {_shorten(difference.after or difference.before or '')}"
    return f"{difference.path}: {_shorten(difference.before)} → {_shorten(difference.after)}"


def _shorten(value: str) -> str:
    text = value or '""'
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"


# The values in which two pods differ, each with its path.

#: The merge key of Kubernetes' lists: it is part of an item's path, and their order is free.
_KEY = "name"


class Difference(NamedTuple):
    """A value that differs; None if it is missing. A list without names is compared as a whole."""

    path: str  #: `spec.containers[trainer].env[NCCL_IB_HCA].value`
    before: str | None
    after: str | None


def differences_between(before: object, after: object) -> list[Difference]:
    """Return the values that differ: first those of `after` in its order, then those it lacks."""
    old, new = dict(_values_by_path(before, "")), dict(_values_by_path(after, ""))
    paths = [*new, *(path for path in old if path not in new)]
    differences = (Difference(path, old.get(path), new.get(path)) for path in paths)
    return [difference for difference in differences if difference.before != difference.after]


def _values_by_path(node: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from _values_by_path(value, _add_key(path, key))
    elif isinstance(node, list) and _have_names(node):
        for item in node:
            for key, value in item.items():
                if key != _KEY or len(item) == 1:
                    yield from _values_by_path(value, _add_key(f"{path}[{item[_KEY]}]", key))
    elif path:
        yield path, node if isinstance(node, str) else _json(node)


def _json(node: object) -> str:
    """Write a value that is not text; Python's own module accepts integers of any size."""
    return json.dumps(node, ensure_ascii=False, separators=(",", ":"))


def _add_key(path: str, key: str) -> str:
    """Add a key to a path; put a key with dots or slashes into brackets, for readability."""
    if not key.replace("_", "").isalnum():
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _have_names(items: list[object]) -> bool:
    """Return whether each item is a mapping with a unique name."""
    names = [mapping.get(_KEY) for mapping in items if isinstance(mapping, dict)]
    strings = {name for name in names if isinstance(name, str)}
    return bool(items) and len(strings) == len(items)
