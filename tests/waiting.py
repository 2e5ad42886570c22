"""Wait for an event. Tests never assert how long that takes, since a machine may be busy."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds after which a test gives up; an idle machine needs a fraction of them.
PATIENCE = 300.0
#: Seconds between two checks: the first pause, and the longest. A pause is as long as the check
#: took, or a seventh of the time waited so far: a check may start kubectl, and the awaited
#: processes need the processors.
_FIRST, _LAST = 0.002, 1.0


def until(condition: Callable[[], object], details: Callable[[], object] = str) -> float:
    """Wait until a condition holds, and return how many seconds it took.

    Raises AssertionError, with `details`, if it never does. An OSError counts as not yet: nothing
    listens there.
    """
    started = checked = time.monotonic()
    while not _holds(condition):
        now = time.monotonic()
        waited, took = now - started, now - checked
        assert waited < PATIENCE, f"it did not come true within {PATIENCE:g} s {details()}"
        time.sleep(min(max(_FIRST, took, waited / 7), _LAST))
        checked = time.monotonic()
    return time.monotonic() - started


def _holds(condition: Callable[[], object]) -> bool:
    try:
        return bool(condition())
    except OSError:
        return False
