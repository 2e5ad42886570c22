"""Read the nodes of a cluster once, and what its pods have reserved, in little memory."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus

from webhook.decision.nodes import Node
from webhook.errors import ClusterError
from webhook.inventory.reserved import reservation_of, reserved_on_nodes
from webhook.kube.kinds import NODES, Kind
from webhook.kube.listing import read_list
from webhook.kube.requests import Reads, RefusedError

#: Nothing else waits for these lists, so their pages are large.
_NODES = replace(NODES, page=500, pace=0.0)
_PODS = Kind(resource="pods", project=reservation_of)


def nodes_of_cluster(reads: Reads) -> dict[str, Node]:
    """Return all nodes by name; raise ClusterError if they cannot be read."""
    try:
        held = read_list(reads, _NODES, _go_on).held
    except RefusedError as error:
        needs = error.code == HTTPStatus.FORBIDDEN
        hint = ": the right to list nodes is all that is needed, beside the fabrics" * needs
        raise ClusterError(f"cannot list nodes: {error}{hint}") from error
    return {name: node for (_, name), node in held.items()}


def reserved_in_cluster(reads: Reads) -> tuple[dict[str, dict[str, int]] | None, str]:
    """Return node → resource → how many its pods have reserved; or None, and why not."""
    try:
        held = read_list(reads, _PODS, _go_on).held
    except RefusedError as error:
        return None, f"cannot list pods: {error}"
    return reserved_on_nodes(held.values()), ""


def _go_on(_: float) -> bool:
    """Wait for nothing between two pages."""
    return False
