"""The answer: whether the pod has RDMA, and the chapters that explain it.

Evidence from the running pod (registered memory, NCCL's channels) outweighs the status, which has
only the view of admission.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.decide.verdict import IMAGE_RUNS_AS_ROOT, ROOT_ASSUMED, equipped_end, unread_clause
from webhook.diagnose.why.additions import REMARKS_ON_ADDITIONS, Additions, additions_of
from webhook.diagnose.why.bound_node import (
    SETTLED_REMARKS,
    BoundNode,
    bound_node,
    doubt_that_stays,
    outside_fabric,
)
from webhook.diagnose.why.changed_afterwards import change_findings
from webhook.diagnose.why.comparison import (
    Comparison,
    compare,
    verdict_of,
    verdict_without_fabric,
    worse,
)
from webhook.diagnose.why.config_map_values import (
    changed_finding,
    deciding_key,
    unread_script,
    verdict_with_config_maps,
)
from webhook.diagnose.why.evidence import PodEvidence, StatusAnnotation
from webhook.diagnose.why.explanation import Chapter, ChapterName, Explanation
from webhook.diagnose.why.memory_rights import (
    cannot_lock_memory,
    memory_rights_findings,
    without_assumption,
)
from webhook.diagnose.why.old_template import old_template_finding, with_old_template
from webhook.diagnose.why.pod_status import FAILED, status_findings
from webhook.diagnose.why.reasons import REASONS
from webhook.diagnose.why.redecide import (
    VERDICT_LEVELS,
    redecision_findings,
    with_changed_configuration,
)
from webhook.diagnose.why.replacement import has_old_template
from webhook.diagnose.why.request import (
    UNKNOWN_CODE,
    applied_findings,
    rdma_requests,
    request_findings,
)
from webhook.diagnose.why.runtime_evidence import (
    cause_before_rdma,
    finding_by_use,
    log_findings,
    process_findings,
    transport_evidence,
    verdict_clause,
)
from webhook.diagnose.why.traffic import traffic_of
from webhook.diagnose.why.webhook_call import (
    CALLED,
    STATUS_NOT_OURS,
    STATUS_UNREADABLE,
    call_finding,
)
from webhook.model.config_maps import DataKey
from webhook.model.decision import Rdma, Verdict
from webhook.model.finding import Code, Finding
from webhook.model.names import uncapitalized

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
    rdma, answer = _answer(evidence, called, _without_message(comparison, additions), changed)
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
            *_applied(evidence, called, added, comparison.own_settings),
            *changed,
            *filter(None, [added]),
        ),
        "podStatus": state,
        "processes": (*memory_rights_findings(evidence), *process_findings(evidence)),
        "log": tuple(log_findings(evidence)),
        "redecision": tuple(redecision_findings(evidence)),
        "unread": tuple(NOT_READ.finding("info", text) for text in evidence.unread),
    }
    return Explanation(
        namespace=evidence.namespace_name,
        pod=evidence.name,
        owners=tuple(owner.title for owner in evidence.owners),
        rdma=rdma,
        libraries=traffic_of(status, comparison.current).libraries,
        answer=_with_obstacle(answer, state, is_pending=evidence.pod.status.phase == "Pending"),
        chapters=tuple(Chapter(name, findings) for name, findings in chapters.items() if findings),
    )


def _applied(
    evidence: PodEvidence, called: Finding, added: Finding | None, own_settings: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield the findings on the status, without the remarks that the pod's node disproves.

    What somebody else added has one remedy in all findings about it.
    """
    node = bound_node(evidence)
    settled = SETTLED_REMARKS if node and node.is_of_fabric else ()
    for finding in applied_findings(evidence, called):
        if added and finding.code in REMARKS_ON_ADDITIONS:
            yield finding._replace(remedy=added.remedy)
        elif finding.code in own_settings:
            yield finding._replace(text=f"{finding.text} {own_settings[finding.code]}")
        elif finding.code not in settled:
            yield finding


def _with_obstacle(answer: Finding, state: tuple[Finding, ...], *, is_pending: bool) -> Finding:
    """Return a good answer with what keeps the pod from running: then it is no tick."""
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
    """Return a comparison whose verdict has no message, if that asks to remove an addition."""
    current = comparison.current
    if current is None or not additions.titles:
        return comparison
    return comparison._replace(current=current._replace(message=""))


