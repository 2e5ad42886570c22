"""The ports of a node that belong to its fabric, and the reasons why the others do not.

A node has cards for GPUs, and others for storage and management. The cards for GPUs are next to
GPUs (nvidia-smi topo -m), or else have the highest total rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from webhook.diagnose.discover.site import MergedNode, MergedPort, rate_text
from webhook.diagnose.tools.hardware import AMAZON_ID, MELLANOX_ID
from webhook.diagnose.tools.observations import LinkLayer
from webhook.model.finding import Location

#: The distances of nvidia-smi topo -m, nearest first.
DISTANCES = ("PIX", "PXB", "PHB", "NODE", "SYS")
#: At these distances, a GPU and a NIC share a PCIe switch, so the NIC serves the GPU.
NEAR = DISTANCES[:2]
_VIRTUAL = "a virtual function, which a single pod gets"


class CardKind(NamedTuple):
    """A kind of card: two cards of one kind are equal for a fabric."""

    #: "EFA" for Amazon's devices, which have no link layer that tools show.
    link_layer: LinkLayer | Literal["EFA"]
    #: The device id, after the vendor unless that is NVIDIA, or else the model as shown; None if no
    #: tool shows either.
    kind: str | None


class NodePorts(NamedTuple):
    """The ports of a node: the ports of its fabric's card, and the others."""

    node: MergedNode
    #: None if no tool shows the link layer of a port.
    card_kind: CardKind | None
    #: The most common rate of the Active ports in Gb/s.
    rate: float | None
    #: The ports of the fabric's card, also those that are down or slower.
    fabric_ports: tuple[MergedPort, ...]
    #: Port → why it is not one of the fabric's ports.
    other_ports: Mapping[MergedPort, str]

    def location(self, port: MergedPort | None = None) -> Location:
        """Return the node, with the device of a port, as the location of a finding."""
        return Location(nodes=(self.node.name,), device=(port and port.device) or "")

    @property
    def devices(self) -> dict[str, list[MergedPort]]:
        """The fabric's ports by RDMA device."""
        by_device: dict[str, list[MergedPort]] = {}
        for port in self.fabric_ports:
            if port.device is not None:
                by_device.setdefault(port.device, []).append(port)
        return by_device


def card_kind_of(port: MergedPort) -> CardKind | None:
    """Return the kind of card of a port; None if no tool shows its link layer."""
    kind = f"{port.device_id:04x}" if port.device_id is not None else port.model
    if port.vendor_id == AMAZON_ID:
        return CardKind("EFA", kind)
    if port.link_layer is None:
        return None
    if port.device_id is not None and port.vendor_id not in (None, MELLANOX_ID):
        kind = f"{port.vendor_id:04x}:{kind}"
    return CardKind(port.link_layer, kind)


def gpu_distances(node: MergedNode) -> dict[str, str]:
    """Return the distance of each RDMA device to its nearest GPU."""
    distances: dict[str, str] = {}
    for row in node.distances:
        if row.distance in DISTANCES:
            before = distances.get(row.nic, DISTANCES[-1])
            distances[row.nic] = min(before, row.distance, key=DISTANCES.index)
    return distances


def select_ports(node: MergedNode) -> NodePorts:
    """Choose the ports of a node for its fabric."""
    usable = [port for port in node.ports if port.device is not None]
    candidates = [port for port in usable if not port.virtual] or usable
    distances = gpu_distances(node)
    by_kind: dict[CardKind, list[MergedPort]] = {}
    open_ports = ports_of_open_cards(node)
    for port in candidates:
        card_kind = card_kind_of(port)
        if card_kind is not None and port.device not in open_ports:
            by_kind.setdefault(card_kind, []).append(port)
    if not by_kind:
        reasons = {port: _unusable_reason(port, open_ports) for port in node.ports}
        return NodePorts(node, None, None, (), reasons)
    fabric_card_kind = max(by_kind, key=lambda kind: _weight(kind, by_kind[kind], distances))
    chosen = _near_ports(by_kind[fabric_card_kind], distances)
    rate = _common_rate(chosen)
    other_ports = {
        port: _unusable_reason(port, open_ports)
        if port.device in open_ports
        else _exclusion_reason(port, fabric_card_kind, candidates, distances)
        for port in node.ports
        if port not in chosen
    }
    return NodePorts(node, fabric_card_kind, rate, tuple(chosen), other_ports)


def ports_of_open_cards(node: MergedNode) -> dict[str | None, MergedPort]:
    """Return the Active port of each device whose link layer no tool shows for any Active port.

    Its other ports, which are not Active, cannot show the fabric that the device is for.
    """
    active = [port for port in node.ports if port.state == "Active"]
    decided = {port.device for port in active if card_kind_of(port) is not None}
    of_kind = {port.device for port in node.ports if card_kind_of(port) is not None}
    return {port.device: port for port in active if port.device in of_kind - decided}


def _weight(
    card_kind: CardKind, ports: Sequence[MergedPort], distances: Mapping[str, str]
) -> tuple[bool, float, bool, int, str]:
    """Return the rank of a kind of card: near GPUs first, then by the total rate of its ports."""
    near = any(distances.get(port.device or "") in NEAR for port in ports)
    total_rate = sum(port.rate_gbps or 0 for port in ports)
    return near, total_rate, card_kind.link_layer == "InfiniBand", len(ports), str(card_kind.kind)


def _near_ports(ports: Sequence[MergedPort], distances: Mapping[str, str]) -> list[MergedPort]:
    """Leave out the ports far from every GPU, if other ports of the same card are near one."""
    near = [port for port in ports if distances.get(port.device or "") in NEAR]
    if not near:
        return list(ports)
    return [port for port in ports if port in near or (port.device or "") not in distances]


def _common_rate(ports: Iterable[MergedPort]) -> float | None:
    rates = Counter(port.rate_gbps for port in ports if port.rate_gbps is not None)
    return max(rates, key=lambda rate: (rates[rate], rate or 0), default=None)


def _exclusion_reason(
    port: MergedPort,
    fabric_card_kind: CardKind,
    candidates: Sequence[MergedPort],
    distances: Mapping[str, str],
) -> str:
    card_kind = card_kind_of(port)
    if port.device is None or card_kind is None:
        return _unusable_reason(port, {})
    if port.virtual and port not in candidates:
        return _VIRTUAL
    rate = rate_text(port.rate_gbps) if port.state in ("Active", None) else port.state
    if card_kind.link_layer != fabric_card_kind.link_layer:
        bond = " bond" if "_bond_" in port.device else ""
        return f"{card_kind.link_layer}{bond}, {rate}; the fabric is {fabric_card_kind.link_layer}"
    if card_kind != fabric_card_kind:
        return f"{port.model or 'a different model'}, {rate}; the fabric uses other cards"
    return f"not near a GPU (nvidia-smi topo -m: {distances.get(port.device)})"


def _unusable_reason(port: MergedPort, open_ports: Mapping[str | None, MergedPort]) -> str:
    if port.device is None:
        return "no tool shows an RDMA device"
    if card_kind_of(port) is not None:
        active = open_ports.get(port.device)
        if active is None:
            return _VIRTUAL
        return f"{port.state}, and the link layer of {active.name} is unknown"
    missing = [tool for tool in ("ibstat", "ibv_devinfo") if tool not in port.sources]
    return f"link layer unknown (add the output of {' or '.join(missing) or 'ibstatus'})"
