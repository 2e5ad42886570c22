"""What a server keeps in step with the world outside, and what a feed reports of itself."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from webhook.errors import crash_summary
from webhook.kube.informers import Informers
from webhook.kube.watched_resources import WatchedResource
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics

# What a feed reports: in the log when it changes, and in a line of `/readyz`.

#: What is older is reported as stale. The API server sends something each minute.
STALE = 180.0


class _Told(NamedTuple):
    """The state that was last written to the log."""

    synced: bool = False
    stale: bool = False
    problem: str = ""


class ProblemLog:
    """Reports each problem of a feed, and its end."""

    def __init__(self, feed: Informers, what: str) -> None:
        """Watch a feed; `what`: the noun of its messages."""
        self._feed = feed
        self._what = what
        #: The problem that was told last; "" if all was well.
        self.told = ""

    def tell(self, problem: str, metrics: Metrics, log: Log) -> None:
        """Report the present problem, "" if there is none: one line for each change."""
        before, self.told = self.told, problem
        if problem and problem != before:
            log.write("warning", f"{self._what} not current", problem=problem)
            self._tell_defects(metrics, log)
        elif before and not problem:
            log.write("info", f"{self._what} current")

    def _tell_defects(self, metrics: Metrics, log: Log) -> None:
        for reflector in self._feed.reflectors:
            if reflector.defect is not None:
                metrics.internal_errors.inc()
                log.write("error", "internal error", **crash_summary(reflector.defect))


class FeedLog:
    """Reports whether a feed keeps up."""

    def __init__(self, feed: Informers, what: str) -> None:
        """Watch a feed; `what`: the noun of its messages, in the plural."""
        self._feed = feed
        self._what = what
        self._told = _Told()
        self._problems = ProblemLog(feed, what)

    @property
    def age(self) -> float:
        """Seconds since the API server last sent something, in the watch silent for longest."""
        heard = [one.heard for one in self._feed.reflectors if one.heard is not None]
        return self._feed.clock() - min(heard) if heard else 0.0

    @property
    def problem(self) -> str:
        """What went wrong last in one of the watches, "" if all is well."""
        problems = (
            f"{one.kind.resource}: {one.problem}" for one in self._feed.reflectors if one.problem
        )
        return next(problems, "")

    def current(self, kind: WatchedResource[object]) -> str:
        """Say how many objects of a kind are known, how old that is, and why it is not newer."""
        many = self._objects()[kind.resource]
        detail = f"{many} {kind.resource}, last update {self.age:.0f} s ago"
        return f"{detail}; still in use, because: {self.problem}" if self.problem else detail

    def pending(self, *, synced: bool) -> bool:
        """Return whether there is something to tell; `synced`: the first lists are there."""
        return self._now(synced) != self._told

    def tell(self, metrics: Metrics, log: Log, *, synced: bool) -> None:
        """Report the current state: one line for each change."""
        before, now = self._told, self._now(synced)
        self._told = now
        if now.synced and not before.synced:
            log.write("info", f"{self._what} synced", objects=self._objects())
        self._problems.tell(now.problem, metrics, log)
        if now.stale and not before.stale:
            age = round(self.age)
            log.write("warning", f"{self._what} stale", age_seconds=age, problem=now.problem)

    def _now(self, synced: bool) -> _Told:
        return _Told(synced, self.age > STALE, self.problem)

    def _objects(self) -> dict[str, int]:
        return {one.kind.resource: one.objects for one in self._feed.reflectors}


# What a server keeps in step with the world outside, and how.


class Source(Protocol):
    """Some of the state, or of what is told about it."""

    def start(self) -> None:
        """Start the work that runs beside the event loop."""

    def stop(self) -> None:
        """Stop that work."""

    def poll(self) -> bool:
        """Return whether there is something to apply; may block, so not in the event loop."""

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Use or report it, in the event loop."""
