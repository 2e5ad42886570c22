"""What bad measurements have in common: a node, an HCA, a direction, a rail or a path.

A suspect is named only if all that was measured of it is bad, and if at least two nodes that it
measured with do well with others, so that it is not their fault. What is inconclusive counts
neither way. What a suspect explains is not blamed on a narrower one as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.verify.matrix import MatrixCell, PairMatrix, pair_words, shortened_list
from webhook.diagnose.verify.results import WORTHS, BenchmarkResult, NodePair, Worth

#: Nodes of which one can stand out.
_A_FEW = 3
#: More paths than these have no common cause that is worth a line each.
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
_APART = "Measure these nodes with others, too: with --all-pairs, or with more nodes in --nodes."


class Suspect(NamedTuple):
    """What to look at first."""

    verdict: Worth
    code: str
    #: In the order of the matrix; empty for all.
    nodes: tuple[str, ...]
    device: str | None
    because: str
    remedy: str


class _Words(NamedTuple):
    """How to speak of a kind of part."""

    own: str
    others: str
    remedy: str


#: From the widest to the narrowest.
_KINDS = {
    "SuspectRail": _Words("on it", "All others", _OF_RAIL),
    "SuspectNode": _Words("with it", "All others", _OF_NODE),
    "SuspectHca": _Words("with it", "All others", _OF_HCA),
    "SuspectSender": _Words("in which it is the client", "As the server", _OF_SENDER),
    "SuspectReceiver": _Words("in which it is the server", "As the client", _OF_RECEIVER),
}


def localize_faults(matrix: PairMatrix) -> tuple[Suspect, ...]:
    """Return what to look at first, the worst and widest first."""
    search = _Search(matrix)
    for kind in _KINDS:
        for bad in (_FAIL, _BAD):
            search.parts(kind, bad)
    search.everything()
    search.paths()
    search.rest()
    return tuple(sorted(search.found, key=lambda one: -WORTHS.index(one.verdict)))


class _Search:
    """A search from the widest to the narrowest suspect, over what is not explained yet."""

    def __init__(self, matrix: PairMatrix) -> None:
        self.found: list[Suspect] = []
        self._order = {node: at for at, node in enumerate(matrix.nodes)}
        self._all = measured_pairs(matrix)
        self._undecided = sum(map(len, matrix.columns.values())) > len(self._all)
        self._unexplained = [one for one in self._all if one.worst.verdict in _BAD]
        self._at: dict[FabricPart, list[MeasuredPair]] = defaultdict(list)
        for one in self._all:
            for part in parts_of(one):
                self._at[part].append(one)

    def parts(self, kind: str, bad: frozenset[Worth]) -> None:
        """Name each part of a kind of which all is bad, and to which others can be compared."""
        well = HealthyPairs(one for one in self._all if one.worst.verdict not in bad)
        waiting = defaultdict(list)
        for one in self._unexplained:
            for part in parts_of(one):
                if part.code == kind:
                    waiting[part].append(one)
        for part, left in waiting.items():
            own = self._at[part]
            if all(one.worst.verdict in bad for one in own) and well.clear(part, left):
                self._name(part, own, left)
                self._explain(own)

    def everything(self) -> None:
        """Say so where nothing is or may be good, since then nothing stands out."""
        left = self._unexplained
        good = self._undecided or any(one.worst.verdict not in _BAD for one in self._all)
        if not good and len({node for one in left for node in one.pair}) >= _A_FEW:
            other = "other " if len(left) < len(self._all) else ""
            because = f"All {len(left)} {other}measurements are bad ({tally_of(left)})."
            self._add(left, Suspect("fail", "AllAlike", (), None, because, _OF_ALL))
            self._unexplained = []

    def paths(self) -> None:
        """Name pairs of which both nodes do well with others, on the same devices."""
        well = HealthyPairs(one for one in self._all if one.worst.verdict not in _BAD)
        between: dict[frozenset[str], list[MeasuredPair]] = defaultdict(list)
        for one in self._unexplained:
            if all(well.elsewhere(one, node) for node in one.pair):
                between[frozenset(one.pair)].append(one)
        if len(between) > _MOST_PATHS:
            self._many_paths([one for several in between.values() for one in several])
            return
        for several in between.values():
            self._path(several, well)

    def rest(self) -> None:
        """Say of slow pairs that remain that nothing tells the node from the path."""
        slow = [one for one in self._unexplained if one.worst.number is not None]
        if slow:
            because = (
                f"{shortened_list(_pairs(slow))}: {tally_of(slow)}, and too little else was "
                "measured to tell a node from the path."
            )
            self._add(slow, Suspect("fail", "NotLocated", self._nodes(slow), None, because, _APART))

    def _name(
        self, part: FabricPart, own: list[MeasuredPair], left: Sequence[MeasuredPair]
    ) -> None:
        """Name a part, of which only `left` is not explained yet."""
        words = _KINDS[part.code]
        because = (
            f"{_title(part)}: all {len(own)} measurements {words.own} are bad ({tally_of(own)}). "
            f"{words.others}: {tally_of(self._compared(part, own)) or 'none'}."
        )
        nodes = (part.node,) if part.node is not None else ()
        self._add(left, Suspect("fail", part.code, nodes, part.device, because, words.remedy))

    def _compared(self, part: FabricPart, own: list[MeasuredPair]) -> list[MeasuredPair]:
        """Return what a part is compared with: all others, or the same node's other direction."""
        if part.code in ("SuspectSender", "SuspectReceiver"):
            own_pairs = {one.pair for one in own}
            return [
                one
                for one in self._at[FabricPart("SuspectNode", part.node)]
                if one.pair not in own_pairs
            ]
        taken = set(map(id, own))
        return [one for one in self._all if id(one) not in taken]

    def _path(self, several: list[MeasuredPair], well: HealthyPairs) -> None:
        first, second = nodes = self._nodes(several)
        devices = list(dict.fromkeys(one.device for one in several if one.device))
        on = f" on {shortened_list(devices)}" if devices else ""
        because = (
            f"{' and '.join(_pairs(several))}{on}: bad ({tally_of(several)}). With other nodes, "
            f"{well.words(first, nodes)}, and {well.words(second, nodes)}."
        )
        device = devices[0] if len(devices) == 1 else None
        self._add(several, Suspect("fail", "SuspectPath", nodes, device, because, _OF_PATH))
        self._explain(several)

    def _many_paths(self, several: list[MeasuredPair]) -> None:
        pairs = _pairs(several)
        because = (
            f"{len(pairs)} pairs have bad measurements ({tally_of(several)}) that share neither a "
            f"node, an HCA nor a direction: {shortened_list(pairs)}."
        )
        nodes = self._nodes(several)
        self._add(several, Suspect("fail", "SuspectPaths", nodes, None, because, _OF_PATHS))
        self._explain(several)

    def _nodes(self, several: Iterable[MeasuredPair]) -> tuple[str, ...]:
        found = {node for one in several for node in one.pair}
        return tuple(sorted(found, key=self._order.__getitem__))

    def _add(self, own: Sequence[MeasuredPair], suspect: Suspect) -> None:
        """Add a suspect; where what it explains failed for one known cause, its remedy counts."""
        verdict = max((one.worst.verdict for one in own), key=WORTHS.index)
        suspect = suspect._replace(verdict=verdict)
        causes = {(one.worst.code, one.worst.remedy) for one in own}
        first = own[0].worst
        if len(causes) == 1 and first.number is None and first.remedy:
            because = f"{suspect.because} Cause: {first.code}."
            suspect = suspect._replace(because=because, remedy=first.remedy)
        self.found.append(suspect)

    def _explain(self, own: Iterable[MeasuredPair]) -> None:
        explained = set(map(id, own))
        self._unexplained = [one for one in self._unexplained if id(one) not in explained]


def _title(part: FabricPart) -> str:
    return " of ".join(name for name in (part.device, part.node) if name is not None)


def _pairs(several: Iterable[MeasuredPair]) -> list[str]:
    return list(dict.fromkeys(pair_words(one.pair) for one in several))


# What was measured of each part of the fabric, and which nodes do well with which others.

#: So many nodes that do well elsewhere clear themselves; one alone may be the cause.
_ENOUGH = 2


class MeasuredPair(NamedTuple):
    """The decided judgement on a device of a pair."""

    pair: NodePair
    device: str | None
    worst: BenchmarkResult


class FabricPart(NamedTuple):
    """A part of the fabric that measurements have in common."""

    code: str
    node: str | None = None
    device: str | None = None


class HealthyPairs:
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
