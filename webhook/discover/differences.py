"""Find what is wrong with the nodes of a group or differs between them, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from webhook.discover.choice import NodeChoice
from webhook.discover.fabric_plan import FabricPlan
from webhook.discover.group import Group
from webhook.discover.joined_ports import pci_key
from webhook.discover.site import (
    FindingLevel,
    FoundNode,
    FoundPort,
    SiteFinding,
    gbps,
    listed_nodes,
)
from webhook.machine.cards import card_model
from webhook.machine.link_rates import data_rate, expected_rate
from webhook.machine.sightings import CardSighting, PcieLink

#: A port's share of its rate below which its PCI Express link is too slow.
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
_Counted = TypeVar("_Counted", int, str)
_RANK = {"error": 0, "warning": 1, "note": 2}
_UNKNOWN_STATE = (
    "Add the output of ibstat, ibv_devinfo or rdma link: (Up) and (Down) of ibdev2netdev are the "
    "network interface's."
)


def site_findings(
    nodes: Iterable[FoundNode],
    choices: Iterable[NodeChoice],
    plans: Sequence[FabricPlan],
    others: Iterable[SiteFinding] = (),
) -> list[SiteFinding]:
    """Return all findings, the most severe first; alike ones of several nodes as one."""
    found: list[SiteFinding] = [*others]
    for node in nodes:
        found += node.findings
    for choice in choices:
        found += _of_choice(choice)
    for plan in plans:
        for check in _CHECKS:
            found += check(plan)
    found += _two_rates([plan.group for plan in plans])
    return _together(found)


def _together(found: Iterable[SiteFinding]) -> list[SiteFinding]:
    nodes: dict[tuple[FindingLevel, str, str], dict[str, None]] = {}
    for one in found:
        key = (one.severity, one.message, one.remedy)
        nodes.setdefault(key, {}).update(dict.fromkeys(one.nodes))
    merged = [
        SiteFinding(severity, tuple(of), message, remedy)
        for (severity, message, remedy), of in nodes.items()
    ]
    return sorted(merged, key=lambda one: _RANK[one.severity])


def _of_choice(choice: NodeChoice) -> Iterator[SiteFinding]:
    """Yield what keeps a node out of every fabric, and what is odd about its other devices."""
    node = choice.node
    if not any(port.device for port in node.ports):
        yield SiteFinding(
            "error",
            (node.name,),
            "no tool shows an RDMA device",
            "Check that a network card is there (lspci -nn) and that its RDMA driver is loaded "
            "(mlx5_ib for NVIDIA), or collect again with all tools: rdma-webhook discover script.",
        )
    elif choice.card is None:
        yield SiteFinding(
            "error",
            (node.name,),
            "no tool says the link layer of any port, so the node is in no fabric",
            "Add the output of ibstat, ibstatus or ibv_devinfo, or collect again: rdma-webhook "
            "discover script.",
        )
    for port in node.ports:
        if port.device is None and any(other.device for other in node.ports):
            yield SiteFinding(
                "warning",
                (node.name,),
                f"{port.model or 'a card'} at {port.pci} has no RDMA device",
                "Load its RDMA driver (mlx5_ib for NVIDIA), or leave it to other traffic.",
            )


def _ports_down(plan: FabricPlan) -> Iterator[SiteFinding]:
    for choice, port in _ports(plan):
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


_CABLE = "Check cable, transceiver and switch port; then ibstat must say LinkUp and Active."
_WHEN_DOWN = {
    "Disabled": "Enable the port (ibportstate, or mlxlink), or plug in its cable.",
    "Polling": "It finds no partner: check cable, transceiver and the switch's port.",
}


def _never_up(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield devices that are down on all nodes; those with the same reason together."""
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


def _ports_unknown(plan: FabricPlan) -> Iterator[SiteFinding]:
    for choice in plan.group.choices:
        if any(port.state is None for port in choice.ports):
            yield SiteFinding(
                "warning",
                (choice.node.name,),
                "the state of RDMA ports is unknown",
                _UNKNOWN_STATE,
            )


