"""Conclude the decision on a pod: after the mutations, or without them if the pod is left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.decision.annotations import STATUS
from webhook.decision.draft import Draft
from webhook.decision.outcome import Decision, Outcome, Reason
from webhook.decision.scope import Context, Needs
from webhook.mutations import MUTATIONS
from webhook.pipeline.admission_warnings import single_lines
from webhook.pipeline.examine import Examined, Ineligible
from webhook.pipeline.reasons import ALREADY_PATCHED, MUTATION_FAILED, PATCHED, PIPELINE_REASONS
from webhook.pipeline.status import render
from webhook.pod.manifest import PodManifest, mapping

_ANYWHERE = frozenset(reason.code for reason in PIPELINE_REASONS)
#: The reason codes of each mutation, in the chain's order, and those about the pod's requests.
CODES = {
    **{one.name: _ANYWHERE.union(reason.code for reason in one.reasons) for one in MUTATIONS},
    "request": _ANYWHERE,
}
_STATUS_PATH = ("metadata", "annotations", STATUS)


def denied(pod: PodManifest, reason: Reason, message: str) -> Decision:
    """Deny a pod and leave it unchanged."""
    return Decision(allowed=False, reason=reason, message=message, pod=pod)


def left_alone(
    pod: PodManifest, annotations: dict[str, Any], apart: Ineligible, context: Context
) -> Decision:
    """Admit a pod that is left alone, and say why."""
    draft, why = Draft(pod), apart.reason
    if apart.in_status:
        _write_status(draft, annotations, None, why, context.fabrics.config_hash)
    message = why.sentence
    return Decision(
        allowed=True,
        reason=why,
        message=message,
        patch=tuple(draft.ops),
        pod=draft.pod,
        warnings=single_lines(why, message, ()),
    )


def conclude(draft: Draft, examined: Examined) -> Decision:
    """Make the decision from a draft, with its status; deny the pod if a mutation failed."""
    scope, standing = examined.scope, examined.standing
    outcomes = tuple(draft.outcomes)
    for outcome in outcomes:
        if outcome.status == "failed":
            return _refused(outcomes, outcome, scope.original)
    # A pod with another vendor's NIC uses no fabric, even if its GPU is on one.
    used = scope.fabric if standing.known is not Needs.NIC else None
    fabric, config_hash = used.name if used else None, scope.fabrics.config_hash
    _write_status(draft, scope.annotations, fabric, standing.why, config_hash)
    return Decision(
        allowed=True,
        reason=standing.why or (PATCHED if draft.ops else ALREADY_PATCHED),
        message=standing.message,
        fabric=fabric,
        evidence=examined.evidence,
        outcomes=outcomes,
        patch=tuple(draft.ops),
        pod=draft.pod,
        warnings=single_lines(standing.why, standing.message, outcomes),
        audit={"fabric": fabric or "", "config": config_hash},
    )


def _refused(outcomes: tuple[Outcome, ...], failed: Outcome, original: PodManifest) -> Decision:
    where = f" (container {failed.container})" if failed.container else ""
    message = f"{failed.mutation}: {failed.message}{where}"
    return denied(original, MUTATION_FAILED, message)._replace(outcomes=outcomes)


def _write_status(
    draft: Draft,
    before: Mapping[str, Any],
    fabric: str | None,
    why: Reason | None,
    config_hash: str,
) -> None:
    now = mapping(draft.pod, ("metadata", "annotations"))
    status = render(
        now, draft.outcomes, fabric=fabric, why=why, config_hash=config_hash, codes=CODES
    )
    if status and before.get(STATUS) != status:
        draft.set(_STATUS_PATH, status)
    elif not status and STATUS in now:  # a status that the user set, and no room for ours
        draft.remove(_STATUS_PATH)
