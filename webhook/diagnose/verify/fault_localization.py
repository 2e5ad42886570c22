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
    PairMeasurement,
    pair_measurements,
    parts_of,
)
from webhook.diagnose.verify.matrix import PairMatrix, pair_title
from webhook.model.finding import LEVELS, Code, Finding, Level, Location, severity
from webhook.model.names import counted, shortened_list
from webhook.text.findings import tally

SUSPECT_PATH = Code(
    "SuspectPath",
    "Measurements between two nodes are bad, but both nodes have good measurements with other "
    "nodes.",
    "Check the path between the two nodes: the switches, and the cables between switches.",
)
SUSPECT_PATHS = Code(
    "SuspectPaths",
    "More than four pairs of nodes have bad measurements, but each of these nodes has good "
    "measurements with other nodes.",
    "Check the switches and their error counters, and whether other traffic fills the links; then "
    "measure again.",
)
ALL_ALIKE = Code(
    "AllAlike",
    "All measurements are bad, not counting those that another finding explains.",
    "No node stands out, so check what all nodes share, such as the expected rate, the image "
    "and the switches.",
)
NOT_LOCATED = Code(
    "NotLocated",
    "Some pairs of nodes have bad measurements, and too few other pairs were measured to show "
    "whether a node or a path between nodes is at fault.",
    "Measure these nodes with other nodes as well: pass --all-pairs and, if --nodes lists only a "
    "few nodes, add more.",
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
        self._measurements = pair_measurements(matrix)
        result_count = sum(len(cell.results) for cell in matrix.cells.values())
        #: Whether results are unsure, or are of a node with itself.
        self._has_results_left_out = result_count > len(self._measurements)
        self._unexplained = [
            measurement for measurement in self._measurements if measurement.level in _BAD
        ]
        self._by_part: dict[FabricPart, list[PairMeasurement]] = defaultdict(list)
        for measurement in self._measurements:
            for part in parts_of(measurement):
                self._by_part[part].append(measurement)

    def name_parts(self, suspect_code: Code, bad: frozenset[Level]) -> None:
        """Name each part of a kind whose measurements are all bad, if others can be compared."""
        healthy = HealthyPairs(
            measurement for measurement in self._measurements if measurement.level not in bad
        )
        by_part = defaultdict(list)
        for measurement in self._unexplained:
            for part in parts_of(measurement):
                if part.code == suspect_code:
                    by_part[part].append(measurement)
        for part, unexplained in by_part.items():
            measurements = self._by_part[part]
            if all(measurement.level in bad for measurement in measurements) and healthy.implicates(
                part, unexplained
            ):
                self._name_part(part, measurements, unexplained)
                self._explain(measurements)

    def name_all_nodes(self) -> None:
        """Add a single suspect for all nodes if no measurement is good or undecided."""
        unexplained = self._unexplained
        any_good = self._has_results_left_out or any(
            measurement.level not in _BAD for measurement in self._measurements
        )
        if (
            not any_good
            and len({node for measurement in unexplained for node in measurement.ends})
            >= _MIN_NODES
        ):
            other = "other " if len(unexplained) < len(self._measurements) else ""
            text = f"All {len(unexplained)} {other}measurements are bad ({tally_of(unexplained)})."
            self._add(unexplained, ALL_ALIKE, text, Location())
            self._unexplained = []

    def name_paths(self) -> None:
        """Name the pairs whose nodes both measure well with other nodes, on the same devices."""
        healthy = HealthyPairs(
            measurement for measurement in self._measurements if measurement.level not in _BAD
        )
        by_path: dict[frozenset[str], list[PairMeasurement]] = defaultdict(list)
        for measurement in self._unexplained:
            if all(healthy.is_healthy_elsewhere(measurement, node) for node in measurement.ends):
                by_path[frozenset(measurement.ends)].append(measurement)
        if len(by_path) > _MAX_PATHS:
            self._name_many_paths(
                [measurement for path in by_path.values() for measurement in path]
            )
            return
        for measurements in by_path.values():
            self._name_path(measurements, healthy)

    def name_remaining_pairs(self) -> None:
        """Name the remaining slow pairs, whose fault may be in a node or in the path."""
        slow = [
            measurement
            for measurement in self._unexplained
            if measurement.result.graded_figure is not None
        ]
        if slow:
            text = (
                f"Bad measurements of {shortened_list(_pair_names(slow))} ({tally_of(slow)}). Too "
                "few other pairs were measured to show whether a node or a path between nodes is "
                "at fault."
            )
            self._add(slow, NOT_LOCATED, text, Location(nodes=self._nodes(slow)))

    def _name_part(
        self,
        part: FabricPart,
        measurements: list[PairMeasurement],
        unexplained: Sequence[PairMeasurement],
    ) -> None:
        """Name a part; `unexplained` are its measurements without a suspect yet."""
        other = self._comparison(part, measurements)
        text = (
            f"All {len(measurements)} measurements {_title(part)} are bad "
            f"({tally_of(measurements)}). {_COMPARED.get(part.code, 'All others')}: "
            f"{tally_of(other) or 'none'}."
        )
        nodes = (part.node,) if part.node is not None else ()
        self._add(unexplained, part.code, text, Location(nodes=nodes, device=part.device or ""))

    def _comparison(
        self, part: FabricPart, measurements: list[PairMeasurement]
    ) -> list[PairMeasurement]:
        """Return the measurements to compare: all others, or the node's other direction."""
        if part.code in _COMPARED:
            node_pairs = {measurement.ends for measurement in measurements}
            return [
                measurement
                for measurement in self._by_part[FabricPart(SUSPECT_NODE, part.node)]
                if measurement.ends not in node_pairs
            ]
        identities = set(map(id, measurements))
        return [
            measurement for measurement in self._measurements if id(measurement) not in identities
        ]

    def _name_path(self, measurements: list[PairMeasurement], healthy: HealthyPairs) -> None:
        first, second = nodes = self._nodes(measurements)
        devices = list(
            dict.fromkeys(measurement.device for measurement in measurements if measurement.device)
        )
        on = f" on {shortened_list(devices)}" if devices else ""
        text = (
            f"Bad measurements of {' and '.join(_pair_names(measurements))}{on} "
            f"({tally_of(measurements)}). With other nodes, {first} has "
            f"{counted(healthy.count_elsewhere(first, nodes), 'good measurement')}, and {second} "
            f"has {healthy.count_elsewhere(second, nodes)}."
        )
        device = devices[0] if len(devices) == 1 else ""
        self._add(measurements, SUSPECT_PATH, text, Location(nodes=nodes, device=device))
        self._explain(measurements)

    def _name_many_paths(self, measurements: list[PairMeasurement]) -> None:
        names = _pair_names(measurements)
        text = (
            f"{len(names)} pairs have bad measurements ({tally_of(measurements)}), without a "
            f"common node, HCA or direction: {shortened_list(names)}."
        )
        self._add(measurements, SUSPECT_PATHS, text, Location(nodes=self._nodes(measurements)))
        self._explain(measurements)

    def _nodes(self, measurements: Iterable[PairMeasurement]) -> tuple[str, ...]:
        nodes = {node for measurement in measurements for node in measurement.ends}
        return tuple(sorted(nodes, key=self._order.__getitem__))

    def _add(
        self, measurements: Sequence[PairMeasurement], code: Code, text: str, location: Location
    ) -> None:
        """Add a suspect; if its measurements failed for a single cause, with the cause's remedy."""
        level = max((measurement.level for measurement in measurements), key=severity)
        first = measurements[0].result
        causes = {
            (measurement.result.finding.code, measurement.result.finding.remedy)
            for measurement in measurements
        }
        remedy = None
        if len(causes) == 1 and first.graded_figure is None and first.finding.remedy:
            text = f"{text} Cause: {first.finding.code}."
            remedy = first.finding.remedy
        self.suspects.append(code.finding(level, text, remedy, location))

    def _explain(self, measurements: Iterable[PairMeasurement]) -> None:
        explained = set(map(id, measurements))
        self._unexplained = [
            measurement for measurement in self._unexplained if id(measurement) not in explained
        ]


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


def _pair_names(measurements: Iterable[PairMeasurement]) -> list[str]:
    return list(dict.fromkeys(pair_title(measurement.ends) for measurement in measurements))


def tally_of(measurements: Iterable[PairMeasurement]) -> str:
    """Count the measurements by level, the worst level first."""
    return tally((measurement.level for measurement in measurements), LEVELS[::-1])
