"""Wait longer after each failure, and never all replicas at the same moment."""

from __future__ import annotations

import random
from collections.abc import Iterator

FIRST, LONGEST = 0.25, 10.0  # seconds


def delays() -> Iterator[float]:
    """Yield seconds to wait: doubling up to `LONGEST`, each with up to half of it taken off."""
    seconds = FIRST
    while True:
        yield seconds * random.uniform(0.5, 1.0)  # noqa: S311 -- no secret
        seconds = min(2 * seconds, LONGEST)