def _addition_finding(evidence: PodEvidence, additions: Additions, rdma: Rdma) -> Finding | None:
    """Return the finding on what somebody else added, if the answer is that of the status."""
    if evidence.status is None or evidence.status.rdma != rdma or not additions.titles:
        return None
    return additions.finding(VERDICT_LEVELS[rdma], evidence)


def _answer(
    evidence: PodEvidence, called: Finding, comparison: Comparison, changed: list[Finding]
) -> tuple[Rdma, Finding]:
    """Return the verdict, and the answer as a finding."""
    status = evidence.status if called.code == CALLED.code else None
    status = without_assumption(evidence, status)
    in_use = transport_evidence(evidence)
    if in_use and (status is None or status.rdma != in_use[0]):
        return in_use[0], finding_by_use(*in_use, status)
    requests = rdma_requests(evidence)
    expected = requests if status is None else status.rdma in ("yes", "unsure")
    if not in_use and expected and (cause := cause_before_rdma(evidence)):
        remedy = cause.remedy if status else called.remedy
        text = f"RDMA did not work ({verdict_clause(status)}). {cause.meaning}"
        return "no", cause.finding("error", text, remedy)
    if status is None:
        return _by_call(called, requests)
    is_worse = worse(comparison.rdma, status.rdma) != status.rdma
    if changed and is_worse and not in_use:
        return comparison.rdma, _by_change(status, comparison, changed)
    later = None if changed or in_use else _by_later_facts(evidence, status)
    if later is not None:
        return later
    current = comparison.current or verdict_without_fabric(evidence, status)
    if current and current.message and evidence.config_maps:  # it names what is still unseen
        current = verdict_of(evidence, status, config_maps=evidence.config_maps) or current
    return status.rdma, _by_status(status, current, unread_script(evidence, status))


def _by_rights(status: StatusAnnotation, cannot: Finding) -> Finding:
    """Return the answer for a pod whose image does not run as root, against the assumption."""
    start = f"No RDMA, although rdma.lab/status says {status.rdma}"
    text = f"{start}: {uncapitalized(cannot.text)}"
    return cannot._replace(text=text)


def _by_later_facts(evidence: PodEvidence, status: StatusAnnotation) -> tuple[Rdma, Finding] | None:
    """Return the answer by what admission could not know: user, ConfigMaps, and the pod's node."""
    if status.assumed and (finding := cannot_lock_memory(evidence)):
        return "no", _by_rights(status, finding)
    if verdict := verdict_with_config_maps(evidence):
        return verdict.rdma, _by_config_maps(status, verdict, deciding_key(evidence, verdict))
    if finding := changed_finding(evidence, status):
        text = f"RDMA{_over_fabric(status)} is not certain: {finding.text}"
        return "unsure", finding._replace(text=text)
    if node := bound_node(evidence):
        return _by_node(evidence, status, node)
    return None


def _by_change(status: StatusAnnotation, comparison: Comparison, changed: list[Finding]) -> Finding:
    """Return the answer for a pod that was changed after a better verdict at admission."""
    start = "No RDMA" if comparison.rdma == "no" else "RDMA is not certain"
    text = f"{start}, although rdma.lab/status says {status.rdma}: {uncapitalized(changed[0].text)}"
    return changed[0]._replace(text=text)


_NOT_CALLED = "the webhook was not called"


def _by_call(called: Finding, requests: list[str]) -> tuple[Rdma, Finding]:
    """Return the answer for a pod that the webhook was not called for, as far as is known."""
    if requests:
        unreadable = called.code in (STATUS_UNREADABLE.code, STATUS_NOT_OURS.code)
        call = "it is not known whether the webhook was called" if unreadable else _NOT_CALLED
        text = (
            f"RDMA is not certain: {call}, but the pod requests {requests[0]} itself. Whether it "
            "has everything else that RDMA needs was not checked."
        )
        return "unsure", called._replace(level="unsure", text=text)
    if called.level == "unsure":
        reason = called.text.removeprefix("Not certain: ")
        return "unsure", called._replace(text=f"RDMA is not certain: {reason}")
    reason = called.text.removeprefix("No: ")
    return "no", called._replace(text=f"No RDMA, since {_NOT_CALLED}: {reason}")


