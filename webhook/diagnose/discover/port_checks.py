"""Checks of ports, cards, slots and cables that are down, missing or slow, or soon will be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from webhook.diagnose.discover.counted_errors import PORT_ERRORS_COUNTED
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.ports import pci_key
from webhook.diagnose.discover.site import MergedNode, MergedPort, rate_text
from webhook.diagnose.discover.used_ports import most_common, used_devices, used_ports
from webhook.diagnose.tools.hardware import card_model, data_rate, link_capacity
from webhook.diagnose.tools.observations import CardObservation, PcieLink
from webhook.model.finding import Code, Finding, Location
from webhook.model.names import counted, natural_key, shortened_list

# Cards, slots and cables that slow a fabric down, or soon will.

#: The share of a port's rate that its PCI Express link must carry.
_MIN_LINK_SHARE = 0.9

FIRMWARE_DIFFERS = Code(
    "FirmwareDiffers",
    "The cards of the fabric do not all have the same firmware.",
    "Install the same firmware on all cards of the fabric (mlxfwmanager, mlxup).",
)
PCIE_LINK_SLOW = Code(
    "PcieLinkSlow",
    "The PCI Express link of a card is too slow for the rate of its port.",
    "Reseat the card or move it to a slot with more lanes, and check the BIOS settings.",
)
CABLE_BELOW_CAPABILITY = Code(
    "CableBelowCapability",
    "iblinkinfo reports that a link could be faster or wider.",
    "Reseat or replace the cable.",
)


def different_firmware(plan: FabricPlan) -> Iterator[Finding]:
    """Yield the nodes with each firmware other than the most common one."""
    versions = Counter(port.firmware for _, port in used_ports(plan) if port.firmware)
    if len(versions) < 2:  # noqa: PLR2004
        return
    usual = most_common(versions.elements())
    for version in sorted(set(versions) - {usual}):
        nodes = dict.fromkeys(
            node_ports.node.name
            for node_ports, port in used_ports(plan)
            if port.firmware == version
        )
        cards = f"{plan.group.model} cards" if plan.group.model else "cards"
        text = f"the firmware is {version}, but other {cards} have {usual}"
        yield FIRMWARE_DIFFERS.finding("warning", text, location=Location(nodes=tuple(nodes)))


def slow_slots(plan: FabricPlan) -> Iterator[Finding]:
    """Yield ports whose PCI Express link is too slow for their rate."""
    for node_ports, port in used_ports(plan):
        card = _card_of(node_ports.node, port)
        if card is None or card.link is None:
            continue
        model = card_model(port.vendor_id, port.device_id)
        best_link = card.best_link or (model.best_link if model else None)
        expected = link_capacity(port.rate_gbps or 0, port.link_layer, card.link)
        too_slow = expected.gbps < _MIN_LINK_SHARE * data_rate(port.rate_gbps or 0, port.link_layer)
        if expected.limit == "PCIe" and too_slow:
            text = (
                f"the PCI Express link of {port.name} ({_link(card.link)}) carries only "
                f"{expected.gbps:.0f} of {rate_text(port.rate_gbps)}"
                f"{f'; the card supports {_link(best_link)}' if best_link else ''}"
            )
            yield PCIE_LINK_SLOW.finding("error", text, location=node_ports.location(port))


def _card_of(node: MergedNode, port: MergedPort) -> CardObservation | None:
    if port.pci is None:
        return None
    cards = (card for card in node.cards if card.link and pci_key(card.pci) == pci_key(port.pci))
    return next(cards, None)


def _link(link: PcieLink) -> str:
    return f"x{link.width} at {link.speed:g} GT/s"


def bad_cables(plan: FabricPlan) -> Iterator[Finding]:
    """Yield cables that could be faster or wider according to iblinkinfo."""
    for node_ports in plan.group.ports_of_nodes:
        for cable in node_ports.node.cables:
            if cable.complaint:
                text = (
                    f"iblinkinfo reports on the link from {cable.device or f'port {cable.port}'} "
                    f"to {cable.switch or 'the switch'}: {cable.complaint}"
                )
                location = Location(nodes=(node_ports.node.name,), device=cable.device or "")
                yield CABLE_BELOW_CAPABILITY.finding("warning", text, location=location)


# Find ports that are down, slow or missing on some nodes of a fabric.

PORT_IS_DOWN = Code(
    "PortIsDown",
    "A port that the fabric uses is Down.",
    "Check the cable, the transceiver and the switch port. Once the port works, ibstat shows "
    "LinkUp and Active.",
)
PORT_NOT_ACTIVE = Code(
    "PortNotActive",
    "The link of a port is up, but no subnet manager has configured the port.",
    "Start a subnet manager (opensm, or the one built into a switch).",
)
PORTS_NEVER_UP = Code(
    "PortsNeverUp",
    "Ports are Down on all nodes of the fabric that have them, so the fabric does not use them.",
    "If the fabric is meant to use them, connect them on all nodes and run discover again.",
)
PORT_STATE_UNKNOWN = Code(
    "PortStateUnknown",
    "A node has a port whose state no tool shows.",
    "Pass the output of ibstat, ibv_devinfo or `rdma link` to discover as well. In the output of "
    "ibdev2netdev, (Up) and (Down) are the state of the network interface, not of the port.",
)
PORT_SLOW = Code(
    "PortSlow",
    "A port runs below the rate of the fabric.",
    "Reseat or replace the cable, and check the speed of the switch port.",
)
CARD_MISSING = Code(
    "CardMissing",
    "A node has fewer of the fabric's devices than other nodes.",
    "Look for the missing cards in the output of lspci and dmesg.",
)
ROCE_GID_MISSING = Code(
    "RoceGidMissing",
    "A RoCE port has no RoCE v2 GID, so nothing can connect to it over RoCE v2.",
    "Give the network interface of the port an IP address.",
)
PORT_CODES = (
    PORT_IS_DOWN,
    PORT_NOT_ACTIVE,
    PORTS_NEVER_UP,
    PORT_STATE_UNKNOWN,
    PORT_SLOW,
    CARD_MISSING,
    ROCE_GID_MISSING,
    FIRMWARE_DIFFERS,
    PCIE_LINK_SLOW,
    PORT_ERRORS_COUNTED,
    CABLE_BELOW_CAPABILITY,
)
#: Physical state → the remedy for a port that is Down.
_DOWN_REMEDIES = {
    "Disabled": "Enable the port (ibportstate or mlxlink), or plug in its cable.",
    "Polling": "The port finds no link partner: check the cable, the transceiver and the switch "
    "port.",
    "LinkUp": "The physical link is up: check the subnet manager or, for a virtual function, its "
    "link policy.",
}


def ports_down(plan: FabricPlan) -> Iterator[Finding]:
    """Yield ports that are not Active."""
    for node_ports, port in used_ports(plan):
        physical = f" ({port.physical_state})" if port.physical_state else ""
        text = f"{_name(node_ports.node, port)} is {port.state}{physical}"
        location = node_ports.location(port)
        if port.state == "Down":
            remedy = _DOWN_REMEDIES.get(port.physical_state or "")
            yield PORT_IS_DOWN.finding("error", text, remedy, location)
        elif port.state not in ("Active", None):
            yield PORT_NOT_ACTIVE.finding("error", text, location=location)


def _name(node: MergedNode, port: MergedPort) -> str:
    """Return the name of a port, with its number if the node's device has several ports."""
    has_siblings = sum(sibling.device == port.device for sibling in node.ports) > 1
    return f"{port.device} port {port.port}" if port.device and has_siblings else port.name


