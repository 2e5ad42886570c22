"""An explanation as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import TypedDict

from webhook.diagnose.why.code_output import CodeForm
from webhook.diagnose.why.explanation import Chapter, ChapterName, Explanation
from webhook.model.decision import Rdma
from webhook.text.findings import FindingForm, finding_form
from webhook.text.terminal import Sheet, Span, write_finding

# Keys, chapters and codes may be added, but are never renamed.


class ChapterForm(TypedDict):
    """The findings under one heading."""

    name: ChapterName
    findings: list[FindingForm]


class PodForm(TypedDict):
    """The reasons why a pod has or lacks RDMA."""

    namespace: str
    name: str
    """"" for a controller without pods, which is then the only owner."""
    owners: list[str]
    """The pod's controllers, nearest first, such as "Job train"."""
    rdma: Rdma
    """Whether the pod has RDMA; none: it needs none of its own."""
    libraries: list[str]
    """The libraries that move the pod's data between nodes; empty if the webhook was not called,
    if the pod has no such data, or if they are unknown."""
    well: bool
    """Whether rdma is yes or none, and nothing keeps the pod from running."""
    answer: FindingForm
    chapters: list[ChapterForm]
    """In the order of the enum; a chapter without findings is left out."""


class WhyForm(TypedDict):
    """Explanations of pods and of codes."""

    pods: list[PodForm]
    codes: list[CodeForm]


def why_form(explanations: Iterable[Explanation], codes: Iterable[CodeForm] = ()) -> WhyForm:
    """Return explanations as plain JSON values."""
    return WhyForm(pods=[_pod(explanation) for explanation in explanations], codes=list(codes))


def _pod(explanation: Explanation) -> PodForm:
    return PodForm(
        namespace=explanation.namespace,
        name=explanation.pod,
        owners=list(explanation.owners),
        rdma=explanation.rdma,
        libraries=list(explanation.libraries),
        well=explanation.well,
        answer=finding_form(explanation.answer),
        chapters=[_chapter(chapter) for chapter in explanation.chapters],
    )


def _chapter(chapter: Chapter) -> ChapterForm:
    findings = [finding_form(finding) for finding in chapter.findings]
    return ChapterForm(name=chapter.name, findings=findings)


def why_schema() -> str:
    """Return the JSON Schema of the output of `why -o json`."""
    from webhook.text.schema import form_schema  # noqa: PLC0415 -- only for this output

    return form_schema(WhyForm, "The output of rdma-webhook why -o json")


# An explanation as text.

_HEADINGS: dict[ChapterName, str] = {
    "requested": "What the pod requests",
    "webhookCall": "Whether the webhook was called",
    "applied": "What the webhook changed",
    "podStatus": "What the cluster reports",
    "processes": "Which processes use RDMA",
    "log": "What the log shows",
    "redecision": "What the webhook would decide today",
    "unread": "What could not be read",
}
_MIN_WIDTH = 40


def why_text(explanations: Iterable[Explanation], *, width: int = 100, color: bool = False) -> str:
    """Return explanations as lines of at most `width` columns."""
    sheet = Sheet(max(width, _MIN_WIDTH), color=color)
    for number, explanation in enumerate(explanations):
        if number:
            sheet.blank()
        _write_explanation(sheet, explanation)
    return sheet.text


def _title(explanation: Explanation) -> str:
    """Return the pod, or the controller if it has no pods."""
    namespace, owners = explanation.namespace, explanation.owners
    if explanation.pod or not owners:
        return f"Pod {namespace}/{explanation.pod or '(no name)'}"
    kind, _, name = owners[0].partition(" ")
    return f"{kind} {namespace}/{name}"


def _write_explanation(sheet: Sheet, explanation: Explanation) -> None:
    heading = [Span(_title(explanation), "bold")]
    if explanation.owners and explanation.pod:
        controllers = ", controlled by ".join(explanation.owners)
        heading.append(Span(f"  (controlled by {controllers})", "dim"))
    sheet.paragraph(*heading)
    write_finding(sheet, explanation.answer)
    for chapter in explanation.chapters:
        sheet.blank()
        sheet.paragraph(Span(_HEADINGS[chapter.name], "bold"))
        for finding in chapter.findings:
            # The remedy of the answer is not repeated.
            remedy = "" if finding.remedy == explanation.answer.remedy else finding.remedy
            write_finding(sheet, finding._replace(remedy=remedy))
