from __future__ import annotations

import random
import threading

import pytest

from tests.waiting import until
from webhook.serve.sources.periodic import Periodic


def test_attempts_follow_each_other_until_the_stop() -> None:
    """The end comes after the last attempt, in the same thread, and `stop` waits for it."""
    attempts: list[str] = []

    def attempt() -> float:
        attempts.append(threading.current_thread().name)
        return 0.001

    periodic = Periodic("named", attempt, lambda: attempts.append("end"))
    periodic.start()
    until(lambda: len(attempts) > 2)
    periodic.stop()
    assert {*attempts[:-1]} == {"named"}
    assert attempts[-1] == "end"


def test_a_pause_is_up_to_a_fifth_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas that start together thus act at different times."""
    bounds: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        bounds.append((low, high))
        return 0.0

    monkeypatch.setattr(random, "uniform", uniform)
    periodic = Periodic("named", lambda: 3600.0)
    periodic.start()
    until(lambda: len(bounds) > 1)
    periodic.stop()
    assert {*bounds} == {(0.8, 1.0)}


def test_a_long_pause_does_not_delay_the_stop() -> None:
    """The thread ends at once; `stop` does not wait if nothing is left to do."""
    periodic = Periodic("named", lambda: 3600.0)
    periodic.start()
    periodic.stop()
    periodic._thread.join(20)
    assert not periodic._thread.is_alive()


def test_without_a_start_there_is_no_end() -> None:
    """The server may fail before it starts its sources."""
    Periodic("named", lambda: 1.0, lambda: pytest.fail("not started")).stop()
