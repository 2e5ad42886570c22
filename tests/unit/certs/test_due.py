from __future__ import annotations

from datetime import timedelta

import pytest

from certs.due import due, ends, renewal
from certs.issue import KeyPair, issue_ca, issue_leaf
from tests.unit.certs.clocks import Ticking

NOW = Ticking().now().replace(microsecond=0)


def _leaf(lifetime: timedelta, ca: timedelta = timedelta(days=365)) -> KeyPair:
    return issue_leaf(issue_ca(lifetime=ca, now=NOW), ["a"], lifetime=lifetime, now=NOW)


@pytest.mark.parametrize("seconds", [24 * 3600, 60, 6])
def test_after_two_thirds_of_its_life(seconds: int) -> None:
    """The hour by which it is dated back is no part of it, however short it lives."""
    leaf = _leaf(timedelta(seconds=seconds))

    assert ends(leaf) == NOW + timedelta(seconds=seconds)
    assert renewal(leaf) == NOW + timedelta(seconds=seconds) * 2 / 3
    assert not due(leaf, renewal(leaf) - timedelta(seconds=1))
    assert due(leaf, renewal(leaf))


def test_a_leaf_ends_with_its_ca() -> None:
    """It is never valid for longer, and what has little left is due soon."""
    leaf = _leaf(timedelta(hours=24), ca=timedelta(hours=3))

    assert ends(leaf) == NOW + timedelta(hours=3)
    assert renewal(leaf) == NOW + timedelta(hours=2)


def test_one_that_was_over_when_it_was_issued() -> None:
    """It is due at once, and not at a time after its end."""
    leaf = _leaf(timedelta(minutes=-30))
    assert renewal(leaf) == ends(leaf)
