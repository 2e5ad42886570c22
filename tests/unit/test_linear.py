"""The work of a decision grows no faster than the pod."""

from __future__ import annotations

import gc
import json
from functools import partial

import pytest

from tests.families import FAMILIES, LONG, Family, busy_decision_input
from tests.growth import MAX_CPU_RATIO, cpu_ratio, executed_lines
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput

#: Sizes for counting lines, large enough that constant work does not matter.
COUNTED = (400, 800)
#: Sizes for comparing CPU time.
TIMED = (1000, 4000)
CONTEXT: DecisionInput = busy_decision_input()

each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
each_long = pytest.mark.parametrize("family", LONG.values(), ids=LONG)


@each_family
def test_twice_the_entries_are_at_most_twice_the_lines(family: Family) -> None:
    """Whichever list grows, each loop over it runs a fixed number of times for each entry."""
    manifests = [family(size) for size in COUNTED]
    assert all(decide(manifest, CONTEXT).reason for manifest in manifests)  # and fills the caches
    small, large = (executed_lines(partial(decide, manifest, CONTEXT)) for manifest in manifests)
    assert large <= 2 * small


def _growth(family: Family) -> float:
    """Return how many times more CPU four times the input takes, for pods decoded from JSON."""
    small, large = (json.loads(json.dumps(family(size))) for size in TIMED)
    gc.collect()
    gc.disable()
    try:
        return cpu_ratio(partial(decide, small, CONTEXT), partial(decide, large, CONTEXT))
    finally:
        gc.enable()


@each_family
def test_four_times_the_entries_are_about_four_times_the_work(family: Family) -> None:
    """CPU time shows what counting lines misses: searches and copies within one line."""
    assert _growth(family) < MAX_CPU_RATIO


@each_long
def test_four_times_the_letters_are_about_four_times_the_work(family: Family) -> None:
    """Four times the length of a text takes about four times the work."""
    assert _growth(family) < MAX_CPU_RATIO
