"""Sources for namespaces, LimitRanges and quotas, and nodes of the cluster.

Reflectors read in threads. The event loop takes their changes, many at once, and makes a new
snapshot from them. Decisions read only the snapshot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic

from certs.clock import delays
from webhook.config.files import load_facts
from webhook.errors import crash_summary
from webhook.kube.access import IN_CLUSTER
from webhook.kube.informers import FactsStore, Informers, connect_reads
from webhook.kube.watched_resources import CLAIM_TEMPLATES, CLAIMS, NAMESPACES, NODES
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts
from webhook.model.nodes import Node, build_fabric_index
from webhook.serve.log import Log
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources.claims import ClusterClaims
from webhook.serve.sources.source import InformersLog
from webhook.serve.state import (
    FabricIndexes,
    NamespacesChanged,
    Nodes,
    NodesChanged,
    State,
)
from webhook.serve.waiting_requests import WaitingRequests, WaitingRequestsMetric
from webhook.text.readiness import ReadinessCheck

# Namespaces, LimitRanges and quotas.

#: Seconds of collecting changes before their use: a burst makes only one new snapshot.
WINDOW = 0.01


class ClusterFacts:
    """A source of facts from informers that have delivered a list of each kind."""

    def __init__(self, informers: Informers, state: State, metrics: Metrics) -> None:
        self._informers = informers
        self._waiting = WaitingRequests()
        self._state = state
        self._facts_store = FactsStore()
        self._listed: set[str] = set()
        self._reports = InformersLog(informers, "facts")
        self._loop: asyncio.AbstractEventLoop | None = None
        # Use no facts until all have arrived: half of them could mislead a decision.
        state.send(NamespacesChanged(Facts(unlisted_is_unknown=True)))
        state.probes.append(self.check)
        metrics.watches.add(informers)
        metrics.registry.register(WaitingRequestsMetric(self._waiting))

    def start(self) -> None:
        """Start the informers; call this in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._informers.start(self._wake)

    def stop(self) -> None:
        """Stop the informers, without waiting for their end."""
        self._informers.stop()

    def _wake(self) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._loop.call_later, WINDOW, self.use_changes)

    def use_changes(self) -> None:
        """Use the delivered changes; runs in the event loop."""
        batches = self._informers.take_changes()
        self._listed.update(kind.resource for kind, _ in batches)
        changed = self._facts_store.apply(batches)
        if not self.synced:
            return
        self._state.send(NamespacesChanged(self._facts_store.facts))
        self._state.waiting_requests = self._waiting
        self._waiting.resume(changed)

    @property
    def synced(self) -> bool:
        """Whether each kind has been listed."""
        return len(self._listed) == len(self._informers.reflectors)

    def poll(self) -> bool:
        """Return whether there is a change to report; reads no files."""
        return self._reports.has_unreported_change(synced=self.synced)

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report the current state: one line for each change."""
        self._reports.report(metrics, log, synced=self.synced)

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`: ready once each kind has been listed.

        Old facts are better than none: the line shows their age, but the server stays ready.
        """
        problem = self._reports.problem
        if not self.synced:
            return ReadinessCheck("facts", False, problem or "some lists have not been read yet")
        return ReadinessCheck("facts", True, self._reports.summary_of(NAMESPACES))


