"""The matrix of a run: the results for each pair of nodes and each device."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from webhook.diagnose.verify.output import title_of
from webhook.diagnose.verify.results import BenchmarkResult, NodePair, RunReport, severity_key
from webhook.model.finding import Finding, Level, severity

#: The most nodes whose pairs are shown as a list.
_MAX_LIST_NODES = 2
#: Below each of these, a number in a cell has one more decimal.
_STEPS = (100, 10)


class MatrixCell(NamedTuple):
    """The results of a pair, for a single device or for all."""

    pair: NodePair
    results: tuple[BenchmarkResult, ...]

    @property
    def worst(self) -> BenchmarkResult:
        """The result to show: the worst, and among equals the lowest bandwidth."""
        return max(self.results, key=_rank)

    @property
    def level(self) -> Level:
        """The level of the worst result."""
        return self.worst.finding.level

    @property
    def number_text(self) -> str:
        """The worst number, in Gb/s unless "µs" follows.

        Without a number: how many results are as bad, or "" if it is a single one.
        """
        result = self.worst
        if result.graded_figure is None:
            alike = sum(other.finding.level == self.level for other in self.results)
            return str(alike) if alike > 1 else ""
        return short_number(result.graded_figure) + (" µs" if result.gbps is None else "")


Cells = dict[NodePair, MatrixCell]


class DeviceSeries(NamedTuple):
    """What a table, or a column of a list, shows: the bandwidths or the latencies of a device."""

    #: None for failures without a device.
    device: str | None
    is_latency: bool

    @property
    def title(self) -> str:
        """A heading."""
        name = "no device" if self.device is None else self.device
        return f"{name} latency" if self.is_latency else name


class PairMatrix(NamedTuple):
    """The nodes in the order of rows and columns, and the cells of the pairs that were measured."""

    nodes: tuple[str, ...]
    cells: Cells

    @property
    def cells_by_series(self) -> dict[DeviceSeries, Cells]:
        """The cells of each device, of bandwidths and of latencies, sorted by device."""
        results_by_series: dict[DeviceSeries, dict[NodePair, list[BenchmarkResult]]] = {}
        for pair, cell in self.cells.items():
            for result in cell.results:
                results_by_pair = results_by_series.setdefault(_series_of(result), {})
                results_by_pair.setdefault(pair, []).append(result)
        return {
            series: {
                pair: MatrixCell(pair, tuple(results))
                for pair, results in results_by_series[series].items()
            }
            for series in sorted(results_by_series, key=_series_order)
        }


def pair_matrix(report: RunReport) -> PairMatrix:
    """Arrange a report; results of one pair go into one cell."""
    cells: dict[NodePair, tuple[BenchmarkResult, ...]] = {}
    for pair, results in report.pairs:
        if results:
            cells[pair] = (*cells.get(pair, ()), *results)
    nodes = dict.fromkeys([*report.nodes, *(node for pair in cells for node in pair)])
    return PairMatrix(
        tuple(nodes),
        {pair: MatrixCell(pair, results) for pair, results in cells.items()},
    )


def is_dense(matrix: PairMatrix) -> bool:
    """Return whether enough pairs were measured for a matrix instead of a list."""
    nodes = len(matrix.nodes)
    return nodes > _MAX_LIST_NODES and len(matrix.cells) >= nodes * (nodes - 1) // 2


def short_number(number: float | None) -> str:
    """Return a number with about three digits, which fit into a cell; "" for None."""
    if number is None:
        return ""
    decimals = sum(number < step for step in _STEPS)
    return f"{number:.{decimals}f}"


def pair_title(pair: NodePair) -> str:
    """Name a pair."""
    return f"{pair.client} → {pair.server}"


def _series_of(result: BenchmarkResult) -> DeviceSeries:
    measurement = result.measurement
    if measurement is None:
        return DeviceSeries(None, False)
    return DeviceSeries(measurement.device, measurement.kind == "latency")


def _series_order(series: DeviceSeries) -> tuple[bool, int, str, bool]:
    """Sort mlx5_2 before mlx5_10, and series without a device last."""
    name = series.device or ""
    return series.device is None, len(name), name, series.is_latency


def _rank(result: BenchmarkResult) -> tuple[int, int, bool, float]:
    """Order results: the level, the layer, bandwidths above latencies, the worse number."""
    number = -result.gbps if result.gbps is not None else result.latency_us or 0.0
    return (*severity_key(result), result.gbps is not None, number)


# The findings on the cells that are not ok; equal findings are merged.


class PairStatement(NamedTuple):
    """The text of a finding, the test, and the pairs that they apply to."""

    text: str
    #: The test and its device; "" if unknown.
    test_title: str
    #: A pair is repeated for each of its results.
    pairs: tuple[NodePair, ...]

    @property
    def names(self) -> list[str]:
        """The names of the pairs, without repetition: "a → b", or "a → b (2 results)"."""
        return [
            pair_title(pair) + (f" ({count} results)" if count > 1 else "")
            for pair, count in Counter(self.pairs).items()
        ]


class FindingGroup(NamedTuple):
    """All findings with one level, code and remedy."""

    #: One of them, for what they have in common.
    finding: Finding
    #: The lowest number first.
    statements: tuple[PairStatement, ...]


GroupKey = tuple[Level, str, str]


def group_key(finding: Finding) -> GroupKey:
    """Return the level, the code and the remedy, which the findings of a group share."""
    return finding.level, finding.code, finding.remedy


def group_findings(matrix: PairMatrix) -> tuple[FindingGroup, ...]:
    """Return the findings that are not ok, the worst group first."""
    groups: dict[GroupKey, list[tuple[NodePair, BenchmarkResult]]] = defaultdict(list)
    for pair, cell in matrix.cells.items():
        for result in cell.results:
            if result.finding.level != "ok":
                groups[group_key(result.finding)].append((pair, result))
    ordered = sorted(groups.items(), key=lambda group: -severity(group[0][0]))
    return tuple(
        FindingGroup(results[0][1].finding, _statements(results)) for _, results in ordered
    )


def _statements(results: list[tuple[NodePair, BenchmarkResult]]) -> tuple[PairStatement, ...]:
    by_statement: dict[tuple[str, str], list[NodePair]] = defaultdict(list)
    for pair, result in sorted(results, key=lambda pair_result: _by_bandwidth(pair_result[1])):
        test_title = title_of(result.measurement) if result.measurement else ""
        by_statement[result.finding.text, test_title].append(pair)
    return tuple(PairStatement(*key, tuple(pairs)) for key, pairs in by_statement.items())


def _by_bandwidth(result: BenchmarkResult) -> tuple[bool, float]:
    return result.gbps is None, result.gbps or 0.0