def _ports_slow(plan: FabricPlan) -> Iterator[SiteFinding]:
    for choice, port in _ports(plan):
        if port.rate_gbps is not None and port.rate_gbps < (plan.group.rate or 0):
            yield SiteFinding(
                "error",
                (choice.node.name,),
                f"{port.name} runs at {gbps(port.rate_gbps)}, the fabric at "
                f"{gbps(plan.group.rate)}",
                "Reseat or replace the cable, and compare the switch port's speed.",
            )


def _devices_missing(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield nodes with fewer devices than most nodes of the group."""
    counts = {choice.node.name: len(_used_devices(choice, plan)) for choice in plan.group.choices}
    usual = _most_common(counts.values())
    for node, many in counts.items():
        if many < usual:
            yield SiteFinding(
                "error",
                (node,),
                f"{many} of the fabric's devices, where other nodes have {usual}",
                "Look for the missing card in lspci and dmesg.",
            )


def _firmware(plan: FabricPlan) -> Iterator[SiteFinding]:
    shown = Counter(port.firmware for _, port in _ports(plan) if port.firmware)
    if len(shown) < 2:  # noqa: PLR2004
        return
    usual = _most_common(shown.elements())
    for other in sorted(set(shown) - {usual}):
        nodes = dict.fromkeys(
            choice.node.name for choice, port in _ports(plan) if port.firmware == other
        )
        yield SiteFinding(
            "warning",
            tuple(nodes),
            f"firmware {other}, where most of the {plan.group.model or 'same'} cards have {usual}",
            "Give all cards of the fabric one firmware (mlxfwmanager, mlxup).",
        )


def _pcie(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield ports whose PCI Express link is narrower or slower than the card's."""
    for choice, port in _ports(plan):
        card = _card_of(choice.node, port)
        if card is None or card.link is None:
            continue
        known = card_model(port.vendor_id, port.device_id)
        best = card.best_link or (known.best_link if known else None)
        expected = expected_rate(port.rate_gbps or 0, port.link_layer, card.link)
        too_slow = expected.gbps < _ENOUGH * data_rate(port.rate_gbps or 0, port.link_layer)
        if expected.limit == "PCIe" and too_slow:
            yield SiteFinding(
                "error",
                (choice.node.name,),
                f"the PCI Express link of {port.name} ({_link(card.link)}) carries "
                f"{expected.gbps:.0f} of {gbps(port.rate_gbps)}"
                f"{f'; the card can {_link(best)}' if best else ''}",
                "Reseat the card, or put it into a slot with more lanes; look at the BIOS.",
            )


def _card_of(node: FoundNode, port: FoundPort) -> CardSighting | None:
    if port.pci is None:
        return None
    cards = (card for card in node.cards if card.link and pci_key(card.pci) == pci_key(port.pci))
    return next(cards, None)


def _link(link: PcieLink) -> str:
    return f"x{link.width} at {link.speed:g} GT/s"


def _counters(plan: FabricPlan) -> Iterator[SiteFinding]:
    for choice in plan.group.choices:
        used = _used_devices(choice, plan)
        for one in choice.node.counters:
            if one.device in used and one.counter in _BAD_COUNTERS and one.value > 0:
                yield SiteFinding(
                    "warning",
                    (choice.node.name,),
                    f"{one.device}: {one.counter} is {one.value}",
                    "Look again in an hour: if it grows, replace the cable or transceiver.",
                )


def _cables(plan: FabricPlan) -> Iterator[SiteFinding]:
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


def _namespaces(plan: FabricPlan) -> Iterator[SiteFinding]:
    for choice in plan.group.choices:
        if plan.mode == "shared-device" and choice.node.settings.get("netns") == "exclusive":
            yield SiteFinding(
                "error",
                (choice.node.name,),
                "RDMA devices belong to one network namespace (netns exclusive): the RDMA shared "
                "device plugin offers none",
                "Run rdma system set netns shared, and write options ib_core netns_mode=1 into "
                "/etc/modprobe.d.",
            )


def _memory_locking(plan: FabricPlan) -> Iterator[SiteFinding]:
    for choice in plan.group.choices:
        memlock = choice.node.settings.get("memlock")
        if memlock is not None and memlock != "infinity":
            yield SiteFinding(
                "note",
                (choice.node.name,),
                f"containerd limits locked memory to {memlock} bytes, which stops RDMA in "
                "containers that do not run as root, since IPC_LOCK does nothing there",
                "Write LimitMEMLOCK=infinity into a drop-in of containerd.service and restart it; "
                "then set defaults.memlock: unlimited.",
            )


def _peer_memory(plan: FabricPlan) -> Iterator[SiteFinding]:
    for choice in plan.group.choices:
        if choice.node.gpus and choice.node.settings.get("peermem") == "no":
            yield SiteFinding(
                "note",
                (choice.node.name,),
                "nvidia_peermem is not loaded: GPUDirect RDMA then needs DMA-BUF",
                "Load nvidia_peermem (modprobe nvidia_peermem), or check that NCCL says GDRDMA.",
            )


def _drivers(plan: FabricPlan) -> Iterator[SiteFinding]:
    shown = Counter(
        driver
        for choice in plan.group.choices
        if (driver := choice.node.settings.get("driver")) is not None
    )
    if len(shown) < 2:  # noqa: PLR2004
        return
    usual = _most_common(shown.elements())
    for choice in plan.group.choices:
        driver = choice.node.settings.get("driver", usual)
        if driver != usual:
            yield SiteFinding(
                "warning",
                (choice.node.name,),
                f"the RDMA driver is {driver}, where most nodes have {usual}",
                "Install one driver on all nodes of the fabric.",
            )


def _gids(plan: FabricPlan) -> Iterator[SiteFinding]:
    """Yield RoCE ports whose table shows no RoCE v2 GID."""
    if plan.group.card.link_layer != "Ethernet":
        return
    for choice, port in _ports(plan):
        rows = (one for one in choice.node.gids if one.device == port.device)
        table = [one for one in rows if one.version is not None]  # ibstatus shows one GID only
        usable = any(one.version == "v2" and one.gid.strip("0:") for one in table)
        if table and not usable and port.state == "Active":
            yield SiteFinding(
                "error",
                (choice.node.name,),
                f"{port.name} has no RoCE v2 GID",
                f"Give {', '.join(port.netdevs) or 'its interface'} an IP address.",
            )


def _two_rates(groups: Iterable[Group]) -> Iterator[SiteFinding]:
    """Yield nodes with the same GPUs and cards as others whose ports run slower."""
    best: dict[tuple[object, ...], Group] = {}
    ordered = sorted(groups, key=lambda group: -(group.rate or 0))
    for group in ordered:
        fastest = best.setdefault((group.product, group.card), group)
        if group.rate is not None and fastest.rate is not None and group.rate < fastest.rate:
            yield SiteFinding(
                "warning",
                group.nodes,
                f"all ports run at {gbps(group.rate)}, where the same cards of "
                f"{listed_nodes(fastest.nodes)} run at {gbps(fastest.rate)}",
                "Compare cables and switches; a job over both runs at the slower rate.",
            )


def _ports(plan: FabricPlan) -> Iterator[tuple[NodeChoice, FoundPort]]:
    """Yield the ports that the fabric uses."""
    used = {name.partition(":")[0] for name in plan.devices.used}
    for choice in plan.group.choices:
        for port in choice.ports:
            if port.device in used:
                yield choice, port


def _used_devices(choice: NodeChoice, plan: FabricPlan) -> set[str]:
    return set(choice.devices) & {name.partition(":")[0] for name in plan.devices.used}


def _most_common(values: Iterable[_Counted]) -> _Counted:
    """Return the value that occurs most; of several such the greatest."""
    counted = Counter(values)
    return max(counted, key=lambda value: (counted[value], str(value)))


_CHECKS: tuple[Callable[[FabricPlan], Iterable[SiteFinding]], ...] = (
    _ports_down,
    _devices_missing,
    _ports_slow,
    _pcie,
    _gids,
    _namespaces,
    _never_up,
    _ports_unknown,
    _firmware,
    _drivers,
    _cables,
    _counters,
    _memory_locking,
    _peer_memory,
)
