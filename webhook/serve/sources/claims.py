"""Keep up with the ResourceClaimTemplates and ResourceClaims of a cluster, while a fabric has any.

Other sites have no use for them: there, nothing is read. The watch ends a minute after the last
configuration in which a fabric's NICs come by claim, since second calls may need that one so long.
A cluster that does not serve resource.k8s.io/v1 (Kubernetes before 1.34), or does not permit it,
leaves them unknown.
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
from webhook.serve.state import RETENTION, ClaimsChanged, State, claim_key

#: How long changes are collected before they are used.
_WINDOW = 0.01
#: Name → what it requests.
_Requests = dict[str, RequestedClasses]


class ClusterClaims:
    """Watches claims from when a fabric needs them, and as long as one does."""

    def __init__(
        self,
        feeds: Callable[[], Informers],
        state: State,
        metrics: Metrics,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Prepare; `feeds` makes a feed of both kinds, which has not been started."""
        self._feeds = feeds
        self._state = state
        self._metrics = metrics
        self._clock = clock
        self._needed = 0.0  # when a fabric needed them last, by the clock
        self._watch: _ClaimWatch | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Remember the event loop: the watch starts as soon as a fabric has claims."""
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """Stop the watch; does not wait until it has stopped."""
        if self._watch is not None:
            self._watch.feed.stop()

    def poll(self) -> bool:
        """Return whether there is something to do or to report; reads nothing."""
        if self._uses_claims:
            self._needed = self._clock()
        watch = self._watch
        return self._must_start if watch is None else self._must_stop or watch.has_news

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Start or end the watch, and report its state: one line for each change."""
        if self._watch is None and self._must_start:
            self._watch = _ClaimWatch(self._feeds())
            self._metrics.watches.add(self._watch.feed)
            self._watch.feed.start(partial(self._wake, self._watch))
        elif self._watch is not None and self._must_stop:
            self._let_go(self._watch)
            log.write("info", "claims no longer watched")
        elif self._watch is not None:
            self._watch.tell(metrics, log)

    @property
    def _must_start(self) -> bool:
        return self._loop is not None and self._uses_claims

    @property
    def _uses_claims(self) -> bool:
        """Whether the NICs of a fabric, in use or about to be, come by claim."""
        return any(each.fabrics.by_template for each in self._state.snapshot.live)

    @property
    def _must_stop(self) -> bool:
        return self._clock() - self._needed > RETENTION

    def _let_go(self, watch: _ClaimWatch) -> None:
        """End a watch, and forget what it brought."""
        watch.feed.stop()
        self._metrics.watches.remove(watch.feed)
        self._watch = None
        self._state.send(ClaimsChanged(None))

    def _wake(self, watch: _ClaimWatch) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._loop.call_later, _WINDOW, self.take, watch)

    def take(self, watch: _ClaimWatch) -> None:
        """Use the changes that a watch has delivered so far; runs in the event loop."""
        if watch is not self._watch:
            return
        arrived = watch.take()
        self._state.send(ClaimsChanged(watch.known))
        if self._state.pending_facts is not None:
            self._state.pending_facts.arrived(arrived)


class _ClaimWatch:
    """One feed of both kinds, and what it has delivered."""

    def __init__(self, feed: Informers) -> None:
        self.feed = feed
        self._problems = ProblemLog(feed, "claims")
        self._listed: set[str] = set()
        self._complete = False
        #: Namespace → its templates, and its claims.
        self._held: dict[str, tuple[_Requests, _Requests]] = {}
        self._facts: dict[str, ClaimFacts] = {}

    @property
    def has_news(self) -> bool:
        return self._problem != self._problems.told

    def tell(self, metrics: Metrics, log: Log) -> None:
        self._problems.tell(self._problem, metrics, log)

    @property
    def _problem(self) -> str:
        problems = (
            f"{one.kind.resource}: {one.problem}" for one in self.feed.reflectors if one.problem
        )
        return next(problems, "")

    def take(self) -> list[str]:
        """Take the changes; return the keys of the claims that arrived."""
        touched: set[str] = set()
        arrived: list[str] = []
        for kind, changes in self.feed.take():
            self._listed.add(kind.resource)
            touched.update(self._keep(kind.resource, change) for change in changes)
            if kind.resource == CLAIMS.resource:
                arrived += [claim_key(*key) for key, kept in changes if kept is not None]
        complete = self._knows(CLAIM_TEMPLATES.resource)
        if complete != self._complete:
            self._complete, touched = complete, {*self._held}
        made = {space: self._facts_of(space) for space in touched}
        self._facts = {**self._facts, **made}
        return arrived

    @property
    def known(self) -> KnownClaims | None:
        """What is known now; None before the first list, and where neither may be read."""
        arriving = self._knows(CLAIMS.resource)
        if not arriving and not self._complete:
            return None
        return KnownClaims(self._facts, ClaimFacts(complete=self._complete), arriving)

    def _knows(self, resource: str) -> bool:
        """Return whether there has been a list of a kind."""
        absent = any(one.absent for one in self.feed.reflectors if one.kind.resource == resource)
        return resource in self._listed and not absent

    def _keep(self, resource: str, change: Change) -> str:
        """Keep or drop an object; return its namespace."""
        (space, name), kept = change
        both = self._held.setdefault(space, ({}, {}))
        objects = both[resource == CLAIMS.resource]
        if isinstance(kept, tuple):
            (objects[name],) = kept
        else:
            objects.pop(name, None)
        return space

    def _facts_of(self, space: str) -> ClaimFacts:
        templates, claims = self._held[space]
        return ClaimFacts(templates=dict(templates), claims=dict(claims), complete=self._complete)
