"""The result of a preview as values, which are the only input of every rendering."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from webhook.decide.admission_warnings import sentences
from webhook.decide.examine import HOST_NETWORK_MISSING
from webhook.decide.reasons import NOT_OPTED_IN, WHOLE
from webhook.model.decision import Decision, Outcome, PatchOp, Rdma, Reason, Verdict
from webhook.model.facts import LABEL
from webhook.model.pod import Path, PodManifest, dotted
from webhook.text.escape import visible

#: A preview's own reason: no decision has it.
NOT_CALLED = Reason(
    "NotCalled", "The API server would not call the webhook for the pod.", rdma="no"
)
#: The end of a note about a document that has nothing to decide on.
NO_TEMPLATE = "no pod template"
#: The names listed in one aside; the rest are only counted.
_NAMES = 3
#: The notes shown as asides; the rest are only counted. The text and JSON outputs show more.
_NOTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The decision about one pod or pod template, and its place in the input."""

    source: str  #: the input's name: a file, or `-`
    line: int  #: where the document begins in the input, counted from 1
    document: int  #: which document, counted from 0 over all inputs
    steps: Path  #: where the pod is in the document; () for a document that is a pod
    kind: str
    name: str
    namespace: str
    called: bool | None  #: whether the API server calls the webhook; None: unknown
    called_because: str
    labels_known: bool = False  #: whether the labels of its namespace are known
    #: On the pod as its controller creates it from the template in the document.
    decision: Decision
    #: That pod after the patch, which jsonpatch applied.
    pod: PodManifest
    #: For a pod that has not opted in: what looks like an attempt to; "" if nothing does.
    hint: str = ""
    #: The controller that adds to the pod; "" if it is decided on as it is in the document.
    controller: str = ""
    bare: bool = False  #: whether the document has a pod spec only, without the pods' metadata
    role: str = ""  #: which of the template's pods it is, where there are several kinds of them

    @property
    def path(self) -> str:
        """The pod's place in the document, as people write it: `spec.template`; "" for a pod."""
        return dotted(self.steps)

    @property
    def verdict(self) -> Verdict | None:
        """Whether the pod will have RDMA; None if it has not opted in.

        Where the webhook is not called, this is not the decision's verdict, which only says what
        would be if it were.
        """
        if self.decision.verdict is None or self.called is not False:
            return self.decision.verdict
        return Verdict.of(NOT_CALLED, f"the webhook would not be called: {self.called_because}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What of a decision can be written into the document: into a pod, or a pod template."""

    document: int  #: which document, counted from 0 over all inputs
    steps: Path  #: where the pod or template is in the document
    ops: tuple[PatchOp, ...]  #: with paths below it
    pod: PodManifest  #: the pod or template with the operations, which jsonpatch applied
    #: A sentence on what only admission can do, since a controller wrote what is edited; or "".
    held: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All previews of one run, in the order of the input."""

    previews: tuple[Preview, ...] = ()
    #: What `-o yaml`, `patch` and `diff` write: one for each pod or template in the documents.
    edits: tuple[Edit, ...] = ()
    #: Sentences on documents without a decision, such as "ConfigMap lab/x: no pod template".
    notes: tuple[str, ...] = ()
    #: The names of the fabrics, if they are an example's and not the reader's; else "".
    example: str = ""

    @property
    def denied(self) -> bool:
        """Whether one of these pods would not be created."""
        return not all(preview.decision.allowed for preview in self.previews)

    @property
    def equipped(self) -> bool:
        """Whether all pods that opted in, or seem to have meant to, are equipped for RDMA.

        A launcher needs no equipment. Without any pod that opted in, nothing is equipped.
        """
        meant = [one for one in self.previews if one.decision.verdict is not None or one.hint]
        return bool(meant) and all(map(_is_equipped, meant))


def _is_equipped(preview: Preview) -> bool:
    return preview.verdict is not None and preview.verdict.rdma in ("yes", "none")


def asides(report: Report) -> list[tuple[str, str]]:
    """List what a patch or a manifest cannot show, each as a label and a visible sentence.

    A sentence that applies to several pods is given once, with the names of the first of them.
    """
    said: dict[str, list[str]] = {"denied": [], "warning": []}
    for preview in report.previews:
        name = " ".join(
            (f"{preview.kind} {preview.namespace}/{preview.name}", preview.path)
        ).rstrip()
        for label, sentence in _said(preview):
            said[label].append(f"{name}: {sentence}")
    found = [(label, one) for label, all_ in said.items() for one in folded(all_, most=_NAMES)]
    held = [edit.held for edit in report.edits if edit.held]
    notes = folded((*held, *report.notes), most=_NAMES)
    found += [("note", note) for note in notes[:_NOTES]]
    if len(notes) > _NOTES:
        found.append(("note", f"{len(notes) - _NOTES} more notes (see the text output)"))
    return [(label, visible(sentence)) for label, sentence in found]


def folded(sentences: Iterable[str], *, most: int) -> list[str]:
    """Combine sentences that differ only in their subject, as in "A, B and 7 more: no template"."""
    about: dict[str, list[str]] = {}
    for sentence in sentences:
        subject, colon, rest = sentence.partition(": ")
        about.setdefault(colon + rest or sentence, []).append(subject)
    return [
        first_names(subjects, most=most) + rest if rest.startswith(": ") else rest
        for rest, subjects in about.items()
    ]


def first_names(names: Sequence[str], *, most: int) -> str:
    """Join names with commas; beyond `most`, only count the rest."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _said(preview: Preview) -> Iterator[tuple[str, str]]:
    if not preview.decision.allowed:
        yield "denied", preview.decision.message
    elif preview.called is False:
        yield "warning", f"the webhook would not be called: {preview.called_because}"
    if preview.hint:
        yield "warning", preview.hint
    decision = preview.decision
    if decision.verdict is not None and decision.allowed:
        why = None if decision.reason in WHOLE else decision.reason
        found = sentences(decision.verdict, why, decision.message, decision.outcomes)
        yield from (("warning", one) for one in dict.fromkeys(found))


# The verdict on a pod in a few words, and why some mutations were held back.


class VerdictHeadline(NamedTuple):
    """Whether a pod will have RDMA, how the summary counts it, and how it is shown."""

    word: str
    counted: str
    sign: str
    style: str


class Barrier(NamedTuple):
    """Why mutations were held back: the reason's code, "" if none was; and a sentence."""

    code: str = ""
    message: str = ""

    def tells(self, outcome: Outcome) -> bool:
        """Whether an outcome only repeats this reason."""
        return outcome.reason.code == self.code and (
            outcome.status == "skipped" or outcome.mutation == "request"
        )


def barrier_of(decision: Decision) -> Barrier:
    """Return why mutations were held back: the decision's reason, or a missing hostNetwork."""
    if decision.reason not in WHOLE:
        return Barrier(decision.reason.code, decision.message)
    held = [one for one in decision.outcomes if one.reason.code == HOST_NETWORK_MISSING.code]
    if not any(one.status == "skipped" for one in held):
        return Barrier()
    # Prefer the warning, which names the fabric; the skipped outcomes all have one other sentence.
    held.sort(key=lambda one: one.status != "warned")
    return Barrier(HOST_NETWORK_MISSING.code, held[0].message.removesuffix("."))


def not_opted_in(preview: Preview) -> bool:
    """Whether the pod has not opted in."""
    return preview.decision.reason.code == NOT_OPTED_IN.code


def headline_of(preview: Preview) -> VerdictHeadline:
    """Return what a reader wants to know first: whether the pod will have RDMA."""
    verdict = preview.verdict
    if verdict is None:
        return _NOT_OPTED_IN
    if verdict.because is NOT_CALLED:
        return _NOT_CALLED
    return _HEADLINES[verdict.rdma] if preview.decision.allowed else _DENIED


_NOT_OPTED_IN = VerdictHeadline("not opted in", "not opted in", "○", "yellow")
_NOT_CALLED = VerdictHeadline("no RDMA", "not called", "✘", "bold red")
_DENIED = VerdictHeadline("denied", "denied", "✘", "bold red")
_HEADLINES: dict[Rdma, VerdictHeadline] = {
    "yes": VerdictHeadline("equipped for RDMA", "equipped for RDMA", "✔", "bold green"),
    "no": VerdictHeadline("no RDMA", "without RDMA", "✘", "bold red"),
    "unsure": VerdictHeadline("RDMA not certain", "not certain", "?", "bold yellow"),
    "none": VerdictHeadline("launcher", "only launching", "○", "bold"),
}


# How readers of a preview request another one: by options, or by parameters over HTTP.


class Wording(NamedTuple):
    """The words for one kind of reader, as parts of sentences."""

    enable: str  #: as if the pods had opted in
    labels: str  #: with the labels of their namespaces
    fabrics: str  #: with their own fabrics, where the report is about an example's
    fabrics_file: str  #: what to do with a fabrics file


#: With the options of `rdma-webhook preview`.
OPTIONS = Wording(
    "--enable",
    f"give --live, --namespace-label {LABEL}=true or --facts FILE",
    "give yours with -c FABRICS",
    "give it with -c, or use check-config",
)
#: With the parameters of `/preview`.
PARAMETERS = Wording(
    "?enable=true",
    f"give ?namespace-label={LABEL}=true",
    "this server was started without fabrics",
    "this server has its own; send a pod or a workload",
)
