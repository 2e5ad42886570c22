"""The maximum cost of a case, in processor time and memory, by the size of its input.

The bounds are wide: a case whose cost is linear in its input takes a tenth of them. A cost that is
quadratic in a list of 64 KiB exceeds them.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import thread_time
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Work = Callable[[], object]


class Allowance(NamedTuple):
    """The allowance of a target: a fixed amount, and an amount for each byte of its input."""

    seconds: float
    seconds_per_byte: float
    bytes_per_byte: float = 100

    def time(self, size: int) -> float:
        """Return the seconds of processor time allowed."""
        return self.seconds + self.seconds_per_byte * size

    def memory(self, size: int) -> float:
        """Return the peak of bytes allowed."""
        return 4e6 + self.bytes_per_byte * size


#: Bytes that may remain after a case of any size, since all caches are bounded.
REMAINING = 2_000_000
_TURNS = 5
#: A time over this many times the allowed one is not caused by other load on the machine.
_BEYOND_DOUBT = 5


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Do the work; return this thread's seconds of processor time, and the result."""
    started = thread_time()
    result = work()
    return thread_time() - started, result


def least_time(work: Work, enough: float) -> float:
    """Do the work without caches, until it takes at most `enough`; return the shortest time."""
    shortest = float("inf")
    for _ in range(_TURNS):
        forget()
        with suppress(Exception):  # what it raises breaks another law
            shortest = min(shortest, timed(work)[0])
        if not enough < shortest < _BEYOND_DOUBT * enough:
            break
    return shortest


def weighed(work: Work) -> tuple[int, int]:
    """Do the work without caches; return the peak of its bytes, and how many remain."""
    forget()
    gc.collect()
    tracemalloc.start()
    try:
        with suppress(Exception):
            work()
        peak = tracemalloc.get_traced_memory()[1]
        gc.collect()
        return peak, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def forget() -> None:
    """Empty every cache of the real code, so that repeated work costs as much as at first."""
    for cache in _caches():
        cache.cache_clear()


def _caches() -> Iterator[Any]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "webhook":
            for value in list(vars(module).values()):
                cache = value
                while hasattr(cache, "cache_clear"):
                    yield cache
                    cache = getattr(cache, "__wrapped__", None)
