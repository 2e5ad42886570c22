"""Choose the ports of a node that its fabric uses, and say why the others are left out.

A node has cards for GPUs, and others for storage and management. Those for GPUs are next to GPUs
(nvidia-smi topo -m), or else they are those that carry most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from webhook.diagnose.discover.site import SiteNode, SitePort, gbps
from webhook.diagnose.tools.observations import LinkLayer

#: The distances of nvidia-smi topo -m, nearest first.
DISTANCES = ("PIX", "PXB", "PHB", "NODE", "SYS")
#: A GPU and a NIC this near share PCIe switches: the NIC is the GPU's.
_NEAR = DISTANCES[:2]


class Card(NamedTuple):
    """What makes two cards the same for a fabric."""

    link_layer: LinkLayer
    #: The device id, or else the model as shown; None where no tool says.
    kind: str | None


class PortSelection(NamedTuple):
    """The ports of a node that its fabric uses."""

    node: SiteNode
    card: Card | None
    #: The most common rate of the Active ports in Gb/s.
    rate: float | None
    #: What the fabric may use: also ports of the same card that are down or slower.
    ports: tuple[SitePort, ...]
    #: Port → why it is left out.
    left_out: Mapping[SitePort, str]

    @property
    def devices(self) -> dict[str, list[SitePort]]:
        """The ports by RDMA device."""
        found: dict[str, list[SitePort]] = {}
        for port in self.ports:
            if port.device is not None:
                found.setdefault(port.device, []).append(port)
        return found


def card_of(port: SitePort) -> Card | None:
    """Return the kind of card that a port is on; None if no tool says its link layer."""
    if port.link_layer is None:
        return None
    kind = f"{port.device_id:04x}" if port.device_id is not None else port.model
    return Card(port.link_layer, kind)


def nearest(node: SiteNode) -> dict[str, str]:
    """Return for each RDMA device the distance to the GPU that is nearest to it."""
    found: dict[str, str] = {}
    for one in node.distances:
        if one.distance in DISTANCES:
            before = found.get(one.nic, DISTANCES[-1])
            found[one.nic] = min(before, one.distance, key=DISTANCES.index)
    return found


def select_ports(node: SiteNode) -> PortSelection:
    """Choose the ports of a node for its fabric."""
    usable = [port for port in node.ports if port.device is not None]
    real = [port for port in usable if not port.virtual] or usable
    distances = nearest(node)
    by_card: dict[Card, list[SitePort]] = {}
    for port in real:
        card = card_of(port)
        if card is not None:
            by_card.setdefault(card, []).append(port)
    if not by_card:
        return PortSelection(node, None, None, (), {port: _why_not(port) for port in node.ports})
    best = max(by_card, key=lambda card: _weight(card, by_card[card], distances))
    chosen = _near_ones(by_card[best], distances)
    rate = _common_rate(chosen)
    left_out = {
        port: _why_left_out(port, best, usable_virtual=port in real, distances=distances)
        for port in node.ports
        if port not in chosen
    }
    return PortSelection(node, best, rate, tuple(chosen), left_out)


def _weight(
    card: Card, ports: Sequence[SitePort], distances: Mapping[str, str]
) -> tuple[bool, float, bool, int, str]:
    """Return what ranks a kind of card: near GPUs first, then what its Active ports carry."""
    near = any(distances.get(port.device or "") in _NEAR for port in ports)
    carried = sum(port.rate_gbps or 0 for port in ports)
    return near, carried, card.link_layer == "InfiniBand", len(ports), str(card.kind)


def _near_ones(ports: Sequence[SitePort], distances: Mapping[str, str]) -> list[SitePort]:
    """Leave out ports far from every GPU, if others of the same card are near one."""
    near = [port for port in ports if distances.get(port.device or "") in _NEAR]
    if not near:
        return list(ports)
    return [port for port in ports if port in near or (port.device or "") not in distances]


def _common_rate(ports: Iterable[SitePort]) -> float | None:
    rates = Counter(port.rate_gbps for port in ports if port.rate_gbps is not None)
    return max(rates, key=lambda rate: (rates[rate], rate or 0), default=None)


def _why_left_out(
    port: SitePort, best: Card, *, usable_virtual: bool, distances: Mapping[str, str]
) -> str:
    if port.device is None or card_of(port) is None:
        return _why_not(port)
    if port.virtual and not usable_virtual:
        return "a virtual function: it belongs to the pod that gets it"
    rate = gbps(port.rate_gbps) if port.state in ("Active", None) else port.state
    if port.link_layer != best.link_layer:
        bond = ", a bond" if "_bond_" in port.device else ""
        return f"{port.link_layer}{bond}, {rate}: the fabric is {best.link_layer}"
    if card_of(port) != best:
        return f"{port.model or 'another card'}, {rate}: not the fabric's card"
    return f"no GPU is near it (nvidia-smi topo -m: {distances.get(port.device)})"


def _why_not(port: SitePort) -> str:
    if port.device is None:
        return "no tool shows an RDMA device for it"
    return "no tool says its link layer: add the output of ibstat or ibv_devinfo"
