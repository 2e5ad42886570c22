"""The lifetimes of certificates, and how long a change takes to reach everybody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

#: Go's HTTP client closes a connection that has been idle this long (net/http, DefaultTransport).
IDLE = timedelta(seconds=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """The durations of an installation; only tests have a reason to change most defaults."""

    #: The lifetime of a CA; the next one is issued after two thirds of it.
    ca: timedelta = timedelta(days=365)
    #: The lifetime of the leaf that a replica serves; it is renewed after two thirds of it.
    leaf: timedelta = timedelta(hours=24)
    #: How long it takes until all API servers use a `caBundle` that one of them already returns; it
    #: cannot be observed.
    propagation: timedelta = timedelta(minutes=2)
    #: The time between two reads of the Secret and of `caBundle`, while they are not watched, and
    #: while a rotation waits for something.
    round_interval: timedelta = timedelta(seconds=5)
    #: The time until an idle connection of the API server is closed.
    idle_connection: timedelta = IDLE

    @property
    def drain(self) -> timedelta:
        """How long a retired CA may still be in use.

        After that, no open connection uses it, and no replica that can read the Secret.
        """
        return self.propagation + 3 * self.round_interval + self.idle_connection

    @property
    def resync(self) -> timedelta:
        """The time between two reads while the objects are watched and nothing changes.

        The reads find changes that a watch missed. The time is much shorter than a drain: a replica
        that missed the beginning of a revocation can still follow it.
        """
        return self.drain / 2

    @property
    def problem(self) -> str:
        """The inconsistency of these durations, as one line; "" if they are consistent."""
        minimum = 3 * (self.propagation + 3 * self.round_interval)
        shortest = min(self.ca, self.leaf, self.round_interval)
        if shortest <= timedelta(0) or self.propagation < timedelta(0):
            return "every duration must be above zero"
        if self.ca < minimum:
            seconds = minimum.total_seconds()
            return (
                f"a CA must last at least {seconds:g} s, so that the last third of its lifetime "
                "suffices to replace it"
            )
        if self.leaf < 6 * self.round_interval:
            seconds = 6 * self.round_interval.total_seconds()
            return f"a leaf must last at least {seconds:g} s (six rounds)"
        return ""
