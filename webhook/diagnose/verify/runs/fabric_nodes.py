"""Which nodes of a cluster can measure a fabric, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from webhook.model.counted_names import as_counted
from webhook.model.fabric import Fabric, Fabrics
from webhook.model.facts import Facts, key_of
from webhook.model.nodes import Node
from webhook.model.pod import at


class FabricNodes(NamedTuple):
    """The nodes of a cluster, sorted as people count: node-2 before node-10."""

    fit: tuple[str, ...]
    #: Each other node that belongs to the fabric → why it cannot measure.
    unfit: Mapping[str, str]
    #: All nodes of the cluster.
    known: frozenset[str]


def fabric_nodes(
    items: Iterable[Mapping[str, Any]], fabrics: Fabrics, fabric: Fabric
) -> FabricNodes:
    """Tell which nodes belong to a fabric, offer its RDMA resources, and take pods."""
    listed = {key_of(item)[1]: {**item, "kind": "Node"} for item in items}
    facts = Facts.from_objects(listed.values())
    homes = facts.inventory(fabrics).by_node
    fit: list[str] = []
    unfit: dict[str, str] = {}
    for name in sorted(listed, key=as_counted):
        if fabric.name not in homes[name]:
            continue
        if why := _obstacle(listed[name], facts.nodes[name], fabric):
            unfit[name] = why
        else:
            fit.append(name)
    return FabricNodes(tuple(fit), unfit, frozenset(listed))


def _obstacle(item: Mapping[str, Any], node: Node, fabric: Fabric) -> str:
    """Say why a node of the fabric cannot measure, "" if it can."""
    if not _is_ready(item):
        return "is not ready"
    if at(item, ("spec", "unschedulable")) is True:
        return "is cordoned"
    missing = [one.name for one in fabric.resources if one.name not in node.resources]
    return f"offers no {', '.join(missing)}" if missing else ""


def _is_ready(item: Mapping[str, Any]) -> bool:
    conditions = at(item, ("status", "conditions")) or []
    return any(
        at(one, ("type",)) == "Ready" and at(one, ("status",)) == "True" for one in conditions
    )
