"""A source of ResourceClaimTemplates and ResourceClaims, active while a fabric uses claims.

Other sites have no use for them, so nothing is read there. The watch ends a minute after the last
configuration with NICs requested through claims, because a second call for a pod may need it that
long. In a cluster that does not serve resource.k8s.io/v1 (Kubernetes before 1.34), or does not
permit it, they stay unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic

from webhook.kube.informers import Informers
from webhook.kube.reflector import Change
from webhook.kube.watched_resources import CLAIM_TEMPLATES, CLAIMS
from webhook.model.claims import ClaimFacts, KnownClaims, RequestedClasses
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.sources.source import ProblemLog
from webhook.serve.state import RETENTION, ClaimsChanged, State
from webhook.serve.waiting_requests import claim_key

#: Seconds of collecting changes before their use.
_WINDOW = 0.01
#: Name → requested classes.
_Requests = dict[str, RequestedClasses]


class ClusterClaims:
    """A source that watches claims while a fabric needs them."""

    def __init__(
        self,
        make_informers: Callable[[], Informers],
        state: State,
        metrics: Metrics,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Prepare; `make_informers` makes unstarted informers of both kinds."""
        self._make_informers = make_informers
        self._state = state
        self._metrics = metrics
        self._clock = clock
        self._needed = 0.0  # the time when a fabric last needed claims
        self._watch: _ClaimWatch | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Remember the event loop: the watch starts as soon as a fabric has claims."""
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """Stop the watch, without waiting for its end."""
        if self._watch is not None:
            self._watch.informers.stop()

    def poll(self) -> bool:
        """Return whether there is a change to apply or report; reads nothing."""
        if self._uses_claims:
            self._needed = self._clock()
        watch = self._watch
        return (
            self._must_start if watch is None else self._must_stop or watch.has_unreported_problem
        )

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Start or end the watch, and report its state: one line for each change."""
        if self._watch is None and self._must_start:
            self._watch = _ClaimWatch(self._make_informers())
            self._metrics.watches.add(self._watch.informers)
            self._watch.informers.start(partial(self._wake, self._watch))
        elif self._watch is not None and self._must_stop:
            self._end(self._watch)
            log.write("info", "claims no longer watched")
        elif self._watch is not None:
            self._watch.report(metrics, log)

    @property
    def _must_start(self) -> bool:
        return self._loop is not None and self._uses_claims

    @property
    def _uses_claims(self) -> bool:
        """Whether a current or upcoming fabric has NICs requested through claims."""
        configurations = self._state.snapshot.current_and_upcoming
        return any(configuration.compiled.uses_claims for configuration in configurations)

    @property
    def _must_stop(self) -> bool:
        return self._clock() - self._needed > RETENTION

    def _end(self, watch: _ClaimWatch) -> None:
        """End a watch, and drop its objects."""
        watch.informers.stop()
        self._metrics.watches.remove(watch.informers)
        self._watch = None
        self._state.send(ClaimsChanged(None))

    def _wake(self, watch: _ClaimWatch) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._loop.call_later, _WINDOW, self.use_changes, watch)

    def use_changes(self, watch: _ClaimWatch) -> None:
        """Use the delivered changes of a watch; runs in the event loop."""
        if watch is not self._watch:
            return
        arrived = watch.take_changes()
        self._state.send(ClaimsChanged(watch.claims))
        if self._state.waiting_requests is not None:
            self._state.waiting_requests.resume(arrived)


class _ClaimWatch:
    """Informers of both kinds, with the delivered objects."""

    def __init__(self, informers: Informers) -> None:
        self.informers = informers
        self._problems = ProblemLog(informers, "claims")
        self._listed: set[str] = set()
        self._templates_listed = False
        #: Namespace → its templates, and its claims.
        self._requests: dict[str, tuple[_Requests, _Requests]] = {}
        self._facts: dict[str, ClaimFacts] = {}

    @property
    def has_unreported_problem(self) -> bool:
        """Whether the problem of the watch is another than the last one that was reported."""
        return self._problem != self._problems.reported

    def report(self, metrics: Metrics, log: Log) -> None:
        self._problems.report(self._problem, metrics, log)

    @property
    def _problem(self) -> str:
        problems = (
            f"{reflector.watched.resource}: {reflector.problem}"
            for reflector in self.informers.reflectors
            if reflector.problem
        )
        return next(problems, "")

    def take_changes(self) -> list[str]:
        """Take the changes; return the keys of new claims."""
        touched: set[str] = set()
        arrived: list[str] = []
        for kind, changes in self.informers.take_changes():
            self._listed.add(kind.resource)
            touched.update(self._keep(kind.resource, change) for change in changes)
            if kind.resource == CLAIMS.resource:
                arrived += [
                    claim_key(*key) for key, projection in changes if projection is not None
                ]
        templates_listed = self._has_listed(CLAIM_TEMPLATES.resource)
        if templates_listed != self._templates_listed:
            self._templates_listed, touched = templates_listed, {*self._requests}
        updates = {namespace: self._facts_of(namespace) for namespace in touched}
        self._facts = {**self._facts, **updates}
        return arrived

    @property
    def claims(self) -> KnownClaims | None:
        """The latest claims; None before the first list, or if neither kind may be read."""
        are_watched = self._has_listed(CLAIMS.resource)
        if not are_watched and not self._templates_listed:
            return None
        return KnownClaims(
            self._facts, ClaimFacts(has_all_templates=self._templates_listed), are_watched
        )

    def _has_listed(self, resource: str) -> bool:
        """Return whether a kind has been listed."""
        kind_unavailable = any(
            reflector.absent
            for reflector in self.informers.reflectors
            if reflector.watched.resource == resource
        )
        return resource in self._listed and not kind_unavailable

    def _keep(self, resource: str, change: Change) -> str:
        """Store or drop an object; return its namespace."""
        (namespace, name), projection = change
        requests = self._requests.setdefault(namespace, ({}, {}))
        objects = requests[resource == CLAIMS.resource]
        if isinstance(projection, tuple):  # its only element is the requests, which may be empty
            (objects[name],) = projection
        else:
            objects.pop(name, None)
        return namespace

    def _facts_of(self, namespace: str) -> ClaimFacts:
        templates, claims = self._requests[namespace]
        return ClaimFacts(
            templates=dict(templates), claims=dict(claims), has_all_templates=self._templates_listed
        )
