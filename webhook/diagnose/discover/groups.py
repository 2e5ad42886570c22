"""Group nodes into fabrics: by GPU product, link layer, card and rate.

The name of a fabric's device may belong to a different card on another node, since Linux numbers
devices in the order of discovery. Such nodes become two groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from webhook.diagnose.discover.port_selection import CardKind, NodePorts
from webhook.diagnose.discover.site import MergedPort, rate_text
from webhook.model.names import natural_key


class Group(NamedTuple):
    """Nodes that form one fabric."""

    product: str | None
    card_kind: CardKind
    rate: float | None
    ports_of_nodes: tuple[NodePorts, ...]
    #: Why a group with the same GPUs, card and rate is separate; "" for other groups.
    split_reason: str = ""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes."""
        return tuple(node_ports.node.name for node_ports in self.ports_of_nodes)

    @property
    def without_gpus(self) -> bool:
        """Whether no node has a GPU; False if that is unknown for any."""
        return all(node_ports.node.without_gpus for node_ports in self.ports_of_nodes)

    @property
    def amd_gpus(self) -> bool:
        """Whether all nodes have GPUs of AMD."""
        return all(node_ports.node.amd_gpus for node_ports in self.ports_of_nodes)

    @property
    def model(self) -> str | None:
        """The model of the cards, for messages."""
        models = {
            port.model
            for node_ports in self.ports_of_nodes
            for port in node_ports.fabric_ports
            if port.model
        }
        return min(models, default=None)


class Obstacle(NamedTuple):
    """Why a fabric does not use a device of its card."""

    #: The state or the rate of its port, with the number of nodes: "Down on all nodes (Polling)".
    text: str
    #: Whether the port is Down on each node that has it.
    is_down: bool


class Devices(NamedTuple):
    """The RDMA devices of a group with the fabric's card."""

    #: The devices that the fabric uses in natural order, as `name:port` if not all ports are used.
    used: tuple[str, ...]
    #: Device, with its port if it has several → why the fabric does not use it.
    unused: Mapping[str, Obstacle]


def group_nodes(ports_of_nodes: Iterable[NodePorts]) -> list[Group]:
    """Group the nodes whose ports are known, in natural order of products and nodes."""
    by_key: dict[tuple[str | None, CardKind, float | None], list[NodePorts]] = {}
    for node_ports in ports_of_nodes:
        if node_ports.card_kind is not None:
            key = (node_ports.node.product, node_ports.card_kind, node_ports.rate)
            by_key.setdefault(key, []).append(node_ports)
    for key in [key for key in by_key if key[2] is None]:
        _join_with_rate(by_key, key)
    groups = [
        group for key, ports_of_nodes in by_key.items() for group in _split(*key, ports_of_nodes)
    ]
    return sorted(
        groups, key=lambda group: (natural_key(group.product or ""), natural_key(group.nodes[0]))
    )


def _join_with_rate(
    by_key: dict[tuple[str | None, CardKind, float | None], list[NodePorts]],
    key: tuple[str | None, CardKind, float | None],
) -> None:
    """Add nodes without an Active port to the only group with their GPUs and card."""
    with_rate = [other for other in by_key if other[:2] == key[:2] and other[2] is not None]
    if len(with_rate) == 1:
        by_key[with_rate[0]] += by_key.pop(key)


class _Part:
    """Nodes of a group on which each device name belongs to the same kind of card."""

    def __init__(self) -> None:
        self.ports_of_nodes: list[NodePorts] = []
        #: Device → a node where it is the fabric's.
        self._ours: dict[str, NodePorts] = {}
        #: Device → a node where it is another card.
        self._foreign: dict[str, NodePorts] = {}

    def add(self, node_ports: NodePorts) -> None:
        self.ports_of_nodes.append(node_ports)
        for device in node_ports.devices:
            self._ours.setdefault(device, node_ports)
        for device in _foreign(node_ports):
            self._foreign.setdefault(device, node_ports)

    def clash(self, node_ports: NodePorts) -> str:
        """Describe a device that is the fabric's on only one of two nodes, or return ""."""
        for device in sorted(node_ports.devices, key=natural_key):
            if device in self._foreign:
                return _two_cards(device, self._foreign[device], node_ports)
        for device in sorted(_foreign(node_ports), key=natural_key):
            if device in self._ours:
                return _two_cards(device, node_ports, self._ours[device])
        return ""


def _split(
    product: str | None,
    card_kind: CardKind,
    rate: float | None,
    ports_of_nodes: Sequence[NodePorts],
) -> list[Group]:
    """Split nodes on which one device name belongs to two kinds of cards."""
    parts: list[_Part] = []
    reasons: list[str] = []
    #: Names of the fabric's devices, and of other devices → the index of the part with such nodes.
    part_by_names: dict[tuple[frozenset[str], frozenset[str]], int] = {}
    for node_ports in sorted(
        ports_of_nodes, key=lambda node_ports: natural_key(node_ports.node.name)
    ):
        names = frozenset(node_ports.devices), frozenset(_foreign(node_ports))
        if names not in part_by_names:
            clashes = [part.clash(node_ports) for part in parts]
            part_by_names[names] = next(
                (index for index, clash in enumerate(clashes) if not clash), len(parts)
            )
            if part_by_names[names] == len(parts):
                parts.append(_Part())
                reasons.append(clashes[0] if clashes else "")
        parts[part_by_names[names]].add(node_ports)
    if len(parts) > 1:
        reasons[0] = reasons[1]
    return [
        Group(product, card_kind, rate, tuple(part.ports_of_nodes), reason)
        for part, reason in zip(parts, reasons, strict=True)
    ]


