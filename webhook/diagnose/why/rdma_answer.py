"""Whether the pod has RDMA, by the strongest evidence that there is.

    the run        registered memory, NCCL's channels, or a failure before any traffic
    the call       whether the webhook was called for the pod
    changes        what was changed after the call
    later facts    what admission could not know: the user, interfaces, ConfigMaps, the node
    the status     the view of admission

So evidence of use outweighs all that can only show why RDMA may not work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from webhook.decide.verdict import IMAGE_RUNS_AS_ROOT, ROOT_ASSUMED, equipped_end, unread_clause
from webhook.diagnose.why.bound_node import bound_node, doubt_that_stays, outside_fabric
from webhook.diagnose.why.changed_fabric import changed_fabric_finding
from webhook.diagnose.why.comparison import (
    Comparison,
    verdict_of,
    verdict_without_fabric,
    worse,
)
from webhook.diagnose.why.config_map_values import (
    changed_finding,
    correction,
    verdict_with_config_maps,
)
from webhook.diagnose.why.evidence import PodEvidence, StatusAnnotation
from webhook.diagnose.why.explanation import VERDICT_LEVELS
from webhook.diagnose.why.memory_rights import cannot_lock_memory, proves_memory_rights
from webhook.diagnose.why.pod_libraries import pod_libraries
from webhook.diagnose.why.reasons import REASONS
from webhook.diagnose.why.request import UNKNOWN_CODE, rdma_requests
from webhook.diagnose.why.runtime_evidence import (
    cause_before_rdma,
    finding_by_use,
    transport_evidence,
    verdict_clause,
)
from webhook.diagnose.why.socket_interfaces import interface_findings
from webhook.diagnose.why.webhook_call import CALLED, STATUS_NOT_OURS, STATUS_UNREADABLE
from webhook.model.config_maps import DataKey
from webhook.model.decision import Rdma, Verdict
from webhook.model.finding import Finding
from webhook.model.names import uncapitalized

Answer = tuple[Rdma, Finding]
_NOT_CALLED = "the webhook was not called"


def rdma_answer(
    evidence: PodEvidence, called: Finding, comparison: Comparison, changed: Sequence[Finding]
) -> Answer:
    """Return whether the pod has RDMA, with the answer; `changed` is what changed after the call.

    `called` is the finding on the call, `comparison` is that of the pod with its status.
    """
    status = evidence.status if called.code == CALLED.code else None
    answer = _by_run(evidence, called, status)
    if answer is not None:
        return answer
    if status is None:
        return _by_call(called, rdma_requests(evidence))
    admitted = _as_admitted(evidence, status, comparison)
    if transport_evidence(evidence):
        return _by_verdict(admitted.without_assumptions())
    if changed:
        return _by_change(admitted, comparison, changed[0])
    return _by_later_facts(_with_later_facts(admitted))


def _by_run(
    evidence: PodEvidence, called: Finding, status: StatusAnnotation | None
) -> Answer | None:
    """Return the answer by how the pod runs or ran, unless it is that of the status; or None."""
    in_use = transport_evidence(evidence)
    if in_use:
        is_new = status is None or status.rdma != in_use.rdma
        return (in_use.rdma, finding_by_use(in_use, status)) if is_new else None
    expected = rdma_requests(evidence) if status is None else status.rdma in ("yes", "unsure")
    cause = cause_before_rdma(evidence) if expected else None
    if cause is None:
        return None
    text = f"RDMA did not work ({verdict_clause(status)}). {cause.meaning}"
    return "no", cause.finding("error", text, cause.remedy if status else called.remedy)


def _by_call(called: Finding, requests: list[str]) -> Answer:
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


class _Judged(NamedTuple):
    """A pod that the webhook was called for, with a verdict."""

    evidence: PodEvidence
    #: The containers that the verdict is about.
    targets: tuple[str, ...]
    #: What admission wrote, and the same with a verdict by what is known now.
    written_status: StatusAnnotation
    status: StatusAnnotation
    #: The verdict of what the pod carries now, which has the details; None if it is unknown.
    verdict: Verdict | None
    #: A sentence on what has settled a doubt of admission, or "".
    settled_by: str = ""
    #: Whether ConfigMaps decide the verdict.
    by_config_maps: bool = False

    def with_verdict(self, verdict: Verdict, settled_by: str = "") -> _Judged:
        """Return the pod with a verdict that admission could not give."""
        assumption = verdict.assumption.code if verdict.assumption else ""
        reason = verdict.because.code
        update = {"rdma": verdict.rdma, "verdict_reason": reason, "assumption_reason": assumption}
        status = self.status.model_copy(update=update)
        return self._replace(status=status, verdict=verdict, settled_by=settled_by)

    def without_root(self) -> _Judged:
        """Return the pod with a verdict that does not assume its images to run as root."""
        return self._replace(status=self.status.model_copy(update={"assumption_reason": ""}))

    def without_assumptions(self) -> _Judged:
        """Return the pod with a verdict that takes nothing for granted."""
        verdict = self.verdict._replace(unread_script=None) if self.verdict else None
        return self.without_root()._replace(verdict=verdict)


def _as_admitted(
    evidence: PodEvidence, status: StatusAnnotation, comparison: Comparison
) -> _Judged:
    """Return a pod with the verdict of admission."""
    verdict = comparison.verdict_now
    if verdict is None:
        verdict = verdict_without_fabric(evidence, status)
    elif evidence.config_maps:  # then it names what is still unseen
        with_maps = verdict_of(evidence, status, config_maps=evidence.config_maps) or verdict
        verdict = with_maps._replace(message=verdict.message and with_maps.message)
    return _Judged(evidence, comparison.targets, status, status, verdict)


def _with_later_facts(pod: _Judged) -> _Judged:
    """Return a pod with the verdict that admission would give with the ConfigMaps and the node."""
    evidence, status = pod.evidence, pod.written_status
    verdict, node = verdict_with_config_maps(evidence), bound_node(evidence)
    if verdict is not None:
        is_well = verdict.rdma == "yes"
        settled_by = "The values in its ConfigMaps do not turn RDMA off." if is_well else ""
        return pod.with_verdict(verdict, settled_by)._replace(by_config_maps=True)
    if node is None or not (node.is_in_doubt and node.is_of_fabric):
        return pod
    settled_by = f"The pod is on node {node.name}, which belongs to the fabric."
    verdict = verdict_of(evidence, status, config_maps=evidence.config_maps)
    if verdict is not None:
        return pod.with_verdict(verdict, settled_by)
    unsure = status.model_copy(update={"rdma": "unsure"})
    return pod._replace(status=unsure, settled_by=settled_by)


def _by_change(pod: _Judged, comparison: Comparison, changed: Finding) -> Answer:
    """Return the answer for a pod that was changed after the call, perhaps for the worse."""
    rdma, written = comparison.rdma, pod.written_status.rdma
    if worse(rdma, written) == written:
        return _by_verdict(pod)
    start = "No RDMA" if rdma == "no" else "RDMA is not certain"
    text = f"{start}, although rdma.lab/status says {written}: {uncapitalized(changed.text)}"
    return rdma, changed._replace(text=text)


def _by_later_facts(pod: _Judged) -> Answer:
    """Return the worst answer by what admission could not know, or else that of the verdict."""
    answers = [answer for judge in _LATER if (answer := judge(pod))]
    if answers:
        return min(answers, key=lambda answer: answer[0])  # "no" before "unsure"
    proven = proves_memory_rights(pod.evidence, pod.targets)
    return _by_verdict(pod.without_root() if proven else pod)


def _by_rights(pod: _Judged) -> Answer | None:
    """Return the answer for an image that does not run as root, against the assumption; or None."""
    cannot = cannot_lock_memory(pod.evidence, pod.targets) if pod.status.assumption_reason else None
    if cannot is None:
        return None
    start = f"No RDMA, although rdma.lab/status says {pod.written_status.rdma}"
    return "no", cannot._replace(text=f"{start}: {uncapitalized(cannot.text)}")


def _by_interface(pod: _Judged) -> Answer | None:
    """Return the answer for a pod whose NCCL finds no interface for its connections, or None."""
    names = pod_libraries(pod.status, pod.verdict).names
    findings = interface_findings(pod.evidence, pod.targets)
    missing = next(findings, None) if not names or "NCCL" in names else None
    if missing is None:
        return None
    return "no", missing._replace(text=f"{_START_OF_NO}: {uncapitalized(missing.text)}")


def _by_config_map(pod: _Judged) -> Answer | None:
    """Return the answer for a pod with a value in a ConfigMap that decides against RDMA, or None.

    If the ConfigMaps show something else, as a script that chooses a library, the verdict names it.
    """
    verdict = pod.verdict
    if verdict is None or verdict.key is None or not pod.by_config_maps:
        return None
    start = _START_OF_NO if verdict.rdma == "no" else _start_of_unsure(pod.status)
    cause = f"because of ConfigMap {verdict.key.config_map}"
    text = f"{start}, {cause}: {uncapitalized(verdict.message)}."
    code = verdict.because.code
    return verdict.rdma, Finding(VERDICT_LEVELS[verdict.rdma], code, text, correction(verdict))


def _by_node(pod: _Judged) -> Answer | None:
    """Return the answer for a pod on a node that is not known to belong to its fabric, or None."""
    node = bound_node(pod.evidence)
    if node is None or node.is_of_fabric:
        return None
    if node.fabrics is not None:
        rdma: Rdma = "no" if node.fabrics else "unsure"
        is_worse = worse(rdma, pod.status.rdma) != pod.status.rdma
        return (rdma, outside_fabric(node)) if node.is_in_doubt or is_worse else None
    if not node.is_in_doubt:
        return None
    sentence, remedy = doubt_that_stays(pod.evidence, node)
    _, finding = _by_verdict(
        pod._replace(status=pod.status.model_copy(update={"rdma": "unsure"}), settled_by=sentence)
    )
    return "unsure", finding._replace(remedy=remedy)


def _by_changed_fabric(pod: _Judged) -> Answer | None:
    """Return the answer for a well-equipped pod with values that its fabric no longer has."""
    is_equipped = pod.status.rdma == "yes"
    finding = changed_fabric_finding(pod.evidence, pod.written_status) if is_equipped else None
    if finding is None:
        return None
    return "unsure", finding._replace(text=f"{_start_of_unsure(pod.status)}: {finding.text}")


def _by_changed_config_map(pod: _Judged) -> Answer | None:
    """Return the answer for a pod with a ConfigMap that may decide, and was changed; or None."""
    finding = changed_finding(pod.evidence, pod.status, pod.verdict)
    if finding is None:
        return None
    return "unsure", finding._replace(text=f"{_start_of_unsure(pod.status)}: {finding.text}")


#: Each gives an answer other than that of the verdict, or None; of equally bad ones, the first.
_LATER: tuple[Callable[[_Judged], Answer | None], ...] = (
    _by_rights,
    _by_interface,
    _by_config_map,
    _by_node,
    _by_changed_fabric,
    _by_changed_config_map,
)

_START_OF_NO = "No RDMA"


def _over_fabric(status: StatusAnnotation) -> str:
    return f" over {status.fabric}" if status.fabric else ""


def _start_of_unsure(status: StatusAnnotation) -> str:
    return f"RDMA{_over_fabric(status)} is not certain"


def _by_verdict(pod: _Judged) -> Answer:
    """Return the answer by the verdict.

    The status has only the code of its reason. If the verdict of what the pod carries now has the
    same, it names the container and the value, too.
    """
    status, verdict = pod.status, pod.verdict
    starts = {
        "yes": f"The pod is equipped for RDMA{_over_fabric(status)}",
        "no": _START_OF_NO,
        "unsure": _start_of_unsure(status),
        "none": "The pod itself needs no RDMA",
    }
    start, level = starts[status.rdma], VERDICT_LEVELS[status.rdma]
    rows = REASONS.get(status.verdict_reason)
    if rows is None:
        suffix = f" ({status.verdict_reason})" if status.verdict_reason else ""
        text = f"{start}: this version of rdma-webhook does not know the reason{suffix}."
        return status.rdma, UNKNOWN_CODE.finding(level, text)
    reason = rows[0].reason
    details = _details(status, pod_libraries(status, verdict).clause, verdict)
    sentence, remedy = f"{uncapitalized(reason.sentence)}{details}", reason.remedy
    if status.rdma in ("no", "unsure") and verdict and verdict.because.code == reason.code:
        if verdict.message not in ("", reason.sentence, reason.clause):
            sentence = f"{verdict.message}. {reason.sentence}{details}"
        remedy = verdict.remedy
    text = f"{start}: {sentence} {pod.settled_by}".rstrip()
    return status.rdma, Finding(level, reason.code, text, remedy)


def _details(status: StatusAnnotation, libraries_clause: str, verdict: Verdict | None) -> str:
    """Return the end of the answer: the libraries, and what a `yes` assumes."""
    if status.rdma != "yes":
        return f". Libraries: {libraries_clause}." if libraries_clause else "."
    root_clause = f", {IMAGE_RUNS_AS_ROOT}" if status.assumption_reason == ROOT_ASSUMED.code else ""
    unread_script: DataKey | None = verdict.unread_script if verdict else None
    clause = unread_clause(unread_script, root_clause) if unread_script else ""
    return f"{equipped_end(libraries_clause, root_clause + clause)}."
