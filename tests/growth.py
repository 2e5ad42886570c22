"""How much work a call is: the lines of Python that it runs, and the CPU that it takes.

Lines are counted exactly, and are the same on every machine; CPU also sees what C code does,
and is compared with a wide margin: four times the input is four times the work where it is
linear, and sixteen times where it is quadratic.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

#: Twice the input: at most so many times the lines.
DOUBLE = 2.2
#: Four times the input: less than so many times the CPU.
FOURFOLD = 10
#: Shorter measurements say nothing, in seconds.
_SHORTEST = 0.004


def lines(call: Callable[[], object]) -> int:
    """Count the lines of Python that a call runs."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def cpu(call: Callable[[], object], turns: int = 2) -> float:
    """Return the CPU seconds of a call, the least of some turns."""
    return min(_once(call) for _ in range(turns))


def fourfold(small: Callable[[], object], large: Callable[[], object]) -> float:
    """Return how many times the CPU of `small` the four times larger `large` takes."""
    return cpu(large) / max(cpu(small), _SHORTEST)


def _once(call: Callable[[], object]) -> float:
    started = time.thread_time()
    call()
    return time.thread_time() - started
