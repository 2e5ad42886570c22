"""A source that counts the nodes of each fabric in use, for the metrics.

Counting takes 50 ms with 10,000 nodes, so neither a scrape nor the event loop does it:
`poll` runs in a thread, and counts only if nodes or fabrics have changed.
"""

from __future__ import annotations

from webhook.model.inventory import build_inventory
from webhook.serve.log import Log
from webhook.serve.metrics import FabricNodeCounts, Metrics
from webhook.serve.state import PreparedConfiguration, State


class FabricNodeCounter:
    """The source: it counts again when the nodes or the fabrics in use have changed."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._counted: PreparedConfiguration | None = None
        self._counts: dict[str, FabricNodeCounts] = {}

    def start(self) -> None:
        """Do nothing: `poll` counts."""

    def stop(self) -> None:
        """Do nothing."""

    def poll(self) -> bool:
        """Count the nodes, and return whether nodes or fabrics have changed."""
        used = self._state.snapshot.current_configuration
        if used is self._counted:
            return False
        self._counted, self._counts = used, node_counts(used)
        return True

    def apply(self, metrics: Metrics, log: Log) -> None:
        """Show the latest counts."""
        del log  # which nodes lack a resource is in the status and in `rdma-webhook fabrics`
        metrics.fabrics.show(self._counts)


def node_counts(used: PreparedConfiguration | None) -> dict[str, FabricNodeCounts]:
    """Return fabric → numbers of its nodes; {} while the nodes are unknown."""
    if used is None or not used.nodes:
        return {}
    return {
        capacity.name: FabricNodeCounts(
            nodes=len(capacity.nodes),
            without_resource=len(capacity.nodes_without_resource),
            unavailable=len(capacity.unavailable_nodes),
        )
        for capacity in build_inventory(used.nodes, used.compiled).fabrics
    }
