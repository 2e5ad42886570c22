"""How long everything lives, and how long is waited for others to see a change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

#: Go's HTTP client drops a connection that was idle for so long (net/http, DefaultTransport).
IDLE = timedelta(seconds=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """The times of certificates, each a default that only tests have a reason to change."""

    #: Of a CA; its successor comes after two thirds of it.
    ca: timedelta = timedelta(days=365)
    #: Of what a replica serves; replaced after two thirds of it.
    leaf: timedelta = timedelta(hours=24)
    #: Until every API server uses a `caBundle` that one of them shows. Nobody can observe it.
    propagation: timedelta = timedelta(minutes=2)
    #: Between two looks at the Secret and at `caBundle`.
    round: timedelta = timedelta(seconds=5)
    idle: timedelta = IDLE

    @property
    def drain(self) -> timedelta:
        """Until every replica that sees the Secret has left an old CA, and its connections too."""
        return self.propagation + 3 * self.round + self.idle

    @property
    def problem(self) -> str:
        """Why these do not go together, as one line; "" if they do."""
        least = 3 * (self.propagation + 3 * self.round)
        if min(self.ca, self.leaf, self.round) <= timedelta(0) or self.propagation < timedelta(0):
            return "a time that is not above zero"
        if self.ca < least:
            seconds = least.total_seconds()
            return f"a CA needs {seconds:g} s at least, to be replaced in the last third of it"
        if self.leaf < 6 * self.round:
            return f"a leaf needs {6 * self.round.total_seconds():g} s at least, six rounds"
        return ""
