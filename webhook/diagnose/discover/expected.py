"""The numbers of nodes and HCAs: as the administrator expects them, and as tools show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.diagnose.discover.port_selection import NodePorts
from webhook.diagnose.discover.site import DiscoverOptions
from webhook.model.finding import Code, Finding, Location
from webhook.model.names import counted

NODE_COUNT_DIFFERS = Code(
    "NodeCountDiffers",
    "There are more or fewer nodes than --expect-nodes says.",
    "Compare the nodes in the output with those that you expect. If nodes are missing, collect "
    "their output; otherwise, correct --expect-nodes.",
)
HCA_COUNT_DIFFERS = Code(
    "HcaCountDiffers",
    "A node has more or fewer usable HCAs in its fabric than --expect-hcas says.",
    "Check whether ports of the node are down, whether some of its cards have no RDMA device "
    "(lspci -nn), and whether --expect-hcas is right. If the output of a tool is shorter than on "
    "other nodes, collect it again.",
)


def unexpected_counts(
    ports_of_nodes: Sequence[NodePorts], options: DiscoverOptions
) -> Iterator[Finding]:
    """Yield a finding for another number of nodes, and one for each other number of HCAs."""
    nodes = len(ports_of_nodes)
    if options.expected_nodes not in (None, nodes):
        text = f"{counted(nodes, 'node')}, but {options.expected_nodes} expected"
        yield NODE_COUNT_DIFFERS.finding("error", text)
    if options.expected_hcas is None:
        return
    by_count: dict[int, list[str]] = {}
    for node_ports in ports_of_nodes:
        by_count.setdefault(_usable_hcas(node_ports), []).append(node_ports.node.name)
    for count, names in sorted(by_count.items()):
        if count != options.expected_hcas:
            text = f"{counted(count, 'usable HCA')}, but {options.expected_hcas} expected"
            location = Location(nodes=tuple(names))
            yield HCA_COUNT_DIFFERS.finding("error", text, location=location)


def _usable_hcas(node_ports: NodePorts) -> int:
    """Return the number of the fabric's devices with a port that is Active or of unknown state."""
    return sum(
        any(port.state in ("Active", None) for port in ports)
        for ports in node_ports.devices.values()
    )
