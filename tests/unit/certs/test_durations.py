from __future__ import annotations

from datetime import timedelta

import pytest

from certs.durations import Durations

SECOND = timedelta(seconds=1)


def test_the_defaults_are_consistent() -> None:
    """The defaults are consistent, and drain a replaced CA in under four minutes."""
    usual = Durations()
    assert usual.problem == ""
    assert usual.drain == timedelta(minutes=3, seconds=45)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Durations(leaf=0 * SECOND), "every duration must be above zero"),
        (Durations(ca=-SECOND), "every duration must be above zero"),
        (Durations(round_interval=0 * SECOND), "every duration must be above zero"),
        (Durations(propagation=-SECOND), "every duration must be above zero"),
        (Durations(ca=404 * SECOND), "a CA must last at least 405 s"),
        (Durations(leaf=29 * SECOND), "a leaf must last at least 30 s"),
    ],
)
def test_inconsistent_durations(given: Durations, message: str) -> None:
    """A CA must be replaced before it ends, and a leaf must be served for several rounds."""
    assert given.problem.startswith(message)
