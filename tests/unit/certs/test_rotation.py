from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from certs.authorities import MAX_FIELD_BYTES, Authorities, RotationRequest
from certs.clock import ObservedDurations
from certs.durations import Durations
from certs.issue import issue_ca
from certs.pem import pem_fingerprint
from certs.rotation import RotationContext, drain_id, keep_trusting, step
from tests.unit.certs.clocks import Ticking

TIMES = Durations()
YEAR = timedelta(days=365).total_seconds()
CA, NEXT, OLD = issue_ca(), issue_ca(), issue_ca()


class Replica:
    """A replica that finds all trusted CAs in caBundle at each observation."""

    def __init__(self, authorities: Authorities) -> None:
        self.clock = Ticking()
        self.published = ObservedDurations(self.clock, TIMES.drain)
        self.draining = ObservedDurations(self.clock, TIMES.drain)
        self.authorities = authorities

    def step(self, seconds: float = 0.0) -> Authorities:
        """Let time pass while observing, and then take a step."""
        gap = TIMES.drain.total_seconds()
        for passed in [gap] * int(seconds / gap) + [seconds % gap]:
            self.clock.tick(passed)
            self.published.observe(pem_fingerprint(ca) for ca in self.authorities.trusted_cas)
            self.draining.observe([drain_id(self.authorities)])
        context = RotationContext(
            now=self.clock.now(),
            durations=TIMES,
            published_durations=self.published,
            drain_durations=self.draining,
        )
        self.authorities = step(self.authorities, context)
        return self.authorities


def test_nothing_is_due() -> None:
    """In the first two thirds of a year nothing changes."""
    replica = Replica(Authorities(current=CA))

    replica.clock.tick(YEAR * 0.66)
    assert replica.step() == Authorities(current=CA)


def test_a_whole_rotation() -> None:
    """The next CA is made after two thirds, issues two minutes later, and is alone a day later."""
    replica = Replica(Authorities(current=CA))
    replica.clock.tick(YEAR * 0.67)
    began = replica.step()
    assert (began.phase, began.current, began.previous) == ("publishing", CA, ())
    assert began.next is not None
    assert began.trusted_cas == (CA.certificate, began.next.certificate)
    assert replica.step() == replica.step(119) == began

    promoted = replica.step(1)
    assert (promoted.phase, promoted.current) == ("draining", began.next)
    assert promoted.trusted_cas == (began.next.certificate, CA.certificate)
    last = replica.clock.now() + timedelta(hours=24, seconds=90)
    assert promoted.retire_after is not None
    assert timedelta(0) <= promoted.retire_after - last < timedelta(seconds=2)
    assert replica.step(86400) == promoted
    assert replica.step(92) == Authorities(current=began.next)


@pytest.mark.parametrize("requested", RotationRequest)
def test_a_request_starts_a_rotation(requested: RotationRequest) -> None:
    """The next CA is made at once, and the request is removed."""
    began = Replica(Authorities(current=CA, rotation_request=requested)).step()

    assert (began.phase, began.rotation_request) == ("publishing", None)
    assert began.revoking is (requested is RotationRequest.REVOKE)


def test_one_rotation_at_a_time() -> None:
    """A rotation in progress also satisfies a request."""
    replica = Replica(Authorities(current=CA, next=NEXT, rotation_request=RotationRequest.ROTATE))

    assert replica.step() == Authorities(current=CA, next=NEXT)


def test_a_revocation_trusts_no_key_that_was_in_the_secret() -> None:
    """The next CA is replaced too, and old ones are removed as soon as no replica uses them."""
    replica = Replica(Authorities(current=CA, next=NEXT, rotation_request=RotationRequest.REVOKE))
    began = replica.step()
    assert began.next not in (None, CA, NEXT)
    replica.step()
    promoted = replica.step(120)
    assert promoted.current == began.next
    assert promoted.retire_after is None
    assert not promoted.revoking
    replica.step()
    assert replica.step(224) == promoted
    assert replica.step(1) == Authorities(current=promoted.current)


def test_a_wait_begins_anew_where_the_next_ca_was_away() -> None:
    """Somebody overwrote caBundle meanwhile, so an API server may have missed the next CA."""
    replica = Replica(Authorities(current=CA, next=NEXT))
    replica.step()
    replica.step(119)
    replica.published.observe([])
    assert replica.step(1).phase == "publishing"
    assert replica.step(119).phase == "publishing"
    assert replica.step(1).phase == "draining"


def test_a_clock_that_is_ahead_cannot_shorten_a_drain() -> None:
    """By its own time the day is over, but it has not yet seen the replicas leave the old CA."""
    over = Ticking().now() - timedelta(minutes=10)
    draining_ = Authorities(current=CA, previous=(OLD.certificate,), retire_after=over)
    replica = Replica(draining_)

    assert replica.step() == draining_
    assert replica.step(224) == draining_
    assert replica.step(1) == Authorities(current=CA)


def test_a_ca_that_has_ended_is_replaced_at_once() -> None:
    """After a cluster was off for a year, its CA is useless, so nothing is lost."""
    ended = issue_ca(lifetime=timedelta(minutes=-1))
    replaced = Replica(Authorities(current=ended)).step()
    assert replaced.current != ended

    assert Replica(Authorities(current=ended, next=NEXT)).step().current == NEXT


def test_strangers_are_trusted_for_a_drain() -> None:
    """Each is added once, however often it is seen."""
    authorities = Authorities(current=CA, next=NEXT)
    trusted = keep_trusting(authorities, OLD.certificate, CA.certificate, NEXT.certificate)

    assert trusted == replace(authorities, previous=(OLD.certificate,))
    assert keep_trusting(trusted, OLD.certificate) == trusted


def _filling(free_bytes: int) -> tuple[bytes, ...]:
    """Return CAs that leave `free_bytes` of a part of the Secret."""
    pad = MAX_FIELD_BYTES - len(OLD.certificate) - free_bytes
    return (OLD.certificate, NEXT.certificate.ljust(pad, b"\n"))


@pytest.mark.parametrize(("missing", "count"), [(0, 2), (1, 1)])
def test_a_full_secret_keeps_trusting_the_served_ca(missing: int, count: int) -> None:
    """The guard rejects any larger write, so an earlier CA gives way to one in use."""
    full = _filling(len(CA.certificate) - missing)
    trusted = keep_trusting(Authorities(current=NEXT, previous=full), CA.certificate)

    assert trusted.previous == (CA.certificate, *full[:count])


def test_a_full_secret_does_not_stop_a_rotation() -> None:
    """A revocation must take effect whatever somebody has stored."""
    replica = Replica(Authorities(current=CA, next=NEXT, previous=_filling(0)))
    replica.step()
    promoted = replica.step(120)

    assert promoted.current == NEXT
    assert promoted.previous == (CA.certificate, OLD.certificate)
