"""The matrix of a run: for each pair of nodes and each device, what was judged."""

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

#: Nodes whose pairs are best shown as a list.
_FEW = 2
#: Below each of these, a number in a cell has one more decimal.
_STEPS = (100, 10)


class MatrixCell(NamedTuple):
    """What was judged of a pair, of one device or of all."""

    pair: NodePair
    judgements: tuple[BenchmarkResult, ...]

    @property
    def worst(self) -> BenchmarkResult:
        """The judgement to show: the worst, and of equals the lowest bandwidth."""
        return max(self.judgements, key=_standing)

    @property
    def verdict(self) -> Worth:
        """The verdict of the worst."""
        return self.worst.verdict

    @property
    def number(self) -> str:
        """The number of the worst, in Gb/s unless it says "µs"; "" if nothing was measured."""
        worst = self.worst
        if worst.number is None:
            return ""
        return short_number(worst.number) + (" µs" if worst.gbps is None else "")


Cells = dict[NodePair, MatrixCell]


class MatrixColumn(NamedTuple):
    """What pairs have in common that one table or one column shows."""

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
        found: dict[MatrixColumn, dict[NodePair, list[BenchmarkResult]]] = {}
        for pair, cell in self.cells.items():
            for one in cell.judgements:
                found.setdefault(_column_of(one), {}).setdefault(pair, []).append(one)
        return {
            column: {pair: MatrixCell(pair, tuple(several)) for pair, several in pairs.items()}
            for column, pairs in sorted(found.items(), key=lambda item: _column_order(item[0]))
        }


def pair_matrix(report: RunReport) -> PairMatrix:
    """Arrange a report; results of one pair go into one cell."""
    found: dict[NodePair, tuple[BenchmarkResult, ...]] = {}
    for pair, judgements in report.results:
        if judgements:
            found[pair] = (*found.get(pair, ()), *judgements)
    nodes = dict.fromkeys([*report.nodes, *(node for pair in found for node in pair)])
    return PairMatrix(
        tuple(nodes),
        {pair: MatrixCell(pair, several) for pair, several in found.items()},
    )


def is_dense(matrix: PairMatrix) -> bool:
    """Return whether so many pairs were measured that a matrix shows more than a list."""
    nodes = len(matrix.nodes)
    return nodes > _FEW and len(matrix.cells) >= nodes * (nodes - 1) // 2


def short_number(number: float | None) -> str:
    """Return a number with about three digits, as many as a cell has room for."""
    if number is None:
        return ""
    decimals = sum(number < step for step in _STEPS)
    return f"{number:.{decimals}f}"


def pair_words(pair: NodePair) -> str:
    """Name a pair."""
    return f"{pair.client} → {pair.server}"


def shortened_list(words: Sequence[str], most: int = 4) -> str:
    """List words; of many, the first ones and how many more there are."""
    shown = ", ".join(words[:most])
    more = len(words) - most
    return f"{shown} and {more} more" if more > 0 else shown


def _column_of(one: BenchmarkResult) -> MatrixColumn:
    run = one.measurement
    return MatrixColumn(run.device, run.kind == "latency") if run else MatrixColumn(None, False)


def _column_order(column: MatrixColumn) -> tuple[bool, int, str, bool]:
    """Sort mlx5_2 before mlx5_10, and what has no device last."""
    name = column.device or ""
    return column.device is None, len(name), name, column.latency


def _standing(one: BenchmarkResult) -> tuple[int, int, bool, float]:
    """Order judgements: the verdict, the layer, bandwidths above latencies, the worse number."""
    number = -one.gbps if one.gbps is not None else one.latency_us or 0.0
    return (*severity_key(one), one.gbps is not None, number)


# What is to be said of the cells that do not pass: equal things once.


class SaidOfPairs(NamedTuple):
    """A sentence, what was tested, and the pairs of which it is said."""

    because: str
    #: The test and its device; "" if nothing is known of a test.
    tested: str
    #: As often as it was said of each.
    pairs: tuple[NodePair, ...]

    @property
    def names(self) -> list[str]:
        """The pairs in words, each once."""
        return [pair_words(pair) for pair in dict.fromkeys(self.pairs)]


class FindingGroup(NamedTuple):
    """All judgements with one verdict, code and remedy."""

    verdict: Worth
    code: str
    remedy: str
    #: The lowest number first.
    said: tuple[SaidOfPairs, ...]


def group_findings(matrix: PairMatrix) -> tuple[FindingGroup, ...]:
    """Return what does not pass, the worst first."""
    found: dict[tuple[Worth, str, str], list[tuple[NodePair, BenchmarkResult]]] = defaultdict(list)
    for pair, cell in matrix.cells.items():
        for one in cell.judgements:
            if one.verdict != "pass":
                found[one.verdict, one.code, one.remedy].append((pair, one))
    ordered = sorted(found.items(), key=lambda item: -WORTHS.index(item[0][0]))
    return tuple(FindingGroup(*key, _said(judged)) for key, judged in ordered)


def _said(judged: list[tuple[NodePair, BenchmarkResult]]) -> tuple[SaidOfPairs, ...]:
    pairs: dict[tuple[str, str], list[NodePair]] = defaultdict(list)
    for pair, one in sorted(judged, key=lambda item: _lowest(item[1])):
        tested = title_of(one.measurement) if one.measurement else ""
        pairs[one.because, tested].append(pair)
    return tuple(SaidOfPairs(*key, tuple(several)) for key, several in pairs.items())


def _lowest(one: BenchmarkResult) -> tuple[bool, float]:
    return one.gbps is None, one.gbps or 0.0
