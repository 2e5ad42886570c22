"""The common factor of bad measurements: a node, an HCA, a direction, a rail or a path.

A suspect is named only if all of its measurements are bad, and at least two of its partners measure
well with other nodes, so that they are not the cause. Inconclusive measurements do not count. A
measurement that a suspect explains is not counted against a narrower one as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.verify.matrix import MatrixCell, PairMatrix, pair_words, shortened_list
from webhook.diagnose.verify.results import WORTHS, BenchmarkResult, NodePair, Worth

#: The fewest nodes among which a single bad one is recognizable.
_FEWEST_NODES = 3
#: More paths than this get one line together.
_MOST_PATHS = 4
_FAIL: frozenset[Worth] = frozenset({"fail"})
_BAD: frozenset[Worth] = frozenset({"fail", "warn"})

_OF_NODE = (
    "Look at this node first: its cards and their PCIe links (lspci -vv, LnkSta), its cables, and "
    "what else runs there."
)
_OF_HCA = (
    "Look at this port first: its state, rate and error counters, its cable, and the PCIe link of "
    "its card."
)
_OF_RAIL = (
    "Look at what this rail shares, such as its switches, and whether this name is the same card "
    "on all nodes."
)
_OF_SENDER = (
    "Compare the PCIe settings of its cards with those of other nodes (lspci -vv, MaxReadReq), and "
    "on RoCE the flow control of its ports."
)
_OF_RECEIVER = (
    "Compare the PCIe settings of its cards with those of other nodes (lspci -vv, MaxPayload), and "
    "on RoCE the flow control of its ports."
)
_OF_PATH = "Look at the path between them: the switches, and the cables between switches."
_OF_PATHS = (
    "Look at the switches, their error counters, and at what else uses the network; then run it "
    "again."
)
_OF_ALL = (
    "No node stands out, so look at what all share: the expected rate, the image, the switches."
)
_OF_NOT_LOCATED = (
    "Measure these nodes with others, too: with --all-pairs, or with more nodes in --nodes."
)


class Suspect(NamedTuple):
    """A part of the fabric to look at first."""

    verdict: Worth
    code: str
    #: In the order of the matrix; empty for all.
    nodes: tuple[str, ...]
    device: str | None
    because: str
    remedy: str


class _Wording(NamedTuple):
    """The wording for a kind of part."""

    with_it: str
    compared: str
    remedy: str


#: From the widest to the narrowest.
_KINDS = {
    "SuspectRail": _Wording("on it", "All others", _OF_RAIL),
    "SuspectNode": _Wording("with it", "All others", _OF_NODE),
    "SuspectHca": _Wording("with it", "All others", _OF_HCA),
    "SuspectSender": _Wording("in which it is the client", "As the server", _OF_SENDER),
    "SuspectReceiver": _Wording("in which it is the server", "As the client", _OF_RECEIVER),
}


def localize_faults(matrix: PairMatrix) -> tuple[Suspect, ...]:
    """Return the suspects, the worst and widest first."""
    search = _FaultSearch(matrix)
    for kind in _KINDS:
        for bad in (_FAIL, _BAD):
            search.parts(kind, bad)
    search.all_alike()
    search.paths()
    search.not_located()
    return tuple(sorted(search.suspects, key=lambda suspect: -WORTHS.index(suspect.verdict)))


class _FaultSearch:
    """A search for suspects, from the widest to the narrowest, in the unexplained measurements."""

    def __init__(self, matrix: PairMatrix) -> None:
        self.suspects: list[Suspect] = []
        self._order = {node: index for index, node in enumerate(matrix.nodes)}
        self._pairs = measured_pairs(matrix)
        self._undecided = sum(map(len, matrix.columns.values())) > len(self._pairs)
        self._unexplained = [pair for pair in self._pairs if pair.worst.verdict in _BAD]
        self._by_part: dict[FabricPart, list[MeasuredPair]] = defaultdict(list)
        for pair in self._pairs:
            for part in parts_of(pair):
                self._by_part[part].append(pair)

    def parts(self, kind: str, bad: frozenset[Worth]) -> None:
        """Name each part of a kind whose measurements are all bad, if others can be compared."""
        healthy = HealthyPairs(pair for pair in self._pairs if pair.worst.verdict not in bad)
        by_part = defaultdict(list)
        for pair in self._unexplained:
            for part in parts_of(pair):
                if part.code == kind:
                    by_part[part].append(pair)
        for part, unexplained in by_part.items():
            pairs = self._by_part[part]
            if all(pair.worst.verdict in bad for pair in pairs) and healthy.clears(
                part, unexplained
            ):
                self._name(part, pairs, unexplained)
                self._explain(pairs)

    def all_alike(self) -> None:
        """Add a single suspect for all nodes if no measurement is good or undecided."""
        unexplained = self._unexplained
        any_good = self._undecided or any(pair.worst.verdict not in _BAD for pair in self._pairs)
        if (
            not any_good
            and len({node for pair in unexplained for node in pair.ends}) >= _FEWEST_NODES
        ):
            other = "other " if len(unexplained) < len(self._pairs) else ""
            because = (
                f"All {len(unexplained)} {other}measurements are bad ({tally_of(unexplained)})."
            )
            self._add(unexplained, Suspect("fail", "AllAlike", (), None, because, _OF_ALL))
            self._unexplained = []

    def paths(self) -> None:
        """Name the pairs whose nodes both measure well with other nodes, on the same devices."""
        healthy = HealthyPairs(pair for pair in self._pairs if pair.worst.verdict not in _BAD)
        by_path: dict[frozenset[str], list[MeasuredPair]] = defaultdict(list)
        for pair in self._unexplained:
            if all(healthy.is_healthy_elsewhere(pair, node) for node in pair.ends):
                by_path[frozenset(pair.ends)].append(pair)
        if len(by_path) > _MOST_PATHS:
            self._many_paths([pair for path in by_path.values() for pair in path])
            return
        for pairs in by_path.values():
            self._path(pairs, healthy)

    def not_located(self) -> None:
        """Name the remaining slow pairs, whose fault may be in a node or in the path."""
        slow = [pair for pair in self._unexplained if pair.worst.number is not None]
        if slow:
            because = (
                f"{shortened_list(_pair_names(slow))}: {tally_of(slow)}, and too little else was "
                "measured to tell a node from the path."
            )
            self._add(
                slow,
                Suspect("fail", "NotLocated", self._nodes(slow), None, because, _OF_NOT_LOCATED),
            )

    def _name(
        self, part: FabricPart, pairs: list[MeasuredPair], unexplained: Sequence[MeasuredPair]
    ) -> None:
        """Name a part; `unexplained` are its measurements without a suspect yet."""
        wording = _KINDS[part.code]
        because = (
            f"{_title(part)}: all {len(pairs)} measurements {wording.with_it} are bad "
            f"({tally_of(pairs)}). "
            f"{wording.compared}: {tally_of(self._compared(part, pairs)) or 'none'}."
        )
        nodes = (part.node,) if part.node is not None else ()
        self._add(
            unexplained, Suspect("fail", part.code, nodes, part.device, because, wording.remedy)
        )

    def _compared(self, part: FabricPart, pairs: list[MeasuredPair]) -> list[MeasuredPair]:
        """Return the measurements to compare: all others, or the node's other direction."""
        if part.code in ("SuspectSender", "SuspectReceiver"):
            node_pairs = {pair.ends for pair in pairs}
            return [
                pair
                for pair in self._by_part[FabricPart("SuspectNode", part.node)]
                if pair.ends not in node_pairs
            ]
        identities = set(map(id, pairs))
        return [pair for pair in self._pairs if id(pair) not in identities]

    def _path(self, pairs: list[MeasuredPair], healthy: HealthyPairs) -> None:
        first, second = nodes = self._nodes(pairs)
        devices = list(dict.fromkeys(pair.device for pair in pairs if pair.device))
        on = f" on {shortened_list(devices)}" if devices else ""
        because = (
            f"{' and '.join(_pair_names(pairs))}{on}: bad ({tally_of(pairs)}). With other nodes, "
            f"{healthy.words(first, nodes)}, and {healthy.words(second, nodes)}."
        )
        device = devices[0] if len(devices) == 1 else None
        self._add(pairs, Suspect("fail", "SuspectPath", nodes, device, because, _OF_PATH))
        self._explain(pairs)

    def _many_paths(self, pairs: list[MeasuredPair]) -> None:
        names = _pair_names(pairs)
        because = (
            f"{len(names)} pairs have bad measurements ({tally_of(pairs)}) that share neither a "
            f"node, an HCA nor a direction: {shortened_list(names)}."
        )
        nodes = self._nodes(pairs)
        self._add(pairs, Suspect("fail", "SuspectPaths", nodes, None, because, _OF_PATHS))
        self._explain(pairs)

    def _nodes(self, pairs: Iterable[MeasuredPair]) -> tuple[str, ...]:
        nodes = {node for pair in pairs for node in pair.ends}
        return tuple(sorted(nodes, key=self._order.__getitem__))

    def _add(self, pairs: Sequence[MeasuredPair], suspect: Suspect) -> None:
        """Add a suspect; if its measurements failed for a single cause, with the cause's remedy."""
        verdict = max((pair.worst.verdict for pair in pairs), key=WORTHS.index)
        suspect = suspect._replace(verdict=verdict)
        causes = {(pair.worst.code, pair.worst.remedy) for pair in pairs}
        first = pairs[0].worst
        if len(causes) == 1 and first.number is None and first.remedy:
            because = f"{suspect.because} Cause: {first.code}."
            suspect = suspect._replace(because=because, remedy=first.remedy)
        self.suspects.append(suspect)

    def _explain(self, pairs: Iterable[MeasuredPair]) -> None:
        explained = set(map(id, pairs))
        self._unexplained = [pair for pair in self._unexplained if id(pair) not in explained]


