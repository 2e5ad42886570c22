"""Nodes that are in no fabric, and what is known of their ports."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.diagnose.discover.discovery import Discovery
from webhook.diagnose.discover.plan import Refused
from webhook.diagnose.discover.port_selection import NodeChoice


def unplaced_nodes(found: Discovery) -> Iterator[tuple[str, str]]:
    """Yield each node that is in no fabric, and why."""
    placed = {name for plan in found.fabrics for name in plan.group.nodes}
    refused = {
        name for plan in found.plans if isinstance(plan, Refused) for name in plan.group.nodes
    }
    for choice in found.choices:
        name = choice.node.name
        if name not in placed:
            yield name, "refused, see above" if name in refused else "; ".join(_lacking(choice))


def _lacking(choice: NodeChoice) -> Iterator[str]:
    if not choice.node.ports:
        yield "no RDMA device"
    reasons: dict[str, list[str]] = {}
    for port, because in choice.left_out.items():
        reasons.setdefault(because, []).append(port.name)
    for because, names in reasons.items():
        yield f"{', '.join(names)}: {because}"
