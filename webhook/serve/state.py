"""The state behind the listeners: a snapshot, and `advance`, which makes the next one by an event.

A configuration is upcoming for some seconds, since another replica may use it already; then it is
current, and for a minute after that retired: the first call for a pod may have been decided by it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from webhook.decide.scope import Context
from webhook.decide.status_text import configuration_named_in
from webhook.model.claim_facts import KnownClaims
from webhook.model.facts import Facts
from webhook.model.pod import PodManifest
from webhook.serve.former import Inventories, Nodes, PreparedConfiguration, RetiredConfigurations
from webhook.serve.namespace_waits import PendingFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that decisions depend on besides the pod."""

    #: The configuration in use; None without a valid one that has fabrics.
    current: PreparedConfiguration | None = None
    #: Why there is none and what to do, for whoever creates a pod; "" if there is one.
    missing: str = "its configuration has not been read yet"
    #: Configurations that come into use in a moment, by hash.
    upcoming: Mapping[str, PreparedConfiguration] = field(default_factory=dict)
    retired: RetiredConfigurations = field(default_factory=RetiredConfigurations)
    #: The latest facts; a configuration may still have an inventory of older nodes.
    facts: Facts = field(default_factory=Facts)
    #: The ResourceClaimTemplates and ResourceClaims; None: use those of the facts.
    claims: KnownClaims | None = None

    def context_for(self, namespace: str, pod: PodManifest, now: float) -> Context | None:
        """Return what a decision on a pod depends on at `now`; None without a configuration."""
        configuration = self._configuration_for(pod, now)
        if configuration is None:
            return None
        facts = self.facts.namespace(namespace)
        if self.claims is not None:
            facts = replace(facts, claims=self.claims.of(namespace))
        return Context(configuration.fabrics, facts, configuration.inventory)

    def _configuration_for(self, pod: PodManifest, now: float) -> PreparedConfiguration | None:
        """Choose the configuration that the pod's status names, or the current one."""
        current, named = self.current, configuration_named_in(pod)
        if not named or (current is not None and named == current.config_hash):
            return current
        return self.retired.get(named, now) or self.upcoming.get(named) or current

    @property
    def live(self) -> list[PreparedConfiguration]:
        """The current configuration and the upcoming ones, which keep up with the nodes."""
        return [each for each in (self.current, *self.upcoming.values()) if each is not None]


class ConfigurationLearnt(NamedTuple):
    """A configuration comes into use in a moment; another replica may use it already."""

    configuration: PreparedConfiguration


class ConfigurationApplied(NamedTuple):
    """A configuration comes into use."""

    configuration: PreparedConfiguration


class ConfigurationMissing(NamedTuple):
    """No configuration can be used."""

    reason: str


class NamespacesChanged(NamedTuple):
    """There are other facts on namespaces; nodes come by `NodesChanged` alone."""

    facts: Facts


class NodesChanged(NamedTuple):
    """There are other nodes, with an inventory for each configuration that had none of them."""

    nodes: Nodes
    inventories: Inventories


class ClaimsChanged(NamedTuple):
    """There are other ResourceClaimTemplates or ResourceClaims; None: they are not watched."""

    claims: KnownClaims | None


ConfigurationEvent = ConfigurationLearnt | ConfigurationApplied | ConfigurationMissing
Event = ConfigurationEvent | NamespacesChanged | NodesChanged | ClaimsChanged


def advance(snapshot: Snapshot, event: Event, now: float) -> Snapshot:
    """Return the snapshot after an event at `now`, in seconds of a clock that never goes back.

    Takes microseconds however large the cluster is: whoever sends the event made the inventory.
    """
    match event:
        case ConfigurationLearnt(configuration):
            added = {configuration.config_hash: configuration}
            return replace(snapshot, upcoming={**snapshot.upcoming, **added})
        case ConfigurationApplied(configuration):
            return _applied(snapshot, configuration, now)
        case ConfigurationMissing(reason):
            retired = _retired(snapshot, None, now)
            return replace(snapshot, current=None, missing=reason, retired=retired)
        case NamespacesChanged(facts):
            return replace(snapshot, facts=replace(facts, nodes=snapshot.facts.nodes))
        case NodesChanged(nodes, inventories):
            return _with_nodes(snapshot, nodes, inventories)
        case ClaimsChanged(claims):
            return replace(snapshot, claims=claims)


def _applied(snapshot: Snapshot, configuration: PreparedConfiguration, now: float) -> Snapshot:
    """Make a configuration current; the nodes of the upcoming one may be newer."""
    upcoming = dict(snapshot.upcoming)
    latest = upcoming.pop(configuration.config_hash, configuration)
    current = replace(configuration, nodes=latest.nodes, inventory=latest.inventory)
    retired = _retired(snapshot, current.config_hash, now)
    return replace(snapshot, current=current, missing="", upcoming=upcoming, retired=retired)


def _retired(snapshot: Snapshot, next_hash: str | None, now: float) -> RetiredConfigurations:
    """Add the current configuration, unless the next one means the same."""
    current = snapshot.current
    if current is None or current.config_hash == next_hash:
        return snapshot.retired
    return snapshot.retired.adding(current, now)


def _with_nodes(snapshot: Snapshot, nodes: Nodes, inventories: Inventories) -> Snapshot:
    """Replace the nodes; a retired configuration stays as its first calls were decided."""
    current = snapshot.current and snapshot.current.with_nodes(nodes, inventories)
    upcoming = {key: each.with_nodes(nodes, inventories) for key, each in snapshot.upcoming.items()}
    facts = replace(snapshot.facts, nodes=nodes)
    return replace(snapshot, current=current, upcoming=upcoming, facts=facts)


class ReadinessCheck(NamedTuple):
    """One line of `/readyz`."""

    name: str
    #: False if the server must not get requests.
    ready: bool
    detail: str


class State:
    """The state of one server: any thread may read it; the event loop's thread sends events."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without a configuration and facts; `clock`: seconds, never going back."""
        self._clock = clock
        self.snapshot = Snapshot()
        #: Requests that wait for missing facts; None if no watch delivers any.
        self.pending_facts: PendingFacts | None = None
        self.draining = False
        #: The other checks of `/readyz`: configuration, facts, certificate.
        self.probes: list[Callable[[], ReadinessCheck]] = []

    def send(self, event: Event) -> None:
        """Change the snapshot."""
        self.snapshot = advance(self.snapshot, event, self._clock())

    def context_for(self, namespace: str, pod: PodManifest) -> Context | None:
        """Return what a decision on a pod depends on now; None without a configuration."""
        return self.snapshot.context_for(namespace, pod, self._clock())

    def checks(self) -> list[ReadinessCheck]:
        """Return the results of all probes, and whether the server is draining."""
        detail = "draining" if self.draining else "ok"
        serving = ReadinessCheck("serving", not self.draining, detail)
        return [*(probe() for probe in self.probes), serving]
