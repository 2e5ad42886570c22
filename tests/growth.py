"""Measure the work of a call: the lines of Python that it runs, and its CPU time.

The number of lines is exact and the same on every machine. CPU time includes C code, and is
compared with a wide margin: for four times the input, linear work takes four times as long,
and quadratic work sixteen times.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

#: For twice the input, the number of lines may grow by at most this factor.
MAX_LINES_RATIO = 2.2
#: For four times the input, the CPU time must grow by less than this factor.
MAX_CPU_RATIO = 10
#: Seconds; shorter measurements mean nothing.
_SHORTEST = 0.004
#: How often a measurement is repeated.
_TURNS = 30


def executed_lines(call: Callable[[], object]) -> int:
    """Count the lines of Python that a call runs, without callbacks of the garbage collector."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    with _without_collections():  # Hypothesis has a callback in Python that measures each one
        sys.settrace(trace)
        try:
            call()
        finally:
            sys.settrace(before)
    return count


def cpu_ratio(small: Callable[[], object], large: Callable[[], object]) -> float:
    """Return the CPU time of `large`, whose input is four times larger, divided by `small`'s.

    While `large` seems to take too long, both run again, since other processes share caches and
    clocks; the fastest run of each counts.
    """
    small_seconds, large_seconds = (
        min(_cpu_seconds(small), _cpu_seconds(small)),
        _cpu_seconds(large),
    )
    for _ in range(_TURNS):
        if large_seconds < MAX_CPU_RATIO * max(small_seconds, _SHORTEST):
            break
        small_seconds, large_seconds = (
            min(small_seconds, _cpu_seconds(small)),
            min(large_seconds, _cpu_seconds(large)),
        )
    return large_seconds / max(small_seconds, _SHORTEST)


def _cpu_seconds(call: Callable[[], object]) -> float:
    with _without_collections():
        started = time.thread_time()
        call()
        return time.thread_time() - started


@contextmanager
def _without_collections() -> Iterator[None]:
    """Stop the garbage collector, which would go through the objects of all earlier tests."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
