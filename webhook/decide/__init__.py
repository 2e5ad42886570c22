"""The decision: `decide(pod, context)` is the only place where a patch is made.

review → examine → decide → conclude → answer: read the request; find the targets and their
fabric; run each mutation on a draft; make a decision of the draft; write the response. `/mutate`,
the preview and the command line all render the same `Decision`. `decide` never edits the pod that
came in.
"""

from __future__ import annotations

from webhook.decide.conclude import conclude, denied, left_alone
from webhook.decide.draft import Draft
from webhook.decide.examine import HOST_NETWORK_MISSING, Standing, examine, ineligible
from webhook.decide.examine.node_selection import SELECTOR_UNKNOWN
from webhook.decide.examine.targets import TAKEN_FOR_LAUNCHER
from webhook.decide.limits import check_limits
from webhook.decide.mutations import MUTATIONS
from webhook.decide.reasons import (
    CLAIM_UNKNOWN,
    FACTS_UNKNOWN,
    INVALID_POD,
    NAMESPACE_FABRIC,
    NOT_OPTED_IN,
    OTHER_CONFIGURATION,
    OTHER_INJECTOR,
    SKIPPED_BY_USER,
    UNKNOWN_ANNOTATION,
)
from webhook.decide.scope import Context, Scope
from webhook.decide.status_text import earlier_call
from webhook.decide.surroundings import note_surroundings
from webhook.errors import ShapeError
from webhook.model.annotations import FABRIC, OTHER_INJECTORS, opted_in, parse_requests
from webhook.model.claims import unknown_claims
from webhook.model.decision import Decision, Denial
from webhook.model.pod import PodManifest, describe, mapping

#: The most unknown claims that are reported, since a pod may have many.
_SHOWN = 3
_NAMES = frozenset(mutation.name for mutation in MUTATIONS)


def decide(pod: PodManifest, context: Context) -> Decision:
    """Decide what to do with a pod, or with anything that claims to be one.

    An exception from here is a defect of this program: nothing is patched, and failurePolicy
    decides about the pod.
    """
    try:
        return _decide(pod, context)
    except Denial as error:
        return denied(pod, error.reason, str(error))
    except ShapeError as error:
        return denied(pod, INVALID_POD, str(error))
    except RecursionError:
        return denied(pod, INVALID_POD, "the pod is nested too deeply")


def _decide(pod: PodManifest, context: Context) -> Decision:
    if not isinstance(pod, dict):
        raise ShapeError(f"a pod must be a mapping, but is {describe(pod)}")
    annotations = mapping(pod, ("metadata", "annotations"))
    if not opted_in(annotations) and not context.enable:
        return Decision(allowed=True, reason=NOT_OPTED_IN, message=NOT_OPTED_IN.when, pod=pod)
    apart = ineligible(pod, annotations)
    if apart is not None:
        return left_alone(pod, annotations, apart, context)
    check_limits(pod, annotations)
    earlier = earlier_call(annotations)
    examined = examine(pod, annotations, parse_requests(annotations, _NAMES), context, earlier)
    draft = Draft(pod)
    _note_request(draft, examined.scope, examined.standing)
    for sentence in examined.misdirected:
        draft.warned("", SELECTOR_UNKNOWN, sentence)
    around = note_surroundings(draft, examined.scope)
    _mutate(draft, examined.scope, examined.standing)
    return conclude(draft, examined, around)


def _note_request(draft: Draft, scope: Scope, standing: Standing) -> None:
    draft.mutation = "request"
    _note_launchers(draft, scope, standing)
    for sentence in scope.requests.unknown:
        draft.warned("", UNKNOWN_ANNOTATION, sentence)
    if scope.other_configuration:
        draft.warned("", OTHER_CONFIGURATION, OTHER_CONFIGURATION.when)
    _note_facts(draft, scope)
    for injector in OTHER_INJECTORS:
        if injector in scope.annotations:
            message = f"annotation {injector} also asks another webhook for RDMA"
            draft.warned("", OTHER_INJECTOR, message)
    if standing.lacks_host_network and scope.fabric is not None and scope.targets:
        message = f"fabric {scope.fabric.name} needs hostNetwork: true, which the pod lacks"
        draft.warned("", HOST_NETWORK_MISSING, message)


def _note_facts(draft: Draft, scope: Scope) -> None:
    """Say what is not known of the namespace and its claims, and what is wrong with it."""
    if not scope.namespace.known:
        draft.warned("", FACTS_UNKNOWN, FACTS_UNKNOWN.when)
    named = scope.namespace.annotations.get(FABRIC)
    known = isinstance(named, str) and named in scope.fabrics.fabrics
    if scope.fabric is None and named is not None and not known:
        message = f"the namespace's annotation {FABRIC} is {named!r:.40}, which is not a fabric"
        draft.warned("", NAMESPACE_FABRIC, message)
    # Claims are read only where a fabric has any.
    unknown = scope.fabrics.by_template and unknown_claims(scope.original, scope.namespace.claims)
    for name in list(unknown or ())[:_SHOWN]:
        message = f"nothing is known of ResourceClaim {name:.60}: it is judged by its names alone"
        draft.warned("", CLAIM_UNKNOWN, message)


def _note_launchers(draft: Draft, scope: Scope, standing: Standing) -> None:
    """Say who is taken for a launcher, and by what."""
    for launcher in scope.launchers:
        rest = "its ranks run in other pods"
        if standing.foreign:
            rest = standing.message
        elif not launcher.elsewhere:
            rest = f"if its ranks run in this pod, set {FABRIC}"
        message = f"recognized as a launcher by {launcher.evidence}: {rest}"
        draft.skipped(launcher.name, TAKEN_FOR_LAUNCHER, message)


def _mutate(draft: Draft, scope: Scope, standing: Standing) -> None:
    """Run the mutations in their order; without targets only those that act on launchers."""
    if not scope.targets and not scope.launchers:
        return
    skip, launchers_only = scope.requests.skip, not scope.targets
    known, closed = standing.known, standing.closed
    for mutation in MUTATIONS:
        if launchers_only and not mutation.on_launchers:
            continue
        name = draft.mutation = mutation.name
        if name in skip:
            draft.skipped("", SKIPPED_BY_USER, SKIPPED_BY_USER.when)
        elif closed is not None and mutation.needs > known:
            draft.skipped("", closed, closed.when)
        else:
            mutation.mutate(draft, scope)