def _by_config_maps(status: StatusAnnotation, verdict: Verdict, key: DataKey | None) -> Finding:
    """Return the answer for a pod whose ConfigMaps decide; admission does not read them."""
    start, remedy = f"{_equipped(status)}, with the values in ConfigMaps", ""
    if verdict.rdma != "yes":
        place = f"ConfigMap {key.config_map}" if key else "a value in a ConfigMap"
        unsure = f"RDMA{_over_fabric(status)} is not certain"
        start = "No RDMA" if verdict.rdma == "no" else unsure
        start, remedy = f"{start}, because of {place}", _correction(verdict, key)
    text = f"{start}: {uncapitalized(verdict.message)}."
    return Finding(VERDICT_LEVELS[verdict.rdma], verdict.because.code, text, remedy)


def _correction(verdict: Verdict, key: DataKey | None) -> str:
    """Return how to correct what a ConfigMap has."""
    place = f"{key.key} in ConfigMap {key.config_map}" if key else "the value in the ConfigMap"
    if key and f"in {key.title}" in verdict.message:  # a script, which overrides env
        return f"Correct {place}. Then create the pod again."
    override = "or set the variable in the container's env, which overrides it"
    return f"Correct {place}, {override}. Then create the pod again."


def _equipped(status: StatusAnnotation) -> str:
    return f"The pod is equipped for RDMA{_over_fabric(status)}"


def _over_fabric(status: StatusAnnotation) -> str:
    return f" over {status.fabric}" if status.fabric else ""


def _by_node(
    evidence: PodEvidence, status: StatusAnnotation, node: BoundNode
) -> tuple[Rdma, Finding]:
    """Return the answer for a pod with a node, about which admission could only guess."""
    verdict = verdict_of(evidence, status, config_maps=evidence.config_maps)
    if node.fabrics is None or verdict is None:
        sentence, remedy = doubt_that_stays(evidence, node)
        finding = _by_status(status.model_copy(update={"rdma": "unsure"}), verdict)
        return "unsure", finding._replace(text=f"{finding.text} {sentence}", remedy=remedy)
    if not node.is_of_fabric:
        return ("no" if node.fabrics else "unsure"), outside_fabric(node)
    finding = _by_status(_with_verdict(status, verdict), verdict)
    text = f"{finding.text} The pod is on node {node.name}, which belongs to the fabric."
    return verdict.rdma, finding._replace(text=text)


def _with_verdict(status: StatusAnnotation, verdict: Verdict) -> StatusAnnotation:
    """Return a status with another verdict."""
    assumed = verdict.assumption.code if verdict.assumption else ""
    return status.model_copy(
        update={"rdma": verdict.rdma, "verdict_reason": verdict.because.code, "assumed": assumed}
    )


def _by_status(
    status: StatusAnnotation, current: Verdict | None, unread: DataKey | None = None
) -> Finding:
    """Return the answer of admission; `current` is the verdict of what the pod carries now.

    `unread` is a script in a ConfigMap that could not be read.

    The status has only the code of its reason. If `current` has the same, it names the container
    and the value, too.
    """
    starts = {
        "yes": _equipped(status),
        "no": "No RDMA",
        "unsure": f"RDMA{_over_fabric(status)} is not certain",
        "none": "The pod itself needs no RDMA",
    }
    start, level = starts[status.rdma], VERDICT_LEVELS[status.rdma]
    rows = REASONS.get(status.verdict_reason)
    if rows is None:
        suffix = f" ({status.verdict_reason})" if status.verdict_reason else ""
        text = f"{start}: this version of rdma-webhook does not know the reason{suffix}."
        return UNKNOWN_CODE.finding(level, text)
    reason = rows[0].reason
    details = _details(status, traffic_of(status, current).clause, unread)
    sentence, remedy = f"{uncapitalized(reason.sentence)}{details}", reason.remedy
    if status.rdma in ("no", "unsure") and current and current.because.code == reason.code:
        message = "" if current.message in (reason.sentence, reason.clause) else current.message
        sentence = f"{message}. {reason.sentence}{details}" if message else sentence
        remedy = current.remedy
    return Finding(level, reason.code, f"{start}: {sentence}", remedy)


def _details(status: StatusAnnotation, traffic: str, unread: DataKey | None) -> str:
    """Return the end of the answer: the libraries, and what a `yes` assumes."""
    if status.rdma != "yes":
        return f". Libraries: {traffic}." if traffic else "."
    assumed = f", {IMAGE_RUNS_AS_ROOT}" if status.assumed == ROOT_ASSUMED.code else ""
    clause = unread_clause(unread, assumed) if unread else ""
    return f"{equipped_end(traffic, assumed + clause)}."
