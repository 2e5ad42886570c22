"""What was measured of each part of the fabric, and which nodes do well with which others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.verify.matrix import MatrixCell, PairMatrix
from webhook.diagnose.verify.results import WORTHS, Judgement
from webhook.diagnose.verify.run_report import NodePair

#: So many nodes that do well elsewhere clear themselves; one alone may be the cause.
_ENOUGH = 2


class MeasuredPair(NamedTuple):
    """The decided judgement on a device of a pair."""

    pair: NodePair
    device: str | None
    worst: Judgement


class FabricPart(NamedTuple):
    """A part of the fabric that measurements have in common."""

    code: str
    node: str | None = None
    device: str | None = None


class DoingWell:
    """Which nodes do well with which others."""

    def __init__(self, good: Iterable[MeasuredPair]) -> None:
        self._of: Counter[tuple[str, str | None, bool]] = Counter()
        self._between: Counter[tuple[frozenset[str], str | None, bool]] = Counter()
        self._devices: dict[frozenset[str], set[str | None]] = defaultdict(set)
        for one in good:
            ends = frozenset(one.pair)
            self._devices[ends].add(one.device)
            for device, every in ((one.device, False), (None, True)):
                self._between[ends, device, every] += 1
                for node in ends:
                    self._of[node, device, every] += 1

    def elsewhere(self, one: MeasuredPair, node: str) -> bool:
        """Return whether a node of a measurement does well with a third one, on its device."""
        return self._count(node, frozenset(one.pair), one.device, every=one.device is None) > 0

    def clear(self, part: FabricPart, left: Sequence[MeasuredPair]) -> bool:
        """Return whether enough of what a part was measured with does well without that part."""
        if part.node is None:
            pairs = {frozenset(one.pair) for one in left}
            return sum(self._on_other_devices(pair, part.device) for pair in pairs) >= _ENOUGH
        others = {node for one in left for node in one.pair} - {part.node}
        every = part.device is None
        innocent = [
            node
            for node in others
            if self._count(node, frozenset((node, part.node)), part.device, every=every)
        ]
        return len(innocent) >= _ENOUGH

    def words(self, node: str, pair: Sequence[str]) -> str:
        """Say how often a node does well with other nodes than its partner."""
        count = self._count(node, frozenset(pair), None, every=True)
        return f"{node} has {count} good one{'s' * (count != 1)}"

    def _count(self, node: str, pair: frozenset[str], device: str | None, *, every: bool) -> int:
        return self._of[node, device, every] - self._between[pair, device, every]

    def _on_other_devices(self, pair: frozenset[str], device: str | None) -> bool:
        return bool(self._devices.get(pair, set()) - {device, None})


def measured_pairs(matrix: PairMatrix) -> list[MeasuredPair]:
    """Return the decided judgements on pairs of two nodes, device by device."""
    return [
        found
        for column, cells in matrix.columns.items()
        for cell in cells.values()
        if (found := _decided(column.device, cell))
    ]


def _decided(device: str | None, cell: MatrixCell) -> MeasuredPair | None:
    """Return the worst judgement that is not inconclusive."""
    sure = tuple(one for one in cell.judgements if one.verdict != "inconclusive")
    if not sure or cell.pair.client == cell.pair.server:
        return None
    return MeasuredPair(cell.pair, device, cell._replace(judgements=sure).worst)


def parts_of(one: MeasuredPair) -> Iterator[FabricPart]:
    """Yield the parts of the fabric that a measurement used."""
    client, server = one.pair
    yield FabricPart("SuspectNode", client)
    yield FabricPart("SuspectNode", server)
    yield FabricPart("SuspectSender", client)
    yield FabricPart("SuspectReceiver", server)
    if one.device is not None:
        yield FabricPart("SuspectRail", None, one.device)
        yield FabricPart("SuspectHca", client, one.device)
        yield FabricPart("SuspectHca", server, one.device)


def tally_of(several: Iterable[MeasuredPair]) -> str:
    """Count verdicts, the worst first."""
    counted = Counter(one.worst.verdict for one in several)
    return ", ".join(f"{counted[one]} {one}" for one in reversed(WORTHS) if counted[one])
