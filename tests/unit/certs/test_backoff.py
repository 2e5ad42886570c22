from __future__ import annotations

from itertools import islice

from certs.clock import MAX_PAUSE, delays


def test_waits_longer_each_time_up_to_a_bound() -> None:
    """The wait doubles up to a maximum, minus up to half of it."""
    limits = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]

    for delay, limit in zip(delays(), limits, strict=False):
        assert limit / 2 <= delay <= limit <= MAX_PAUSE


def test_no_two_replicas_wait_alike() -> None:
    """Replicas that failed at the same moment do not retry at the same moment."""
    assert list(islice(delays(), 8)) != list(islice(delays(), 8))
