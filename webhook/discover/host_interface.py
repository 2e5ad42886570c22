"""Find the interface of the nodes over which pods with hostNetwork reach each other (ip -br a)."""

from __future__ import annotations

import re
from typing import NamedTuple

from webhook.config.names import is_interface
from webhook.discover.choice import NodeChoice
from webhook.discover.group import Group

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
    """Return the only interface with an address that is no RDMA port's, if all nodes have it."""
    shown = [choice for choice in group.choices if choice.node.interfaces]
    if not shown:
        return HostInterface("", "no tool lists the interfaces: add the output of ip -br a")
    common = set.intersection(*(_candidates(choice) for choice in shown))
    if len(shown) < len(group.choices):
        return HostInterface("", "not all nodes list their interfaces (ip -br a)")
    if len(common) != 1:
        listed = ", ".join(sorted(common)) or "none"
        return HostInterface("", f"interfaces that all nodes have with an address: {listed}")
    name = common.pop()
    if not is_interface(name):
        return HostInterface("", f"{name!r} cannot be written in a list")
    return HostInterface(name, "the only interface with an address that is up on all nodes")


def _candidates(choice: NodeChoice) -> set[str]:
    rdma = {netdev for port in choice.ports for netdev in port.netdevs}
    return {
        one.netdev.partition("@")[0]
        for one in choice.node.interfaces
        if one.state != "DOWN"
        and any("." in address for address in one.addresses)
        and not _INNER.match(one.netdev)
        and one.netdev not in rdma
        and not one.netdev.startswith("ib")
    }
