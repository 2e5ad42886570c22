"""Join several tools' observations of a node's ports by device, PCI address and interface.

Tools that do not show the name of the RDMA device (lspci, or mst without a driver) are joined by
the PCI address, with or without its domain, or by the network interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from webhook.diagnose.discover.port_fields import TOPICS, field_text
from webhook.diagnose.discover.site import (
    MergedPort,
    Reconciled,
    SourcedObservation,
    Statement,
    Value,
    disagreement,
    reconcile,
)
from webhook.diagnose.tools.hardware import (
    AMAZON_ID,
    MELLANOX_ID,
    card_model,
    firmware_version,
    vendor_of_driver,
)
from webhook.diagnose.tools.observations import (
    CardObservation,
    LinkLayer,
    PortObservation,
    PortState,
)
from webhook.model.finding import Finding, Location
from webhook.model.names import natural_key

_PortOrCard = TypeVar("_PortOrCard", bound=PortObservation | CardObservation)
#: Its device id may be any vendor's; other tools show one without the vendor only for NVIDIA.
_OF_ALL_VENDORS = "ibv_devinfo"
#: The class of a PCI function follows the type of its port (pci.ids; mlx4, with two ports in one
#: function, has another class).
_LAYER_BY_CLASS: dict[int, LinkLayer] = {0x0207: "InfiniBand", 0x0200: "Ethernet"}
#: Interfaces on top of others: a tool that shows the upper and one that shows the lower are right.
_UPPER_INTERFACES = ("bond", "team", "br-")


class _PortEvidence(NamedTuple):
    """An observation of a port or a card, and its file."""

    file: str
    observation: PortObservation | CardObservation


class JoinedPorts(NamedTuple):
    """The ports of a node, and a finding for each difference between tools."""

    ports: tuple[MergedPort, ...]
    findings: tuple[Finding, ...]


def pci_key(pci_address: str) -> str:
    """Return an address with its domain, which tools omit where all devices are in domain 0."""
    pci_address = pci_address.lower()
    return pci_address if pci_address.count(":") > 1 else f"0000:{pci_address}"


def join_ports(node: str, observations: Sequence[SourcedObservation]) -> JoinedPorts:
    """Join the observations of one node; their order has no influence."""
    ports = [_PortEvidence(file, port) for file, port in _of_kind(observations, PortObservation)]
    cards = [_PortEvidence(file, card) for file, card in _of_kind(observations, CardObservation)]
    devices: dict[str, list[_PortEvidence]] = {}
    for piece in ports:
        if isinstance(piece.observation, PortObservation) and piece.observation.device is not None:
            devices.setdefault(piece.observation.device, []).append(piece)
    unmatched_by_pci = _attach(devices, ports, cards)
    joined, findings = [], []
    for device in sorted(devices, key=natural_key):
        for port in _port_numbers(devices[device]):
            merged_port, differences = _merged_port(node, device, port, devices[device])
            joined.append(merged_port)
            findings += differences
    joined += _without_device(joined, unmatched_by_pci)
    return JoinedPorts(tuple(joined), tuple(dict.fromkeys(findings)))


def _of_kind(
    observations: Iterable[SourcedObservation], kind: type[_PortOrCard]
) -> list[tuple[str, _PortOrCard]]:
    return [
        (sourced.file, sourced.observation)
        for sourced in observations
        if isinstance(sourced.observation, kind)
    ]


def _attach(
    devices: dict[str, list[_PortEvidence]], ports: list[_PortEvidence], cards: list[_PortEvidence]
) -> dict[str, list[_PortEvidence]]:
    """Add observations without a device name to their device; return the others by PCI address."""
    nameless = [
        piece
        for piece in ports
        if isinstance(piece.observation, PortObservation) and piece.observation.device is None
    ]
    by_pci = _owners(devices, _pcis)
    by_netdev = _owners(devices, _netdevs)
    attached: list[tuple[str, _PortEvidence]] = []
    unmatched_by_pci: dict[str, list[_PortEvidence]] = {}
    for piece in [*nameless, *cards]:
        owner = _only_owner(by_pci, _pcis(piece)) or _only_owner(by_netdev, _netdevs(piece))
        if owner:
            attached.append((owner, piece))
        elif piece.observation.pci:
            unmatched_by_pci.setdefault(pci_key(piece.observation.pci), []).append(piece)
    for owner, piece in attached:
        devices[owner].append(piece)
    return unmatched_by_pci


def _owners(
    devices: dict[str, list[_PortEvidence]], keys: Callable[[_PortEvidence], Iterable[str]]
) -> dict[str, set[str]]:
    owners: dict[str, set[str]] = {}
    for device, evidence in devices.items():
        for key in (key for piece in evidence for key in keys(piece)):
            owners.setdefault(key, set()).add(device)
    return owners


def _only_owner(owners: dict[str, set[str]], keys: Iterable[str]) -> str | None:
    devices = {device for key in keys for device in owners.get(key, ())}
    return devices.pop() if len(devices) == 1 else None


def _pcis(piece: _PortEvidence) -> tuple[str, ...]:
    return (pci_key(piece.observation.pci),) if piece.observation.pci else ()


def _netdevs(piece: _PortEvidence) -> tuple[str, ...]:
    return (
        (piece.observation.netdevs or ()) if isinstance(piece.observation, PortObservation) else ()
    )


def _port_numbers(evidence: Sequence[_PortEvidence]) -> list[int | None]:
    counted = {
        piece.observation.port
        for piece in evidence
        if isinstance(piece.observation, PortObservation)
    } - {None}
    numbers: list[int | None] = [*sorted(number for number in counted if number is not None)]
    return numbers or [None]


class _PortMerge:
    """Merge the observations of a port and of its device."""

    def __init__(self, node: str, port: MergedPort, evidence: Sequence[_PortEvidence]) -> None:
        self._location = Location(nodes=(node,), device=port.device or "")
        self._name = port.name
        self.evidence = evidence
        self.findings: list[Finding] = []

    def field(
        self,
        name: str,
        evidence: Iterable[tuple[str, _PortOrCard]],
        read: Callable[[_PortOrCard], Value | None],
        key: Callable[[Value], object] = lambda value: value,
    ) -> Value | None:
        """Return the value of a field on which all tools agree; else None, and add a finding."""
        result = reconcile(_statements(evidence, read), key)
        self._note(name, result)
        return result.value

    def pci_address(self) -> str | None:
        """Return the PCI address; of a bond, which has several, the first that all tools show."""
        by_tool: dict[tuple[str, str], set[str]] = {}
        for file, observation in self.evidence:
            if observation.pci:
                by_tool.setdefault((observation.origin.tool, file), set()).add(
                    pci_key(observation.pci)
                )
        common = set.intersection(*by_tool.values()) if by_tool else set()
        if not common:
            self._note(
                "pci",
                reconcile(_statements(self.evidence, lambda observation: observation.pci), pci_key),
            )
            return None
        pci_address = min(common)
        spellings = {piece.observation.pci for piece in self.evidence if piece.observation.pci}
        return max(
            (spelling for spelling in spellings if pci_key(spelling) == pci_address), key=len
        )

    def interfaces(self, observations: Iterable[tuple[str, PortObservation]]) -> tuple[str, ...]:
        """Return the network interfaces, bonds first, since a bond has the addresses."""
        with_netdevs = [(file, port) for file, port in observations if port.netdevs]
        sets = [set(port.netdevs or ()) for _, port in with_netdevs]
        names: set[str] = set().union(*sets)
        has_upper = any(name.startswith(_UPPER_INTERFACES) for name in names)
        if sets and not has_upper and not set.intersection(*sets):
            self._note("netdevs", reconcile(_statements(with_netdevs, lambda port: port.netdevs)))
            return ()
        counts = {name: sum(name in netdevs for netdevs in sets) for name in names}
        ranks = {
            name: (not name.startswith(_UPPER_INTERFACES), -counts[name], natural_key(name))
            for name in names
        }
        return tuple(sorted(names, key=ranks.__getitem__))

    def _note(self, name: str, result: Reconciled[Value]) -> None:
        if result.conflict is None:
            return
        topic, spell = TOPICS[name].format(self._name), partial(field_text, name)
        self.findings.append(disagreement(self._location, topic, result.conflict, spell))


def _merged_port(
    node: str, device: str | None, number: int | None, evidence: Sequence[_PortEvidence]
) -> tuple[MergedPort, list[Finding]]:
    """Merge the observations of one port and of its device."""
    of_port = [piece for piece in evidence if _port_number(piece) in (None, number)]
    merge = _PortMerge(node, MergedPort(device=device, port=number), of_port)
    ports = [(file, port) for file, port in of_port if isinstance(port, PortObservation)]
    state: PortState | None = merge.field("state", ports, lambda port: port.state)
    # The rate of a port that is Down has no meaning.
    rates = [(file, port) for file, port in ports if port.state in ("Active", None)]
    rate = merge.field("rate_gbps", rates, lambda port: port.rate_gbps)
    has_several_ports = len(_port_numbers(evidence)) > 1
    vendor, device_id = _ids(merge, device, of_port)
    card = card_model(vendor, device_id)
    link_layer: LinkLayer | None = merge.field("link_layer", ports, lambda port: port.link_layer)
    if not _is_reported(ports, lambda port: port.link_layer):
        link_layer = merge.field("link_layer", _cards(of_port), _layer_of_class)
    merged_port = MergedPort(
        device=device,
        port=number,
        netdevs=merge.interfaces(
            (file, port) for file, port in ports if not has_several_ports or port.port is not None
        ),
        state=state,
        physical_state=merge.field("physical_state", ports, lambda port: port.physical_state),
        # EFA has none; older versions of ibv_devinfo show InfiniBand (rdma-core, link_layer_str).
        link_layer=None if vendor == AMAZON_ID else link_layer,
        rate_gbps=rate
        if state == "Active" or not _is_reported(ports, lambda port: port.state)
        else None,
        pci=merge.pci_address(),
        model=card.model if card else _model(of_port),
        vendor_id=vendor,
        device_id=device_id,
        board_id=merge.field("board_id", ports, lambda port: port.board_id),
        firmware=merge.field("firmware", ports, lambda port: firmware_version(port.firmware)),
        numa=merge.field(
            "numa",
            [piece for piece in of_port if (piece.observation.numa or 0) >= 0],
            lambda observation: observation.numa,
        ),
        mtu=merge.field("mtu", ports, lambda port: port.mtu),
        max_mtu=merge.field("max_mtu", ports, lambda port: port.max_mtu),
        virtual=merge.field("virtual", of_port, lambda observation: observation.virtual)
        or (True if card and card.virtual else None),
        sources=tuple(sorted({piece.observation.origin.tool for piece in of_port})),
    )
    return merged_port, merge.findings


def _ids(
    merge: _PortMerge, device: str | None, of_port: Sequence[_PortEvidence]
) -> tuple[int | None, int | None]:
    """Return the PCI vendor and the device ID of a port's card; None if unknown."""
    vendor = merge.field("vendor_id", of_port, lambda observation: observation.vendor_id)
    device_id = merge.field("device_id", of_port, lambda observation: observation.device_id)
    if vendor is not None:
        return vendor, device_id
    if _is_reported(of_port, lambda observation: observation.vendor_id):
        return None, device_id  # tools disagree
    shows_type = device_id is not None and any(
        piece.observation.device_id is not None and piece.observation.origin.tool != _OF_ALL_VENDORS
        for piece in of_port
    )
    return MELLANOX_ID if shows_type else vendor_of_driver(device or ""), device_id


