"""What one case may cost: time of the processor and memory, by the size of its input.

The bounds are wide: a case that is linear in its input takes a tenth of them. What is quadratic
in a list of 64 KiB passes them.
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
    """How much a target may take: so much, and so much for each byte of its input."""

    seconds: float
    seconds_per_byte: float
    bytes_per_byte: float = 100

    def time(self, size: int) -> float:
        """Return seconds of processor time."""
        return self.seconds + self.seconds_per_byte * size

    def memory(self, size: int) -> float:
        """Return bytes at the worst moment."""
        return 4e6 + self.bytes_per_byte * size


#: Bytes that may stay after a case, whatever its size: caches are bounded.
KEPT = 2_000_000
_TURNS = 5
#: So many times what is allowed is no disturbance by what else the machine does.
_BEYOND_DOUBT = 5


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Do the work; return the seconds of processor time of this thread, and the result."""
    started = thread_time()
    result = work()
    return thread_time() - started, result


def least_time(work: Work, enough: float) -> float:
    """Do the work afresh until it took no longer than `enough`; return the least time."""
    least = float("inf")
    for _ in range(_TURNS):
        forget()
        with suppress(Exception):  # another law speaks of what it raises
            least = min(least, timed(work)[0])
        if not enough < least < _BEYOND_DOUBT * enough:
            break
    return least


def weighed(work: Work) -> tuple[int, int]:
    """Do the work afresh; return the most bytes that it held at once, and what stays of them."""
    forget()
    gc.collect()
    tracemalloc.start()
    try:
        with suppress(Exception):
            work()
        most = tracemalloc.get_traced_memory()[1]
        gc.collect()
        return most, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def forget() -> None:
    """Empty every cache of the real code: a second look must cost what the first one did."""
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
