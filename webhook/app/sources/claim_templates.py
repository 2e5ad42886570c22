"""Keep up with the ResourceClaimTemplates of a cluster, once a fabric's NICs come by claim.

Other sites have no use for them: there, nothing is read. A cluster that does not serve
resource.k8s.io/v1 (Kubernetes before 1.34), or does not permit it, leaves them unknown.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from webhook.app.observe.log import Log
from webhook.app.observe.metrics import Metrics
from webhook.app.sources.feed_log import ProblemLog
from webhook.app.state import State
from webhook.decision.claim_facts import ClaimFacts, RequestedClasses
from webhook.kube.feed import Feed
from webhook.kube.reflector import Change

#: How long changes are collected before they are used.
_WINDOW = 0.01


class ClaimTemplates:
    """Uses the changes of a feed, whose only kind they are, from when a fabric needs them."""

    def __init__(self, feed: Feed, state: State, metrics: Metrics) -> None:
        self._feed = feed
        (self._reflector,) = feed.reflectors
        self._state = state
        self._metrics = metrics
        self._held: dict[str, dict[str, RequestedClasses]] = {}  # by namespace, and by name
        self._running = False
        self._problems = ProblemLog(feed, "claim templates")
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Remember the event loop: the feed starts as soon as a fabric has claims."""
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        """Stop the feed; does not wait until it has stopped."""
        self._feed.stop()

    def poll(self) -> bool:
        """Return whether there is something to do or to report; reads nothing."""
        return (
            not self._running and self._needed
        ) or self._reflector.problem != self._problems.told

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Start the feed if it is needed, and report its state: one line for each change."""
        if self._loop is not None and not self._running and self._needed:
            self._running = True
            self._metrics.watches.add(self._feed)
            self._feed.start(self._wake)
        self._problems.tell(self._reflector.problem, metrics, log)

    @property
    def _needed(self) -> bool:
        snapshot = self._state.snapshot
        return snapshot is not None and bool(snapshot.fabrics.by_template)

    def _wake(self) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._loop.call_later, _WINDOW, self.take)

    def take(self) -> None:
        """Use the changes delivered so far; runs in the event loop."""
        changes = [change for _, batch in self._feed.take() for change in batch]
        touched = {self._keep(change) for change in changes}
        if self._reflector.absent:
            self._state.templates = None
            return
        known = dict(self._state.templates or {})
        for space in touched:
            known[space] = ClaimFacts(templates=dict(self._held[space]), complete=True)
        self._state.templates = known

    def _keep(self, change: Change) -> str:
        """Keep or drop a template; return its namespace."""
        (space, name), kept = change
        templates = self._held.setdefault(space, {})
        if kept is None:
            templates.pop(name, None)
        else:
            (templates[name],) = kept
        return space
