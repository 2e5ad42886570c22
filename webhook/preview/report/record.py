"""The result of a preview as values, the only input of every output format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from webhook.decide.admission_warnings import warning_sentences
from webhook.decide.examine import HOST_NETWORK_MISSING
from webhook.decide.reasons import NOT_OPTED_IN, PATCH_REASONS
from webhook.model.decision import REQUEST_CHECK, Decision, Outcome, PatchOp, Rdma, Reason, Verdict
from webhook.model.facts import OPT_IN_LABEL
from webhook.model.names import counted, first_names
from webhook.model.pod import Path, PodManifest, dotted
from webhook.text.escape import visible

#: A reason that only previews have.
NOT_CALLED = Reason(
    "NotCalled",
    "The API server would not call the webhook for the pod.",
    remedy=(
        "Correct the cause that the message names: for example, give the namespace the label "
        'rdma.lab/enable: "true". If the webhook is never called for the namespace, as is the case '
        "for kube-system, create the pod in a different namespace, one that has the label."
    ),
    rdma="no",
)
#: The number of names listed in one aside; the rest are only counted.
_MAX_NAMES = 3
#: The number of notes shown as remarks; the rest are only counted. Text and JSON show more.
_MAX_NOTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The decision about one pod or pod template, and its place in the input."""

    source: str  #: the name of the input, as in `Document`
    line: int  #: the document's first line in the input, counted from 1
    document: int  #: the document's number, counted from 0 over all inputs
    template_path: Path  #: the pod's path in the document; () for a document that is a pod
    kind: str
    name: str
    namespace: str
    called: bool | None  #: whether the API server calls the webhook; None: unknown
    called_because: str
    labels_known: bool = False  #: whether the labels of its namespace are known
    #: The decision on the pod that the controller creates from the template in the document.
    decision: Decision
    #: The pod after the patch, which jsonpatch applied.
    pod: PodManifest
    #: For a pod that has not opted in: a sentence about an apparent attempt; "" without one.
    hint: str = ""
    #: Sentences on mistakes in the manifest, such as unknown fields.
    mistakes: tuple[str, ...] = ()
    annotations_location: str = ""  #: where the annotation that opts in belongs
    #: Whether the pod lacks the annotation that opts in, and the decision assumes it.
    opt_in_assumed: bool = False
    namespace_labeled: bool | None = None  #: whether its namespace has the label; None: unknown
    #: The controller that adds to the pod; "" if the document's template is decided on unchanged.
    controller: str = ""
    spec_only: bool = False  #: whether the document has a pod spec only, without the pods' metadata
    derived: bool = False  #: whether it was made from a container, outside any pod template
    role: str = ""  #: the kind of pod, if the template makes several kinds

    @property
    def path(self) -> str:
        """The pod's path in the document as people write it: `spec.template`; "" for a pod."""
        return dotted(self.template_path)

    @property
    def verdict(self) -> Verdict | None:
        """Whether the pod will have RDMA; None if it has not opted in.

        If the webhook is not called, this differs from the decision's verdict, which then is only
        hypothetical.
        """
        if self.decision.verdict is None or self.called is not False:
            return self.decision.verdict
        return Verdict.of(
            NOT_CALLED, f"the webhook would not be called, since {self.called_because}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The part of a decision that can be written into the document's pod or pod template."""

    document: int  #: the document's number, counted from 0 over all inputs
    template_path: Path  #: the path of the pod or template in the document
    ops: tuple[PatchOp, ...]  #: with paths below the pod or template
    #: The pod or template with the operations, which jsonpatch applied.
    patched_template: PodManifest
    #: A sentence on edits of fields that a controller writes, for admission alone; or "".
    note: str = ""
    spec_only: bool = False  #: whether the paths of `ops` begin below the pod's `spec`


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All previews of one run, in the order of the input."""

    previews: tuple[Preview, ...] = ()
    #: The edits for `-o yaml`, `patch` and `diff`: one for each pod or template in the documents.
    edits: tuple[Edit, ...] = ()
    #: Sentences on documents without a decision, such as "ConfigMap lab/x: no pod template".
    notes: tuple[str, ...] = ()
    #: The names of the fabrics if they are an example's and not the user's; else "".
    example: str = ""
    #: The names of the fabrics if they were given, and are those of a bundled example; else "".
    given_example: str = ""

    @property
    def denied(self) -> bool:
        """Whether at least one of these pods would not be created."""
        return not all(preview.decision.allowed for preview in self.previews)

    @property
    def equipped(self) -> bool:
        """Whether all pods that opted in, or seem to have meant to, are equipped for RDMA.

        A launcher needs no equipment. False if no pod opted in.
        """
        candidates = [
            preview
            for preview in self.previews
            if preview.decision.verdict is not None or preview.hint
        ]
        return bool(candidates) and all(map(_is_equipped, candidates))


def _is_equipped(preview: Preview) -> bool:
    return preview.verdict is not None and preview.verdict.rdma in ("yes", "none")


def remarks_of(report: Report) -> list[tuple[str, str]]:
    """List remarks that a patch or a manifest cannot contain: a label and an escaped sentence each.

    A sentence about several pods appears once, with the first of their names.
    """
    sentences_by_label: dict[str, list[str]] = {"denied": [], "warning": []}
    for preview in report.previews:
        name = " ".join(
            (f"{preview.kind} {preview.namespace}/{preview.name}", preview.path)
        ).rstrip()
        for label, sentence in _pod_remarks(preview):
            sentences_by_label[label].append(f"{name}: {sentence}")
    remarks = [
        (label, sentence)
        for label, pod_sentences in sentences_by_label.items()
        for sentence in merge_sentences(pod_sentences, max_names=_MAX_NAMES)
    ]
    admission_notes = [edit.note for edit in report.edits if edit.note]
    notes = merge_sentences((*admission_notes, *report.notes), max_names=_MAX_NAMES)
    remarks += [("note", note) for note in notes[:_MAX_NOTES]]
    if len(notes) > _MAX_NOTES:
        remarks.append(
            ("note", f"{counted(len(notes) - _MAX_NOTES, 'more note')} (see the text output)")
        )
    return [(label, visible(sentence)) for label, sentence in remarks]


def merge_sentences(sentences: Iterable[str], *, max_names: int) -> list[str]:
    """Combine sentences that differ only in their subject, as in "A, B and 7 more: no template"."""
    subjects_by_predicate: dict[str, list[str]] = {}
    for sentence in sentences:
        subject, colon, predicate = sentence.partition(": ")
        subjects_by_predicate.setdefault(colon + predicate or sentence, []).append(subject)
    return [
        first_names(subjects, max_names=max_names) + predicate
        if predicate.startswith(": ")
        else predicate
        for predicate, subjects in subjects_by_predicate.items()
    ]


def _pod_remarks(preview: Preview) -> Iterator[tuple[str, str]]:
    if not preview.decision.allowed:
        yield "denied", preview.decision.message
    elif preview.called is False:
        yield "warning", f"the webhook would not be called, since {preview.called_because}"
    if preview.hint:
        yield "warning", preview.hint
    yield from (("warning", mistake) for mistake in preview.mistakes)
    decision = preview.decision
    if decision.verdict is not None and decision.allowed:
        reason = None if decision.reason in PATCH_REASONS else decision.reason
        warnings = warning_sentences(decision.verdict, reason, decision.message, decision.outcomes)
        yield from (("warning", warning) for warning in dict.fromkeys(warnings))


# The verdict on a pod in a few words, and why some mutations were skipped.


class VerdictHeadline(NamedTuple):
    """A verdict in a few words, with its sign and its style."""

    text: str
    summary: str  #: in the summary, after the number of pods
    conditional: str  #: the verdict if the webhook were called
    sign: str
    style: str


class SkipReason(NamedTuple):
    """The reason for skipping mutations: its code, "" without any, and a sentence."""

    code: str = ""
    message: str = ""

    def explains(self, outcome: Outcome) -> bool:
        """Whether an outcome only repeats this reason."""
        return outcome.reason.code == self.code and (
            outcome.status == "skipped" or outcome.mutation == REQUEST_CHECK
        )


def skip_reason_of(decision: Decision) -> SkipReason:
    """Return why mutations were skipped: the decision's reason, or a missing hostNetwork."""
    if decision.reason not in PATCH_REASONS:
        return SkipReason(decision.reason.code, decision.message)
    network_outcomes = [
        outcome for outcome in decision.outcomes if outcome.reason.code == HOST_NETWORK_MISSING.code
    ]
    if not any(outcome.status == "skipped" for outcome in network_outcomes):
        return SkipReason()
    # Prefer the warning, which names the fabric; the skipped outcomes share another sentence.
    network_outcomes.sort(key=lambda outcome: outcome.status != "warned")
    return SkipReason(HOST_NETWORK_MISSING.code, network_outcomes[0].message.removesuffix("."))


def not_opted_in(preview: Preview) -> bool:
    """Whether the pod has not opted in."""
    return preview.decision.reason.code == NOT_OPTED_IN.code


def headline_of(preview: Preview) -> VerdictHeadline:
    """Return the headline: whether the pod will have RDMA."""
    verdict = preview.verdict
    if verdict is None:
        return _NOT_OPTED_IN
    if verdict.because is NOT_CALLED:
        return _NOT_CALLED
    return _HEADLINES[verdict.rdma] if preview.decision.allowed else _DENIED


_NOT_OPTED_IN = VerdictHeadline("not opted in", "not opted in", "", "○", "yellow")
_NOT_CALLED = VerdictHeadline("no RDMA", "not called", "", "✘", "bold red")
_DENIED = VerdictHeadline("denied", "denied", "the pod would be denied", "✘", "bold red")
_HEADLINES: dict[Rdma, VerdictHeadline] = {
    "yes": VerdictHeadline(
        "equipped for RDMA",
        "equipped for RDMA",
        "the pod would be equipped for RDMA",
        "✔",
        "bold green",
    ),
    "no": VerdictHeadline("no RDMA", "without RDMA", "the pod would have no RDMA", "✘", "bold red"),
    "unsure": VerdictHeadline(
        "RDMA not certain", "not certain", "RDMA would not be certain", "?", "bold yellow"
    ),
    "none": VerdictHeadline("launcher", "launcher", "the pod would be a launcher", "○", "bold"),
}


# How an audience requests another preview: with options, or with parameters over HTTP.


class Wording(NamedTuple):
    """Parts of sentences for one audience: how to request another preview."""

    #: What requests a preview as if the pods had opted in; follows "use".
    opt_in_option: str
    #: How to preview with the labels of the namespaces, which are assumed here; a clause.
    label_advice: str
    #: How to preview with the user's fabrics instead of an example's, or why not; a clause.
    fabrics_advice: str
    #: What to do with a fabrics file that is among the documents; a clause.
    fabrics_file_advice: str


#: With the options of `rdma-webhook preview`.
CLI_WORDING = Wording(
    "--enable",
    "--live checks this",
    "pass yours with -c FABRICS",
    "pass it with -c, or check it with check-config",
)
#: With the parameters of `/preview`.
HTTP_WORDING = Wording(
    "?enable=true",
    f"if this is so, add ?namespace-label={OPT_IN_LABEL}=true",
    "this server was started without fabrics",
    "this server has its own; send a pod or a workload",
)
