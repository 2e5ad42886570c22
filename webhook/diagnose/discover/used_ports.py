"""The ports that a fabric uses, their rails, and its groups of equal nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple, TypeVar

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.port_selection import DISTANCES, NEAR, NodePorts
from webhook.diagnose.discover.site import MergedNode, MergedPort
from webhook.model.names import natural_key, shortened_list

# Equal nodes of a fabric, which a report or a picture shows once.


class ShownPort(NamedTuple):
    """A port as reports show it."""

    name: str
    #: The rate in Gb/s or the state: "200", "Down", "unknown".
    rate_or_state: str
    #: fine, slow, down or unknown; unused if the fabric does not use it; missing if other nodes
    #: have it.
    condition: str
    #: The GPUs nearest to it.
    gpus: tuple[str, ...]
    #: The RDMA device.
    device: str = ""
    #: How far the nearest GPUs are: PIX, PXB, ...; "" if unknown.
    distance: str = ""
    #: The GPUs behind the same PCIe switches, each with its distance: PIX or PXB.
    links: tuple[tuple[str, str], ...] = ()


class EqualNodes(NamedTuple):
    """Nodes that look the same in a report."""

    names: tuple[str, ...]
    machine_type: str
    gpus: str
    #: The number of GPUs in a node; 0 if unknown.
    gpu_count: int
    firmware: str
    ports: tuple[ShownPort, ...]

    @property
    def title(self) -> str:
        """The names as a title: "n1, n2, n3 and 61 more (64 nodes)"."""
        return self.title_of(4)

    def title_of(self, limit: int) -> str:
        """Return at most `limit` names, and the number of nodes."""
        if len(self.names) == 1:
            return self.names[0]
        return f"{shortened_list(self.names, limit)} ({len(self.names)} nodes)"


def equal_nodes(plan: FabricPlan) -> list[EqualNodes]:
    """Group the nodes of a fabric that look the same in a report."""
    groups: dict[EqualNodes, list[str]] = {}
    for node_ports in plan.group.ports_of_nodes:
        nodes = EqualNodes(
            names=(),
            machine_type=node_ports.node.machine_type or "",
            gpus=gpus_text(node_ports.node),
            gpu_count=sum(gpu.number or 0 for gpu in node_ports.node.gpus),
            firmware=", ".join(
                sorted({port.firmware for port in node_ports.fabric_ports if port.firmware})
            ),
            ports=_ports(node_ports, plan),
        )
        groups.setdefault(nodes, []).append(node_ports.node.name)
    return [nodes._replace(names=tuple(names)) for nodes, names in groups.items()]


def _ports(node_ports: NodePorts, plan: FabricPlan) -> tuple[ShownPort, ...]:
    """Return the ports that the fabric uses, then the others."""
    shown_ports = [
        _shown_port(port, node_ports, plan)
        for port in node_ports.node.ports
        if port.device is not None
    ]
    return tuple(sorted(shown_ports, key=lambda port: port.condition == "unused"))


def gpus_text(node: MergedNode) -> str:
    """Return the GPUs of a node as text; "" if unknown."""
    if node.without_gpus:
        return "no GPU"
    return ", ".join(
        f"{gpu.number or '?'} {gpu.product or 'of unknown product'}" for gpu in node.gpus
    )


def _shown_port(port: MergedPort, node_ports: NodePorts, plan: FabricPlan) -> ShownPort:
    gpus, distance = nearest_gpus(node_ports.node, port.device or "") or ((), "")
    condition = _condition(port, node_ports, plan)
    device = port.device or ""
    return ShownPort(
        port.name,
        _rate_or_state(port),
        condition,
        gpus,
        device,
        distance,
        () if condition == "unused" else _links(node_ports.node, device),
    )


def _links(node: MergedNode, device: str) -> tuple[tuple[str, str], ...]:
    """Return the GPUs that share PCIe switches with a device, each with its distance."""
    rows = {(row.gpu, row.distance) for row in node.distances if row.nic == device}
    near = (pair for pair in rows if pair[1] in NEAR)
    return tuple(sorted(near, key=lambda pair: natural_key(pair[0])))


def _rate_or_state(port: MergedPort) -> str:
    if port.state is None:
        return "unknown" if port.rate_gbps is None else f"{port.rate_gbps:g}?"
    if port.state != "Active":
        return port.state
    return f"{port.rate_gbps:g}" if port.rate_gbps is not None else "Active"


def _condition(port: MergedPort, node_ports: NodePorts, plan: FabricPlan) -> str:
    if port not in node_ports.fabric_ports or not _is_used(port, plan.devices.used):
        return "unused"
    if port.state is None:
        return "unknown"
    if port.state != "Active":
        return "down"
    slow = port.rate_gbps is not None and port.rate_gbps < (plan.group.rate or 0)
    return "slow" if slow else "fine"


# The rails of a fabric: its devices, each with the nearest GPUs (nvidia-smi topo -m).


class Rail(NamedTuple):
    """A device with the same position in all nodes of a fabric."""

    number: int
    device: str
    #: The nearest GPUs, on every node that shows a topology.
    gpus: tuple[str, ...]
    #: PIX, PXB, ...
    distance: str

    @property
    def text(self) -> str:
        """The rail as a comment: "rail 0: mlx5_0, near GPU0 (PIX)"."""
        return f"rail {self.number}: {self.device}, near {', '.join(self.gpus)} ({self.distance})"


def rails_of(plan: FabricPlan) -> list[Rail]:
    """Return a rail for each device; [] unless all nodes that show a topology show the same."""
    rails: list[Rail] = []
    for number, name in enumerate(plan.devices.used):
        device = name.partition(":")[0]
        nearest = {
            near
            for node_ports in plan.group.ports_of_nodes
            if (near := nearest_gpus(node_ports.node, device)) is not None
        }
        if len(nearest) != 1:
            return []
        gpus, distance = nearest.pop()
        rails.append(Rail(number, name, gpus, distance))
    return rails


def nearest_gpus(node: MergedNode, device: str) -> tuple[tuple[str, ...], str] | None:
    """Return the GPUs nearest to a device, and their distance; None if no topology shows it."""
    rows = [row for row in node.distances if row.nic == device and row.distance in DISTANCES]
    if not rows:
        return None
    shortest = min((row.distance for row in rows), key=DISTANCES.index)
    gpus = sorted({row.gpu for row in rows if row.distance == shortest}, key=natural_key)
    return tuple(gpus), shortest


# The ports that a fabric uses.

_Frequent = TypeVar("_Frequent", int, str)


def used_ports(plan: FabricPlan) -> Iterator[tuple[NodePorts, MergedPort]]:
    """Yield the ports of a fabric that its pods use, node by node."""
    used = frozenset(plan.devices.used)
    for node_ports in plan.group.ports_of_nodes:
        for port in node_ports.fabric_ports:
            if _is_used(port, used):
                yield node_ports, port


def _is_used(port: MergedPort, used: Container[str]) -> bool:
    """Return whether a port is among the used devices, `mlx5_0` or `mlx5_0:2`."""
    return port.device in used or f"{port.device}:{port.port}" in used


def used_devices(node_ports: NodePorts, plan: FabricPlan) -> set[str]:
    """Return the devices of a node that its fabric uses."""
    return set(node_ports.devices) & _devices(plan)


def _devices(plan: FabricPlan) -> set[str]:
    return {name.partition(":")[0] for name in plan.devices.used}


def most_common(values: Iterable[_Frequent]) -> _Frequent:
    """Return the most frequent value; of several, the greatest."""
    counted = Counter(values)
    return max(counted, key=lambda value: (counted[value], value))
