"""What findings name in a fabric: the marks of its nodes and ports in the picture and the page.

Nodes that look the same in a report are drawn once, but apart if findings of other kinds name them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.diagnose.discover.consistency import (
    GID_INDEX_DIFFERS,
    MTU_BELOW_INTERFACE,
    MTU_DIFFERS,
    ROCE_GID_LINK_LOCAL,
    ROCE_GID_NOT_IPV4,
)
from webhook.diagnose.discover.counted_errors import (
    PORT_ERRORS_COUNTED,
    counter_of,
    devices_with_errors,
)
from webhook.diagnose.discover.drift import (
    FIRMWARE_CHANGED,
    LINK_LAYER_CHANGED,
    MTU_CHANGED,
    PORT_RATE_CHANGED,
    PORT_STATE_CHANGED,
    PSID_CHANGED,
)
from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.port_checks import (
    CABLE_BELOW_CAPABILITY,
    CARD_MISSING,
    FIRMWARE_DIFFERS,
    PCIE_LINK_SLOW,
    PORT_IS_DOWN,
    PORT_NOT_ACTIVE,
    PORT_SLOW,
    ROCE_GID_MISSING,
)
from webhook.diagnose.discover.site import TOOLS_DISAGREE
from webhook.diagnose.discover.used_ports import (
    EqualNodes,
    ShownPort,
    equal_nodes,
    most_common,
    rails_of,
    used_devices,
    used_ports,
)
from webhook.model.finding import Finding, Level, severity
from webhook.model.names import natural_key

#: In a few words, what is wrong with a port; "" where its state or its rate shows that.
_WORDS = {
    PORT_IS_DOWN.code: "",
    PORT_NOT_ACTIVE.code: "",
    PORT_SLOW.code: "",
    PCIE_LINK_SLOW.code: "slow PCIe link",
    PORT_ERRORS_COUNTED.code: "errors counted",
    CABLE_BELOW_CAPABILITY.code: "cable",
    ROCE_GID_MISSING.code: "no RoCE v2 GID",
    ROCE_GID_LINK_LOCAL.code: "only link-local GIDs",
    ROCE_GID_NOT_IPV4.code: "no GID over IPv4",
    GID_INDEX_DIFFERS.code: "odd GID index",
    MTU_DIFFERS.code: "odd MTU",
    MTU_BELOW_INTERFACE.code: "small MTU",
    FIRMWARE_DIFFERS.code: "odd firmware",
    TOOLS_DISAGREE.code: "tools disagree",
    PORT_STATE_CHANGED.code: "",
    PORT_RATE_CHANGED.code: "",
    LINK_LAYER_CHANGED.code: "changed link layer",
    FIRMWARE_CHANGED.code: "changed firmware",
    PSID_CHANGED.code: "changed PSID",
    MTU_CHANGED.code: "changed MTU",
}


class Mark(NamedTuple):
    """Findings of one kind about a port, or about nodes as a whole."""

    level: Level
    code: str
    #: The device of the port; "" for nodes as a whole.
    device: str
    #: The sentences, which may differ between nodes.
    texts: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What is wrong with a port, in a few words; "" if its state or rate shows that."""
        return _WORDS.get(self.code, self.code)

    @property
    def line(self) -> str:
        """The first sentence, and the number of others."""
        first, *further = self.texts
        return f"{first}; and {len(further)} more" if further else first


class MarkedNodes(NamedTuple):
    """Equal nodes that findings of the same kinds name."""

    nodes: EqualNodes
    #: Those of the nodes as a whole, the most severe first.
    marks: tuple[Mark, ...]
    marks_by_device: Mapping[str, tuple[Mark, ...]]

    def marks_of(self, port: ShownPort) -> tuple[Mark, ...]:
        """Return the marks of a port, the most severe first."""
        return self.marks_by_device.get(port.device, ())


FindingsByNode = Mapping[str, Sequence[Finding]]


def findings_by_node(findings: Iterable[Finding]) -> FindingsByNode:
    """Return the findings to mark: each names nodes, and is no mere fact (info)."""
    named: dict[str, list[Finding]] = {}
    for finding in findings:
        if severity(finding.level) >= severity("warning"):
            for node in finding.location.nodes:
                named.setdefault(node, []).append(finding)
    return named


