"""Configurations with their inventories of the nodes, and those that were replaced a moment ago.

The API server may call twice for one pod, and the second call may reach a replica that has
replaced the configuration of the first. It is then decided with the configuration and the
inventory of before: with others, the pod would get a part of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from webhook.config.load import FabricsText
from webhook.model.fabric import Fabrics
from webhook.model.nodes import Node, NodeInventory, inventory_of

#: Seconds. An API server spends a minute on a request at most, by default (`--request-timeout`).
RETENTION = 60.0
#: Retired configurations, each with its inventory.
MOST_RETIRED = 32
#: By name.
Nodes = Mapping[str, Node]
#: The hash of a configuration → an inventory of the nodes by its fabrics.
Inventories = Mapping[str, NodeInventory]


@dataclass(frozen=True, slots=True)
class PreparedConfiguration:
    """A configuration that decisions can use; nodes and inventory are replaced together."""

    fabrics: Fabrics
    nodes: Nodes
    inventory: NodeInventory
    #: The text of the fabrics, for the worker that computes previews.
    source: FabricsText

    @classmethod
    def of(cls, fabrics: Fabrics, nodes: Nodes, source: FabricsText) -> PreparedConfiguration:
        """Prepare fabrics; takes 50 ms with 10,000 nodes, so not for the event loop."""
        return cls(fabrics, nodes, inventory_of(nodes, fabrics), source)

    @property
    def config_hash(self) -> str:
        """The hash of what the fabrics mean."""
        return self.fabrics.config_hash

    def with_nodes(self, nodes: Nodes, inventories: Inventories) -> PreparedConfiguration:
        """Return a copy with other nodes, if one of the inventories is by these fabrics."""
        inventory = inventories.get(self.config_hash)
        return self if inventory is None else replace(self, nodes=nodes, inventory=inventory)


@dataclass(frozen=True, slots=True)
class RetiredConfigurations:
    """The configurations of the last minute, each as it was when it retired."""

    #: Hash → when it retired, in seconds of the clock, and the configuration; the oldest first.
    _by_hash: Mapping[str, tuple[float, PreparedConfiguration]] = field(default_factory=dict)

    def adding(self, configuration: PreparedConfiguration, now: float) -> RetiredConfigurations:
        """Return a copy with one that retires now; forget those that are too old or too many."""
        rest = {key: entry for key, entry in self._by_hash.items() if now - entry[0] <= RETENTION}
        rest.pop(configuration.config_hash, None)
        rest[configuration.config_hash] = (now, configuration)
        return RetiredConfigurations(dict([*rest.items()][-MOST_RETIRED:]))

    def get(self, config_hash: str, now: float) -> PreparedConfiguration | None:
        """Return the configuration with this hash, if it retired in the last minute."""
        since, configuration = self._by_hash.get(config_hash, (now, None))
        return configuration if now - since <= RETENTION else None