def ports_never_up(plan: FabricPlan) -> Iterator[Finding]:
    """Yield devices that are Down on all nodes, one finding for all with the same text."""
    devices_by_text: dict[str, list[str]] = {}
    for device, obstacle in plan.devices.unused.items():
        if obstacle.is_down:
            devices_by_text.setdefault(obstacle.text, []).append(device)
    for state, devices in devices_by_text.items():
        verb, it = ("is", "it") if len(devices) == 1 else ("are", "them")
        text = (
            f"{_share_up(plan)}{', '.join(devices)} {verb} {state}, so the fabric does not use {it}"
        )
        remedy = (
            f"If the fabric is meant to use {it}, connect {it} on all nodes and run discover again."
        )
        yield PORTS_NEVER_UP.finding("warning", text, remedy, Location(nodes=plan.group.nodes))


def _share_up(plan: FabricPlan) -> str:
    """Return "6 of 8 ConnectX-7 cards are up: " for a single node; other nodes would show more.

    Cards with several ports count by their ports.
    """
    if len(plan.group.ports_of_nodes) > 1:
        return ""
    (node_ports,) = plan.group.ports_of_nodes
    ports = node_ports.fabric_ports
    up = sum(port.state == "Active" for port in ports)
    verb = "is" if up == 1 else "are"
    noun = "cards" if len(ports) == len(node_ports.devices) else "ports"
    model = f"{plan.group.model} " if plan.group.model else "RDMA "
    return f"{up} of {len(ports)} {model}{noun} {verb} up: "


