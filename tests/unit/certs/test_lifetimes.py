from __future__ import annotations

from datetime import timedelta

import pytest

from certs.lifetimes import Lifetimes

SECOND = timedelta(seconds=1)


def test_the_defaults_go_together() -> None:
    """They are a day, a year and two minutes; an exchanged CA is drained in under four minutes."""
    usual = Lifetimes()
    assert usual.problem == ""
    assert usual.drain == timedelta(minutes=3, seconds=45)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (Lifetimes(leaf=0 * SECOND), "a time that is not above zero"),
        (Lifetimes(ca=-SECOND), "a time that is not above zero"),
        (Lifetimes(round=0 * SECOND), "a time that is not above zero"),
        (Lifetimes(propagation=-SECOND), "a time that is not above zero"),
        (Lifetimes(ca=404 * SECOND), "a CA needs 405 s at least"),
        (Lifetimes(leaf=29 * SECOND), "a leaf needs 30 s at least"),
    ],
)
def test_what_does_not(given: Lifetimes, why: str) -> None:
    """A CA must be replaced before it ends, and a leaf must be served for several rounds."""
    assert given.problem.startswith(why)
