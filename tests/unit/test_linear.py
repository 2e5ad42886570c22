"""The work of a decision grows with the pod, and no faster."""

from __future__ import annotations

import gc
import json
from functools import partial

import pytest

from tests.families import FAMILIES, LONG, Family, where
from tests.growth import FOURFOLD, fourfold, lines
from webhook.decision.scope import Context
from webhook.pipeline.decide import decide

#: Sizes whose lines are counted, large enough that what is constant hides nothing.
COUNTED = (400, 800)
#: Sizes whose CPU time is compared.
TIMED = (1000, 4000)
CONTEXT: Context = where()

each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
each_long = pytest.mark.parametrize("family", LONG.values(), ids=LONG)


@each_family
def test_twice_the_entries_are_at_most_twice_the_lines(family: Family) -> None:
    """Whatever list grows: each loop over it runs once for each entry, a fixed number of times."""
    manifests = [family(size) for size in COUNTED]
    assert all(decide(one, CONTEXT).reason for one in manifests)  # and caches are filled
    small, large = (lines(partial(decide, one, CONTEXT)) for one in manifests)
    assert large <= 2 * small


def _growth(family: Family) -> float:
    """Return how many times the CPU four times the input takes; a pod as it comes over the wire."""
    small, large = (json.loads(json.dumps(family(size))) for size in TIMED)
    gc.collect()
    gc.disable()
    try:
        return fourfold(partial(decide, small, CONTEXT), partial(decide, large, CONTEXT))
    finally:
        gc.enable()


@each_family
def test_four_times_the_entries_are_about_four_times_the_work(family: Family) -> None:
    """Counting lines does not see what one line searches or copies."""
    assert _growth(family) < FOURFOLD


@each_long
def test_four_times_the_letters_are_about_four_times_the_work(family: Family) -> None:
    """The same of texts."""
    assert _growth(family) < FOURFOLD
