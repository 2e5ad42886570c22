"""The state of the server: a snapshot, and `advance`, which makes the next one from an event.

A configuration is upcoming for some seconds, since another replica may use it already; then it is
current. Once replaced, it stays retired for a minute, because it may have decided the first call
for a pod.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from webhook.config.load import FabricsText
from webhook.decide.analysis import DecisionInput
from webhook.decide.status import configuration_named_in
from webhook.model.claims import KnownClaims
from webhook.model.fabric import CompiledConfiguration
from webhook.model.facts import Facts
from webhook.model.nodes import FabricIndex, Node, build_fabric_index
from webhook.model.pod import PodManifest
from webhook.serve.waiting_requests import WaitingRequests
from webhook.text.readiness import ReadinessCheck

# Configurations with their indexes of the nodes, current or recently replaced.
#
# The API server may call twice for one pod, and the second call may reach a replica that has
# replaced the configuration of the first. That replica then decides with the earlier configuration
# and index: with newer ones, the pod would get a part of each.

#: Seconds. By default, an API server spends at most a minute on a request (`--request-timeout`).
RETENTION = 60.0
#: The maximum number of retired configurations, each with its index.
MAX_RETIRED = 32
#: Nodes by name.
Nodes = Mapping[str, Node]
#: The hash of a configuration → an index of the nodes by its fabrics.
FabricIndexes = Mapping[str, FabricIndex]


@dataclass(frozen=True, slots=True)
class PreparedConfiguration:
    """A configuration for decisions; nodes and index are replaced together."""

    compiled: CompiledConfiguration
    nodes: Nodes
    fabric_index: FabricIndex
    #: The text of the fabrics, for the worker that computes previews.
    fabrics_text: FabricsText

    @classmethod
    def of(
        cls, compiled: CompiledConfiguration, nodes: Nodes, fabrics_text: FabricsText
    ) -> PreparedConfiguration:
        """Prepare it; takes 50 ms with 10,000 nodes, so call it outside the event loop."""
        return cls(compiled, nodes, build_fabric_index(nodes, compiled), fabrics_text)

    @property
    def config_hash(self) -> str:
        """The hash of the fabrics' meaning."""
        return self.compiled.config_hash

    def with_nodes(self, nodes: Nodes, fabric_indexes: FabricIndexes) -> PreparedConfiguration:
        """Return a copy with other nodes, if there is an index for these fabrics."""
        fabric_index = fabric_indexes.get(self.config_hash)
        return (
            self if fabric_index is None else replace(self, nodes=nodes, fabric_index=fabric_index)
        )


@dataclass(frozen=True, slots=True)
class RetiredConfigurations:
    """The configurations of the last minute, each in its state at retirement."""

    #: Hash → retirement time in seconds of the clock, and the configuration; the oldest first.
    _by_hash: Mapping[str, tuple[float, PreparedConfiguration]] = field(default_factory=dict)

    def retire(self, configuration: PreparedConfiguration, now: float) -> RetiredConfigurations:
        """Return a copy with a configuration that retires now.

        Expired entries and those beyond MAX_RETIRED are dropped.
        """
        retired = {
            key: entry for key, entry in self._by_hash.items() if now - entry[0] <= RETENTION
        }
        retired.pop(configuration.config_hash, None)
        retired[configuration.config_hash] = (now, configuration)
        return RetiredConfigurations(dict([*retired.items()][-MAX_RETIRED:]))

    def get(self, config_hash: str, now: float) -> PreparedConfiguration | None:
        """Return the configuration with this hash, if it retired within the last minute."""
        since, configuration = self._by_hash.get(config_hash, (now, None))
        return configuration if now - since <= RETENTION else None


# The snapshot, the events that change it, and the state that requests read.


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The input of decisions besides the pod."""

    #: The configuration in use; None without a valid one that has fabrics.
    current_configuration: PreparedConfiguration | None = None
    #: The reason and the remedy for its absence, for the creator of a pod; "" if there is one.
    reason_without_fabrics: str = "its configuration has not been read yet"
    #: Configurations about to come into use, by hash.
    upcoming: Mapping[str, PreparedConfiguration] = field(default_factory=dict)
    retired_configurations: RetiredConfigurations = field(default_factory=RetiredConfigurations)
    #: The latest facts; a configuration may still have an index of older nodes.
    facts: Facts = field(default_factory=Facts)
    #: The ResourceClaimTemplates and ResourceClaims; None to use the facts' own.
    claims: KnownClaims | None = None

    def decision_input_for(
        self, namespace: str, pod: PodManifest, now: float
    ) -> DecisionInput | None:
        """Return the input of a decision at `now`; None without a configuration."""
        configuration = self._configuration_for(pod, now)
        if configuration is None:
            return None
        facts = self.facts.namespace(namespace)
        if self.claims is not None:
            facts = replace(facts, claim_facts=self.claims.of(namespace))
        return DecisionInput(configuration.compiled, facts, configuration.fabric_index)

    def _configuration_for(self, pod: PodManifest, now: float) -> PreparedConfiguration | None:
        """Return the configuration named by the pod's status, or the current one."""
        current, named_hash = self.current_configuration, configuration_named_in(pod)
        if not named_hash or (current is not None and named_hash == current.config_hash):
            return current
        return (
            self.retired_configurations.get(named_hash, now)
            or self.upcoming.get(named_hash)
            or current
        )

    @property
    def current_and_upcoming(self) -> list[PreparedConfiguration]:
        """The current and the upcoming configurations, which follow changes of the nodes."""
        return [
            configuration
            for configuration in (self.current_configuration, *self.upcoming.values())
            if configuration is not None
        ]


