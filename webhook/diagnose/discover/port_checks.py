"""Checks of ports, cards, slots and cables that are down, missing or slow, or soon will be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.ports import pci_key
from webhook.diagnose.discover.site import SiteFinding, SiteNode, SitePort, gbps
from webhook.diagnose.discover.used_ports import most_common, used_devices, used_ports
from webhook.diagnose.tools.hardware import card_model, data_rate, expected_rate
from webhook.diagnose.tools.observations import CardObservation, PcieLink

# Cards, slots and cables that slow a fabric down, or soon will.

#: The share of a port's rate that its PCI Express link must carry.
_ENOUGH = 0.9
#: Counters that grow only where a cable, a port or a switch is bad (IBTA, PortCounters).
_BAD_COUNTERS = frozenset(
    {
        "symbol_error",
        "link_error_recovery",
        "link_downed",
        "port_rcv_errors",
        "local_link_integrity_errors",
        "excessive_buffer_overrun_errors",
    }
)


def different_firmware(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes whose cards have a firmware other than the most common one."""
    versions = Counter(port.firmware for _, port in used_ports(plan) if port.firmware)
    if len(versions) < 2:  # noqa: PLR2004
        return
    usual = most_common(versions.elements())
    for other in sorted(set(versions) - {usual}):
        nodes = dict.fromkeys(
            choice.node.name for choice, port in used_ports(plan) if port.firmware == other
        )
        yield SiteFinding(
            "warning",
            tuple(nodes),
            f"firmware {other}, where most of the {plan.group.model or 'same'} cards have {usual}",
            "Give all cards of the fabric one firmware (mlxfwmanager, mlxup).",
        )


def slow_slots(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield ports whose PCI Express link is too slow for their rate."""
    for choice, port in used_ports(plan):
        card = _card_of(choice.node, port)
        if card is None or card.link is None:
            continue
        model = card_model(port.vendor_id, port.device_id)
        best_link = card.best_link or (model.best_link if model else None)
        expected = expected_rate(port.rate_gbps or 0, port.link_layer, card.link)
        too_slow = expected.gbps < _ENOUGH * data_rate(port.rate_gbps or 0, port.link_layer)
        if expected.limit == "PCIe" and too_slow:
            yield SiteFinding(
                "error",
                (choice.node.name,),
                f"the PCI Express link of {port.name} ({_link(card.link)}) carries "
                f"{expected.gbps:.0f} of {gbps(port.rate_gbps)}"
                f"{f'; the card can {_link(best_link)}' if best_link else ''}",
                "Reseat the card, or put it into a slot with more lanes; look at the BIOS.",
            )


def _card_of(node: SiteNode, port: SitePort) -> CardObservation | None:
    if port.pci is None:
        return None
    cards = (card for card in node.cards if card.link and pci_key(card.pci) == pci_key(port.pci))
    return next(cards, None)


def _link(link: PcieLink) -> str:
    return f"x{link.width} at {link.speed:g} GT/s"


def bad_counters(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield error counters that are not zero."""
    for choice in plan.group.choices:
        used = used_devices(choice, plan)
        for counter in choice.node.counters:
            if counter.device in used and counter.counter in _BAD_COUNTERS and counter.value > 0:
                yield SiteFinding(
                    "warning",
                    (choice.node.name,),
                    f"{counter.device}: {counter.counter} is {counter.value}",
                    "Look again in an hour: if it grows, replace the cable or transceiver.",
                )


def bad_cables(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield cables that could be faster or wider according to iblinkinfo."""
    for choice in plan.group.choices:
        for cable in choice.node.cables:
            if cable.complaint:
                yield SiteFinding(
                    "warning",
                    (choice.node.name,),
                    f"iblinkinfo says of {cable.device or f'port {cable.port}'} to "
                    f"{cable.switch or 'the switch'}: {cable.complaint}",
                    "Reseat or replace the cable.",
                )


# Find ports that are down, slow or missing on some nodes of a fabric.

_UNKNOWN_STATE = (
    "Add the output of ibstat, ibv_devinfo or rdma link: (Up) and (Down) of ibdev2netdev are the "
    "network interface's."
)
_CABLE = "Check cable, transceiver and switch port; then ibstat must say LinkUp and Active."
_WHEN_DOWN = {
    "Disabled": "Enable the port (ibportstate, or mlxlink), or plug in its cable.",
    "Polling": "It finds no partner: check cable, transceiver and the switch's port.",
}


def ports_down(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield ports that are not Active."""
    for choice, port in used_ports(plan):
        if port.state not in ("Active", None):
            physical = f", {port.physical_state}" if port.physical_state else ""
            yield SiteFinding(
                "error",
                (choice.node.name,),
                f"{port.name} is {port.state}{physical}",
                _WHEN_DOWN.get(port.physical_state or "", _CABLE)
                if port.state == "Down"
                else "Start a subnet manager (opensm, or the switch's): the link is up, and has "
                "no address yet.",
            )


def ports_never_up(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield devices that are down on all nodes, one finding for each reason."""
    reasons: dict[str, list[str]] = {}
    for device, because in plan.devices.left_out.items():
        if because.startswith("Down"):
            reasons.setdefault(because, []).append(device)
    for because, devices in reasons.items():
        verb, it = ("is", "it") if len(devices) == 1 else ("are", "them")
        yield SiteFinding(
            "warning",
            plan.group.nodes,
            f"{', '.join(devices)} {verb} {because}, so the fabric does not use {it}",
            f"Connect {it} on all nodes and discover again, or leave {it} so.",
        )


def unknown_states(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes with a port whose state no tool shows."""
    for choice in plan.group.choices:
        if any(port.state is None for port in choice.ports):
            yield SiteFinding(
                "warning",
                (choice.node.name,),
                "the state of RDMA ports is unknown",
                _UNKNOWN_STATE,
            )


def slow_ports(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield ports slower than the fabric."""
    for choice, port in used_ports(plan):
        if port.rate_gbps is not None and port.rate_gbps < (plan.group.rate or 0):
            yield SiteFinding(
                "error",
                (choice.node.name,),
                f"{port.name} runs at {gbps(port.rate_gbps)}, the fabric at "
                f"{gbps(plan.group.rate)}",
                "Reseat or replace the cable, and compare the switch port's speed.",
            )


def devices_missing(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes with fewer devices than most nodes of the group."""
    counts = {choice.node.name: len(used_devices(choice, plan)) for choice in plan.group.choices}
    usual = most_common(counts.values())
    for node, count in counts.items():
        if count < usual:
            yield SiteFinding(
                "error",
                (node,),
                f"{count} of the fabric's devices, where other nodes have {usual}",
                "Look for the missing card in lspci and dmesg.",
            )


def missing_gids(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield RoCE ports without a RoCE v2 GID in their table."""
    if plan.group.card.link_layer != "Ethernet":
        return
    for choice, port in used_ports(plan):
        rows = (gid for gid in choice.node.gids if gid.device == port.device)
        table = [gid for gid in rows if gid.version is not None]  # ibstatus shows one GID only
        usable = any(gid.version == "v2" and gid.gid.strip("0:") for gid in table)
        if table and not usable and port.state == "Active":
            yield SiteFinding(
                "error",
                (choice.node.name,),
                f"{port.name} has no RoCE v2 GID",
                f"Give {', '.join(port.netdevs) or 'its interface'} an IP address.",
            )
