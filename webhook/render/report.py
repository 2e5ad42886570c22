"""What a preview found, as values: every rendering reads these and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from webhook.core.decision import Decision
from webhook.core.path import Path, dotted

#: What a note ends with where a document has nothing to decide on.
NO_TEMPLATE = "no pod template"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The decision about one pod, or about one pod template, and where it stands."""

    source: str  #: the input's name: a file, or `-`
    line: int  #: where the document begins in the input, counted from 1
    document: int  #: which document, counted from 0 over all inputs
    steps: Path  #: where the pod is in the document; () for a document that is a pod
    kind: str
    name: str
    namespace: str
    called: bool | None  #: whether the API server calls the webhook; None: unknown
    called_because: str
    decision: Decision

    @property
    def path(self) -> str:
        """Where the pod is in the document, as people write it: `spec.template`, "" for a pod."""
        return dotted(self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All previews of one run, in the order of the input."""

    previews: tuple[Preview, ...] = ()
    #: Sentences on documents that cannot be decided, such as "ConfigMap lab/x: no pod template".
    notes: tuple[str, ...] = ()

    @property
    def denied(self) -> bool:
        """Whether one of these pods would not be created."""
        return not all(let_through(preview.decision) for preview in self.previews)


def let_through(decision: Decision) -> bool:
    """Whether the pod may be created; an internal error, answered with HTTP 500, stops it too."""
    return decision.allowed and decision.error is None


def asides(report: Report) -> Iterator[tuple[str, str]]:
    """Give what a patch or a manifest cannot say, each as a label and a sentence."""
    for preview in report.previews:
        name = " ".join(
            (f"{preview.kind} {preview.namespace}/{preview.name}", preview.path)
        ).rstrip()
        if not let_through(preview.decision):
            yield "denied", f"{name}: {preview.decision.message}"
        elif preview.called is False:
            yield "warning", f"{name}: the webhook is not called: {preview.called_because}"
        for warning in preview.decision.warnings:
            yield "warning", f"{name}: {warning.removeprefix('rdma.lab: ')}"
    for note in report.notes:
        yield "note", note
