"""Wait for an event. Tests never assert how long that takes, since a machine may be busy."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds after which a test gives up; an idle machine needs a fraction of them.
PATIENCE = 300.0
#: Seconds between two checks: the first pause, and the longest.
_FIRST, _LAST = 0.002, 0.2


def until(condition: Callable[[], object]) -> float:
    """Wait until a condition holds, and return how many seconds it took.

    Raises AssertionError if it never does. An OSError counts as not yet: nothing listens there.
    """
    started = time.monotonic()
    pause = _FIRST
    while not _holds(condition):
        waited = time.monotonic() - started
        assert waited < PATIENCE, f"it did not come true within {PATIENCE:g} s"
        time.sleep(pause)
        pause = min(pause * 1.5, _LAST)
    return time.monotonic() - started


def _holds(condition: Callable[[], object]) -> bool:
    try:
        return bool(condition())
    except OSError:
        return False