def _foreign(node_ports: NodePorts) -> dict[str, MergedPort]:
    """Return the devices of a node that its fabric does not use."""
    ours = node_ports.devices
    return {
        port.device: port
        for port in node_ports.other_ports
        if port.device is not None and port.device not in ours
    }


def _two_cards(device: str, foreign: NodePorts, ours: NodePorts) -> str:
    return (
        f"{device} is {_port_text(ours.devices[device][0])} on {ours.node.name}, but "
        f"{_port_text(_foreign(foreign)[device])} on {foreign.node.name}"
    )


def _port_text(port: MergedPort) -> str:
    parts = [port.model or "a card", port.link_layer or "", rate_text(port.rate_gbps)]
    return " ".join(part for part in parts if part)


def devices_of(group: Group) -> Devices:
    """Return the devices of the fabric's card, divided into used and unused ones.

    If no node can use any of them, all count as used: the fabric is described as it is meant.
    """
    ports: dict[tuple[str, int | None], list[MergedPort]] = {}
    for node_ports in group.ports_of_nodes:
        for port in node_ports.fabric_ports:
            if port.device is not None:
                ports.setdefault((port.device, port.port), []).append(port)
    unused: dict[tuple[str, int | None], Obstacle] = {}
    for key, instances in ports.items():
        if obstacle := _obstacle(instances, group):
            unused[key] = obstacle
    used = [key for key in ports if key not in unused]
    if not used:
        used, unused = list(ports), {}
    partly_used = {device for device, _ in unused} | {
        port.device for node_ports in group.ports_of_nodes for port in node_ports.other_ports
    }
    names = {
        f"{device}:{port}" if port is not None and device in partly_used else device
        for device, port in used
    }
    siblings = Counter(device for device, port in ports if port is not None)
    return Devices(
        tuple(sorted(names, key=natural_key)),
        {
            _port_name(*key, has_siblings=siblings[key[0]] > 1): obstacle
            for key, obstacle in sorted(unused.items(), key=str)
        },
    )


def _obstacle(instances: Sequence[MergedPort], group: Group) -> Obstacle | None:
    """Return why no node can use a port: its state or its rate; None if a node can use it.

    `instances`: the port on each node that has it.
    """
    if any(port.state is None for port in instances):
        return None
    active = [port for port in instances if port.state == "Active"]
    if not active:
        share = _share_of_nodes(instances, group)
        if len(instances) < len(group.ports_of_nodes):
            share += " and usable on none"
        physical = ", ".join(
            sorted({port.physical_state for port in instances if port.physical_state})
        )
        state = instances[0].state
        text = f"{state}{share}{f' ({physical})' if physical else ''}"
        return Obstacle(text, is_down=state == "Down")
    rates = {port.rate_gbps for port in active}
    if group.rate not in rates and None not in rates:
        other_rates = ", ".join(rate_text(rate) for rate in sorted(rate for rate in rates if rate))
        share = _share_of_nodes(active, group)
        text = f"{other_rates}{share}; the fabric's rate is {rate_text(group.rate)}"
        return Obstacle(text, is_down=False)
    return None


def _share_of_nodes(instances: Sequence[MergedPort], group: Group) -> str:
    """Return the share of the group's nodes that have a port like this; "" for a single node."""
    nodes = len(group.ports_of_nodes)
    if nodes == 1:
        return ""
    return " on all nodes" if len(instances) == nodes else f" on {len(instances)} of {nodes} nodes"


def _port_name(device: str, port: int | None, *, has_siblings: bool) -> str:
    is_only = port is None or (port == 1 and not has_siblings)
    return device if is_only else f"{device} port {port}"


# Names for fabrics and resources, short enough to type.

_NETWORKS = {"InfiniBand": "ib", "Ethernet": "roce", "EFA": "efa"}
_MAKERS = ("nvidia-", "tesla-", "quadro-", "geforce-", "amd-", "instinct-")


def short_product(product: str) -> str:
    """Return the short name of a GPU: "h100" for NVIDIA-H100-80GB-HBM3."""
    name = product.lower()
    for maker in _MAKERS:
        name = name.removeprefix(maker)
    words: list[str] = []
    for word in name.replace("_", "-").replace(".", "-").split("-"):
        words.append(word)
        if any(char.isdigit() for char in word):
            break
    return "-".join(words)


def names_for(groups: Sequence[Group]) -> list[str]:
    """Return a unique name for each group: `h100-ib`, with rate, card and number only if needed."""
    names = [_short_name(group) for group in groups]
    for longer_name in (_name_with_rate, _name_with_card):
        repeated = {name for name, times in Counter(names).items() if times > 1}
        names = [
            longer_name(group) if name in repeated else name
            for name, group in zip(names, groups, strict=True)
        ]
    uses: Counter[str] = Counter()
    for index, name in enumerate(names):
        uses[name] += 1
        if uses[name] > 1:
            names[index] = f"{name}-{uses[name]}"
    return [name[:63].strip("-") for name in names]


def _short_name(group: Group) -> str:
    return f"{_gpus(group)}-{_NETWORKS[group.card_kind.link_layer]}"


def _name_with_rate(group: Group) -> str:
    return f"{_short_name(group)}-{group.rate:g}" if group.rate else _short_name(group)


def _name_with_card(group: Group) -> str:
    model = "".join(char if char.isalnum() else "-" for char in (group.model or "").lower())
    return f"{_name_with_rate(group)}-{model}".replace("connectx-", "cx").strip("-")


def _gpus(group: Group) -> str:
    if group.product:
        return short_product(group.product)
    return "cpu" if group.without_gpus else "rdma"