def _title(part: FabricPart) -> str:
    return " of ".join(name for name in (part.device, part.node) if name is not None)


def _pair_names(pairs: Iterable[MeasuredPair]) -> list[str]:
    return list(dict.fromkeys(pair_words(pair.ends) for pair in pairs))


# Measurements by part of the fabric, and the nodes that measure well with each other.

#: This many nodes that measure well elsewhere are not the cause; a single one may be.
_ENOUGH = 2


class MeasuredPair(NamedTuple):
    """The decided judgement on a device of a pair."""

    ends: NodePair
    device: str | None
    worst: BenchmarkResult


class FabricPart(NamedTuple):
    """A part of the fabric that measurements have in common."""

    code: str
    node: str | None = None
    device: str | None = None


class HealthyPairs:
    """Counts of good measurements, by node and by pair of nodes."""

    def __init__(self, pairs: Iterable[MeasuredPair]) -> None:
        self._by_node: Counter[tuple[str, str | None, bool]] = Counter()
        self._by_pair: Counter[tuple[frozenset[str], str | None, bool]] = Counter()
        self._devices: dict[frozenset[str], set[str | None]] = defaultdict(set)
        for pair in pairs:
            nodes = frozenset(pair.ends)
            self._devices[nodes].add(pair.device)
            for device, all_devices in ((pair.device, False), (None, True)):
                self._by_pair[nodes, device, all_devices] += 1
                for node in nodes:
                    self._by_node[node, device, all_devices] += 1

    def is_healthy_elsewhere(self, pair: MeasuredPair, node: str) -> bool:
        """Return whether a node of a measurement measures well with a third node, on its device."""
        return (
            self._count(node, frozenset(pair.ends), pair.device, all_devices=pair.device is None)
            > 0
        )

    def clears(self, part: FabricPart, pairs: Sequence[MeasuredPair]) -> bool:
        """Return whether enough partners of a part measure well without it."""
        if part.node is None:
            node_pairs = {frozenset(pair.ends) for pair in pairs}
            return (
                sum(self._on_other_devices(nodes, part.device) for nodes in node_pairs) >= _ENOUGH
            )
        partners = {node for pair in pairs for node in pair.ends} - {part.node}
        all_devices = part.device is None
        innocent = [
            node
            for node in partners
            if self._count(node, frozenset((node, part.node)), part.device, all_devices=all_devices)
        ]
        return len(innocent) >= _ENOUGH

    def words(self, node: str, pair: Sequence[str]) -> str:
        """Count the good measurements of a node with nodes outside the pair, for a sentence."""
        count = self._count(node, frozenset(pair), None, all_devices=True)
        return f"{node} has {count} good one{'s' * (count != 1)}"

    def _count(
        self, node: str, nodes: frozenset[str], device: str | None, *, all_devices: bool
    ) -> int:
        return self._by_node[node, device, all_devices] - self._by_pair[nodes, device, all_devices]

    def _on_other_devices(self, nodes: frozenset[str], device: str | None) -> bool:
        return bool(self._devices.get(nodes, set()) - {device, None})


