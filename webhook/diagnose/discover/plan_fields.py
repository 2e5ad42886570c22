"""The fields of a planned fabric that must be right on every node of its group.

They are the RDMA devices that NCCL may use, and the interface for hostNetwork.
"""

from __future__ import annotations

import re
from os.path import commonprefix
from typing import Literal, NamedTuple

from webhook.config.names import is_interface
from webhook.diagnose.discover.groups import Devices, Group
from webhook.diagnose.discover.port_selection import NodePorts
from webhook.model.names import counted, natural_key, shortened_list

# The RDMA devices of a group that NCCL may use.

#: MAX_IB_DEVS of NCCL's net_ib.
_MAX_DEVICES = 32
_LETTERS = re.compile(r"[A-Za-z]+")


class HcaList(NamedTuple):
    """A fabric's list of devices, in one of its three forms."""

    field: Literal["hcas", "excludeHcas", "hcaPrefixes"]
    names: tuple[str, ...]
    reason: str


def hca_list(group: Group, devices: Devices) -> HcaList:
    """Return the list for a group: exact names if possible, since they match nothing else.

    NCCL skips a name that a node lacks, or whose port is down there, so all nodes can have the same
    list.
    """
    other_devices = _other_devices(group)
    if len(devices.used) <= _MAX_DEVICES:
        return HcaList("hcas", devices.used, _reason_for_exact_names(group, devices))
    prefix = _prefix(devices, other_devices)
    excess = (
        f"{len(devices.used)} device names on {counted(len(group.nodes), 'node')}, but NCCL reads "
        f"only {_MAX_DEVICES}"
    )
    if prefix:
        return HcaList("hcaPrefixes", (prefix,), f"{excess}; no other name begins with {prefix}")
    if other_devices and len(other_devices) <= _MAX_DEVICES:
        return HcaList("excludeHcas", other_devices, f"{excess}; all devices except these")
    return HcaList(
        "hcas", devices.used[:_MAX_DEVICES], f"{excess}; these are the first {_MAX_DEVICES}"
    )


def _other_devices(group: Group) -> tuple[str, ...]:
    """Return the devices of the nodes whose ports are not the fabric's."""
    names = {
        port.device
        for node_ports in group.ports_of_nodes
        for port in node_ports.other_ports
        if port.device
    }
    return tuple(sorted(names, key=natural_key))


def _prefix(devices: Devices, other_devices: tuple[str, ...]) -> str:
    """Return a prefix that only the fabric's devices have, or ""."""
    match = _LETTERS.match(commonprefix([*devices.used]))  # noqa: RUF071 - no paths, but names
    excluded = (*other_devices, *devices.unused)
    if match is None or any(name.startswith(match[0]) for name in excluded):
        return ""
    # A prefix of a bond's name could match a bond on other nodes.
    return "" if "mlx5_bond_0".startswith(match[0]) else match[0]


def _reason_for_exact_names(group: Group, devices: Devices) -> str:
    absent = {
        name: tuple(
            node_ports.node.name
            for node_ports in group.ports_of_nodes
            if name.partition(":")[0] not in node_ports.devices
        )
        for name in devices.used
    }
    parts = [
        f"{name} is missing on {shortened_list(nodes)}, where NCCL skips it"
        for name, nodes in absent.items()
        if nodes
    ]
    if len(parts) > 2:  # noqa: PLR2004
        return "not every node has all of these; NCCL skips the names that a node lacks"
    count = len(group.nodes)
    nodes = {1: "the node", 2: "both nodes"}.get(count, f"all {count} nodes")
    cards = "card" if count == len(devices.used) == 1 else "cards"
    return "; ".join(parts) or f"the {f'{group.model} ' if group.model else ''}{cards} on {nodes}"


# The interface of the nodes that connects pods with hostNetwork (ip -br a).

#: Interfaces of container networks, virtual machines and tunnels, which other nodes cannot reach.
_INNER = re.compile(
    r"(?:lo|docker|br-|virbr|veth|cali|cilium|lxc|flannel|cni|kube|nodelocal|tunl|vxlan|geneve|wg"
    r"|tailscale|podman|dummy|ovs|ovn|genev|gre|sit|antrea|weave|idrac|usb)"
)


class HostInterface(NamedTuple):
    """An interface that all nodes have, or "" and the reason."""

    name: str
    reason: str


def host_interface(group: Group) -> HostInterface:
    """Return the only interface with an address that all nodes have.

    Interfaces of RDMA ports count only if there is no other: with RoCE, a node may have only the
    interface of its RDMA port, which carries TCP too.
    """
    with_interfaces = [
        node_ports for node_ports in group.ports_of_nodes if node_ports.node.interfaces
    ]
    if not with_interfaces:
        return HostInterface("", "no tool lists the interfaces (add the output of ip -br a)")
    if len(with_interfaces) < len(group.ports_of_nodes):
        return HostInterface(
            "", "the interfaces of some nodes are unknown (add the output of ip -br a)"
        )
    separate = set.intersection(
        *(
            _reachable_interfaces(node_ports) - _of_rdma(node_ports)
            for node_ports in with_interfaces
        )
    )
    common = separate or set.intersection(
        *(
            _reachable_interfaces(node_ports) & _of_roce(node_ports)
            for node_ports in with_interfaces
        )
    )
    if len(common) != 1:
        listed = ", ".join(sorted(common)) or "none"
        return HostInterface("", f"interfaces with an address on all nodes: {listed}")
    (name,) = common
    if not is_interface(name):
        return HostInterface("", f"{name!r} is not valid in a list of interfaces")
    suffix = "" if separate else "; it belongs to an RDMA port"
    return HostInterface(
        name, f"the only interface that is up and has an address on all nodes{suffix}"
    )


def _reachable_interfaces(node_ports: NodePorts) -> set[str]:
    """Return the interfaces whose addresses other nodes may reach."""
    return {
        interface.netdev.partition("@")[0]
        for interface in node_ports.node.interfaces
        if interface.state != "DOWN"
        and any("." in address for address in interface.addresses)
        and not _INNER.match(interface.netdev)
        and not interface.netdev.startswith("ib")
    }


def _of_rdma(node_ports: NodePorts) -> set[str]:
    return {netdev for port in node_ports.fabric_ports for netdev in port.netdevs}


def _of_roce(node_ports: NodePorts) -> set[str]:
    ports = (port for port in node_ports.fabric_ports if port.link_layer == "Ethernet")
    return {netdev for port in ports for netdev in port.netdevs}
