"""The laws of every target: what a case may cost, by the size of its input."""

from __future__ import annotations

from tests.fuzz import cost
from tests.fuzz.cost import Allowance, Work
from tests.fuzz.laws.broken import broken


class Costing:
    """Work that was done once, and can be repeated to measure its cost."""

    size: int
    seconds: float
    allowance: Allowance
    again: Work
    weigh: bool


def costs_little_time(seen: Costing) -> None:
    """Processor time is bounded by the size of the input, whatever its content."""
    most = seen.allowance.time(seen.size)
    if seen.seconds > most:
        least = cost.least_time(seen.again, most)
        if least > most:
            broken(f"{seen.size} bytes took {least:.3f} s of processor time, not {most:.3f}")


def costs_little_memory(seen: Costing) -> None:
    """Memory is bounded by the size of the input, and hardly any remains in use afterwards."""
    if seen.weigh:
        most, kept = cost.weighed(seen.again)
        if most > seen.allowance.memory(seen.size):
            broken(f"{seen.size} bytes took {most} bytes of memory", "peak")
        if kept > cost.KEPT:
            broken(f"{kept} bytes stay of a case of {seen.size} bytes", "kept")
