"""The decision: `decide(pod, context)` is the only place where a patch is made.

It never raises and never edits the pod. `/mutate`, the preview and the command
line all render its `Decision`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from webhook.decision import bounds
from webhook.decision.annotations import FABRIC, OTHER_INJECTORS, STATUS, opted_in, parse_requests
from webhook.decision.draft import Draft
from webhook.decision.outcome import Decision, Outcome, Reason
from webhook.decision.scope import Context, Needs, Scope
from webhook.errors import Denial, ShapeError
from webhook.mutations import MUTATIONS
from webhook.pipeline.admission_warnings import single_lines
from webhook.pipeline.examine import WINDOWS_POD, Examined, examine, ineligible
from webhook.pipeline.examine.fabric_choice import FABRIC_AMBIGUOUS, FABRIC_UNKNOWN
from webhook.pipeline.examine.foreign_nic import FOREIGN_NIC
from webhook.pipeline.reasons import (
    ALREADY_PATCHED,
    DENIALS,
    FACTS_UNKNOWN,
    HOST_NETWORK_MISSING,
    INTERNAL_ERROR,
    INVALID_POD,
    NAMESPACE_FABRIC,
    NOT_OPTED_IN,
    OTHER_INJECTOR,
    PATCHED,
    PIPELINE_REASONS,
    SKIPPED_BY_USER,
    UNKNOWN_ANNOTATION,
)
from webhook.pipeline.status import render
from webhook.pod.manifest import PodManifest, describe, mapping

CHAIN = tuple(mutation.name for mutation in MUTATIONS)
_ANYWHERE = frozenset(reason.code for reason in PIPELINE_REASONS)
#: The reasons of each mutation in the chain's order, and those of the pod's own words.
CODES = {
    **{one.name: _ANYWHERE.union(reason.code for reason in one.reasons) for one in MUTATIONS},
    "request": _ANYWHERE,
}
_NAMES = frozenset(CHAIN)
_DENIAL = {reason.code: reason for reason in DENIALS}
_FABRIC, _NIC = Needs.FABRIC, Needs.NIC  # looking up a member costs more than comparing it
_STATUS_PATH = ("metadata", "annotations", STATUS)


def decide(pod: PodManifest, context: Context) -> Decision:
    """Decide what to do with a pod, or with anything that claims to be one."""
    try:
        return _decide(pod, context)
    except Denial as error:
        return Decision(allowed=False, reason=_DENIAL[error.code], message=str(error), pod=pod)
    except ShapeError as error:
        return Decision(allowed=False, reason=INVALID_POD, message=str(error), pod=pod)
    except RecursionError:
        message = "the pod is nested too deeply"
        return Decision(allowed=False, reason=INVALID_POD, message=message, pod=pod)
    except Exception as error:  # noqa: BLE001 -- a defect of ours must reach failurePolicy, not the loop
        return Decision(
            allowed=False, reason=INTERNAL_ERROR, message="internal error", pod=pod, error=error
        )


def _decide(pod: PodManifest, context: Context) -> Decision:
    if pod.__class__ is not dict:
        msg = f"a pod must be a mapping, but is {describe(pod)}"
        raise ShapeError(msg)
    annotations = mapping(pod, ("metadata", "annotations"))
    if not opted_in(annotations) and not context.enable:
        return Decision(allowed=True, reason=NOT_OPTED_IN, message=NOT_OPTED_IN.when, pod=pod)
    why = ineligible(pod, annotations)
    if why is not None:
        return _left_alone(pod, annotations, why, context)
    bounds.check(pod, annotations)
    examined = examine(pod, annotations, parse_requests(annotations, _NAMES), context)
    draft = Draft(pod)
    barriers = _barriers(examined)
    _note_request(draft, examined.scope, barriers)
    _mutate(draft, examined.scope, barriers)
    return _conclude(draft, examined)


def _left_alone(
    pod: PodManifest, annotations: dict[str, Any], why: Reason, context: Context
) -> Decision:
    """Say on a Windows pod why it got nothing; a mirror pod belongs to its kubelet."""
    draft = Draft(pod)
    if why is WINDOWS_POD:
        _write_status(draft, annotations, None, why, context.fabrics.config_hash)
    message = why.when.removesuffix(".")
    return Decision(
        allowed=True,
        reason=why,
        message=message,
        patch=tuple(draft.ops),
        pod=draft.pod,
        warnings=single_lines(why, message, ()),
    )


class _Barriers(NamedTuple):
    """Why too little is known of the fabric for mutations that need this much; None: they act."""

    nic: Reason | None = None
    fabric: Reason | None = None


def _barriers(examined: Examined) -> _Barriers:
    why, scope = examined.why, examined.scope
    if why is FABRIC_UNKNOWN or why is FABRIC_AMBIGUOUS:
        return _Barriers(why, why)
    if why is FOREIGN_NIC:
        return _Barriers(None, why)
    fabric = scope.fabric
    if fabric is not None and fabric.mode == "host-network" and not scope.host_network:
        return _Barriers(HOST_NETWORK_MISSING, HOST_NETWORK_MISSING)
    return _Barriers()


def _note_request(draft: Draft, scope: Scope, barriers: _Barriers) -> None:
    draft.mutation = "request"
    for sentence in scope.requests.unknown:
        draft.warned("", UNKNOWN_ANNOTATION, sentence)
    if not scope.namespace.known:
        draft.warned("", FACTS_UNKNOWN, FACTS_UNKNOWN.when)
    named = scope.namespace.annotations.get(FABRIC)
    known = isinstance(named, str) and named in scope.fabrics.fabrics
    if scope.fabric is None and named is not None and not known:
        message = f"annotation {FABRIC} of the namespace is {named!r:.40}, which is no fabric"
        draft.warned("", NAMESPACE_FABRIC, message)
    for injector in OTHER_INJECTORS:
        if injector in scope.annotations:
            message = f"annotation {injector} asks another webhook for RDMA too"
            draft.warned("", OTHER_INJECTOR, message)
    if barriers.fabric is HOST_NETWORK_MISSING and scope.fabric is not None and scope.targets:
        message = f"no RDMA: fabric {scope.fabric.name} needs hostNetwork, which the pod lacks"
        draft.warned("", HOST_NETWORK_MISSING, message)


def _mutate(draft: Draft, scope: Scope, barriers: _Barriers) -> None:
    """Run the chain in its order on the targets, or on launchers what is theirs."""
    if not scope.targets and not scope.launchers:
        return
    skip, launchers_only = scope.requests.skip, not scope.targets
    for mutation in MUTATIONS:
        if launchers_only and not mutation.on_launchers:
            continue
        name = draft.mutation = mutation.name
        closed = None
        if name in skip:
            closed = SKIPPED_BY_USER
        elif mutation.needs is _FABRIC:
            closed = barriers.fabric
        elif mutation.needs is _NIC:
            closed = barriers.nic
        if closed is None:
            mutation.mutate(draft, scope)
        else:
            draft.skipped("", closed, closed.when)


def _conclude(draft: Draft, examined: Examined) -> Decision:
    scope, why = examined.scope, examined.why
    outcomes = tuple(draft.outcomes)
    for outcome in outcomes:
        if outcome.status == "failed":
            return _refused(outcomes, outcome, scope.original)
    fabric = scope.fabric.name if scope.fabric and why is not FOREIGN_NIC else None
    config_hash = scope.fabrics.config_hash
    _write_status(draft, scope.annotations, fabric, why, config_hash)
    return Decision(
        allowed=True,
        reason=why or (PATCHED if draft.ops else ALREADY_PATCHED),
        message=examined.message,
        fabric=fabric,
        evidence=examined.evidence,
        outcomes=outcomes,
        patch=tuple(draft.ops),
        pod=draft.pod,
        warnings=single_lines(why, examined.message, outcomes),
        audit={"fabric": fabric or "", "config": config_hash},
    )


def _refused(outcomes: tuple[Outcome, ...], failed: Outcome, original: PodManifest) -> Decision:
    where = f" (container {failed.container})" if failed.container else ""
    return Decision(
        allowed=False,
        reason=_DENIAL["MutationFailed"],
        message=f"{failed.mutation}: {failed.message}{where}",
        outcomes=outcomes,
        pod=original,
    )


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
    elif not status and STATUS in now:  # a preset one, where ours has no room
        draft.remove(_STATUS_PATH)
