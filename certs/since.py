"""How long things have been there without a break, as far as somebody looked."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from certs.clock import Clock


class Since:
    """Remembers when each thing was first seen; what is missed at a look begins anew."""

    def __init__(self, clock: Clock, longest_gap: timedelta) -> None:
        """`longest_gap`: between two looks; after a longer one nothing is known any more."""
        self._clock = clock
        self._gap = longest_gap.total_seconds()
        self._first: dict[str, float] = {}
        self._last = 0.0
        self._edition = ""

    def look(self, things: Iterable[str], edition: str = "") -> None:
        """See these, and nothing else.

        `edition`: of where they are. In another one a thing may have been away in between.
        """
        now = self._clock.monotonic()
        unbroken = edition == self._edition and now - self._last <= self._gap
        known = self._first if unbroken else {}
        self._first = {thing: known.get(thing, now) for thing in things}
        self._last, self._edition = now, edition

    def lasted(self, thing: str) -> timedelta | None:
        """Return for how long it has been seen; None if it was not there at the last look."""
        first = self._first.get(thing)
        return None if first is None else timedelta(seconds=self._clock.monotonic() - first)
