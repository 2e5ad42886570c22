from __future__ import annotations

from certs.pace import LONGEST, STAYS, Pace
from tests.unit.certs.clocks import Ticking


def test_the_first_write_waits_for_nothing() -> None:
    """The next one for a second."""
    clock = Ticking()
    pace = Pace(clock)

    assert pace.pause == 0
    pace.wrote()
    assert pace.pause == 1
    clock.tick(1)
    assert pace.pause == 0


def test_waits_longer_while_others_undo_it() -> None:
    """Up to a minute, also where it is done a round later; and as at first once it stays."""
    clock, pauses = Ticking(), []
    pace = Pace(clock)
    for _ in range(9):
        pace.wrote()
        pauses.append(pace.pause)
        clock.tick(pace.pause + 5)

    assert pauses == [1, 2, 4, 8, 16, 32, LONGEST, LONGEST, LONGEST]
    clock.tick(2 * LONGEST + STAYS)
    pace.wrote()
    assert pace.pause == 1


def test_who_breaks_it_now_and_then_does_not_count() -> None:
    """Each time it is written at once."""
    clock = Ticking()
    pace = Pace(clock)
    for _ in range(9):
        pace.wrote()
        assert pace.pause == 1
        clock.tick(20)
