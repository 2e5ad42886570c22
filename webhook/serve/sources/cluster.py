"""Keep the state in step with the cluster: namespaces, LimitRanges and quotas.

Reflectors read in threads. The event loop takes their changes, many at once, and makes a new
snapshot of them. Decisions read only the snapshot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from certs.backoff import delays
from webhook.config.facts_file import load_facts
from webhook.kube.access import IN_CLUSTER
from webhook.kube.api_reads import connect_reads
from webhook.kube.informers import Feed
from webhook.kube.snapshot import Assembly
from webhook.kube.watched_resources import CLAIM_TEMPLATES, CLAIMS, NAMESPACES, NODES
from webhook.model.facts import Facts
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.namespace_waits import PendingFacts, PendingFactsMetric
from webhook.serve.options import ServeOptions
from webhook.serve.sources.claims import ClusterClaims
from webhook.serve.sources.cluster_nodes import ClusterNodes
from webhook.serve.sources.source import FeedLog
from webhook.serve.state import NamespacesChanged, NodesChanged, ReadinessCheck, State

#: How long changes are collected before they are used: a burst makes only one new snapshot.
WINDOW = 0.01


class ClusterFacts:
    """Uses the changes of a feed, once it has delivered a whole list of each kind."""

    def __init__(self, feed: Feed, state: State, metrics: Metrics) -> None:
        self._feed = feed
        self._pending = PendingFacts()
        self._state = state
        self._assembly = Assembly()
        self._listed: set[str] = set()
        self._told = FeedLog(feed, "facts")
        self._loop: asyncio.AbstractEventLoop | None = None
        # Use no facts until all are there: half of them could mislead a decision.
        state.send(NamespacesChanged(Facts(complete=True)))
        state.probes.append(self.check)
        metrics.watches.add(feed)
        metrics.registry.register(PendingFactsMetric(self._pending))

    def start(self) -> None:
        """Start the feed; call this in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._feed.start(self._wake)

    def stop(self) -> None:
        """Stop the feed; does not wait until it has stopped."""
        self._feed.stop()

    def _wake(self) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._loop.call_later, WINDOW, self.take)

    def take(self) -> None:
        """Use the changes delivered so far; runs in the event loop."""
        batches = self._feed.take()
        self._listed.update(kind.resource for kind, _ in batches)
        changed = self._assembly.take(batches)
        if not self.synced:
            return
        self._state.send(NamespacesChanged(self._assembly.facts))
        self._state.pending_facts = self._pending
        self._pending.arrived(changed)

    @property
    def synced(self) -> bool:
        """Whether there has been a list of each kind."""
        return len(self._listed) == len(self._feed.reflectors)

    def poll(self) -> bool:
        """Return whether there is something to report; reads no files."""
        return self._told.pending(synced=self.synced)

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report the current state: one line for each change."""
        self._told.tell(metrics, log, synced=self.synced)

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`: ready once there has been a list of each kind.

        Old facts are better than none: the line says that they are old, but the server stays ready.
        """
        problem = self._told.problem
        if not self.synced:
            return ReadinessCheck("facts", False, problem or "some lists have not been read yet")
        return ReadinessCheck("facts", True, self._told.current(NAMESPACES))


def facts_of(
    options: ServeOptions, state: State, metrics: Metrics, environment: Mapping[str, str]
) -> tuple[ClusterFacts | ClusterClaims | ClusterNodes, ...]:
    """Read the facts from a file, or return the sources that keep up with the cluster.

    A process outside a cluster, without a kubeconfig, knows nothing about namespaces.
    """
    if options.facts is not None:
        facts = load_facts(options.facts)
        state.send(NamespacesChanged(facts))
        state.send(NodesChanged(facts.nodes, {}))
        return ()
    reachable = options.kubeconfig is not None or IN_CLUSTER in environment
    if options.dev or not options.watch or not reachable:
        return ()
    connect = partial(connect_reads, options.kubeconfig)
    claims = partial(Feed, connect, delays, kinds=[CLAIM_TEMPLATES, CLAIMS])
    nodes = Feed(connect, delays, kinds=[NODES])
    return (
        ClusterFacts(Feed(connect, delays), state, metrics),
        ClusterClaims(claims, state, metrics),
        ClusterNodes(nodes, state, metrics),
    )
