"""Choose the selectors by which a device plugin finds a fabric's devices, and no others.

The RDMA shared device plugin and the SR-IOV device plugin take the devices that fit all selectors;
within a selector one value is enough. An interface is that of the PCI device itself, never a bond.
The link type is that of the interface, so a device without one has none. Sources:
k8s-rdma-shared-dev-plugin, pkg/resources (device_selectors.go, pci_net_device.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook.discover.choice import NodeChoice
from webhook.discover.fabric_plan import FabricPlan
from webhook.discover.site import FoundPort, natural

_LINK_TYPES = {"InfiniBand": "infiniband", "Ethernet": "ether"}
#: Interfaces that no PCI device has.
_NO_DEVICE = ("bond", "team", "br-")


class Selectors(NamedTuple):
    """Selectors; an empty one selects everything."""

    vendors: tuple[str, ...] = ()
    device_ids: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    link_types: tuple[str, ...] = ()

    def take(self, port: FoundPort) -> bool:
        """Return whether a device with these facts is selected."""
        shown = (
            (self.vendors, _hex(port.vendor_id)),
            (self.device_ids, _hex(port.device_id)),
            (self.interfaces, own_interface(port)),
            (self.link_types, _LINK_TYPES.get(port.link_layer or "")),
        )
        return all(not wanted or value in wanted for wanted, value in shown)


class Selected(NamedTuple):
    """The selectors for a fabric, and how far they are right."""

    selectors: Selectors
    #: What they select although they should not, or miss: "mlx5_2 on node1".
    wrong: tuple[str, ...]
    #: The same on the nodes of other fabrics.
    elsewhere: tuple[str, ...]


def own_interface(port: FoundPort) -> str | None:
    """Return the interface that the plugin sees under the PCI device; None if no tool shows it."""
    return next((name for name in port.netdevs if not name.startswith(_NO_DEVICE)), None)


def select_devices(plan: FabricPlan, plans: Sequence[FabricPlan]) -> Selected | None:
    """Return the fewest selectors that are right on all nodes, or else those that err least.

    None: no tool shows ids or interfaces of the fabric's devices.
    """
    others = [other for other in plans if other is not plan]
    found = []
    for selectors in _candidates(plan):
        wrong = tuple(dict.fromkeys(_wrong(selectors, plan)))
        elsewhere = tuple(
            dict.fromkeys(
                f"{port.name} on {choice.node.name}"
                for other in others
                for choice in other.group.choices
                for port in choice.node.ports
                if port.device and selectors.take(port)
            )
        )
        found.append(Selected(selectors, wrong, elsewhere))
    return min(found, key=lambda one: (len(one.wrong), len(one.elsewhere)), default=None)


def _candidates(plan: FabricPlan) -> Iterator[Selectors]:
    """Yield selectors from the loosest to the strictest."""
    ports = [port for _, port in used_ports(plan)]
    if not ports:
        return
    vendors = _values(_hex(port.vendor_id) for port in ports)
    ids = _values(_hex(port.device_id) for port in ports)
    interfaces = _values(own_interface(port) for port in ports)
    links = _values(_LINK_TYPES.get(port.link_layer or "") for port in ports)
    by_id = Selectors(vendors=vendors, device_ids=ids) if ids else Selectors()
    if ids:
        yield by_id
    if ids and interfaces:
        yield by_id._replace(link_types=links)
    if interfaces:
        yield by_id._replace(link_types=links, interfaces=interfaces)


def _values(of: Iterator[str | None]) -> tuple[str, ...]:
    """Return the values in natural order; none if one is not known."""
    values = list(of)
    known = {value for value in values if value is not None}
    return tuple(sorted(known, key=natural)) if None not in values else ()


def _hex(number: int | None) -> str | None:
    return None if number is None else f"{number:04x}"


def used_ports(plan: FabricPlan) -> Iterator[tuple[NodeChoice, FoundPort]]:
    """Yield the ports of a fabric that its pods use, node by node."""
    used = {name.partition(":")[0] for name in plan.devices.used}
    for choice in plan.group.choices:
        for port in choice.ports:
            if port.device in used:
                yield choice, port


def _wrong(selectors: Selectors, plan: FabricPlan) -> Iterator[str]:
    wanted = {(choice.node.name, port.device) for choice, port in used_ports(plan)}
    for choice in plan.group.choices:
        for port in choice.node.ports:
            is_wanted = (choice.node.name, port.device) in wanted
            if port.device and selectors.take(port) != is_wanted:
                yield f"{port.name} on {choice.node.name}"
