"""Differences between the same ports of a fabric's nodes: their MTU, and their tables of GIDs.

Only Active ports are compared, and only values that a tool shows. A finding names the nodes that
differ from most nodes, or, of two nodes, the one with the smaller MTU or the larger index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.site import MergedNode, MergedPort
from webhook.diagnose.discover.used_ports import most_common, used_ports
from webhook.diagnose.tools.hardware import roce_mtu
from webhook.model.finding import Code, Finding, Location
from webhook.model.names import enumerated, natural_key, shortened_list

MTU_DIFFERS = Code(
    "MtuDiffers",
    "The MTU that RDMA uses on a port differs from that of the same port on other nodes.",
    "Set the same MTU for all nodes: on their network interfaces (RoCE), or in the subnet "
    "manager's partition (InfiniBand).",
)
MTU_BELOW_INTERFACE = Code(
    "MtuBelowInterface",
    "RDMA uses a smaller MTU on a RoCE port than the MTU of its network interface allows.",
    "Change the MTU of the network interface to another value and back (ip link set mtu); for a "
    "bond, do the same for its members. Then collect the output of all tools again.",
)
ROCE_GID_LINK_LOCAL = Code(
    "RoceGidLinkLocal",
    "Pods on the host network use a port whose RoCE v2 GIDs are all link-local, so over RoCE v2 "
    "these pods reach only nodes in the same layer-2 network.",
    "Give the network interface of the port an IP address that is not link-local.",
)
ROCE_GID_NOT_IPV4 = Code(
    "RoceGidNotIpv4",
    "A port has no RoCE v2 GID for an IPv4 address, but the same port on other nodes has one.",
    "Give the network interface of the port an IPv4 address, as on the other nodes.",
)
GID_INDEX_DIFFERS = Code(
    "GidIndexDiffers",
    "The RoCE v2 GID for a port's IPv4 address has a different index than on other nodes.",
    "Do not set `qos.gidIndex` or NCCL_IB_GID_INDEX, which would be wrong on some nodes. NCCL 2.26 "
    "or newer finds the index by itself.",
)
CONSISTENCY_CODES = (
    MTU_DIFFERS,
    MTU_BELOW_INTERFACE,
    ROCE_GID_LINK_LOCAL,
    ROCE_GID_NOT_IPV4,
    GID_INDEX_DIFFERS,
)

#: How many groups of nodes a finding names.
_NAMED = 3


class _Deviation(NamedTuple):
    """A port that differs from the same port of most nodes."""

    node: str
    port: MergedPort
    #: What is different, after the name of the port: "is 1024, elsewhere 4096".
    text: str


def different_mtus(plan: FabricPlan) -> Iterator[Finding]:
    """Yield a finding for the ports whose MTU differs from that of most nodes."""
    deviations: list[_Deviation] = []
    for ports in _active_ports(plan).values():
        mtus = [(node, port, port.mtu) for node, port in ports if port.mtu is not None]
        if mtus:
            usual = most_common(mtu for _, _, mtu in mtus)
            deviations += (
                _Deviation(node.name, port, f"is {mtu}, elsewhere {usual}")
                for node, port, mtu in mtus
                if mtu != usual
            )
    yield from _findings(MTU_DIFFERS, "the MTU of", deviations)


def mtus_below_interfaces(plan: FabricPlan) -> Iterator[Finding]:
    """Yield a finding for the RoCE ports whose MTU is smaller than their interfaces allow."""
    deviations: list[_Deviation] = []
    for ports in _active_ports(plan).values():
        for node, port in ports:
            interface_mtu = _interface_mtu(node, port)
            allowed = min(roce_mtu(interface_mtu), port.max_mtu or 0)
            if port.link_layer == "Ethernet" and port.mtu is not None and port.mtu < allowed:
                limit = f"the network interface's {interface_mtu} allows {allowed}"
                deviations.append(_Deviation(node.name, port, f"is {port.mtu}, but {limit}"))
    yield from _findings(MTU_BELOW_INTERFACE, "the MTU of", deviations)


def _interface_mtu(node: MergedNode, port: MergedPort) -> int:
    """Return the smallest MTU of a port's network interfaces; 0 if one of them is unknown."""
    return min((node.interface_mtus.get(netdev, 0) for netdev in port.netdevs), default=0)


def _active_ports(plan: FabricPlan) -> dict[str, list[tuple[MergedNode, MergedPort]]]:
    """Return the Active ports that a fabric uses, each with its node, by their names."""
    ports: dict[str, list[tuple[MergedNode, MergedPort]]] = {}
    for node_ports, port in used_ports(plan):
        if port.state == "Active":
            ports.setdefault(port.name, []).append((node_ports.node, port))
    return ports


# Compare the tables of GIDs, which the kernel fills from the addresses of network interfaces.

#: An IPv4 address in a GID (RFC 4291, 2.5.5.2).
_IPV4 = "0000:0000:0000:0000:0000:ffff:"
#: fe80::/10 (RFC 4291, 2.5.6).
_LINK_LOCAL = ("fe8", "fe9", "fea", "feb")