def measured_pairs(matrix: PairMatrix) -> list[MeasuredPair]:
    """Return the decided judgements on pairs of two nodes, device by device."""
    return [
        pair
        for column, cells in matrix.columns.items()
        for cell in cells.values()
        if (pair := _decided(column.device, cell))
    ]


def _decided(device: str | None, cell: MatrixCell) -> MeasuredPair | None:
    """Return the worst judgement, inconclusive ones left out; None if there is no other."""
    judgements = tuple(
        judgement for judgement in cell.judgements if judgement.verdict != "inconclusive"
    )
    if not judgements or cell.pair.client == cell.pair.server:
        return None
    return MeasuredPair(cell.pair, device, cell._replace(judgements=judgements).worst)


def parts_of(pair: MeasuredPair) -> Iterator[FabricPart]:
    """Yield the parts of the fabric that a measurement used."""
    client, server = pair.ends
    yield FabricPart("SuspectNode", client)
    yield FabricPart("SuspectNode", server)
    yield FabricPart("SuspectSender", client)
    yield FabricPart("SuspectReceiver", server)
    if pair.device is not None:
        yield FabricPart("SuspectRail", None, pair.device)
        yield FabricPart("SuspectHca", client, pair.device)
        yield FabricPart("SuspectHca", server, pair.device)


def tally_of(pairs: Iterable[MeasuredPair]) -> str:
    """Count verdicts, the worst first."""
    counts = Counter(pair.worst.verdict for pair in pairs)
    return ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in reversed(WORTHS) if counts[verdict]
    )
