"""Notices that wait for a limited rate, fairly between namespaces.

Anybody who creates pods or reaches `/mutate` can cause notices in any number. The namespaces take
turns, and none can use up the rate or the room of the queue: see `Shares`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import Generic, NamedTuple, TypeVar

#: The maximum number of notices in any period of these seconds.
RATE, RATE_SECONDS = 60, 60.0
#: The maximum number of notices that wait.
PENDING = 400

_Notice = TypeVar("_Notice")


class Source(NamedTuple):
    """The origin of a notice; the users of all namespaces come with the API server's address."""

    client_address: str
    namespace: str


class Shares:
    """The numbers that sources have of something limited.

    A source may have one more while twice what it has, what its address has, and what all have add
    up to less than the limit. So a namespace has at most a quarter, an address at most half, and
    the rest is left for others. This is a dynamic threshold (Choudhury and Hahne, IEEE/ACM
    Transactions on Networking, 1998) on two levels.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._numbers: Counter[tuple[str, ...]] = Counter()

    def allow(self, source: Source) -> bool:
        """Return whether a source may have one more."""
        total = sum(self._numbers[group] for group in _groups(source))
        return total + self._numbers[source] < self._limit

    def add(self, source: Source) -> None:
        """Count one more of a source."""
        for group in _groups(source):
            self._numbers[group] += 1

    def remove(self, source: Source) -> None:
        """Count one less of a source."""
        for group in _groups(source):
            self._numbers[group] -= 1
            if not self._numbers[group]:
                del self._numbers[group]


def _groups(source: Source) -> tuple[tuple[str, ...], ...]:
    """Return the groups that a source counts in: all, its address, itself."""
    return (), source[:1], source


class NoticeQueue(Generic[_Notice]):
    """A queue for one reader; the source that has gone longest without a turn is next."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[Source, deque[_Notice]] = {}
        self._pending = Shares(PENDING)
        #: The notices of the last RATE_SECONDS: when each ceases to count, and its source.
        self._recent: deque[tuple[float, Source]] = deque()
        self._rate = Shares(RATE)

    def put(self, source: Source, notice: _Notice) -> bool:
        """Append a notice without blocking; return False if its source has no room left."""
        with self._changed:
            if not self._pending.allow(source):
                return False
            self._pending.add(source)
            self._waiting.setdefault(source, deque()).append(notice)
            self._changed.notify()
        return True

    def get(self) -> _Notice:
        """Remove the next notice and return it, as soon as the rate allows."""
        with self._changed:
            while (notice := self.pop(time.monotonic())) is None:
                self._changed.wait(self.seconds_to_wait(time.monotonic()))
        return notice

    def pop(self, now: float) -> _Notice | None:
        """Remove the next notice and return it; None if the rate allows none at this time."""
        self._forget_until(now)
        source = next(filter(self._rate.allow, self._waiting), None)
        if source is None:
            return None
        notices = self._waiting.pop(source)
        notice = notices.popleft()
        if notices:
            self._waiting[source] = notices  # after all other sources
        self._pending.remove(source)
        self._rate.add(source)
        self._recent.append((now + RATE_SECONDS, source))
        return notice

    def seconds_to_wait(self, now: float) -> float | None:
        """Return for how long the rate allows none; None if no notice waits."""
        return max(0.0, self._recent[0][0] - now) if self._waiting else None

    def _forget_until(self, now: float) -> None:
        while self._recent and self._recent[0][0] <= now:
            self._rate.remove(self._recent.popleft()[1])
