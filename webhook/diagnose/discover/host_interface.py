"""Find the interface of the nodes over which pods with hostNetwork reach each other (ip -br a)."""

from __future__ import annotations

import re
from typing import NamedTuple

from webhook.config.names import is_interface
from webhook.diagnose.discover.groups import Group
from webhook.diagnose.discover.port_selection import NodeChoice

#: Interfaces of container networks, virtual machines and tunnels, which other nodes do not reach.
_INNER = re.compile(
    r"(?:lo|docker|br-|virbr|veth|cali|cilium|lxc|flannel|cni|kube|nodelocal|tunl|vxlan|geneve|wg"
    r"|tailscale|podman|dummy|ovs|ovn|genev|gre|sit|antrea|weave|idrac|usb)"
)


class HostInterface(NamedTuple):
    """An interface that all nodes have, or why none can be named."""

    name: str
    because: str


def host_interface(group: Group) -> HostInterface:
    """Return the only interface with an address that all nodes have, RDMA ports' own last.

    With RoCE, a node may have no other interface than that of its RDMA port, which carries TCP too.
    """
    shown = [choice for choice in group.choices if choice.node.interfaces]
    if not shown:
        return HostInterface("", "no tool lists the interfaces: add the output of ip -br a")
    if len(shown) < len(group.choices):
        return HostInterface("", "not all nodes list their interfaces (ip -br a)")
    apart = set.intersection(*(_reached(choice) - _of_rdma(choice) for choice in shown))
    common = apart or set.intersection(*(_reached(choice) & _of_roce(choice) for choice in shown))
    if len(common) != 1:
        listed = ", ".join(sorted(common)) or "none"
        return HostInterface("", f"interfaces that all nodes have with an address: {listed}")
    (name,) = common
    if not is_interface(name):
        return HostInterface("", f"{name!r} cannot be written in a list")
    own = "" if apart else ", an RDMA port's own"
    return HostInterface(name, f"the only interface with an address that is up on all nodes{own}")


def _reached(choice: NodeChoice) -> set[str]:
    """Return the interfaces with an address at which other nodes may reach this one."""
    return {
        one.netdev.partition("@")[0]
        for one in choice.node.interfaces
        if one.state != "DOWN"
        and any("." in address for address in one.addresses)
        and not _INNER.match(one.netdev)
        and not one.netdev.startswith("ib")
    }


def _of_rdma(choice: NodeChoice) -> set[str]:
    return {netdev for port in choice.ports for netdev in port.netdevs}


def _of_roce(choice: NodeChoice) -> set[str]:
    ports = (port for port in choice.ports if port.link_layer == "Ethernet")
    return {netdev for port in ports for netdev in port.netdevs}
