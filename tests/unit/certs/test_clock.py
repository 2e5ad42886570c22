from __future__ import annotations

from datetime import timedelta

from certs.clock import SeenSince
from tests.unit.certs.clocks import Ticking


def _since() -> tuple[Ticking, SeenSince]:
    clock = Ticking()
    return clock, SeenSince(clock, timedelta(seconds=60))


def test_lasts_from_the_first_look() -> None:
    """The duration ends now, not at the last observation."""
    clock, since = _since()
    since.observe(["a"])
    clock.tick(5)
    since.observe(["a", "b"])
    clock.tick(3)

    assert since.duration("a") == timedelta(seconds=8)
    assert since.duration("b") == timedelta(seconds=3)
    assert since.duration("c") is None


def test_what_was_missed_begins_anew() -> None:
    """One missed observation is enough."""
    clock, since = _since()
    for items in (["a"], [], ["a"]):
        clock.tick(5)
        since.observe(items)

    assert since.duration("a") == timedelta(0)


def test_after_a_long_time_without_a_look_nothing_is_known() -> None:
    """It may have been absent in between."""
    clock, since = _since()
    since.observe(["a"])
    clock.tick(61)
    since.observe(["a"])

    assert since.duration("a") == timedelta(0)


def test_in_another_revision_all_begins_anew() -> None:
    """It may have been removed and restored between two observations."""
    clock, since = _since()
    since.observe(["a"], "1")
    clock.tick(5)
    since.observe(["a"], "1")
    assert since.duration("a") == timedelta(seconds=5)
    since.observe(["a"], "2")
    assert since.duration("a") == timedelta(0)
