"""The ports that a fabric uses, their rails, and the nodes that look alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.port_selection import DISTANCES, PortSelection
from webhook.diagnose.discover.site import SiteNode, SitePort, listed_nodes, natural

# Nodes of a fabric that look alike, so that a report or a picture shows them once.


class PortGroup(NamedTuple):
    """A port as it is shown."""

    name: str
    #: "200 Gb/s", "Down", "state unknown".
    words: str
    #: Whether the fabric uses it, and if so whether it works: fine, slow, down, unknown, unused.
    standing: str
    #: The GPUs nearest to it.
    gpus: tuple[str, ...]


class EqualNodes(NamedTuple):
    """Nodes that differ in nothing that is shown."""

    names: tuple[str, ...]
    machine: str
    gpus: str
    #: How many GPUs a node has; 0 if unknown.
    gpu_number: int
    firmware: str
    ports: tuple[PortGroup, ...]

    @property
    def title(self) -> str:
        """The names for people: "n1, n2, n3 and 61 more (64 nodes)"."""
        return self.shown(4)

    def shown(self, most: int) -> str:
        """Return at most so many names, and how many nodes there are."""
        if len(self.names) == 1:
            return self.names[0]
        return f"{listed_nodes(self.names, most)} ({len(self.names)} nodes)"


def equal_nodes(plan: FabricPlan) -> list[EqualNodes]:
    """Return the nodes of a fabric, those that look alike together."""
    found: dict[EqualNodes, list[str]] = {}
    for choice in plan.group.choices:
        shown = EqualNodes(
            names=(),
            machine=choice.node.machine or "",
            gpus=gpu_words(choice.node),
            gpu_number=sum(gpu.number or 0 for gpu in choice.node.gpus),
            firmware=", ".join(sorted({one.firmware for one in choice.ports if one.firmware})),
            ports=_ports(choice, plan),
        )
        found.setdefault(shown, []).append(choice.node.name)
    return [shown._replace(names=tuple(names)) for shown, names in found.items()]


def _ports(choice: PortSelection, plan: FabricPlan) -> tuple[PortGroup, ...]:
    """Return the ports that the fabric uses, then the others."""
    seen = [_seen(port, choice, plan) for port in choice.node.ports if port.device is not None]
    return tuple(sorted(seen, key=lambda port: port.standing == "unused"))


def gpu_words(node: SiteNode) -> str:
    """Return the GPUs of a node for people; "" if unknown."""
    if node.without_gpus:
        return "no GPU"
    return ", ".join(
        f"{gpu.number or '?'} {gpu.product or 'of unknown product'}" for gpu in node.gpus
    )


def _seen(port: SitePort, choice: PortSelection, plan: FabricPlan) -> PortGroup:
    near = nearest_gpus(choice.node, port.device or "")
    return PortGroup(
        port.name, _words(port), _standing(port, choice, plan), near[0] if near else ()
    )


def _words(port: SitePort) -> str:
    if port.state is None:
        return "unknown" if port.rate_gbps is None else f"{port.rate_gbps:g}?"
    if port.state != "Active":
        return port.state
    return f"{port.rate_gbps:g}" if port.rate_gbps is not None else "Active"


def _standing(port: SitePort, choice: PortSelection, plan: FabricPlan) -> str:
    used = {name.partition(":")[0] for name in plan.devices.used}
    if port not in choice.ports or port.device not in used:
        return "unused"
    if port.state is None:
        return "unknown"
    if port.state != "Active":
        return "down"
    slow = port.rate_gbps is not None and port.rate_gbps < (plan.group.rate or 0)
    return "slow" if slow else "fine"


# The rails of a fabric: which device is near which GPUs (nvidia-smi topo -m).


class Rail(NamedTuple):
    """A device at the same place of all nodes of a fabric."""

    number: int
    device: str
    #: The GPUs that are nearest to it, on all nodes that show it; () if no tool says.
    gpus: tuple[str, ...]
    #: PIX, PXB, ...; "" if no tool says.
    distance: str

    @property
    def words(self) -> str:
        """The rail for a comment: "rail 0: mlx5_0, near GPU0 (PIX)"."""
        near = f", near {', '.join(self.gpus)} ({self.distance})" if self.gpus else ""
        return f"rail {self.number}: {self.device}{near}"


def rails_of(plan: FabricPlan) -> list[Rail]:
    """Return a rail for each device, where a topology is known and is the same on all nodes."""
    found: list[Rail] = []
    for number, name in enumerate(plan.devices.used):
        device = name.partition(":")[0]
        seen = {
            near
            for choice in plan.group.choices
            if (near := nearest_gpus(choice.node, device)) is not None
        }
        if len(seen) != 1:
            return []
        gpus, distance = seen.pop()
        found.append(Rail(number, name, gpus, distance))
    return found


def nearest_gpus(node: SiteNode, device: str) -> tuple[tuple[str, ...], str] | None:
    """Return the GPUs nearest to a device, and how near; None if no topology shows it."""
    rows = [one for one in node.distances if one.nic == device and one.distance in DISTANCES]
    if not rows:
        return None
    best = min((one.distance for one in rows), key=DISTANCES.index)
    gpus = sorted({one.gpu for one in rows if one.distance == best}, key=natural)
    return tuple(gpus), best


# The ports of its nodes that a fabric uses.

_Counted = TypeVar("_Counted", int, str)


def used_ports(plan: FabricPlan) -> Iterator[tuple[PortSelection, SitePort]]:
    """Yield the ports of a fabric that its pods use, node by node."""
    used = _devices(plan)
    for choice in plan.group.choices:
        for port in choice.ports:
            if port.device in used:
                yield choice, port


def used_devices(choice: PortSelection, plan: FabricPlan) -> set[str]:
    """Return the devices of a node that its fabric uses."""
    return set(choice.devices) & _devices(plan)


def _devices(plan: FabricPlan) -> set[str]:
    return {name.partition(":")[0] for name in plan.devices.used}


def most_common(values: Iterable[_Counted]) -> _Counted:
    """Return the value that occurs most; of several such the greatest."""
    counted = Counter(values)
    return max(counted, key=lambda value: (counted[value], str(value)))
