"""The rotation from one CA to the next, one step at a time, so that no handshake fails.

Every replica takes these steps by the same rules, from the content of the Secret and from its
own observations of `caBundle`; the first replica to store a step has taken it for all.
Each replica measures by its own monotonic clock how long `caBundle` has contained a CA, and how
long the Secret has held its current CAs. So a wrong time of day cannot shorten a wait, and a
restarted replica waits again.

During a drain, the earlier CAs issue no leaves but are still trusted, since replicas may serve
leaves that they issued.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from certs.authorities import Authorities, RotationRequest, storable
from certs.clock import ObservedDurations
from certs.durations import Durations
from certs.issue import expiry, issue_ca, renewal_due
from certs.pem import KeyPair, pem_fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationContext:
    """The time, the durations and the observations of a replica."""

    now: datetime
    durations: Durations
    #: The fingerprints in `caBundle`, and how long it has contained each.
    published_durations: ObservedDurations
    #: The current `drain_id`, and how long the Secret has had it.
    drain_durations: ObservedDurations


def new_ca(context: RotationContext) -> KeyPair:
    """Issue a CA."""
    return issue_ca(lifetime=context.durations.ca, now=context.now)


def keep_trusting(authorities: Authorities, *cas: bytes) -> Authorities:
    """Keep trusting CAs (PEM) until the end of a drain, even if the Secret lacks them.

    Otherwise, if the Secret were replaced or lost, replicas that serve leaves of these CAs would no
    longer be trusted.
    """
    unknown = [ca for ca in cas if not authorities.includes(ca)]
    return replace(authorities, previous=tuple(storable([*unknown, *authorities.previous])))


def step(authorities: Authorities, context: RotationContext) -> Authorities:
    """Return the CAs after the step that is due; the same CAs if none is."""
    current, following = authorities.current, authorities.next
    if authorities.rotation_request is RotationRequest.REVOKE:
        return replace(authorities, next=new_ca(context), rotation_request=None, revoking=True)
    if expiry(current) <= context.now:  # it cannot issue, and its leaves are not trusted any more
        return _promote_next(authorities, following or new_ca(context), context)
    if following is None and (authorities.rotation_request or renewal_due(current, context.now)):
        return replace(authorities, next=new_ca(context), rotation_request=None)
    if following is not None and _published_for(following, context, context.durations.propagation):
        return _promote_next(authorities, following, context)
    if authorities.previous and _is_drained(authorities, context):
        return replace(authorities, previous=(), retire_after=None)
    # Nothing is due yet. A rotation that is under way also fulfills a request for one.
    return replace(authorities, rotation_request=None)


def step_imminent(authorities: Authorities, now: datetime) -> bool:
    """Return whether a step is due, or may be within minutes, without a change of any object.

    Between the beginning of a drain and the expiry of its last leaf, nothing happens for a day.
    """
    retire_after = authorities.retire_after
    ending = bool(authorities.previous) and (retire_after is None or now >= retire_after)
    moving = authorities.next is not None or authorities.rotation_request is not None or ending
    return moving or renewal_due(authorities.current, now)


def drain_id(authorities: Authorities) -> str:
    """Return the identity of a drain: if another CA joins, the drain starts again."""
    certificates = (authorities.current.certificate, *authorities.previous)
    return " ".join(pem_fingerprint(certificate) for certificate in certificates)


def _published_for(ca: KeyPair, context: RotationContext, minimum: timedelta) -> bool:
    """Return whether a CA has been in `caBundle` for at least this long."""
    duration = context.published_durations.of(pem_fingerprint(ca.certificate))
    return duration is not None and duration >= minimum


def _promote_next(
    authorities: Authorities, following: KeyPair, context: RotationContext
) -> Authorities:
    """Let the next CA issue, and keep the old one trusted until its last leaf has expired."""
    retire_after = None if authorities.revoking else _last_leaf_expiry(context)
    return Authorities(
        current=following,
        previous=tuple(storable([authorities.current.certificate, *authorities.previous])),
        retire_after=retire_after,
    )


def _last_leaf_expiry(context: RotationContext) -> datetime:
    until = context.now + context.durations.leaf + context.durations.idle_connection
    return (until + timedelta(seconds=1)).replace(microsecond=0)


def _is_drained(authorities: Authorities, context: RotationContext) -> bool:
    """Return whether the old CAs can be removed, since no known replica serves their leaves."""
    if not _published_for(authorities.current, context, context.durations.drain):
        return False
    if authorities.retire_after is not None and context.now < authorities.retire_after:
        return False
    duration = context.drain_durations.of(drain_id(authorities))
    return duration is not None and duration >= context.durations.drain