def _cards(of_port: Sequence[_PortEvidence]) -> Iterator[tuple[str, CardObservation]]:
    for file, card in of_port:
        if isinstance(card, CardObservation):
            yield file, card


def _layer_of_class(card: CardObservation) -> LinkLayer | None:
    """Return the link layer that the class of a card's PCI function shows, or None."""
    return _LAYER_BY_CLASS.get(card.pci_class or 0)


def _port_number(piece: _PortEvidence) -> int | None:
    return piece.observation.port if isinstance(piece.observation, PortObservation) else None


def _statements(
    observations: Iterable[tuple[str, _PortOrCard]], read: Callable[[_PortOrCard], Value | None]
) -> Iterator[Statement[Value | None]]:
    for file, observation in observations:
        value = read(observation)
        if value is not None:
            yield Statement(value, observation.origin.tool, file, observation.origin.line)


def _is_reported(
    observations: Iterable[tuple[str, _PortOrCard]], read: Callable[[_PortOrCard], object]
) -> bool:
    """Return whether a tool shows a field."""
    return any(read(observation) is not None for _, observation in observations)


def _model(evidence: Iterable[_PortEvidence]) -> str | None:
    """Return the longest model that a tool shows: it has the most detail."""
    models = {piece.observation.model for piece in evidence if piece.observation.model}
    return max(models, key=lambda model: (len(model), model), default=None)


def _without_device(
    ports: list[MergedPort], unmatched_by_pci: dict[str, list[_PortEvidence]]
) -> list[MergedPort]:
    """Return NVIDIA's cards without an RDMA device; other vendors also make cards without RDMA.

    Return [] while any port's PCI address is unknown: a card may belong to that port.
    """
    if any(port.pci is None for port in ports):
        return []
    cards = [
        _merged_port("", None, None, evidence)[0]
        for _, evidence in sorted(unmatched_by_pci.items())
    ]
    return [card for card in cards if card.vendor_id == MELLANOX_ID]
