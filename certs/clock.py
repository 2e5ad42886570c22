"""What time it is; tests have their own."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class Clock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time of day, for what stands in certificates; it may be wrong, and jump."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that only ever grow, to tell how long something has lasted."""
        return time.monotonic()
