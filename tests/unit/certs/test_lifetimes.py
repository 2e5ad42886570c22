from __future__ import annotations

from datetime import timedelta

import pytest

from certs.lifetimes import Lifetimes

SECOND = timedelta(seconds=1)


def test_the_defaults_go_together() -> None:
    """The defaults are consistent, and drain a replaced CA in under four minutes."""
    usual = Lifetimes()
    assert usual.problem == ""
    assert usual.drain == timedelta(minutes=3, seconds=45)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Lifetimes(leaf=0 * SECOND), "every duration must be above zero"),
        (Lifetimes(ca=-SECOND), "every duration must be above zero"),
        (Lifetimes(round=0 * SECOND), "every duration must be above zero"),
        (Lifetimes(propagation=-SECOND), "every duration must be above zero"),
        (Lifetimes(ca=404 * SECOND), "a CA must last at least 405 s"),
        (Lifetimes(leaf=29 * SECOND), "a leaf must last at least 30 s"),
    ],
)
def test_what_does_not(given: Lifetimes, message: str) -> None:
    """A CA must be replaced before it ends, and a leaf must be served for several rounds."""
    assert given.problem.startswith(message)
