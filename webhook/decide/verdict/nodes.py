"""The nodes: whether one of the pod's fabric can take it, by what the inventory knows of them.

What no node offers now may come: nodes are added when a pod needs them, and a device plugin that
restarts offers nothing for a while. So it is not certain, unless the site says that its nodes are
static. Without an inventory, nothing is known, and nothing is said.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.decide.verdict.judged_pod import Seen
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import Fabric
from webhook.model.nodes import NodeInventory
from webhook.model.resources import is_gpu
from webhook.model.scheduler_requests import scheduler_requests

NO_NODES = Reason("FabricWithoutNodes", "No node belongs to the fabric now.", rdma="unsure")
NOT_OFFERED = Reason(
    "ResourceNotOffered", "No node of the fabric offers the RDMA resource now.", rdma="unsure"
)
APART = Reason(
    "ResourceNotBesideGpu",
    "No node of the fabric offers both the pod's GPU and the RDMA resource now.",
    rdma="unsure",
)
TOO_MANY = Reason(
    "ResourceExceedsNodes",
    "The pod requests more of the RDMA resource than any node of the fabric offers now.",
    rdma="unsure",
)
FABRIC_NOWHERE = Reason(
    "FabricNowhere",
    "No node belongs to the fabric, and the configuration says nodes: static.",
    rdma="no",
)
RESOURCE_NOWHERE = Reason(
    "ResourceNowhere",
    "No node of the fabric offers the RDMA resource, and the configuration says nodes: static.",
    rdma="no",
)
ALWAYS_APART = Reason(
    "ResourceNeverBesideGpu",
    "No node of the fabric offers both the pod's GPU and the RDMA resource, and the configuration"
    " says nodes: static.",
    rdma="no",
)
ALWAYS_TOO_MANY = Reason(
    "ResourceExceedsStaticNodes",
    "The pod requests more of the RDMA resource than any node of the fabric offers, and the"
    " configuration says nodes: static.",
    rdma="no",
)
CAPACITY_REASONS = (
    *(NO_NODES, NOT_OFFERED, APART, TOO_MANY),
    *(FABRIC_NOWHERE, RESOURCE_NOWHERE, ALWAYS_APART, ALWAYS_TOO_MANY),
)


class _Lack(NamedTuple):
    """What the nodes lack: the reason where nodes come and go, that where they do not, and how."""

    elastic: Reason
    static: Reason
    message: str


def judge_node_capacity(seen: Seen) -> Verdict | None:
    """Return what the nodes of the pod's fabric lack, None if nothing, or if it is not known."""
    if seen.fabric is None or not seen.inventory.by_node:
        return None
    lack = _lack(seen, seen.fabric)
    if lack is None:
        return None
    if seen.scope.fabrics.defaults.nodes == "static":
        return Verdict.of(lack.static, f"{lack.message}, and the nodes are static")
    return Verdict.of(lack.elastic, f"{lack.message} now")


def _lack(seen: Seen, fabric: Fabric) -> _Lack | None:
    if fabric.name not in seen.inventory.inhabited:
        return _Lack(NO_NODES, FABRIC_NOWHERE, f"no node belongs to fabric {fabric.name}")
    requested = scheduler_requests(seen.pod)
    gpus = [name for name, many in requested.items() if many and is_gpu(name, seen.scope.fabrics)]
    wanted = (one.name for one in fabric.resources if requested.get(one.name))
    lacks = (_of(name, requested[name], gpus, fabric.name, seen.inventory) for name in wanted)
    return next(filter(None, lacks), None)


def _of(
    name: str, many: int, gpus: list[str], fabric: str, inventory: NodeInventory
) -> _Lack | None:
    """Return what the nodes of a fabric lack for so many of a resource, beside these GPUs."""
    offered = inventory.offering.get(name, {}).get(fabric, 0)
    if not offered:
        return _Lack(NOT_OFFERED, RESOURCE_NOWHERE, f"no node of fabric {fabric} offers {name}")
    for gpu in gpus:
        if fabric not in inventory.together.get((gpu, name), ()):
            message = f"no node of fabric {fabric} offers both {gpu} and {name}"
            return _Lack(APART, ALWAYS_APART, message)
    if many > offered:
        message = f"the pod requests {name}: {many}, and no node of {fabric} offers over {offered}"
        return _Lack(TOO_MANY, ALWAYS_TOO_MANY, message)
    return None
