"""Measurements by part of the fabric, and the nodes that measure well with each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.verify.matrix import PairMatrix
from webhook.diagnose.verify.results import BenchmarkResult, NodePair
from webhook.model.finding import Code, Level

SUSPECT_RAIL = Code(
    "SuspectRail",
    "All measurements on one rail (the devices with the same name) are bad, but some of the same "
    "pairs of nodes have good measurements on other rails.",
    "Check what the ports of this rail have in common, such as switches, and whether the device "
    "name belongs to the corresponding card on every node.",
)
SUSPECT_NODE = Code(
    "SuspectNode",
    "All measurements that involve one particular node are bad.",
    "Check this node first: its cards and their PCIe links (lspci -vv, LnkSta), its cables, "
    "and what else it runs.",
)
SUSPECT_HCA = Code(
    "SuspectHca",
    "All measurements with one device of a node are bad, but some measurements with the node's "
    "other devices are good.",
    "Check the device's port first: its state, rate and error counters, its cable, and the PCIe "
    "link of its card.",
)
SUSPECT_SENDER = Code(
    "SuspectSender",
    "All measurements with a node as the client are bad, but some measurements with the node as "
    "the server are good.",
    "Compare the PCIe settings (lspci -vv, MaxReadReq) of the node's cards with those of other "
    "nodes; on RoCE, also compare the flow control of the ports.",
)
SUSPECT_RECEIVER = Code(
    "SuspectReceiver",
    "All measurements with a node as the server are bad, but some measurements with the node as "
    "the client are good.",
    "Compare the PCIe settings (lspci -vv, MaxPayload) of the node's cards with those of other "
    "nodes; on RoCE, also compare the flow control of the ports.",
)

#: The number of partners that must measure well elsewhere before a part is blamed; a single partner
#: could itself be the cause.
_ENOUGH = 2


class PairMeasurement(NamedTuple):
    """A result on a device of a pair."""

    ends: NodePair
    device: str | None
    result: BenchmarkResult

    @property
    def level(self) -> Level:
        """The level of the result."""
        return self.result.finding.level


class FabricPart(NamedTuple):
    """A part of the fabric that measurements have in common."""

    #: The code of a finding on such a part.
    code: Code
    node: str | None = None
    device: str | None = None


class HealthyPairs:
    """Counts of good measurements, by node and by pair of nodes."""

    def __init__(self, measurements: Iterable[PairMeasurement]) -> None:
        #: Each measurement counts for its device, and for None: all devices.
        self._by_node: Counter[tuple[str, str | None]] = Counter()
        self._by_pair: Counter[tuple[frozenset[str], str | None]] = Counter()
        self._devices: dict[frozenset[str], set[str | None]] = defaultdict(set)
        for measurement in measurements:
            nodes = frozenset(measurement.ends)
            self._devices[nodes].add(measurement.device)
            for device in {measurement.device, None}:
                self._by_pair[nodes, device] += 1
                for node in nodes:
                    self._by_node[node, device] += 1

    def is_healthy_elsewhere(self, measurement: PairMeasurement, node: str) -> bool:
        """Return whether a node of a measurement measures well with a third node, on its device."""
        return self._count(node, frozenset(measurement.ends), measurement.device) > 0

    def implicates(self, part: FabricPart, measurements: Sequence[PairMeasurement]) -> bool:
        """Return whether a part is the culprit: enough of its partners measure well without it."""
        if part.node is None:
            node_pairs = {frozenset(measurement.ends) for measurement in measurements}
            return (
                sum(self._on_other_devices(nodes, part.device) for nodes in node_pairs) >= _ENOUGH
            )
        partners = {node for measurement in measurements for node in measurement.ends} - {part.node}
        innocent = [
            node
            for node in partners
            if self._count(node, frozenset((node, part.node)), part.device)
        ]
        return len(innocent) >= _ENOUGH

    def count_elsewhere(self, node: str, pair: Sequence[str]) -> int:
        """Count the good measurements of a node with nodes outside the pair."""
        return self._count(node, frozenset(pair), None)

    def _count(self, node: str, nodes: frozenset[str], device: str | None) -> int:
        return self._by_node[node, device] - self._by_pair[nodes, device]

    def _on_other_devices(self, nodes: frozenset[str], device: str | None) -> bool:
        return bool(self._devices.get(nodes, set()) - {device, None})


def pair_measurements(matrix: PairMatrix) -> list[PairMeasurement]:
    """Return the results on pairs of two nodes, device by device; unsure ones are left out.

    Each result counts, so that the counts of suspects add up to those of the whole run.
    """
    return [
        PairMeasurement(cell.pair, series.device, result)
        for series, cells in matrix.cells_by_series.items()
        for cell in cells.values()
        for result in cell.results
        if result.finding.level != "unsure" and cell.pair.client != cell.pair.server
    ]


def parts_of(measurement: PairMeasurement) -> Iterator[FabricPart]:
    """Yield the parts of the fabric that a measurement used."""
    client, server = measurement.ends
    yield FabricPart(SUSPECT_NODE, client)
    yield FabricPart(SUSPECT_NODE, server)
    yield FabricPart(SUSPECT_SENDER, client)
    yield FabricPart(SUSPECT_RECEIVER, server)
    if measurement.device is not None:
        yield FabricPart(SUSPECT_RAIL, None, measurement.device)
        yield FabricPart(SUSPECT_HCA, client, measurement.device)
        yield FabricPart(SUSPECT_HCA, server, measurement.device)
