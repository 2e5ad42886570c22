"""Nodes of a fabric that look alike, so that a report or a picture shows them once."""

from __future__ import annotations

from typing import NamedTuple

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.port_selection import NodeChoice
from webhook.diagnose.discover.rails import nearest_gpus
from webhook.diagnose.discover.site import FoundNode, FoundPort, listed_nodes


class SeenPort(NamedTuple):
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
    ports: tuple[SeenPort, ...]

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


def _ports(choice: NodeChoice, plan: FabricPlan) -> tuple[SeenPort, ...]:
    """Return the ports that the fabric uses, then the others."""
    seen = [_seen(port, choice, plan) for port in choice.node.ports if port.device is not None]
    return tuple(sorted(seen, key=lambda port: port.standing == "unused"))


def gpu_words(node: FoundNode) -> str:
    """Return the GPUs of a node for people; "" if unknown."""
    if node.without_gpus:
        return "no GPU"
    return ", ".join(
        f"{gpu.number or '?'} {gpu.product or 'of unknown product'}" for gpu in node.gpus
    )


def _seen(port: FoundPort, choice: NodeChoice, plan: FabricPlan) -> SeenPort:
    near = nearest_gpus(choice.node, port.device or "")
    return SeenPort(port.name, _words(port), _standing(port, choice, plan), near[0] if near else ())


def _words(port: FoundPort) -> str:
    if port.state is None:
        return "unknown" if port.rate_gbps is None else f"{port.rate_gbps:g}?"
    if port.state != "Active":
        return port.state
    return f"{port.rate_gbps:g}" if port.rate_gbps is not None else "Active"


def _standing(port: FoundPort, choice: NodeChoice, plan: FabricPlan) -> str:
    used = {name.partition(":")[0] for name in plan.devices.used}
    if port not in choice.ports or port.device not in used:
        return "unused"
    if port.state is None:
        return "unknown"
    if port.state != "Active":
        return "down"
    slow = port.rate_gbps is not None and port.rate_gbps < (plan.group.rate or 0)
    return "slow" if slow else "fine"