def different_gids(plan: FabricPlan) -> Iterator[Finding]:
    """Yield findings for RoCE ports whose GIDs reach less than on most nodes, or differ in index.

    Pods with network interfaces of their own have other addresses, so link-local GIDs of the host
    mean nothing there. A port without any RoCE v2 GID is a fault of its own (`missing_gids`).
    """
    link_local: list[_Deviation] = []
    not_ipv4: list[_Deviation] = []
    indexes: list[_Deviation] = []
    for ports in _active_ports(plan).values():
        tables = [_GidTable(node.name, port, _roce_v2_gids(node, port)) for node, port in ports]
        tables = [table for table in tables if table.gids]
        usual, most_have_ipv4 = _usual_index(tables), _have_most(tables)
        for table in tables:
            if plan.mode == "host-network" and table.is_link_local:
                link_local.append(table.deviation("are link-local"))
            elif not table.ipv4_indexes and most_have_ipv4:
                not_ipv4.append(table.deviation("is of an IPv4 address, elsewhere one is"))
            elif table.ipv4_indexes and usual not in table.ipv4_indexes:
                numbers = enumerated([str(index) for index in table.ipv4_indexes])
                indexes.append(table.deviation(f"has index {numbers}, elsewhere {usual}"))
    yield from _findings(ROCE_GID_LINK_LOCAL, "all RoCE v2 GIDs of", link_local)
    yield from _findings(ROCE_GID_NOT_IPV4, "no RoCE v2 GID of", not_ipv4)
    yield from _findings(GID_INDEX_DIFFERS, "the RoCE v2 GID over IPv4 of", indexes)


class _GidTable(NamedTuple):
    """The RoCE v2 GIDs of a port."""

    node: str
    port: MergedPort
    #: GID by index.
    gids: Mapping[int, str]

    @property
    def ipv4_indexes(self) -> list[int]:
        """The indexes of IPv4 addresses, in order."""
        return sorted(index for index, gid in self.gids.items() if gid.startswith(_IPV4))

    @property
    def is_link_local(self) -> bool:
        """Whether all are link-local."""
        return all(gid[:3] in _LINK_LOCAL for gid in self.gids.values())

    def deviation(self, text: str) -> _Deviation:
        return _Deviation(self.node, self.port, text)


def _roce_v2_gids(node: MergedNode, port: MergedPort) -> dict[int, str]:
    """Return the RoCE v2 GIDs of a port by their indexes."""
    return {
        row.gid_index: row.gid
        for row in node.gids
        if (row.device, row.port) == (port.device, port.port or 1)
        and row.version == "v2"
        and row.gid.strip("0:")
    }


def _usual_index(tables: Iterable[_GidTable]) -> int | None:
    """Return the index that most nodes have, the smallest of several; None if none has any."""
    counts = Counter(index for table in tables for index in table.ipv4_indexes)
    return min(counts, key=lambda index: (-counts[index], index), default=None)


def _have_most(tables: Sequence[_GidTable]) -> bool:
    """Return whether at least half of the tables have an IPv4 address."""
    return sum(bool(table.ipv4_indexes) for table in tables) * 2 >= len(tables)


# One finding for all ports of a kind.


def _findings(code: Code, subject: str, deviations: Sequence[_Deviation]) -> Iterator[Finding]:
    """Yield a warning about all ports that differ, with nodes that differ alike in one group."""
    if not deviations:
        return
    ports_by_node: dict[str, dict[str, list[MergedPort]]] = {}
    for node, port, text in sorted(deviations, key=lambda deviation: natural_key(deviation.node)):
        ports_by_node.setdefault(node, {}).setdefault(text, []).append(port)
    nodes_by_clause: dict[str, list[str]] = {}
    for node, ports_by_text in ports_by_node.items():
        clause = ", ".join(
            f"{subject} {_ports(ports)} {text}" for text, ports in ports_by_text.items()
        )
        nodes_by_clause.setdefault(clause, []).append(node)
    devices = {port.device or "" for _, port, _ in deviations}
    yield code.finding(
        "warning",
        _text(nodes_by_clause),
        location=Location(
            nodes=tuple(ports_by_node), device=devices.pop() if len(devices) == 1 else ""
        ),
    )


def _ports(ports: Iterable[MergedPort]) -> str:
    return shortened_list([port.name for port in ports], 8)


def _text(nodes_by_clause: Mapping[str, Sequence[str]]) -> str:
    """Return the clauses, each with its nodes unless all nodes of the finding have it."""
    if len(nodes_by_clause) == 1:
        return next(iter(nodes_by_clause))
    clauses = [f"on {shortened_list(nodes)}, {clause}" for clause, nodes in nodes_by_clause.items()]
    further = len(clauses) - _NAMED
    return "; ".join(clauses[:_NAMED]) + (
        f"; and {further} other differences" if further > 0 else ""
    )
