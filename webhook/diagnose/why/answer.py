"""The explanation of a pod: the answer (`rdma_answer`), and the chapters that explain it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.diagnose.why.additions import REMARKS_ON_ADDITIONS, Additions, additions_of
from webhook.diagnose.why.bound_node import SETTLED_REMARKS, bound_node
from webhook.diagnose.why.changed_afterwards import change_findings
from webhook.diagnose.why.comparison import Comparison, compare
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.explanation import VERDICT_LEVELS, Chapter, ChapterName, Explanation
from webhook.diagnose.why.memory_rights import memory_rights_findings
from webhook.diagnose.why.old_template import old_template_finding, with_old_template
from webhook.diagnose.why.pod_libraries import pod_libraries
from webhook.diagnose.why.pod_status import FAILED, status_findings
from webhook.diagnose.why.rdma_answer import rdma_answer
from webhook.diagnose.why.redecide import redecision_findings, with_changed_configuration
from webhook.diagnose.why.replacement import has_old_template
from webhook.diagnose.why.request import applied_findings, request_findings
from webhook.diagnose.why.runtime_evidence import log_findings, process_findings
from webhook.diagnose.why.socket_interfaces import interface_findings
from webhook.diagnose.why.webhook_call import CALLED, call_finding
from webhook.model.decision import Rdma
from webhook.model.finding import Code, Finding

NOT_READ = Code(
    "NotRead", "An object or a log could not be read, so the explanation may be incomplete."
)
CODES = (NOT_READ,)


def explain_pod(evidence: PodEvidence) -> Explanation:
    """Explain why a pod has or lacks RDMA."""
    comparison = compare(evidence)
    called = call_finding(evidence, comparison)
    changed = change_findings(evidence, comparison) if called.code == CALLED.code else []
    status = evidence.status if called.code == CALLED.code else None
    additions = additions_of(evidence, comparison)
    stripped = _without_message(comparison, additions)
    rdma, answer = rdma_answer(evidence, called, stripped, changed)
    added = _addition_finding(evidence, additions, rdma)
    if added:
        answer = answer._replace(text=f"{answer.text} {added.text}", remedy=added.remedy)
    answer = with_changed_configuration(answer, evidence)
    state = tuple(status_findings(evidence, added.remedy if added else ""))
    if has_old_template(evidence) and not added:
        answer = with_old_template(answer, evidence)
        state = (*state, old_template_finding(evidence, "info"))
    chapters: dict[ChapterName, tuple[Finding, ...]] = {
        "requested": tuple(request_findings(evidence, status)),
        "webhookCall": (called,),
        "applied": (
            *_applied(evidence, called, added, comparison.remarks_on_settings),
            *changed,
            *filter(None, [added]),
        ),
        "podStatus": state,
        "processes": (
            *memory_rights_findings(evidence, comparison.targets),
            *interface_findings(evidence, comparison.targets),
            *process_findings(evidence),
        ),
        "log": tuple(log_findings(evidence)),
        "redecision": tuple(redecision_findings(evidence)),
        "unread": tuple(NOT_READ.finding("info", text) for text in evidence.unread_sentences),
    }
    return Explanation(
        namespace=evidence.namespace_name,
        pod=evidence.name,
        owners=tuple(owner.title for owner in evidence.owners),
        rdma=rdma,
        libraries=pod_libraries(status, comparison.verdict_now).names,
        answer=_with_obstacle(answer, state, is_pending=evidence.pod.status.phase == "Pending"),
        chapters=tuple(Chapter(name, findings) for name, findings in chapters.items() if findings),
    )


def _applied(
    evidence: PodEvidence,
    called: Finding,
    added: Finding | None,
    remarks_on_settings: Mapping[str, str],
) -> Iterator[Finding]:
    """Yield the findings on the status, without the remarks that the pod's node disproves.

    What somebody else added has one remedy in all findings about it.
    """
    node = bound_node(evidence)
    settled = SETTLED_REMARKS if node and node.is_of_fabric else ()
    for finding in applied_findings(evidence, called):
        if added and finding.code in REMARKS_ON_ADDITIONS:
            yield finding._replace(remedy=added.remedy)
        elif finding.code in remarks_on_settings:
            yield finding._replace(text=f"{finding.text} {remarks_on_settings[finding.code]}")
        elif finding.code not in settled:
            yield finding


def _with_obstacle(answer: Finding, state: tuple[Finding, ...], *, is_pending: bool) -> Finding:
    """Return a good answer with what keeps the pod from running, as a warning."""
    errors = [finding for finding in state if finding.level == "error"]
    if answer.level != "ok" or not errors:
        return answer
    # That the pod has failed says less than how a container of it ended.
    obstacle = next((finding for finding in errors if finding.code != FAILED.code), errors[0])
    sentence, *_ = obstacle.text.split(". ")
    predicate = "does not run yet" if is_pending else "does not run as it should"
    text = f"{answer.text} But it {predicate}: {sentence.rstrip('.')}."
    return answer._replace(level="warning", text=text, remedy=answer.remedy or obstacle.remedy)


def _without_message(comparison: Comparison, additions: Additions) -> Comparison:
    """Return a comparison whose verdict has no message if somebody else added something.

    The message may ask to remove what was added.
    """
    verdict = comparison.verdict_now
    if verdict is None or not additions.titles:
        return comparison
    return comparison._replace(verdict_now=verdict._replace(message=""))


def _addition_finding(evidence: PodEvidence, additions: Additions, rdma: Rdma) -> Finding | None:
    """Return the finding on what somebody else added, if the answer is that of the status."""
    if evidence.status is None or evidence.status.rdma != rdma or not additions.titles:
        return None
    return additions.finding(VERDICT_LEVELS[rdma], evidence)
