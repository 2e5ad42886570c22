"""Conclude the decision on a pod: after the mutations, or without them if the pod is left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.decide.admission_warnings import single_lines
from webhook.decide.draft import Draft
from webhook.decide.examine import Examined, Ineligible
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import (
    ALREADY_PATCHED,
    MUTATION_FAILED,
    OTHER_CONFIGURATION,
    PATCHED,
    PIPELINE_REASONS,
    VERDICT_REASONS,
)
from webhook.decide.scope import Context
from webhook.decide.status import Known, Whole, render
from webhook.decide.surroundings import Surroundings
from webhook.decide.verdict import judge
from webhook.model.annotations import STATUS
from webhook.model.decision import Decision, Outcome, Reason, Verdict
from webhook.model.pod import PodManifest, mapping

_CODES = {one.name: frozenset(reason.code for reason in one.reasons) for one in MUTATIONS}
#: All that a status may name.
KNOWN = Known(
    mutations=_CODES,
    codes=tuple(sorted({reason.code for reason in PIPELINE_REASONS}.union(*_CODES.values()))),
    verdicts={reason.code: reason.rdma for reason in VERDICT_REASONS},
    lasting=frozenset({OTHER_CONFIGURATION.code}),
)
_STATUS_PATH = ("metadata", "annotations", STATUS)


def denied(pod: PodManifest, reason: Reason, message: str) -> Decision:
    """Deny a pod and leave it unchanged."""
    verdict = Verdict.of(reason, message)
    return Decision(allowed=False, reason=reason, message=message, verdict=verdict, pod=pod)


def left_alone(
    pod: PodManifest, annotations: dict[str, Any], apart: Ineligible, context: Context
) -> Decision:
    """Admit a pod that is left alone, and say why."""
    draft, why = Draft(pod), apart.reason
    verdict = Verdict.of(why, why.sentence)
    config_hash = context.fabrics.config_hash
    if apart.in_status:
        _write_status(draft, annotations, Whole(verdict, None, why, config_hash))
    return Decision(
        allowed=True,
        reason=why,
        message=verdict.message,
        verdict=verdict,
        patch=tuple(draft.ops),
        pod=draft.pod,
        warnings=single_lines(verdict, why, verdict.message, ()),
        audit=_audit(verdict, None, config_hash),
    )


def conclude(draft: Draft, examined: Examined, around: Surroundings) -> Decision:
    """Make the decision from a draft, with its status; deny the pod if a mutation failed."""
    scope, standing = examined.scope, examined.standing
    outcomes = tuple(draft.outcomes)
    for outcome in outcomes:
        if outcome.status == "failed":
            return _refused(outcomes, outcome, scope.original)
    # A pod with another vendor's NIC uses no fabric, even if its GPU is on one.
    used = None if standing.foreign else scope.fabric
    fabric, config_hash = used.name if used else None, scope.fabrics.config_hash
    verdict = judge(draft, examined, around)
    whole = Whole(verdict, fabric, standing.why, config_hash)
    _write_status(draft, scope.annotations, whole)
    return Decision(
        allowed=True,
        reason=standing.why or (PATCHED if draft.ops else ALREADY_PATCHED),
        message=standing.message,
        verdict=verdict,
        fabric=fabric,
        evidence=examined.evidence,
        outcomes=outcomes,
        patch=tuple(draft.ops),
        pod=draft.pod,
        warnings=single_lines(verdict, standing.why, standing.message, outcomes),
        audit=_audit(verdict, fabric, config_hash),
    )


def _audit(verdict: Verdict, fabric: str | None, config_hash: str) -> dict[str, str]:
    return {"rdma": verdict.rdma, "fabric": fabric or "", "config": config_hash}


def _refused(outcomes: tuple[Outcome, ...], failed: Outcome, original: PodManifest) -> Decision:
    where = f" (container {failed.container})" if failed.container else ""
    message = f"{failed.mutation}: {failed.message}{where}"
    return denied(original, MUTATION_FAILED, message)._replace(outcomes=outcomes)


def _write_status(draft: Draft, before: Mapping[str, Any], whole: Whole) -> None:
    now = mapping(draft.pod, ("metadata", "annotations"))
    status = render(now, draft.outcomes, whole, KNOWN)
    if status and before.get(STATUS) != status:
        draft.set(_STATUS_PATH, status)
    elif not status and STATUS in now:  # a status that the user set, and no room for ours
        draft.remove(_STATUS_PATH)
