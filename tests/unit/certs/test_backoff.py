from __future__ import annotations

from itertools import islice

from certs.clock import LONGEST, delays


def test_waits_longer_each_time_up_to_a_bound() -> None:
    """The wait doubles up to a maximum, minus up to half of it."""
    whole = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]

    for one, most in zip(delays(), whole, strict=False):
        assert most / 2 <= one <= most <= LONGEST


def test_no_two_replicas_wait_alike() -> None:
    """Replicas that failed together do not retry together."""
    assert list(islice(delays(), 8)) != list(islice(delays(), 8))