def fact_sources(
    options: ServeOptions, state: State, metrics: Metrics, environment: Mapping[str, str]
) -> tuple[ClusterFacts | ClusterClaims | ClusterNodes, ...]:
    """Return the sources that follow the cluster; with a file, send its facts to the state instead.

    A process outside a cluster, without a kubeconfig, has no facts on namespaces.
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
    claims = partial(Informers, connect, delays, kinds=[CLAIM_TEMPLATES, CLAIMS])
    nodes = Informers(connect, delays, kinds=[NODES])
    return (
        ClusterFacts(Informers(connect, delays), state, metrics),
        ClusterClaims(claims, state, metrics),
        ClusterNodes(nodes, state, metrics),
    )


# Keep the index from nodes to fabrics in step with the cluster.
#
# Nodes are evidence and nothing more: the server is ready without them, and decides without them
# until their first list is complete, and if they may not be read. Known nodes stay in use while
# the API server is unreachable. An index of 10,000 nodes takes some 80 ms to make, so a
# thread makes it, and pauses much longer after each, so several changes share one. Fabrics about to
# come into use get one, too: they were prepared with the earlier nodes.

#: The minimum number of seconds between two indexes.
PAUSE = 5.0
#: The minimum pause, as a multiple of the time that the last index took: at most 1% of a
#: processor's time.
PAUSE_FACTOR = 100.0


class ClusterNodes:
    """A source of nodes from an informer that has delivered their list."""

    def __init__(
        self,
        informers: Informers,
        state: State,
        metrics: Metrics,
        clock: Callable[[], float] = monotonic,
        pause: float = PAUSE,
    ) -> None:
        """Prepare; `pause`: the minimum number of seconds between two indexes."""
        self._informers = informers
        self._state = state
        self._clock = clock
        self._pause = pause
        self._reports = InformersLog(informers, "nodes")
        self._nodes: dict[str, Node] = {}
        self._changed = False
        self._making: asyncio.Task[None] | None = None
        self._defects: list[Exception] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.synced = False
        state.probes.append(self.check)
        metrics.watches.add(informers)

    def start(self) -> None:
        """Start the informers; call this in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._informers.start(self._wake)

    def stop(self) -> None:
        """Stop the informers, without waiting for their end."""
        self._informers.stop()
        if self._making is not None:
            self._making.cancel()

    def _wake(self) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self.use_changes)

    def use_changes(self) -> None:
        """Use the delivered changes; runs in the event loop."""
        for _, changes in self._informers.take_changes():
            self.synced = True
            self._changed = self._changed or bool(changes)
            for (_, name), node in changes:
                if isinstance(node, Node):
                    self._nodes[name] = node
                else:
                    self._nodes.pop(name, None)
        self._begin()

    @property
    def _is_behind(self) -> bool:
        """Whether fabrics lack an index of the latest nodes."""
        return self._changed or bool(self._without(self._state.snapshot.facts.nodes))

    def _without(self, nodes: Nodes) -> dict[str, CompiledConfiguration]:
        """Return configuration hash → fabrics without an index of these nodes."""
        return {
            configuration.config_hash: configuration.compiled
            for configuration in self._state.snapshot.current_and_upcoming
            if configuration.nodes is not nodes
        }

    def _begin(self) -> None:
        if self._is_behind and self._making is None:
            self._making = asyncio.ensure_future(self._keep_up())

    async def _keep_up(self) -> None:
        """Make indexes while there are changes, with a pause after each turn."""
        try:
            while self._is_behind:
                began = self._clock()
                await self._make()
                await asyncio.sleep(max(self._pause, PAUSE_FACTOR * (self._clock() - began)))
        finally:
            self._making = None

    async def _make(self) -> None:
        nodes = dict(self._nodes) if self._changed else self._state.snapshot.facts.nodes
        self._changed = False
        try:
            fabric_indexes = await asyncio.to_thread(_fabric_indexes, nodes, self._without(nodes))
        except Exception as error:  # noqa: BLE001 -- the next change must still be handled
            self._defects.append(error)
        else:
            self._state.send(NodesChanged(nodes, fabric_indexes))

    def poll(self) -> bool:
        """Return whether there is a change to report; reads no files."""
        waiting = self._is_behind and self._making is None
        return (
            waiting
            or bool(self._defects)
            or self._reports.has_unreported_change(synced=self.synced)
        )

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Report the current state, one line for each change; start indexes of new fabrics."""
        self._begin()
        self._reports.report(metrics, log, synced=self.synced)
        while self._defects:
            metrics.internal_errors.inc()
            log.write("error", "internal error", **crash_summary(self._defects.pop(0)))

    def check(self) -> ReadinessCheck:
        """Report to `/readyz`, which does not depend on the nodes."""
        problem = self._reports.problem
        if not self.synced:
            return ReadinessCheck("nodes", True, f"not read yet{problem and f' ({problem})'}")
        if problem and not self._nodes:
            return ReadinessCheck("nodes", True, f"none known ({problem})")
        return ReadinessCheck("nodes", True, self._reports.summary_of(NODES))


def _fabric_indexes(nodes: Nodes, by_hash: Mapping[str, CompiledConfiguration]) -> FabricIndexes:
    return {
        config_hash: build_fabric_index(nodes, configuration)
        for config_hash, configuration in by_hash.items()
    }
