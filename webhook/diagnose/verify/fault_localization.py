"""The common factor of bad measurements: a node, an HCA, a direction, a rail or a path.

A suspect is named only if all of its measurements are bad, and at least two of its partners measure
well with other nodes, so that they are not the cause. Unsure measurements do not count. A
measurement that a suspect explains is not counted against a narrower one as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from webhook.diagnose.verify.fabric_parts import (
    SUSPECT_HCA,
    SUSPECT_NODE,
    SUSPECT_RAIL,
    SUSPECT_RECEIVER,
    SUSPECT_SENDER,
    FabricPart,
    HealthyPairs,
    MeasuredPair,
    measured_pairs,
    parts_of,
)
from webhook.diagnose.verify.matrix import PairMatrix, pair_title
from webhook.model.finding import LEVELS, Code, Finding, Level, Location, severity
from webhook.model.names import counted, shortened_list
from webhook.text.findings import tally

SUSPECT_PATH = Code(
    "SuspectPath",
    "Results between two nodes are bad, but their results with other nodes are good.",
    "Check the path between them: the switches, and the cables between switches.",
)
SUSPECT_PATHS = Code(
    "SuspectPaths",
    "Results of more than four pairs of nodes are bad, but their nodes' results with other nodes "
    "are good.",
    "Check the switches, their error counters, and the other traffic; then run the command again.",
)
ALL_ALIKE = Code(
    "AllAlike",
    "All measurements are bad, not counting those that another finding explains.",
    "No node stands out, so check what all of them share: the expected rate, the image, the "
    "switches.",
)
NOT_LOCATED = Code(
    "NotLocated",
    "Results of pairs are bad, and too few other pairs were measured to distinguish a node from "
    "the path.",
    "Measure these nodes with others as well: use --all-pairs, or more nodes in --nodes.",
)
SUSPECT_CODES = (
    *(SUSPECT_NODE, SUSPECT_HCA, SUSPECT_SENDER, SUSPECT_RECEIVER, SUSPECT_RAIL),
    *(SUSPECT_PATH, SUSPECT_PATHS, ALL_ALIKE, NOT_LOCATED),
)

#: The fewest nodes among which a single bad one is recognizable.
_MIN_NODES = 3
#: More paths than this get one line together.
_MAX_PATHS = 4
_ERROR: frozenset[Level] = frozenset({"error"})
_BAD: frozenset[Level] = frozenset({"error", "warning"})
#: From the widest to the narrowest.
_SUSPECT_CODES = (SUSPECT_RAIL, SUSPECT_NODE, SUSPECT_HCA, SUSPECT_SENDER, SUSPECT_RECEIVER)


def localize_faults(matrix: PairMatrix) -> tuple[Finding, ...]:
    """Return the suspects, the worst and widest first."""
    search = _FaultSearch(matrix)
    for suspect_code in _SUSPECT_CODES:
        for bad in (_ERROR, _BAD):
            search.name_parts(suspect_code, bad)
    search.name_all_nodes()
    search.name_paths()
    search.name_remaining_pairs()
    return tuple(sorted(search.suspects, key=lambda suspect: -severity(suspect.level)))


class _FaultSearch:
    """A search for suspects, from the widest to the narrowest, in the unexplained measurements."""

    def __init__(self, matrix: PairMatrix) -> None:
        self.suspects: list[Finding] = []
        self._order = {node: index for index, node in enumerate(matrix.nodes)}
        self._pairs = measured_pairs(matrix)
        self._undecided = sum(map(len, matrix.columns.values())) > len(self._pairs)
        self._unexplained = [pair for pair in self._pairs if pair.level in _BAD]
        self._by_part: dict[FabricPart, list[MeasuredPair]] = defaultdict(list)
        for pair in self._pairs:
            for part in parts_of(pair):
                self._by_part[part].append(pair)

    def name_parts(self, suspect_code: Code, bad: frozenset[Level]) -> None:
        """Name each part of a kind whose measurements are all bad, if others can be compared."""
        healthy = HealthyPairs(pair for pair in self._pairs if pair.level not in bad)
        by_part = defaultdict(list)
        for pair in self._unexplained:
            for part in parts_of(pair):
                if part.code == suspect_code:
                    by_part[part].append(pair)
        for part, unexplained in by_part.items():
            pairs = self._by_part[part]
            if all(pair.level in bad for pair in pairs) and healthy.implicates(part, unexplained):
                self._name_part(part, pairs, unexplained)
                self._explain(pairs)

    def name_all_nodes(self) -> None:
        """Add a single suspect for all nodes if no measurement is good or undecided."""
        unexplained = self._unexplained
        any_good = self._undecided or any(pair.level not in _BAD for pair in self._pairs)
        if not any_good and len({node for pair in unexplained for node in pair.ends}) >= _MIN_NODES:
            other = "other " if len(unexplained) < len(self._pairs) else ""
            text = f"All {len(unexplained)} {other}measurements are bad ({tally_of(unexplained)})."
            self._add(unexplained, ALL_ALIKE, text, Location())
            self._unexplained = []

    def name_paths(self) -> None:
        """Name the pairs whose nodes both measure well with other nodes, on the same devices."""
        healthy = HealthyPairs(pair for pair in self._pairs if pair.level not in _BAD)
        by_path: dict[frozenset[str], list[MeasuredPair]] = defaultdict(list)
        for pair in self._unexplained:
            if all(healthy.is_healthy_elsewhere(pair, node) for node in pair.ends):
                by_path[frozenset(pair.ends)].append(pair)
        if len(by_path) > _MAX_PATHS:
            self._name_many_paths([pair for path in by_path.values() for pair in path])
            return
        for pairs in by_path.values():
            self._name_path(pairs, healthy)

    def name_remaining_pairs(self) -> None:
        """Name the remaining slow pairs, whose fault may be in a node or in the path."""
        slow = [pair for pair in self._unexplained if pair.result.number is not None]
        if slow:
            text = (
                f"Bad measurements of {shortened_list(_pair_names(slow))} ({tally_of(slow)}). "
                "Too few other pairs were measured to distinguish a node from the path."
            )
            self._add(slow, NOT_LOCATED, text, Location(nodes=self._nodes(slow)))

    def _name_part(
        self, part: FabricPart, pairs: list[MeasuredPair], unexplained: Sequence[MeasuredPair]
    ) -> None:
        """Name a part; `unexplained` are its measurements without a suspect yet."""
        other = self._comparison(part, pairs)
        text = (
            f"All {len(pairs)} measurements {_title(part)} are bad ({tally_of(pairs)}). "
            f"{_COMPARED.get(part.code, 'All others')}: {tally_of(other) or 'none'}."
        )
        nodes = (part.node,) if part.node is not None else ()
        self._add(unexplained, part.code, text, Location(nodes=nodes, device=part.device or ""))

    def _comparison(self, part: FabricPart, pairs: list[MeasuredPair]) -> list[MeasuredPair]:
        """Return the measurements to compare: all others, or the node's other direction."""
        if part.code in _COMPARED:
            node_pairs = {pair.ends for pair in pairs}
            return [
                pair
                for pair in self._by_part[FabricPart(SUSPECT_NODE, part.node)]
                if pair.ends not in node_pairs
            ]
        identities = set(map(id, pairs))
        return [pair for pair in self._pairs if id(pair) not in identities]

    def _name_path(self, pairs: list[MeasuredPair], healthy: HealthyPairs) -> None:
        first, second = nodes = self._nodes(pairs)
        devices = list(dict.fromkeys(pair.device for pair in pairs if pair.device))
        on = f" on {shortened_list(devices)}" if devices else ""
        text = (
            f"Bad measurements of {' and '.join(_pair_names(pairs))}{on} ({tally_of(pairs)}). With "
            f"other nodes, {first} has "
            f"{counted(healthy.count_elsewhere(first, nodes), 'good measurement')}, and {second} "
            f"has {healthy.count_elsewhere(second, nodes)}."
        )
        device = devices[0] if len(devices) == 1 else ""
        self._add(pairs, SUSPECT_PATH, text, Location(nodes=nodes, device=device))
        self._explain(pairs)

    def _name_many_paths(self, pairs: list[MeasuredPair]) -> None:
        names = _pair_names(pairs)
        text = (
            f"{len(names)} pairs have bad measurements ({tally_of(pairs)}), without a common node, "
            f"HCA or direction: {shortened_list(names)}."
        )
        self._add(pairs, SUSPECT_PATHS, text, Location(nodes=self._nodes(pairs)))
        self._explain(pairs)

    def _nodes(self, pairs: Iterable[MeasuredPair]) -> tuple[str, ...]:
        nodes = {node for pair in pairs for node in pair.ends}
        return tuple(sorted(nodes, key=self._order.__getitem__))

    def _add(
        self, pairs: Sequence[MeasuredPair], code: Code, text: str, location: Location
    ) -> None:
        """Add a suspect; if its measurements failed for a single cause, with the cause's remedy."""
        level = max((pair.level for pair in pairs), key=severity)
        first = pairs[0].result
        causes = {(pair.result.finding.code, pair.result.finding.remedy) for pair in pairs}
        remedy = None
        if len(causes) == 1 and first.number is None and first.finding.remedy:
            text = f"{text} Cause: {first.finding.code}."
            remedy = first.finding.remedy
        self.suspects.append(code.finding(level, text, remedy, location))

    def _explain(self, pairs: Iterable[MeasuredPair]) -> None:
        explained = set(map(id, pairs))
        self._unexplained = [pair for pair in self._unexplained if id(pair) not in explained]


#: For a direction of a node, the other one, with which it is compared.
_COMPARED = {SUSPECT_SENDER: "As the server", SUSPECT_RECEIVER: "As the client"}


def _title(part: FabricPart) -> str:
    """Name a part after "all measurements"."""
    if part.node is None:
        return f"on {part.device}"
    if part.device is not None:
        return f"with {part.device} of {part.node}"
    suffixes = {SUSPECT_SENDER: " as the client", SUSPECT_RECEIVER: " as the server"}
    return f"with {part.node}{suffixes.get(part.code, '')}"


def _pair_names(pairs: Iterable[MeasuredPair]) -> list[str]:
    return list(dict.fromkeys(pair_title(pair.ends) for pair in pairs))


def tally_of(pairs: Iterable[MeasuredPair]) -> str:
    """Count the measurements by level, the worst level first."""
    return tally((pair.level for pair in pairs), LEVELS[::-1])
