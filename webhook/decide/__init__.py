"""The decision: `decide(pod, decision_input)` is the only place where a patch is made.

examine → mutate → conclude: find the targets and their fabric; run each mutation on a draft; turn
the draft into a decision. `webhook.admission` reads the request before, and writes the response
after. `/mutate`, the preview and the command line all render the same `Decision`. `decide` never
edits the incoming pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from webhook.decide.admission_warnings import PodHazards, warn_of_hazards, warning_lines
from webhook.decide.analysis import DecisionInput, PodAnalysis
from webhook.decide.draft import Draft
from webhook.decide.examine import (
    HOST_NETWORK_MISSING,
    Applicability,
    Examination,
    Ineligible,
    examine,
    ineligible,
)
from webhook.decide.examine.annotation_values import denial_of, problems_of
from webhook.decide.examine.node_selection import SELECTOR_UNKNOWN
from webhook.decide.examine.targets import TAKEN_FOR_LAUNCHER
from webhook.decide.limits import check_size
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import (
    ALREADY_PATCHED,
    CLAIM_UNKNOWN,
    FACTS_UNKNOWN,
    INVALID_POD,
    MUTATION_FAILED,
    NAMESPACE_FABRIC,
    NOT_OPTED_IN,
    OTHER_CONFIGURATION,
    OTHER_INJECTOR,
    PATCHED,
    REASONS_OUTSIDE_MUTATIONS,
    SKIPPED_BY_USER,
    UNKNOWN_ANNOTATION,
    VERDICT_REASONS,
)
from webhook.decide.status import StatusSummary, StatusVocabulary, earlier_call, render
from webhook.decide.verdict import judge
from webhook.errors import ShapeError
from webhook.model.annotations import (
    FABRIC_ANNOTATION,
    OTHER_INJECTORS,
    STATUS_ANNOTATION,
    opted_in,
    parse_annotations,
)
from webhook.model.claims import unknown_claims
from webhook.model.decision import REQUEST_CHECK, Decision, Denial, Outcome, Reason, Verdict
from webhook.model.pod import Pod, PodManifest
from webhook.model.quoting import describe, quoted

#: The maximum number of unknown claims to report, since a pod may have many.
_MAX_CLAIMS = 3
_NAMES = frozenset(mutation.name for mutation in MUTATIONS)


def decide(pod: PodManifest, decision_input: DecisionInput) -> Decision:
    """Decide what to do with a pod, or with anything that claims to be one.

    An exception raised here is a defect of this program: nothing is patched, and failurePolicy
    determines what happens to the pod.
    """
    try:
        return _decide(pod, decision_input)
    except Denial as error:
        return deny(pod, error.reason, str(error))
    except ShapeError as error:
        return deny(pod, INVALID_POD, str(error))


def _decide(manifest: PodManifest, decision_input: DecisionInput) -> Decision:
    if not isinstance(manifest, dict):
        raise ShapeError(f"a pod must be a mapping, but is {describe(manifest)}")
    pod = Pod(manifest)
    if not _has_opted_in(pod, decision_input):
        message = NOT_OPTED_IN.clause
        return Decision(allowed=True, reason=NOT_OPTED_IN, message=message, pod=manifest)
    exclusion = ineligible(pod)
    if exclusion is not None:
        return admit_unchanged(pod, exclusion, decision_input)
    return conclude(*_mutated(pod, decision_input))


def _mutated(pod: Pod, decision_input: DecisionInput) -> tuple[Draft, Examination, PodHazards]:
    """Examine a pod, and run the mutations on a draft of it; raise Denial or ShapeError."""
    check_size(pod)
    annotations = pod.annotations
    earlier = earlier_call(annotations)
    examination = examine(pod, parse_annotations(annotations, _NAMES), decision_input, earlier)
    draft = Draft(pod.manifest, pod)
    _note_request(draft, examination.analysis, examination.applicability)
    for sentence in examination.unknown_label_messages:
        draft.warned("", SELECTOR_UNKNOWN, sentence)
    hazards = warn_of_hazards(draft, examination.analysis)
    _mutate(draft, examination.analysis, examination.applicability)
    return draft, examination, hazards


class Inspection(NamedTuple):
    """A pod that was decided on before, as it is now."""

    #: The verdict of what it carries now.
    verdict: Verdict
    #: What a call now would do to it; an applied outcome is what it lacks.
    outcomes: tuple[Outcome, ...]
    analysis: PodAnalysis
    applicability: Applicability


def inspect(manifest: PodManifest, decision_input: DecisionInput) -> Inspection | None:
    """Judge a pod by what it carries, without changing it; None if a call now would deny it."""
    try:
        draft, examination, hazards = _mutated(Pod(manifest), decision_input)
    except (Denial, ShapeError, RecursionError):
        return None
    as_is = Draft(manifest, examination.analysis.original)
    as_is.outcomes = draft.outcomes
    verdict = judge(as_is, examination, hazards)
    return Inspection(
        verdict, tuple(draft.outcomes), examination.analysis, examination.applicability
    )


def _has_opted_in(pod: Pod, decision_input: DecisionInput) -> bool:
    """Return whether the pod opted in; deny a wrong value together with other problems."""
    try:
        return opted_in(pod.annotations) or decision_input.assume_opted_in
    except Denial as denial:
        parsed = parse_annotations(pod.annotations, _NAMES)
        other_problems = problems_of(pod, parsed, decision_input.configuration)
        raise denial_of([str(denial), *other_problems]) from denial


def _note_request(draft: Draft, analysis: PodAnalysis, applicability: Applicability) -> None:
    """Record remarks about the pod, its namespace and claims: outcomes of no mutation."""
    draft.mutation_name = REQUEST_CHECK
    _note_launchers(draft, analysis, applicability)
    for sentence in analysis.annotations.unknown_key_messages:
        draft.warned("", UNKNOWN_ANNOTATION, sentence)
    if analysis.status_from_other_configuration:
        draft.warned("", OTHER_CONFIGURATION, OTHER_CONFIGURATION.clause)
    _note_facts(draft, analysis)
    for injector in OTHER_INJECTORS:
        if injector in analysis.original.annotations:
            message = f"annotation {injector} also requests RDMA from another webhook"
            draft.warned("", OTHER_INJECTOR, message)
    if applicability.lacks_host_network and analysis.fabric is not None and analysis.targets:
        message = f"fabric {analysis.fabric.name} needs hostNetwork: true, which the pod lacks"
        draft.warned("", HOST_NETWORK_MISSING, message)


def _note_facts(draft: Draft, analysis: PodAnalysis) -> None:
    """Warn about missing facts, and about a fabric of the namespace that is ignored."""
    if not analysis.namespace.is_loaded:
        subject = (
            f"namespace {analysis.namespace.name}" if analysis.namespace.name else "the namespace"
        )
        consequence = f"memory limits stay and its {FABRIC_ANNOTATION} is ignored"
        draft.warned("", FACTS_UNKNOWN, f"nothing is known about {subject}, so {consequence}")
    if analysis.fabric is None and (message := _ignored_fabric(analysis)):
        draft.warned("", NAMESPACE_FABRIC, message)
    # ResourceClaims are read only if a fabric uses claims.
    unknown = analysis.configuration.uses_claims and unknown_claims(
        analysis.original.manifest, analysis.namespace.claim_facts
    )
    for name in list(unknown or ())[:_MAX_CLAIMS]:
        message = (
            f"ResourceClaim {name:.60} could not be read, so its devices were guessed from the "
            "names in the pod"
        )
        draft.warned("", CLAIM_UNKNOWN, message)


def _ignored_fabric(analysis: PodAnalysis) -> str:
    """Return why the fabric that the namespace names is ignored, "" if it names none, or is one."""
    namespace = analysis.namespace
    fabric = namespace.annotations.get(FABRIC_ANNOTATION)
    exists = isinstance(fabric, str) and fabric in analysis.configuration.fabrics
    if fabric is not None and not exists:
        annotation = f"the namespace's annotation {FABRIC_ANNOTATION}"
        return f"{annotation} is {quoted(fabric, 40)}, which is not a fabric"
    if fabric is None and FABRIC_ANNOTATION in (namespace.labels or ()):
        return f"the namespace has {FABRIC_ANNOTATION} as a label, but it must be an annotation"
    return ""


def _note_launchers(draft: Draft, analysis: PodAnalysis, applicability: Applicability) -> None:
    """Record the launchers, each with the evidence for it."""
    for launcher in analysis.launchers:
        detail = "its ranks run in other pods"
        if applicability.uses_foreign_nic:
            detail = applicability.message
        elif not launcher.ranks_in_other_pods:
            detail = f"if its ranks run in this pod, set {FABRIC_ANNOTATION}"
        message = f"treated as a launcher because of the {launcher.evidence}; {detail}"
        draft.skipped(launcher.name, TAKEN_FOR_LAUNCHER, message)


def _mutate(draft: Draft, analysis: PodAnalysis, applicability: Applicability) -> None:
    """Run the mutations in order; without targets, only the mutations for launchers."""
    if not analysis.targets and not analysis.launchers:
        return
    skip, launchers_only = analysis.annotations.skip, not analysis.targets
    access, skip_reason = applicability.access, applicability.skip_reason
    for mutation in MUTATIONS:
        if launchers_only and not mutation.on_launchers:
            continue
        name = draft.mutation_name = mutation.name
        if name in skip:
            draft.skipped("", SKIPPED_BY_USER, SKIPPED_BY_USER.clause)
        elif skip_reason is not None and mutation.needs > access:
            draft.skipped("", skip_reason, skip_reason.clause)
        else:
            mutation.mutate(draft, analysis)


# Conclude the decision on a pod: after the mutations, or without them if the pod is excluded.

_CODES = {
    mutation.name: frozenset(reason.code for reason in mutation.reasons) for mutation in MUTATIONS
}
#: All names that a status may contain.
VOCABULARY = StatusVocabulary(
    mutations=_CODES,
    codes=tuple(
        sorted({reason.code for reason in REASONS_OUTSIDE_MUTATIONS}.union(*_CODES.values()))
    ),
    verdicts={reason.code: reason.rdma for reason in VERDICT_REASONS},
    persistent_warning_codes=frozenset({OTHER_CONFIGURATION.code}),
)
_STATUS_PATH = ("metadata", "annotations", STATUS_ANNOTATION)


def deny(pod: PodManifest, reason: Reason, message: str) -> Decision:
    """Deny a pod and leave it unchanged."""
    verdict = Verdict.of(reason, message)
    return Decision(allowed=False, reason=reason, message=message, verdict=verdict, pod=pod)


def admit_unchanged(pod: Pod, exclusion: Ineligible, decision_input: DecisionInput) -> Decision:
    """Admit a pod unchanged except for its status, which has the reason."""
    draft, reason = Draft(pod.manifest, pod), exclusion.reason
    verdict = Verdict.of(reason, reason.clause)
    config_hash = decision_input.configuration.config_hash
    if exclusion.in_status:
        _write_status(draft, pod.annotations, StatusSummary(verdict, None, reason, config_hash))
    return Decision(
        allowed=True,
        reason=reason,
        message=verdict.message,
        verdict=verdict,
        patch=tuple(draft.ops),
        pod=draft.pod,
        warnings=warning_lines(verdict, reason, verdict.message, ()),
        audit=_audit(verdict, None, config_hash),
    )


def conclude(draft: Draft, examination: Examination, hazards: PodHazards) -> Decision:
    """Turn a draft into a decision, with its status; deny the pod if a mutation failed."""
    analysis, applicability = examination.analysis, examination.applicability
    outcomes = tuple(draft.outcomes)
    for outcome in outcomes:
        if outcome.status == "failed":
            return _failure(outcomes, outcome, analysis.original.manifest)
    # A pod with a NIC that no fabric lists uses no fabric, even if its GPU is on one.
    used_fabric = None if applicability.uses_foreign_nic else analysis.fabric
    fabric = used_fabric.name if used_fabric else None
    config_hash = analysis.configuration.config_hash
    verdict = judge(draft, examination, hazards)
    summary = StatusSummary(verdict, fabric, applicability.reason, config_hash)
    _write_status(draft, analysis.original.annotations, summary)
    return Decision(
        allowed=True,
        reason=applicability.reason or (PATCHED if draft.ops else ALREADY_PATCHED),
        message=applicability.message,
        verdict=verdict,
        fabric=fabric,
        fabric_evidence=examination.fabric_evidence,
        outcomes=outcomes,
        patch=tuple(draft.ops),
        pod=draft.pod,
        warnings=warning_lines(verdict, applicability.reason, applicability.message, outcomes),
        audit=_audit(verdict, fabric, config_hash),
    )


def _audit(verdict: Verdict, fabric: str | None, config_hash: str) -> dict[str, str]:
    return {"rdma": verdict.rdma, "fabric": fabric or "", "config": config_hash}


def _failure(outcomes: tuple[Outcome, ...], failed: Outcome, original: PodManifest) -> Decision:
    clause = f" in container {failed.container}" if failed.container else ""
    message = f"{failed.mutation}{clause}: {failed.message}"
    return deny(original, MUTATION_FAILED, message)._replace(outcomes=outcomes)


def _write_status(draft: Draft, before: Mapping[str, object], summary: StatusSummary) -> None:
    now = draft.view.annotations
    status = render(now, draft.outcomes, summary, VOCABULARY)
    if status and before.get(STATUS_ANNOTATION) != status:
        draft.set(_STATUS_PATH, status)
    elif (
        not status and STATUS_ANNOTATION in now
    ):  # a status that the user set, and no room for ours
        draft.remove(_STATUS_PATH)
