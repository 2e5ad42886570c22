"""Compare two reports on the same documents: which pods would be decided differently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from webhook.model.annotations import STATUS
from webhook.model.pod import PodManifest, at
from webhook.preview.leaves import Leaf, differing
from webhook.preview.report.record import Preview, Report


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
    annotations = at(pod, ("metadata", "annotations"))
    if not isinstance(annotations, dict) or STATUS not in annotations:
        return pod
    rest = {key: value for key, value in annotations.items() if key != STATUS}
    metadata: dict[str, Any] = {**pod["metadata"], "annotations": rest}
    return {**pod, "metadata": metadata}
