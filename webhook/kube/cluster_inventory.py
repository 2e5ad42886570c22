"""Read the nodes of a cluster once, and what its pods have reserved, in little memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import TypeVar

from webhook.errors import ClusterError
from webhook.kube.api import ObjectReads, RefusedError
from webhook.kube.cluster_reads import PermittedReads
from webhook.kube.listing import read_list
from webhook.kube.watched_resources import NODES, Item, Kind
from webhook.model.nodes import Node
from webhook.model.reserved import reservation_of, reserved_on_nodes

#: Nothing else waits for these lists, so their pages are large.
_ALL_NODES = replace(NODES, page=500, pace=0.0)
_PODS = Kind(resource="pods", project=reservation_of)
_Kept = TypeVar("_Kept")


def nodes_of_cluster(reads: ObjectReads) -> dict[str, Node]:
    """Return all nodes by name; raise ClusterError if they cannot be read."""
    return nodes_as(_ALL_NODES.project, reads)


def nodes_as(project: Callable[[Item], _Kept], reads: ObjectReads) -> dict[str, _Kept]:
    """Return by name what `project` keeps of each node; raise ClusterError as above."""
    held = read_list(reads, replace(_ALL_NODES, project=project), Event().wait).held
    return {name: node for (_, name), node in held.items()}


def permitted_nodes(
    project: Callable[[Item], _Kept], reads: ObjectReads, permitted: PermittedReads
) -> dict[str, _Kept] | None:
    """Return nodes as `nodes_as` does; None if they cannot be read, which `permitted` notes."""
    try:
        return nodes_as(project, reads)
    except ClusterError as error:
        permitted.lack("nodes", error)
        return None


def reserved_in_cluster(reads: ObjectReads) -> tuple[dict[str, dict[str, int]] | None, str]:
    """Return node → resource → how many its pods have reserved; or None, and why not."""
    try:
        held = read_list(reads, _PODS, Event().wait).held
    except RefusedError as error:
        return None, f"cannot list pods: {error}"
    return reserved_on_nodes(held.values()), ""
