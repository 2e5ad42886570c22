from __future__ import annotations

from certs.pace import LONGEST, Pace
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
    """Up to a minute, and as at first after it has stayed for two."""
    clock, pauses = Ticking(), []
    pace = Pace(clock)
    for _ in range(9):
        pace.wrote()
        pauses.append(pace.pause)
        clock.tick(pace.pause)

    assert pauses == [1, 2, 4, 8, 16, 32, LONGEST, LONGEST, LONGEST]
    clock.tick(2 * LONGEST)
    pace.wrote()
    assert pace.pause == 1
