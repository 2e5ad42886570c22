"""Join what several tools say of the ports of one node, by device, PCI address and interface.

Tools that do not show the name of the RDMA device (lspci, or mst without a driver) are joined over
the PCI address, with or without its domain, or over the network interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from webhook.diagnose.discover.site import (
    Reconciled,
    SiteFinding,
    SitePort,
    SourcedObservation,
    Statement,
    Value,
    natural,
    reconcile,
)
from webhook.diagnose.tools.hardware import NVIDIA, card_model
from webhook.diagnose.tools.observations import CardObservation, PortObservation, PortState

_AnySighting = TypeVar("_AnySighting", bound=PortObservation | CardObservation)
#: ibv_devinfo shows the OUI of some vendors, other tools their PCI id.
_PCI_VENDORS = {0x02C9: NVIDIA}
#: Interfaces that stand above others: both tools are right.
_ABOVE = ("bond", "team", "br-")


class _Told(NamedTuple):
    """A sighting of a port or a card, and its file."""

    file: str
    seen: PortObservation | CardObservation


class JoinedPorts(NamedTuple):
    """The ports of a node, and where tools differ."""

    ports: tuple[SitePort, ...]
    findings: tuple[SiteFinding, ...]


def pci_key(address: str) -> str:
    """Return an address with its domain: tools leave it out where all devices are in domain 0."""
    address = address.lower()
    return address if address.count(":") > 1 else f"0000:{address}"


def join_ports(node: str, sighted: Sequence[SourcedObservation]) -> JoinedPorts:
    """Join the sightings of one node; their order has no influence."""
    ports = [_Told(file, seen) for file, seen in _only(sighted, PortObservation)]
    cards = [_Told(file, seen) for file, seen in _only(sighted, CardObservation)]
    devices: dict[str, list[_Told]] = {}
    for told in ports:
        if isinstance(told.seen, PortObservation) and told.seen.device is not None:
            devices.setdefault(told.seen.device, []).append(told)
    strangers = _attach(devices, ports, cards)
    found, findings = [], []
    for device in sorted(devices, key=natural):
        for port in _numbers(devices[device]):
            one, wrong = _port(node, device, port, devices[device])
            found.append(one)
            findings += wrong
    found += _without_device(found, strangers)
    return JoinedPorts(tuple(found), tuple(dict.fromkeys(findings)))


def _only(
    sighted: Iterable[SourcedObservation], kind: type[_AnySighting]
) -> list[tuple[str, _AnySighting]]:
    return [(one.file, one.sighting) for one in sighted if isinstance(one.sighting, kind)]


def _attach(
    devices: dict[str, list[_Told]], ports: list[_Told], cards: list[_Told]
) -> dict[str, list[_Told]]:
    """Add sightings without a device to the device that they are of; return the others by PCI."""
    nameless = [
        told
        for told in ports
        if isinstance(told.seen, PortObservation) and told.seen.device is None
    ]
    by_pci = _owners(devices, _pcis)
    by_netdev = _owners(devices, _netdevs)
    found: list[tuple[str, _Told]] = []
    strangers: dict[str, list[_Told]] = {}
    for told in [*nameless, *cards]:
        owner = _only_owner(by_pci, _pcis(told)) or _only_owner(by_netdev, _netdevs(told))
        if owner:
            found.append((owner, told))
        elif told.seen.pci:
            strangers.setdefault(pci_key(told.seen.pci), []).append(told)
    for owner, told in found:
        devices[owner].append(told)
    return strangers


def _owners(
    devices: dict[str, list[_Told]], keys: Callable[[_Told], Iterable[str]]
) -> dict[str, set[str]]:
    owners: dict[str, set[str]] = {}
    for device, told in devices.items():
        for key in (key for one in told for key in keys(one)):
            owners.setdefault(key, set()).add(device)
    return owners


def _only_owner(owners: dict[str, set[str]], keys: Iterable[str]) -> str | None:
    found = {device for key in keys for device in owners.get(key, ())}
    return found.pop() if len(found) == 1 else None


def _pcis(told: _Told) -> tuple[str, ...]:
    return (pci_key(told.seen.pci),) if told.seen.pci else ()


def _netdevs(told: _Told) -> tuple[str, ...]:
    return (told.seen.netdevs or ()) if isinstance(told.seen, PortObservation) else ()


def _numbers(told: Sequence[_Told]) -> list[int | None]:
    counted = {one.seen.port for one in told if isinstance(one.seen, PortObservation)} - {None}
    numbers: list[int | None] = [*sorted(number for number in counted if number is not None)]
    return numbers or [None]


class _Joining:
    """Puts together one port from what was said of it, and of its device as a whole."""

    def __init__(self, node: str, about: str, told: Sequence[_Told]) -> None:
        self._node = node
        self._about = about
        self.told = told
        self.findings: list[SiteFinding] = []

    def field(
        self,
        name: str,
        told: Iterable[tuple[str, _AnySighting]],
        read: Callable[[_AnySighting], Value | None],
        key: Callable[[Value], object] = lambda value: value,
    ) -> Value | None:
        """Return the value of a field on which all agree; else None, and a finding."""
        result = reconcile(_said(told, read), key)
        self._note(name, result)
        return result.value

    def address(self) -> str | None:
        """Return the PCI address; of a bond, which has several, the first that all tools know."""
        by_tool: dict[tuple[str, str], set[str]] = {}
        for file, seen in self.told:
            if seen.pci:
                by_tool.setdefault((seen.origin.tool, file), set()).add(pci_key(seen.pci))
        common = set.intersection(*by_tool.values()) if by_tool else set()
        if not common:
            self._note("pci", reconcile(_said(self.told, lambda seen: seen.pci), pci_key))
            return None
        wanted = min(common)
        spelt = {one.seen.pci for one in self.told if one.seen.pci}
        return max((one for one in spelt if pci_key(one) == wanted), key=len)

    def interfaces(self, told: Iterable[tuple[str, PortObservation]]) -> tuple[str, ...]:
        """Return the network interfaces, bonds first, since a bond is what has addresses."""
        shown = [(file, port) for file, port in told if port.netdevs]
        sets = [set(port.netdevs or ()) for _, port in shown]
        names: set[str] = set().union(*sets)
        above = any(name.startswith(_ABOVE) for name in names)
        if sets and not above and not set.intersection(*sets):
            self._note("netdevs", reconcile(_said(shown, lambda port: port.netdevs)))
            return ()
        often = {name: sum(name in one for one in sets) for name in names}
        return tuple(
            sorted(names, key=lambda one: (not one.startswith(_ABOVE), -often[one], natural(one)))
        )

    def _note(self, name: str, result: Reconciled[Value]) -> None:
        if result.conflict is None:
            return
        (one, other), words = result.conflict, _WORDS[name]
        self.findings.append(
            SiteFinding(
                "warning",
                (self._node,),
                f"{self._about}: tools differ on {words}: {one.says(_shown(name, one.value))}, "
                f"{other.says(_shown(name, other.value))}",
                "Collect both again at the same time; until they agree, neither is used.",
            )
        )


def _port(
    node: str, device: str | None, number: int | None, told: Sequence[_Told]
) -> tuple[SitePort, list[SiteFinding]]:
    """Put together one port from what was said of it, and of its device as a whole."""
    of_port = [one for one in told if _port_number(one) in (None, number)]
    joining = _Joining(node, SitePort(device=device, port=number).name, of_port)
    ports = [(file, seen) for file, seen in of_port if isinstance(seen, PortObservation)]
    state: PortState | None = joining.field("state", ports, lambda port: port.state)
    rates = [(file, seen) for file, seen in ports if _active(seen)]
    rate = joining.field("rate_gbps", rates, lambda port: port.rate_gbps)
    several = len(_numbers(told)) > 1
    vendor = joining.field("vendor_id", of_port, lambda seen: seen.vendor_id, _pci_vendor)
    vendor = _pci_vendor(vendor) if vendor is not None else None
    device_id = joining.field("device_id", of_port, lambda seen: seen.device_id)
    if (
        vendor is None
        and device_id is not None
        and not _is_said(of_port, lambda one: one.vendor_id)
    ):
        vendor = NVIDIA  # whose tools alone show an id without the vendor: MT4123
    card = card_model(vendor, device_id)
    made = SitePort(
        device=device,
        port=number,
        netdevs=joining.interfaces(
            (file, seen) for file, seen in ports if not several or seen.port is not None
        ),
        state=state,
        physical_state=joining.field("physical_state", ports, lambda port: port.physical_state),
        link_layer=joining.field("link_layer", ports, lambda port: port.link_layer),
        rate_gbps=rate
        if state == "Active" or not _is_said(ports, lambda port: port.state)
        else None,
        pci=joining.address(),
        model=card.model if card else _model(of_port),
        vendor_id=vendor,
        device_id=device_id,
        board_id=joining.field("board_id", ports, lambda port: port.board_id),
        firmware=joining.field("firmware", ports, lambda port: port.firmware),
        numa=joining.field(
            "numa",
            [one for one in of_port if (one.seen.numa or 0) >= 0],
            lambda seen: seen.numa,
        ),
        virtual=joining.field("virtual", of_port, lambda seen: seen.virtual)
        or (True if card and card.virtual else None),
        sources=tuple(sorted({one.seen.origin.tool for one in of_port})),
    )
    return made, joining.findings


def _pci_vendor(number: int) -> int:
    return _PCI_VENDORS.get(number, number)


def _port_number(told: _Told) -> int | None:
    return told.seen.port if isinstance(told.seen, PortObservation) else None


def _active(seen: PortObservation) -> bool:
    """Return whether the rate of a sighting means something: a port that is Down has none."""
    return seen.state in ("Active", None)


def _said(
    told: Iterable[tuple[str, _AnySighting]], read: Callable[[_AnySighting], Value | None]
) -> Iterator[Statement[Value | None]]:
    for file, seen in told:
        value = read(seen)
        if value is not None:
            yield Statement(value, seen.origin.tool, file, seen.origin.line)


def _is_said(
    told: Iterable[tuple[str, _AnySighting]], read: Callable[[_AnySighting], object]
) -> bool:
    """Return whether a tool says anything of a field."""
    return any(read(seen) is not None for _, seen in told)


#: What a field is called in a message.
_WORDS = {
    "state": "the state",
    "physical_state": "the physical state",
    "rate_gbps": "the rate in Gb/s",
    "link_layer": "the link layer",
    "vendor_id": "the vendor's id",
    "device_id": "the device id",
    "board_id": "the PSID",
    "firmware": "the firmware",
    "numa": "the NUMA node",
    "virtual": "whether it is a virtual function",
    "pci": "the PCI address",
    "netdevs": "the network interface",
}


def _shown(name: str, value: object) -> str:
    if name in ("vendor_id", "device_id") and isinstance(value, int):
        return f"{value:#06x}"
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _model(told: Iterable[_Told]) -> str | None:
    """Return a model as a tool shows it: the longest, which says most."""
    shown = {one.seen.model for one in told if one.seen.model}
    return max(shown, key=lambda one: (len(one), one), default=None)


def _without_device(found: list[SitePort], strangers: dict[str, list[_Told]]) -> list[SitePort]:
    """Return cards that have no RDMA device.

    As long as the PCI address of a port is not known, a card may be that port's.
    """
    if any(port.pci is None for port in found):
        return []
    cards = [_port("", None, None, told)[0] for _, told in sorted(strangers.items())]
    return [card for card in cards if card.vendor_id == NVIDIA]
