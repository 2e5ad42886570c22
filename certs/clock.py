"""The clock, which tests replace; how long items have been there; and pauses between attempts."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta


class Clock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time of day, for certificates; it may be wrong, and may jump."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never decrease, to measure durations."""
        return time.monotonic()


class ObservedDurations:
    """How long each item has been there, as far as observed: without a gap, until now.

    The duration of an item that an observation lacked starts over, and all durations do after more
    than `longest_silence` without an observation.
    """

    def __init__(self, clock: Clock, longest_silence: timedelta) -> None:
        """Start without items."""
        self._clock = clock
        self._longest_silence = longest_silence.total_seconds()
        self._first: dict[str, float] = {}
        self._last = 0.0
        self._revision = ""

    def observe(self, items: Iterable[str], revision: str = "") -> None:
        """Record that these items, and no others, are there now.

        `revision`: the revision of the object that contains them. If it has changed, an item may
        have been removed and restored since the last observation, so all items start over.
        """
        now = self._clock.monotonic()
        unbroken = revision == self._revision and now - self._last <= self._longest_silence
        earlier = self._first if unbroken else {}
        self._first = {item: earlier.get(item, now) for item in items}
        self._last, self._revision = now, revision

    def of(self, item: str) -> timedelta | None:
        """Return how long an item has been there; None if the last observation lacked it."""
        first = self._first.get(item)
        return None if first is None else timedelta(seconds=self._clock.monotonic() - first)


# Exponential backoff with jitter, so that replicas do not retry at the same moment.

#: Seconds, before jitter.
MIN_PAUSE, MAX_PAUSE = 0.25, 10.0


def delays() -> Iterator[float]:
    """Yield the seconds before each retry: doubled up to `MAX_PAUSE`, minus up to a half."""
    seconds = MIN_PAUSE
    while True:
        yield seconds * random.uniform(0.5, 1.0)  # noqa: S311 -- no secret
        seconds = min(2 * seconds, MAX_PAUSE)
