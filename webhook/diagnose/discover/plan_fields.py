"""Say which RDMA devices of a group NCCL may use: a list that is right on every node of it."""

from __future__ import annotations

import re
from os.path import commonprefix
from typing import Literal, NamedTuple

from webhook.diagnose.discover.groups import Devices, Group
from webhook.diagnose.discover.site import listed_nodes, natural

#: MAX_IB_DEVS of NCCL's net_ib.
_MOST = 32
_LETTERS = re.compile(r"[A-Za-z]+")


class HcaList(NamedTuple):
    """One of the three lists of a fabric."""

    field: Literal["hcas", "excludeHcas", "hcaPrefixes"]
    names: tuple[str, ...]
    because: str


def hca_list(group: Group, devices: Devices) -> HcaList:
    """Return the list for a group: exact names where possible, since they match nothing else.

    A name that a node lacks, or whose port is down there, is skipped by NCCL, so all nodes can have
    the same list.
    """
    others = _others(group)
    if len(devices.used) <= _MOST:
        return HcaList("hcas", devices.used, _exact(group, devices))
    prefix = _prefix(devices, others)
    many = f"{len(devices.used)} names on {len(group.nodes)} nodes, and NCCL takes {_MOST}"
    if prefix:
        return HcaList("hcaPrefixes", (prefix,), f"{many}; no other device begins with {prefix}")
    if others and len(others) <= _MOST:
        return HcaList("excludeHcas", others, f"{many}: all devices but these")
    return HcaList("hcas", devices.used[:_MOST], f"{many}: the first {_MOST}")


def _others(group: Group) -> tuple[str, ...]:
    """Return the devices of the nodes that are not the fabric's."""
    found = {port.device for choice in group.choices for port in choice.left_out if port.device}
    return tuple(sorted(found, key=natural))


def _prefix(devices: Devices, others: tuple[str, ...]) -> str:
    """Return letters with which exactly the fabric's devices begin; "" if there are none."""
    found = _LETTERS.match(commonprefix([*devices.used]))  # noqa: RUF071 - no paths, but names
    if found is None or any(name.startswith(found[0]) for name in (*others, *devices.left_out)):
        return ""
    return "" if "mlx5_bond_0".startswith(found[0]) else found[0]


def _exact(group: Group, devices: Devices) -> str:
    absent = {
        name: tuple(
            choice.node.name
            for choice in group.choices
            if name.partition(":")[0] not in choice.devices
        )
        for name in devices.used
    }
    parts = [
        f"{name} is not on {listed_nodes(nodes)}, where NCCL skips it"
        for name, nodes in absent.items()
        if nodes
    ]
    if len(parts) > 2:  # noqa: PLR2004
        return "names differ between nodes; NCCL skips those that a node lacks"
    where = "on the node" if len(group.nodes) == 1 else f"on all {len(group.nodes)} nodes"
    return "; ".join(parts) or f"the {group.model or 'same'} cards {where}"
