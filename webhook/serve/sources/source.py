"""The interface of sources, and reports on their informers."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from webhook.errors import crash_summary
from webhook.kube.informers import Informers
from webhook.kube.watched_resources import WatchedResource
from webhook.model.names import counted
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics

# Reports on informers: in the log at each change, and in a line of `/readyz`.

#: Seconds after which facts count as stale. The API server sends something each minute.
STALE = 180.0


class _Report(NamedTuple):
    """The state of informers, as last written to the log."""

    synced: bool = False
    stale: bool = False
    problem: str = ""


class ProblemLog:
    """A log of each problem of informers, and of its end."""

    def __init__(self, informers: Informers, noun: str) -> None:
        """Report on informers; `noun`: their name in messages."""
        self._informers = informers
        self._noun = noun
        #: The last reported problem; "" if all was well.
        self.reported = ""

    def report(self, problem: str, metrics: Metrics, log: Log) -> None:
        """Report the current problem, "" without one: one line for each change."""
        before, self.reported = self.reported, problem
        if problem and problem != before:
            log.write("warning", f"{self._noun} not current", problem=problem)
            self._report_defects(metrics, log)
        elif before and not problem:
            log.write("info", f"{self._noun} current")

    def _report_defects(self, metrics: Metrics, log: Log) -> None:
        for reflector in self._informers.reflectors:
            if reflector.defect is not None:
                metrics.internal_errors.inc()
                log.write("error", "internal error", **crash_summary(reflector.defect))


class InformersLog:
    """A log of whether informers are synced and current."""

    def __init__(self, informers: Informers, noun: str) -> None:
        """Report on informers; `noun`: their name in messages, in the plural."""
        self._informers = informers
        self._noun = noun
        self._reported = _Report()
        self._problems = ProblemLog(informers, noun)

    @property
    def age(self) -> float:
        """Seconds since the last message of the API server, in the longest silent watch."""
        contacts = [
            reflector.last_contact
            for reflector in self._informers.reflectors
            if reflector.last_contact is not None
        ]
        return self._informers.clock() - min(contacts) if contacts else 0.0

    @property
    def problem(self) -> str:
        """The current problem of one of the watches; "" if all is well."""
        problems = (
            f"{reflector.watched.resource}: {reflector.problem}"
            for reflector in self._informers.reflectors
            if reflector.problem
        )
        return next(problems, "")

    def summary_of(self, kind: WatchedResource[object]) -> str:
        """Return the number of objects of a kind, their age, and a problem, as a sentence."""
        count = counted(self._objects()[kind.resource], kind.resource.removesuffix("s"))
        detail = f"{count}, last update {self.age:.0f} s ago"
        return f"{detail}; still in use ({self.problem})" if self.problem else detail

    def has_unreported_change(self, *, synced: bool) -> bool:
        """Return whether there is a change to report; `synced`: whether all kinds are listed."""
        return self._now(synced) != self._reported

    def report(self, metrics: Metrics, log: Log, *, synced: bool) -> None:
        """Report the current state: one line for each change."""
        before, now = self._reported, self._now(synced)
        self._reported = now
        if now.synced and not before.synced:
            log.write("info", f"{self._noun} synced", objects=self._objects())
        self._problems.report(now.problem, metrics, log)
        if now.stale and not before.stale:
            age = round(self.age)
            log.write("warning", f"{self._noun} stale", age_seconds=age, problem=now.problem)

    def _now(self, synced: bool) -> _Report:
        return _Report(synced, self.age > STALE, self.problem)

    def _objects(self) -> dict[str, int]:
        return {
            reflector.watched.resource: reflector.object_count
            for reflector in self._informers.reflectors
        }


# Sources, which keep the state in step with the outside world.


class Source(Protocol):
    """A source, which updates a part of the state or reports on it."""

    def start(self) -> None:
        """Start the work outside the event loop."""

    def stop(self) -> None:
        """Stop that work."""

    def poll(self) -> bool:
        """Return whether there is a change to apply; may block, so call it in a thread."""

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Use or report the change, in the event loop."""
