from __future__ import annotations

from datetime import timedelta

from certs.clock import ObservedDurations
from tests.unit.certs.clocks import Ticking


def _observed() -> tuple[Ticking, ObservedDurations]:
    clock = Ticking()
    return clock, ObservedDurations(clock, timedelta(seconds=60))


def test_lasts_from_the_first_look() -> None:
    """The duration ends now, not at the last observation."""
    clock, durations = _observed()
    durations.observe(["a"])
    clock.tick(5)
    durations.observe(["a", "b"])
    clock.tick(3)

    assert durations.of("a") == timedelta(seconds=8)
    assert durations.of("b") == timedelta(seconds=3)
    assert durations.of("c") is None


def test_what_was_missed_begins_anew() -> None:
    """One missed observation is enough."""
    clock, durations = _observed()
    for items in (["a"], [], ["a"]):
        clock.tick(5)
        durations.observe(items)

    assert durations.of("a") == timedelta(0)


def test_after_a_long_time_without_a_look_nothing_is_known() -> None:
    """It may have been absent in between."""
    clock, durations = _observed()
    durations.observe(["a"])
    clock.tick(61)
    durations.observe(["a"])

    assert durations.of("a") == timedelta(0)


def test_in_another_revision_all_begins_anew() -> None:
    """It may have been removed and restored between two observations."""
    clock, durations = _observed()
    durations.observe(["a"], "1")
    clock.tick(5)
    durations.observe(["a"], "1")
    assert durations.of("a") == timedelta(seconds=5)
    durations.observe(["a"], "2")
    assert durations.of("a") == timedelta(0)
