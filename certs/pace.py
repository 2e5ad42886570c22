"""How often a field may be written that somebody else may write as well."""

from __future__ import annotations

from certs.clock import Clock

FIRST, LONGEST = 1.0, 60.0  # seconds
#: What stays for so long, and for twice the last pause, was not undone.
STAYS = 15.0


class Pace:
    """At most a write a second; a pause that doubles while what is written does not stay."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._delay = FIRST
        self._last: float | None = None

    @property
    def pause(self) -> float:
        """How many seconds to wait before the next write; 0 if none."""
        if self._last is None:
            return 0.0
        return max(0.0, self._last + self._delay - self._clock.monotonic())

    def wrote(self) -> None:
        """Count a write."""
        now = self._clock.monotonic()
        soon = self._last is not None and now - self._last < 2 * self._delay + STAYS
        self._delay = min(2 * self._delay, LONGEST) if soon else FIRST
        self._last = now
