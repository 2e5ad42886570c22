"""The laws of every target: the cost of a case is bounded by the size of its input."""

from __future__ import annotations

from tests.fuzz import cost
from tests.fuzz.cost import Allowance, Work
from tests.fuzz.laws.broken import broken


class Costing:
    """Work that was done once, and can be repeated to measure its cost."""

    size: int
    seconds: float
    allowance: Allowance
    repeat: Work
    measures_memory: bool


def costs_little_time(observed: Costing) -> None:
    """Processor time is bounded by the size of the input, whatever its content."""
    allowed = observed.allowance.time(observed.size)
    if observed.seconds > allowed:
        shortest = cost.least_time(observed.repeat, allowed)
        if shortest > allowed:
            broken(
                f"{observed.size} bytes took {shortest:.3f} s of processor time, not {allowed:.3f}"
            )


def costs_little_memory(observed: Costing) -> None:
    """Memory is bounded by the size of the input, and hardly any remains in use afterwards."""
    if observed.measures_memory:
        peak, remaining = cost.weighed(observed.repeat)
        if peak > observed.allowance.memory(observed.size):
            broken(f"{observed.size} bytes took {peak} bytes of memory", "peak")
        if remaining > cost.REMAINING:
            broken(f"{remaining} bytes stay of a case of {observed.size} bytes", "kept")
