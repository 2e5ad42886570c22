"""Exponential backoff with jitter, so that replicas do not retry at the same moment."""

from __future__ import annotations

import random
from collections.abc import Iterator

#: Seconds, before jitter.
FIRST, LONGEST = 0.25, 10.0


def delays() -> Iterator[float]:
    """Yield the seconds to wait before each retry: doubled up to `LONGEST`, less up to a half."""
    seconds = FIRST
    while True:
        yield seconds * random.uniform(0.5, 1.0)  # noqa: S311 -- no secret
        seconds = min(2 * seconds, LONGEST)
