"""Faults of nodes and differences between the nodes of a fabric, the most severe first.

Checks of ports are in `port_checks`. Checks of nodes are here, with the list of the checks of one
fabric; `site_findings` also calls the checks that compare fabrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from webhook.diagnose.discover.consistency import (
    different_gids,
    different_mtus,
    mtus_below_interfaces,
)
from webhook.diagnose.discover.counted_errors import bad_counters
from webhook.diagnose.discover.groups import Group
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.port_checks import (
    bad_cables,
    devices_missing,
    different_firmware,
    missing_gids,
    ports_down,
    ports_never_up,
    slow_ports,
    slow_slots,
    unknown_states,
)
from webhook.diagnose.discover.port_selection import NodePorts, ports_of_open_cards
from webhook.diagnose.discover.site import MergedNode, rate_text
from webhook.diagnose.discover.tool_failures import no_device_messages, tool_failures
from webhook.diagnose.discover.used_ports import most_common
from webhook.model.finding import Code, Finding, Location, severity
from webhook.model.names import counted, shortened_list

# Find nodes that are in no fabric, or in a slower one than nodes with the same cards.

NODE_WITHOUT_RDMA_DEVICE = Code(
    "NodeWithoutRdmaDevice",
    "No tool shows an RDMA device on the node.",
    "Check that the node has an RDMA-capable network card (lspci -nn) and that its RDMA driver is "
    "loaded (mlx5_ib for NVIDIA). If both are true, run on the node the script that "
    "`rdma-webhook discover script` prints, and pass its output to discover as well.",
)
LINK_LAYER_UNKNOWN = Code(
    "LinkLayerUnknown",
    "No tool shows the link layer of any Active port of the node or, if no port is Active, of any "
    "port, so discover assigns the node to no fabric.",
    "Pass the output of ibstat, ibstatus or ibv_devinfo from the node to discover as well. If "
    "none of these tools is installed, run on the node the script that `rdma-webhook discover "
    "script` prints, and pass its output.",
)
CARD_WITHOUT_RDMA_DEVICE = Code(
    "CardWithoutRdmaDevice",
    "A network card has no RDMA device, although other cards of its node have one.",
    "Load its RDMA driver (mlx5_ib for NVIDIA), unless the card is not meant for RDMA.",
)
NODES_SLOWER = Code(
    "NodesSlower",
    "All ports of a node run slower than those of other nodes with the same GPUs and cards.",
    "Compare the node's cables and switch ports with those of the faster nodes. A job that runs "
    "on both slower and faster nodes runs at the slower rate.",
)


def outside_fabrics(node_ports: NodePorts) -> Iterator[Finding]:
    """Yield why a node is in no fabric, and its cards without an RDMA device."""
    node = node_ports.node
    has_device = any(port.device for port in node.ports)
    if not has_device:
        details = [*no_device_messages(node), *_cards_text(node)]
        text = "no tool shows an RDMA device" + (f" ({'; '.join(details)})" if details else "")
        yield NODE_WITHOUT_RDMA_DEVICE.finding("error", text, location=node_ports.location())
    elif node_ports.card_kind is None:
        open_ports = [port.name for port in ports_of_open_cards(node).values()]
        active = f"{', '.join(open_ports)}, which {'is' if len(open_ports) == 1 else 'are'} Active"
        ports = active if open_ports else "any port"
        text = f"no tool shows the link layer of {ports}, so discover assigns no fabric"
        yield LINK_LAYER_UNKNOWN.finding("error", text, location=node_ports.location())
    for port in node.ports:
        if port.device is None and has_device:
            text = f"{port.model or 'a card'} at {port.pci} has no RDMA device"
            yield CARD_WITHOUT_RDMA_DEVICE.finding("warning", text, location=node_ports.location())


def _cards_text(node: MergedNode) -> Iterator[str]:
    """Yield the cards without one: "lspci: 2 cards and 8 virtual functions of NVIDIA"."""
    virtual = sum(port.virtual is True for port in node.ports)
    counts = [
        counted(count, noun)
        for count, noun in ((len(node.ports) - virtual, "card"), (virtual, "virtual function"))
        if count
    ]
    tools = sorted({tool for port in node.ports for tool in port.sources})
    if counts:
        yield f"{', '.join(tools)}: {' and '.join(counts)} of NVIDIA"


def slower_nodes(groups: Iterable[Group]) -> Iterator[Finding]:
    """Yield nodes with slower ports than other nodes with the same GPUs and cards."""
    fastest_by_card: dict[tuple[object, ...], Group] = {}
    ordered = sorted(groups, key=lambda group: -(group.rate or 0))
    for group in ordered:
        fastest = fastest_by_card.setdefault((group.product, group.card_kind), group)
        if group.rate is not None and fastest.rate is not None and group.rate < fastest.rate:
            text = (
                f"all ports run at {rate_text(group.rate)}, but those of nodes with the same GPUs "
                f"and cards ({shortened_list(fastest.nodes)}) run at {rate_text(fastest.rate)}"
            )
            yield NODES_SLOWER.finding("warning", text, location=Location(nodes=group.nodes))


# Find properties of nodes, such as drivers, that keep containers from RDMA.

RDMA_NETNS_EXCLUSIVE = Code(
    "RdmaNetnsExclusive",
    "On a node, each RDMA device belongs to one network namespace, so containers cannot share it.",
    "On the node, run `rdma system set netns shared`, and add the line `options ib_core "
    "netns_mode=1` to a file in /etc/modprobe.d.",
)
NODE_MEMLOCK_LIMITED = Code(
    "NodeMemlockLimited",
    "On a node, containerd limits the memory that containers may lock, so RDMA fails in "
    "containers that do not run as root.",
    "On the node, set LimitMEMLOCK=infinity in a drop-in of containerd.service, and restart "
    "containerd. Once no node limits locked memory, set `defaults.memlock: unlimited` in the "
    "fabrics file.",
)
PEER_MEMORY_NOT_LOADED = Code(
    "PeerMemoryNotLoaded",
    "The kernel module nvidia_peermem is not loaded on a node with GPUs, so GPUDirect RDMA needs "
    "DMA-BUF there.",
    "Load the module (modprobe nvidia_peermem), unless NCCL's log shows GDRDMA: GPUDirect RDMA "
    "then already uses DMA-BUF.",
)
DRIVERS_DIFFER = Code(
    "DriversDiffer",
    "The nodes of the fabric do not all have the same version of the RDMA driver.",
    "Install the same version of the driver on all nodes of the fabric.",
)


def exclusive_devices(plan: FabricPlan) -> Iterator[Finding]:
    """Yield nodes on which containers cannot share RDMA devices."""
    text = (
        "RDMA devices belong to one network namespace (netns exclusive), so the RDMA shared device "
        "plugin offers none"
    )
    for node_ports in plan.group.ports_of_nodes:
        if plan.mode == "shared-device" and node_ports.node.properties.get("netns") == "exclusive":
            yield RDMA_NETNS_EXCLUSIVE.finding("error", text, location=node_ports.location())


def limited_memlock(plan: FabricPlan) -> Iterator[Finding]:
    """Yield nodes on which containerd limits the memory that containers may lock."""
    for node_ports in plan.group.ports_of_nodes:
        memlock = node_ports.node.properties.get("memlock")
        if memlock is not None and memlock != "infinity":
            text = (
                f"containerd limits locked memory to {memlock} bytes, so RDMA fails in containers "
                "that do not run as root: IPC_LOCK has no effect there"
            )
            yield NODE_MEMLOCK_LIMITED.finding("info", text, location=node_ports.location())


def missing_peer_memory(plan: FabricPlan) -> Iterator[Finding]:
    """Yield nodes with GPUs on which the module for GPUDirect RDMA is not loaded."""
    text = "nvidia_peermem is not loaded, so GPUDirect RDMA needs DMA-BUF"
    for node_ports in plan.group.ports_of_nodes:
        if node_ports.node.gpus and node_ports.node.properties.get("peermem") == "no":
            yield PEER_MEMORY_NOT_LOADED.finding("info", text, location=node_ports.location())


def different_drivers(plan: FabricPlan) -> Iterator[Finding]:
    """Yield nodes with an RDMA driver other than the most common one."""
    drivers = Counter(
        driver
        for node_ports in plan.group.ports_of_nodes
        if (driver := node_ports.node.properties.get("driver")) is not None
    )
    if len(drivers) < 2:  # noqa: PLR2004
        return
    usual = most_common(drivers.elements())
    for node_ports in plan.group.ports_of_nodes:
        driver = node_ports.node.properties.get("driver", usual)
        if driver != usual:
            text = f"the RDMA driver is {driver}, but other nodes have {usual}"
            yield DRIVERS_DIFFER.finding("warning", text, location=node_ports.location())


NODE_CODES = (
    NODE_WITHOUT_RDMA_DEVICE,
    LINK_LAYER_UNKNOWN,
    CARD_WITHOUT_RDMA_DEVICE,
    NODES_SLOWER,
    RDMA_NETNS_EXCLUSIVE,
    NODE_MEMLOCK_LIMITED,
    PEER_MEMORY_NOT_LOADED,
    DRIVERS_DIFFER,
)

# All checks, and the findings of a site.

#: In the order in which findings of one level are shown.
_CHECKS: tuple[Callable[[FabricPlan], Iterable[Finding]], ...] = (
    ports_down,
    devices_missing,
    slow_ports,
    slow_slots,
    missing_gids,
    exclusive_devices,
    ports_never_up,
    unknown_states,
    different_mtus,
    mtus_below_interfaces,
    different_gids,
    different_firmware,
    different_drivers,
    bad_cables,
    bad_counters,
    limited_memlock,
    missing_peer_memory,
)


def site_findings(
    nodes: Iterable[MergedNode],
    ports_of_nodes: Iterable[NodePorts],
    plans: Sequence[FabricPlan],
    other_findings: Iterable[Finding] = (),
) -> list[Finding]:
    """Return all findings, with equal findings of several nodes merged.

    The most severe come first, and of those the ones on nodes with GPUs, or on no node.
    """
    nodes = list(nodes)
    findings: list[Finding] = [*other_findings]
    for node in nodes:
        findings += [*node.findings, *tool_failures(node)]
    for node_ports in ports_of_nodes:
        findings += outside_fabrics(node_ports)
    for plan in plans:
        for check in _CHECKS:
            findings += check(plan)
    findings += slower_nodes([plan.group for plan in plans])
    without_gpus = {node.name for node in nodes if not node.with_gpus}
    return sorted(
        _merge_equal(findings),
        key=lambda finding: (-severity(finding.level), _is_only_on(without_gpus, finding)),
    )


def _is_only_on(names: set[str], finding: Finding) -> bool:
    return bool(finding.location.nodes) and names.issuperset(finding.location.nodes)


def _merge_equal(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that differ only in their nodes."""
    nodes: dict[Finding, dict[str, None]] = {}
    for finding in findings:
        anywhere = finding._replace(location=finding.location._replace(nodes=()))
        nodes.setdefault(anywhere, {}).update(dict.fromkeys(finding.location.nodes))
    return [
        finding._replace(location=finding.location._replace(nodes=tuple(names)))
        for finding, names in nodes.items()
    ]
