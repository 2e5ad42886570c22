"""The matrix of a run: the judgements for each pair of nodes and each device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from webhook.diagnose.verify.output import title_of
from webhook.diagnose.verify.results import (
    WORTHS,
    BenchmarkResult,
    NodePair,
    RunReport,
    Worth,
    severity_key,
)

#: The most nodes whose pairs are shown as a list.
_MOST_LIST_NODES = 2
#: Below each of these, a number in a cell has one more decimal.
_STEPS = (100, 10)


class MatrixCell(NamedTuple):
    """The judgements on a pair, for a single device or for all."""

    pair: NodePair
    judgements: tuple[BenchmarkResult, ...]

    @property
    def worst(self) -> BenchmarkResult:
        """The judgement to show: the worst, and among equals the lowest bandwidth."""
        return max(self.judgements, key=_rank)

    @property
    def verdict(self) -> Worth:
        """The verdict of the worst judgement."""
        return self.worst.verdict

    @property
    def number(self) -> str:
        """The number of the worst judgement, in Gb/s unless "µs" follows; "" without a number."""
        worst = self.worst
        if worst.number is None:
            return ""
        return short_number(worst.number) + (" µs" if worst.gbps is None else "")


Cells = dict[NodePair, MatrixCell]


class MatrixColumn(NamedTuple):
    """The device and the kind of number that a column, or a table, shows."""

    #: None for failures without a device.
    device: str | None
    latency: bool

    @property
    def title(self) -> str:
        """A heading."""
        name = "no device" if self.device is None else self.device
        return f"{name} latency" if self.latency else name


class PairMatrix(NamedTuple):
    """The nodes in the order of rows and columns, and the cells of the pairs that were measured."""

    nodes: tuple[str, ...]
    cells: Cells

    @property
    def columns(self) -> dict[MatrixColumn, Cells]:
        """The cells of each device, of bandwidths and of latencies, sorted by device."""
        columns: dict[MatrixColumn, dict[NodePair, list[BenchmarkResult]]] = {}
        for pair, cell in self.cells.items():
            for judgement in cell.judgements:
                columns.setdefault(_column_of(judgement), {}).setdefault(pair, []).append(judgement)
        return {
            column: {
                pair: MatrixCell(pair, tuple(judgements)) for pair, judgements in pairs.items()
            }
            for column, pairs in sorted(
                columns.items(), key=lambda column_cells: _column_order(column_cells[0])
            )
        }


def pair_matrix(report: RunReport) -> PairMatrix:
    """Arrange a report; results of one pair go into one cell."""
    cells: dict[NodePair, tuple[BenchmarkResult, ...]] = {}
    for pair, judgements in report.results:
        if judgements:
            cells[pair] = (*cells.get(pair, ()), *judgements)
    nodes = dict.fromkeys([*report.nodes, *(node for pair in cells for node in pair)])
    return PairMatrix(
        tuple(nodes),
        {pair: MatrixCell(pair, judgements) for pair, judgements in cells.items()},
    )


def is_dense(matrix: PairMatrix) -> bool:
    """Return whether enough pairs were measured for a matrix instead of a list."""
    nodes = len(matrix.nodes)
    return nodes > _MOST_LIST_NODES and len(matrix.cells) >= nodes * (nodes - 1) // 2


def short_number(number: float | None) -> str:
    """Return a number with about three digits, which fit into a cell; "" for None."""
    if number is None:
        return ""
    decimals = sum(number < step for step in _STEPS)
    return f"{number:.{decimals}f}"


def pair_words(pair: NodePair) -> str:
    """Name a pair."""
    return f"{pair.client} → {pair.server}"


def shortened_list(words: Sequence[str], limit: int = 4) -> str:
    """List words; of more than `limit`, the first ones and the count of the others."""
    start = ", ".join(words[:limit])
    omitted = len(words) - limit
    return f"{start} and {omitted} more" if omitted > 0 else start


def _column_of(judgement: BenchmarkResult) -> MatrixColumn:
    run = judgement.measurement
    return MatrixColumn(run.device, run.kind == "latency") if run else MatrixColumn(None, False)


def _column_order(column: MatrixColumn) -> tuple[bool, int, str, bool]:
    """Sort mlx5_2 before mlx5_10, and columns without a device last."""
    name = column.device or ""
    return column.device is None, len(name), name, column.latency


def _rank(judgement: BenchmarkResult) -> tuple[int, int, bool, float]:
    """Order judgements: the verdict, the layer, bandwidths above latencies, the worse number."""
    number = -judgement.gbps if judgement.gbps is not None else judgement.latency_us or 0.0
    return (*severity_key(judgement), judgement.gbps is not None, number)


# Statements on the cells that do not pass; equal statements are merged.


class PairStatement(NamedTuple):
    """A sentence, the test, and the pairs that they apply to."""

    because: str
    #: The test and its device; "" if unknown.
    tested: str
    #: A pair is repeated for each of its judgements.
    pairs: tuple[NodePair, ...]

    @property
    def names(self) -> list[str]:
        """The names of the pairs, without repetition."""
        return [pair_words(pair) for pair in dict.fromkeys(self.pairs)]


class FindingGroup(NamedTuple):
    """All judgements with one verdict, code and remedy."""

    verdict: Worth
    code: str
    remedy: str
    #: The lowest number first.
    statements: tuple[PairStatement, ...]


def group_findings(matrix: PairMatrix) -> tuple[FindingGroup, ...]:
    """Return the judgements that do not pass, the worst group first."""
    groups: dict[tuple[Worth, str, str], list[tuple[NodePair, BenchmarkResult]]] = defaultdict(list)
    for pair, cell in matrix.cells.items():
        for judgement in cell.judgements:
            if judgement.verdict != "pass":
                groups[judgement.verdict, judgement.code, judgement.remedy].append(
                    (pair, judgement)
                )
    ordered = sorted(groups.items(), key=lambda group: -WORTHS.index(group[0][0]))
    return tuple(FindingGroup(*key, _statements(judged)) for key, judged in ordered)


def _statements(judged: list[tuple[NodePair, BenchmarkResult]]) -> tuple[PairStatement, ...]:
    by_statement: dict[tuple[str, str], list[NodePair]] = defaultdict(list)
    for pair, judgement in sorted(judged, key=lambda pair_judgement: _lowest(pair_judgement[1])):
        tested = title_of(judgement.measurement) if judgement.measurement else ""
        by_statement[judgement.because, tested].append(pair)
    return tuple(PairStatement(*key, tuple(pairs)) for key, pairs in by_statement.items())


def _lowest(judgement: BenchmarkResult) -> tuple[bool, float]:
    return judgement.gbps is None, judgement.gbps or 0.0
