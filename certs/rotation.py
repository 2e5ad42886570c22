"""The rotation from one CA to the next, one step at a time, so that no handshake fails.

Every replica takes these steps by the same rules, from what the Secret holds and from what
it has itself seen in `caBundle`; the first replica to store a step has taken it for all.
Each replica measures by its own monotonic clock how long it has seen a CA or a state. So a wrong
time of day cannot shorten a wait, and a restarted replica waits again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from certs.authorities import Authorities, RotationRequest
from certs.clock import SeenSince
from certs.issue import expiry, issue_ca, renewal_due
from certs.lifetimes import Lifetimes
from certs.pem import KeyPair, pem_fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationContext:
    """What a replica knows besides the content of the Secret."""

    now: datetime
    lifetimes: Lifetimes
    #: Fingerprints in `caBundle`, and since when each has been there.
    published: SeenSince
    #: `drain_key(authorities)`, and since when the Secret has had it.
    draining: SeenSince


def new_ca(view: RotationContext) -> KeyPair:
    """Issue a CA."""
    return issue_ca(lifetime=view.lifetimes.ca, now=view.now)


def adopt(authorities: Authorities, *found: bytes) -> Authorities:
    """Go on trusting CAs (PEM) that replicas may still serve, until the end of a drain.

    Otherwise, if the Secret were replaced or lost, those replicas would no longer be trusted.
    """
    unknown = tuple(one for one in found if not authorities.knows(one))
    return replace(authorities, previous=(*authorities.previous, *unknown))


def step(authorities: Authorities, view: RotationContext) -> Authorities:
    """Return the CAs after the one step that is due; the same ones if none is."""
    current, following = authorities.current, authorities.next
    if authorities.requested is RotationRequest.REVOKE:
        return replace(authorities, next=new_ca(view), requested=None, revoking=True)
    if expiry(current) <= view.now:  # it can neither issue nor be served any more
        return _promoted(authorities, following or new_ca(view), view)
    if following is None and (authorities.requested or renewal_due(current, view.now)):
        return replace(authorities, next=new_ca(view), requested=None)
    if following is not None and _published_for(following, view, view.lifetimes.propagation):
        return _promoted(authorities, following, view)
    if authorities.previous and _drained(authorities, view):
        return replace(authorities, previous=(), retire_after=None)
    return replace(authorities, requested=None)  # a rotation is already under way


def step_near(authorities: Authorities, now: datetime) -> bool:
    """Return whether a step is due, or may be within minutes, without a change of any object.

    Between the beginning of a drain and the end of its last leaf, nothing happens for a day.
    """
    retire_after = authorities.retire_after
    ending = bool(authorities.previous) and (retire_after is None or now >= retire_after)
    moving = authorities.next is not None or authorities.requested is not None or ending
    return moving or renewal_due(authorities.current, now)


def drain_key(authorities: Authorities) -> str:
    """Return the key by which a drain is timed: if another CA joins, the drain starts again."""
    certificates = (authorities.current.certificate, *authorities.previous)
    return " ".join(pem_fingerprint(one) for one in certificates)


def _published_for(ca: KeyPair, view: RotationContext, least: timedelta) -> bool:
    """Return whether a CA has been in `caBundle` for at least this long."""
    seen = view.published.duration(pem_fingerprint(ca.certificate))
    return seen is not None and seen >= least


def _promoted(authorities: Authorities, following: KeyPair, view: RotationContext) -> Authorities:
    """Let the next CA issue, and keep the old one trusted until its last leaf has expired."""
    kept = None if authorities.revoking else _last_leaf_expiry(view)
    return Authorities(
        current=following,
        previous=(authorities.current.certificate, *authorities.previous),
        retire_after=kept,
    )


def _last_leaf_expiry(view: RotationContext) -> datetime:
    until = view.now + view.lifetimes.leaf + view.lifetimes.idle
    return (until + timedelta(seconds=1)).replace(microsecond=0)


def _drained(authorities: Authorities, view: RotationContext) -> bool:
    """Return whether the old CAs can go: as far as can be known, no replica serves them."""
    if not _published_for(authorities.current, view, view.lifetimes.drain):
        return False
    if authorities.retire_after is not None and view.now < authorities.retire_after:
        return False
    lasted = view.draining.duration(drain_key(authorities))
    return lasted is not None and lasted >= view.lifetimes.drain