def unknown_states(plan: FabricPlan) -> Iterator[Finding]:
    """Yield nodes with a port whose state no tool shows."""
    for node_ports in plan.group.ports_of_nodes:
        if any(port.state is None for port in node_ports.fabric_ports):
            text = "the state of RDMA ports is unknown"
            yield PORT_STATE_UNKNOWN.finding("warning", text, location=node_ports.location())


def slow_ports(plan: FabricPlan) -> Iterator[Finding]:
    """Yield ports below the rate of the fabric."""
    for node_ports, port in used_ports(plan):
        if port.rate_gbps is not None and port.rate_gbps < (plan.group.rate or 0):
            text = (
                f"{_name(node_ports.node, port)} runs at {rate_text(port.rate_gbps)}, but the "
                f"fabric runs at {rate_text(plan.group.rate)}"
            )
            yield PORT_SLOW.finding("error", text, location=node_ports.location(port))


def devices_missing(plan: FabricPlan) -> Iterator[Finding]:
    """Yield nodes with fewer devices than the most common number in the group."""
    devices = {
        node_ports.node.name: used_devices(node_ports, plan)
        for node_ports in plan.group.ports_of_nodes
    }
    usual = most_common(map(len, devices.values()))
    complete = [names for names in devices.values() if len(names) == usual]
    others = f"{counted(len(complete), 'other node')} {'has' if len(complete) == 1 else 'have'}"
    for node, names in devices.items():
        if len(names) < usual:
            present = "is present" if len(names) < 2 else "are present"  # noqa: PLR2004
            text = (
                f"{_missing(names, complete)}{f'only {len(names)}' if names else 'none'} of the "
                f"fabric's devices {present}, but {others} {usual}"
            )
            yield CARD_MISSING.finding("error", text, location=Location(nodes=(node,)))


def _missing(names: set[str], complete: Sequence[set[str]]) -> str:
    """Name the devices that only the complete nodes have, or return "" if nothing is missing."""
    missing = sorted(set.intersection(*complete) - names, key=natural_key)
    verb = "is" if len(missing) == 1 else "are"
    return f"{shortened_list(missing)} {verb} missing: " if missing else ""


def missing_gids(plan: FabricPlan) -> Iterator[Finding]:
    """Yield RoCE ports without a RoCE v2 GID in their table."""
    if plan.group.card_kind.link_layer != "Ethernet":
        return
    for node_ports, port in used_ports(plan):
        rows = (gid for gid in node_ports.node.gids if gid.device == port.device)
        table = [gid for gid in rows if gid.version is not None]  # ibstatus shows one GID only
        usable = any(gid.version == "v2" and gid.gid.strip("0:") for gid in table)
        if table and not usable and port.state == "Active":
            text = f"{_name(node_ports.node, port)} has no RoCE v2 GID"
            remedy = f"Give {', '.join(port.netdevs)} an IP address." if port.netdevs else None
            yield ROCE_GID_MISSING.finding("error", text, remedy, node_ports.location(port))
