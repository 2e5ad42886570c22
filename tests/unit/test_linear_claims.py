"""The work and the memory of a decision grow no faster than the pod, whatever users claim.

In these families, several things grow at once, such as the claims and their device classes.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial

import pytest

from tests.claim_families import FAMILIES, Case
from tests.growth import MAX_CPU_RATIO, MAX_LINES_RATIO, cpu_ratio, executed_lines
from webhook.decide import decide

#: Sizes for counting lines, for comparing CPU time, and for comparing memory.
COUNTED, TIMED, TRACED = (400, 800), (1000, 4000), (500, 2000)
#: For four times the input, the memory must grow by less than this factor.
MAX_MEMORY_RATIO = 8

each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


@each_family
def test_twice_the_claims_are_about_twice_the_lines(family: Callable[[int], Case]) -> None:
    """No loop over claims runs once for each container, and none over classes for each claim."""
    cases = [family(size) for size in COUNTED]
    assert all(decide(*case).reason for case in cases)  # and fills the caches
    small, large = (executed_lines(partial(decide, *case)) for case in cases)
    assert large <= MAX_LINES_RATIO * small


@each_family
def test_four_times_the_claims_are_about_four_times_the_work(
    family: Callable[[int], Case],
) -> None:
    """CPU time shows searches and copies within one line."""
    small, large = (family(size) for size in TIMED)
    assert cpu_ratio(partial(decide, *small), partial(decide, *large)) < MAX_CPU_RATIO


@each_family
def test_four_times_the_claims_take_about_four_times_the_memory(
    family: Callable[[int], Case],
) -> None:
    """No text is repeated for each use of a claim."""
    small, large = (_peak(family(size)) for size in TRACED)
    assert large < MAX_MEMORY_RATIO * small


def _peak(case: Case) -> int:
    """Return the largest number of bytes in use during a decision, beyond those before it."""
    decide(*case)  # fills the caches
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        decide(*case)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