def marked_nodes(plan: FabricPlan, named: FindingsByNode) -> list[MarkedNodes]:
    """Return the groups of equal nodes of a fabric, with what findings name in them.

    A device that a node lacks is shown with the condition "missing".
    """
    odd_devices, with_errors = _odd_devices(plan), devices_with_errors(plan)
    marks = {
        node: list(
            _marks(named.get(node, ()), odd_devices.get(node, ()), with_errors.get(node, {}))
        )
        for node in plan.group.nodes
    }
    lacking = {
        node
        for node in plan.group.nodes
        if any(finding.code == CARD_MISSING.code for finding in named.get(node, ()))
    }
    expected = _expected_devices(plan) if lacking else {}
    return [
        marked
        for nodes in equal_nodes(plan)
        for marked in _apart(
            _with_missing(nodes, expected) if nodes.names[0] in lacking else nodes, marks
        )
    ]


def _marks(
    findings: Iterable[Finding],
    odd_devices: Sequence[str],
    with_errors: Mapping[str, Sequence[str]],
) -> Iterator[Mark]:
    """Yield the marks of a node: some findings are about ports that their location does not name.

    `with_errors`: the devices by the counter of their errors.
    """
    for finding in findings:
        devices: Sequence[str] = odd_devices if finding.code == FIRMWARE_DIFFERS.code else ()
        if finding.code == PORT_ERRORS_COUNTED.code:
            devices = with_errors.get(counter_of(finding), ())
        for device in devices or (finding.location.device,):
            yield Mark(finding.level, finding.code, device, (finding.text,))


def _odd_devices(plan: FabricPlan) -> dict[str, list[str]]:
    """Return the devices of each node whose firmware is not the most common one of the fabric."""
    ports = [(node_ports, port) for node_ports, port in used_ports(plan) if port.firmware]
    odd: dict[str, list[str]] = {}
    usual = most_common(port.firmware or "" for _, port in ports) if ports else ""
    for node_ports, port in ports:
        if port.firmware != usual and port.device:
            odd.setdefault(node_ports.node.name, []).append(port.device)
    return odd


def _expected_devices(plan: FabricPlan) -> dict[str, tuple[str, ...]]:
    """Return the devices that most nodes of a fabric have, each with the GPUs near it there."""
    counts = Counter(
        device
        for node_ports in plan.group.ports_of_nodes
        for device in used_devices(node_ports, plan)
    )
    gpus = {rail.device.partition(":")[0]: rail.gpus for rail in rails_of(plan)}
    majority = len(plan.group.nodes) / 2
    return {device: gpus.get(device, ()) for device, count in counts.items() if count >= majority}


def _apart(nodes: EqualNodes, marks: Mapping[str, Sequence[Mark]]) -> Iterator[MarkedNodes]:
    """Divide equal nodes by the kinds of their marks."""
    names_by_kinds: dict[frozenset[Mark], list[str]] = {}
    for name in nodes.names:
        kinds = frozenset(mark._replace(texts=()) for mark in marks.get(name, ()))
        names_by_kinds.setdefault(kinds, []).append(name)
    for kinds, names in names_by_kinds.items():
        joined = [_joined(kind, names, marks) for kind in kinds]
        joined.sort(key=lambda mark: (-severity(mark.level), natural_key(mark.device), mark.code))
        by_device: dict[str, tuple[Mark, ...]] = {}
        for mark in joined:
            by_device[mark.device] = (*by_device.get(mark.device, ()), mark)
        of_nodes = by_device.pop("", ())
        yield MarkedNodes(nodes._replace(names=tuple(names)), of_nodes, by_device)


def _joined(kind: Mark, names: Iterable[str], marks: Mapping[str, Sequence[Mark]]) -> Mark:
    """Return a mark of several nodes with the sentences of all."""
    texts = (
        text
        for name in names
        for mark in marks.get(name, ())
        if mark._replace(texts=()) == kind
        for text in mark.texts
    )
    return kind._replace(texts=tuple(dict.fromkeys(texts)))


def _with_missing(nodes: EqualNodes, expected: Mapping[str, tuple[str, ...]]) -> EqualNodes:
    """Add the expected devices that these nodes lack."""
    present = {port.device for port in nodes.ports}
    missing = [
        ShownPort(device, "missing", "missing", gpus, device=device)
        for device, gpus in expected.items()
        if device not in present
    ]
    ports = sorted(
        (*nodes.ports, *missing),
        key=lambda port: (port.condition == "unused", natural_key(port.name)),
    )
    return nodes._replace(ports=tuple(ports))
