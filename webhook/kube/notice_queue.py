"""Notices that wait for a limited rate, fairly between namespaces.

Anybody who creates pods or reaches `/mutate` can cause notices in any number. The source with the
fewest in the last minute is next (of several, the one with the fewest that wait); and if too many
notices wait, the source with the most loses its newest one. In both, the addresses come first, and
then the namespaces of each: so many notices of a namespace delay no other, nor do many namespaces
of an address. (Of queues that share a limited room, to drop from the longest is fair and wastes no
room: Hahne, Kesselman and Mansour, SPAA 2001.)
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from typing import Generic, NamedTuple, TypeVar

#: The number of notices that may leave at once, and the seconds after which one more may.
BURST, INTERVAL = 30, 1.0
#: The maximum number of notices that wait.
PENDING = 400
#: The seconds for which a notice that has left counts against its source.
RECENT_SECONDS = 60.0

_Notice = TypeVar("_Notice")


class Source(NamedTuple):
    """The origin of a notice; the users of all namespaces come with the API server's address."""

    client_address: str
    namespace: str


class NoticeQueue(Generic[_Notice]):
    """A queue for one reader."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        #: In the order of their last turn, or of their arrival.
        self._waiting: dict[Source, deque[_Notice]] = {}
        self._waiting_by_address: Counter[str] = Counter()
        #: The notices of the last RECENT_SECONDS: when each ceases to count, and its source.
        self._recent: deque[tuple[float, Source]] = deque()
        #: The time at which a whole burst may leave again (the generic cell rate algorithm, ITU-T
        #: I.371).
        self._rested = 0.0

    def put(self, source: Source, notice: _Notice) -> _Notice | None:
        """Append a notice without blocking; return the one that was dropped for it, if any.

        That is the notice itself if no source has more than its own.
        """
        with self._changed:
            self._waiting.setdefault(source, deque()).append(notice)
            self._waiting_by_address[source.client_address] += 1
            self._changed.notify()
            is_full = self._waiting_by_address.total() > PENDING
            return self._remove(self._longest(source), newest=True) if is_full else None

    def get(self) -> _Notice:
        """Remove the next notice and return it, as soon as the rate allows."""
        with self._changed:
            while (notice := self.pop(time.monotonic())) is None:
                self._changed.wait(self.seconds_to_wait(time.monotonic()))
        return notice

    def pop(self, now: float) -> _Notice | None:
        """Remove the next notice and return it; None if the rate allows none at this time."""
        if self.seconds_to_wait(now) != 0.0:
            return None
        while self._recent and self._recent[0][0] <= now:
            self._recent.popleft()
        source = self._next()
        self._recent.append((now + RECENT_SECONDS, source))
        self._rested = max(self._rested, now) + INTERVAL
        return self._remove(source)

    def seconds_to_wait(self, now: float) -> float | None:
        """Return for how long the rate allows none; None if no notice waits."""
        earliest = self._rested - (BURST - 1) * INTERVAL
        return max(0.0, earliest - now) if self._waiting else None

    def _next(self) -> Source:
        """Return the source with the fewest recent notices; of several, with the fewest waiting."""
        by_source = Counter(source for _, source in self._recent)
        by_address = Counter(source.client_address for _, source in self._recent)
        return min(
            self._waiting,
            key=lambda source: (
                by_address[source.client_address],
                by_source[source],
                len(self._waiting[source]),
            ),
        )

    def _longest(self, preferred: Source) -> Source:
        """Return the source with the most waiting notices; of several, that one if possible."""
        return max(
            self._waiting,
            key=lambda source: (
                self._waiting_by_address[source.client_address],
                len(self._waiting[source]),
                source == preferred,
            ),
        )

    def _remove(self, source: Source, *, newest: bool = False) -> _Notice:
        """Remove a notice of a source, the oldest or the newest; other sources are next."""
        notices = self._waiting.pop(source)
        notice = notices.pop() if newest else notices.popleft()
        if notices:
            self._waiting[source] = notices  # after all other sources
        self._waiting_by_address[source.client_address] -= 1
        if not self._waiting_by_address[source.client_address]:
            del self._waiting_by_address[source.client_address]
        return notice