class ConfigurationLearned(NamedTuple):
    """A configuration is about to come into use; another replica may use it already."""

    configuration: PreparedConfiguration


class ConfigurationApplied(NamedTuple):
    """A configuration comes into use."""

    configuration: PreparedConfiguration


class ConfigurationMissing(NamedTuple):
    """No configuration can be used."""

    reason: str


class NamespacesChanged(NamedTuple):
    """The facts on namespaces have changed; nodes come by `NodesChanged` alone."""

    facts: Facts


class NodesChanged(NamedTuple):
    """The nodes have changed; `fabric_indexes` has one for each configuration that lacked it."""

    nodes: Nodes
    fabric_indexes: FabricIndexes


class ClaimsChanged(NamedTuple):
    """The ResourceClaimTemplates or ResourceClaims have changed; None if unwatched."""

    claims: KnownClaims | None


ConfigurationEvent = ConfigurationLearned | ConfigurationApplied | ConfigurationMissing
Event = ConfigurationEvent | NamespacesChanged | NodesChanged | ClaimsChanged


def advance(snapshot: Snapshot, event: Event, now: float) -> Snapshot:
    """Return the snapshot after an event at `now`, in seconds of a monotonic clock.

    Takes microseconds for clusters of any size: the sender of the event made the index.
    """
    match event:
        case ConfigurationLearned(configuration):
            added = {configuration.config_hash: configuration}
            return replace(snapshot, upcoming={**snapshot.upcoming, **added})
        case ConfigurationApplied(configuration):
            return _apply(snapshot, configuration, now)
        case ConfigurationMissing(reason):
            retired = _retire(snapshot, None, now)
            return replace(
                snapshot,
                current_configuration=None,
                reason_without_fabrics=reason,
                retired_configurations=retired,
            )
        case NamespacesChanged(facts):
            return replace(snapshot, facts=replace(facts, nodes=snapshot.facts.nodes))
        case NodesChanged(nodes, fabric_indexes):
            return _with_nodes(snapshot, nodes, fabric_indexes)
        case ClaimsChanged(claims):
            return replace(snapshot, claims=claims)


def _apply(snapshot: Snapshot, configuration: PreparedConfiguration, now: float) -> Snapshot:
    """Make a configuration current; its upcoming copy may have newer nodes."""
    upcoming = dict(snapshot.upcoming)
    latest = upcoming.pop(configuration.config_hash, configuration)
    current = replace(configuration, nodes=latest.nodes, fabric_index=latest.fabric_index)
    retired = _retire(snapshot, current.config_hash, now)
    return replace(
        snapshot,
        current_configuration=current,
        reason_without_fabrics="",
        upcoming=upcoming,
        retired_configurations=retired,
    )


def _retire(snapshot: Snapshot, next_hash: str | None, now: float) -> RetiredConfigurations:
    """Retire the current configuration, unless the next one has the same meaning."""
    current = snapshot.current_configuration
    if current is None or current.config_hash == next_hash:
        return snapshot.retired_configurations
    return snapshot.retired_configurations.retire(current, now)


def _with_nodes(snapshot: Snapshot, nodes: Nodes, fabric_indexes: FabricIndexes) -> Snapshot:
    """Replace the nodes, except in retired configurations.

    A pod's second call must be decided with the same nodes as its first.
    """
    before = snapshot.current_configuration
    current = before and before.with_nodes(nodes, fabric_indexes)
    upcoming = {
        key: configuration.with_nodes(nodes, fabric_indexes)
        for key, configuration in snapshot.upcoming.items()
    }
    facts = replace(snapshot.facts, nodes=nodes)
    return replace(snapshot, current_configuration=current, upcoming=upcoming, facts=facts)


class State:
    """The state of a server: any thread may read it; the event loop's thread sends events."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without a configuration and facts; `clock` returns monotonic seconds."""
        self._clock = clock
        self.snapshot = Snapshot()
        #: Requests that wait for missing facts; None without a watch.
        self.waiting_requests: WaitingRequests | None = None
        self.draining = False
        #: The other checks of `/readyz`: configuration, facts, nodes, permissions, certificate.
        self.probes: list[Callable[[], ReadinessCheck]] = []

    def send(self, event: Event) -> None:
        """Change the snapshot."""
        self.snapshot = advance(self.snapshot, event, self._clock())

    def decision_input_for(self, namespace: str, pod: PodManifest) -> DecisionInput | None:
        """Return the input of a decision on a pod now; None without a configuration."""
        return self.snapshot.decision_input_for(namespace, pod, self._clock())

    def checks(self) -> list[ReadinessCheck]:
        """Return the results of all probes, and whether the server is draining."""
        detail = "draining" if self.draining else "ok"
        serving = ReadinessCheck("serving", not self.draining, detail)
        return [*(probe() for probe in self.probes), serving]
