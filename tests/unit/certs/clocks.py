"""A clock that moves only when a test lets time pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from certs.clock import Clock


class Ticking(Clock):
    """Starts `error` off the true time: real certificates are valid if that is little."""

    def __init__(self, error: timedelta = timedelta(0)) -> None:
        self.passed = timedelta(0)
        self._start = datetime.now(UTC) + error

    def now(self) -> datetime:
        """Return the clock's time."""
        return self._start + self.passed

    def monotonic(self) -> float:
        """Return seconds from an arbitrary start."""
        return 1000 + self.passed.total_seconds()

    def tick(self, seconds: float) -> None:
        """Let time pass."""
        self.passed += timedelta(seconds=seconds)
