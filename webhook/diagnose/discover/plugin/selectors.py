"""Choose the selectors by which a device plugin finds a fabric's devices, and no others.

The RDMA shared device plugin and the SR-IOV device plugin take the devices that fit all selectors;
within a selector one value is enough. An interface is that of the PCI device itself, never a bond.
The link type is that of the interface, so a device without one has none. Sources:
k8s-rdma-shared-dev-plugin, pkg/resources (device_selectors.go, pci_net_device.go).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import compress, product
from typing import NamedTuple

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.site import FoundPort, natural
from webhook.diagnose.discover.used_ports_used_ports import used_ports

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
        return all(
            not wanted or value in wanted for wanted, value in zip(self, _facts(port), strict=True)
        )


class Selected(NamedTuple):
    """The selectors for a fabric, and how far they are right."""

    selectors: Selectors
    #: What they select although they should not, or miss: "mlx5_2 on node1".
    wrong: tuple[str, ...]
    #: How many devices they select on the nodes of other fabrics.
    elsewhere: int


#: Vendor, device id, interface and link type of a port, as selectors spell them.
_Facts = tuple[str | None, ...]


def _facts(port: FoundPort) -> _Facts:
    link = _LINK_TYPES.get(port.link_layer or "")
    return _hex(port.vendor_id), _hex(port.device_id), own_interface(port), link


class PortCensus:
    """Counts the ports of all fabrics' nodes by what selectors compare."""

    def __init__(self, plans: Iterable[FabricPlan]) -> None:
        self._facts = Counter(_facts(port) for plan in plans for port in _ports_of(plan))
        #: By the selectors that are not empty: how many ports have these values.
        self._counts: dict[tuple[bool, ...], Counter[_Facts]] = {}

    def taken(self, selectors: Selectors) -> int:
        """Return how many ports are selected, in a time that does not grow with their number."""
        given = tuple(bool(wanted) for wanted in selectors)
        if given not in self._counts:
            counts = self._counts[given] = Counter()
            for facts, many in self._facts.items():
                counts[tuple(compress(facts, given))] += many
        counts = self._counts[given]
        return sum(counts[values] for values in product(*compress(selectors, given)))


def _ports_of(plan: FabricPlan) -> Iterator[FoundPort]:
    """Yield all RDMA ports of a fabric's nodes, also those that it does not use."""
    for choice in plan.group.choices:
        yield from (port for port in choice.node.ports if port.device)


def own_interface(port: FoundPort) -> str | None:
    """Return the interface that the plugin sees under the PCI device; None if no tool shows it."""
    return next((name for name in port.netdevs if not name.startswith(_NO_DEVICE)), None)


def select_devices(plan: FabricPlan, census: PortCensus) -> Selected | None:
    """Return the fewest selectors that are right on all nodes, or else those that err least.

    None: no tool shows ids or interfaces of the fabric's devices.
    """
    found = []
    for selectors in _candidates(plan):
        wrong = tuple(dict.fromkeys(_wrong(selectors, plan)))
        here = sum(map(selectors.take, _ports_of(plan)))
        found.append(Selected(selectors, wrong, census.taken(selectors) - here))
    return min(found, key=lambda one: (len(one.wrong), one.elsewhere), default=None)


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


def _wrong(selectors: Selectors, plan: FabricPlan) -> Iterator[str]:
    wanted = {(choice.node.name, port.device) for choice, port in used_ports(plan)}
    for choice in plan.group.choices:
        for port in choice.node.ports:
            is_wanted = (choice.node.name, port.device) in wanted
            if port.device and selectors.take(port) != is_wanted:
                yield f"{port.name} on {choice.node.name}"
