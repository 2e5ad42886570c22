"""The exchange of a CA for the next, one step at a time, so that no handshake ever fails.

Every replica takes these steps by the same rules, from what the Secret holds and from what
it has itself seen in `caBundle`; who is first to store a step has taken it for all. How long
something has been there is measured by each replica's own monotonic clock from when it saw
it first, so that no clock that is wrong can shorten a wait, and a replica that starts anew
waits anew.
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
class View:
    """What a replica knows besides the Secret."""

    now: datetime
    lifetimes: Lifetimes
    #: Fingerprints in `caBundle`, each since it was first seen there.
    published: SeenSince
    #: `draining(authorities)`, since it was first seen in the Secret.
    draining: SeenSince


def fresh(view: View) -> KeyPair:
    """Issue a CA."""
    return issue_ca(lifetime=view.lifetimes.ca, now=view.now)


def adopt(authorities: Authorities, *strangers: bytes) -> Authorities:
    """Let CAs go on being trusted which somebody may serve, for the time of a drain.

    Without it a Secret that was replaced or lost would take the trust from who serves.
    """
    unknown = tuple(one for one in strangers if not authorities.knows(one))
    return replace(authorities, previous=(*authorities.previous, *unknown))


def step(authorities: Authorities, view: View) -> Authorities:
    """Return the CAs after the one step that is due; the same ones if none is."""
    current, following = authorities.current, authorities.next
    if authorities.requested is RotationRequest.REVOKE:
        return replace(authorities, next=fresh(view), requested=None, revoking=True)
    if expiry(current) <= view.now:  # nobody can serve it or issue by it any more
        return _promoted(authorities, following or fresh(view), view)
    if following is None and (authorities.requested or renewal_due(current, view.now)):
        return replace(authorities, next=fresh(view), requested=None)
    if following is not None and _seen(following, view, view.lifetimes.propagation):
        return _promoted(authorities, following, view)
    if authorities.previous and _drained(authorities, view):
        return replace(authorities, previous=(), retire_after=None)
    return replace(authorities, requested=None)  # one is under way


def draining(authorities: Authorities) -> str:
    """Return what a drain waits under: another CA that joins it begins it anew."""
    certificates = (authorities.current.certificate, *authorities.previous)
    return " ".join(pem_fingerprint(one) for one in certificates)


def _seen(ca: KeyPair, view: View, least: timedelta) -> bool:
    """Return whether a CA has been in `caBundle` for so long."""
    seen = view.published.duration(pem_fingerprint(ca.certificate))
    return seen is not None and seen >= least


def _promoted(authorities: Authorities, following: KeyPair, view: View) -> Authorities:
    """Let the next CA issue, and keep the old one trusted until its last leaf has ended."""
    kept = None if authorities.revoking else _last_leaf(view)
    return Authorities(
        current=following,
        previous=(authorities.current.certificate, *authorities.previous),
        retire_after=kept,
    )


def _last_leaf(view: View) -> datetime:
    until = view.now + view.lifetimes.leaf + view.lifetimes.idle
    return (until + timedelta(seconds=1)).replace(microsecond=0)


def _drained(authorities: Authorities, view: View) -> bool:
    """Return whether the old CAs can go: nobody serves them, as far as can be known."""
    if not _seen(authorities.current, view, view.lifetimes.drain):
        return False
    if authorities.retire_after is not None and view.now < authorities.retire_after:
        return False
    lasted = view.draining.duration(draining(authorities))
    return lasted is not None and lasted >= view.lifetimes.drain
