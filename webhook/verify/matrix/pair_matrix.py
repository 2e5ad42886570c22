"""The matrix of a run: for each pair of nodes and each device, what was judged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from webhook.verify.judgement import Judgement, Worth, weight_of
from webhook.verify.run_report import NodePair, RunReport

#: Nodes whose pairs are best shortened_list.
_FEW = 2
#: Below each of these, a number in a cell has one more decimal.
_STEPS = (100, 10)


class MatrixCell(NamedTuple):
    """What was judged of a pair, of one device or of all."""

    pair: NodePair
    judgements: tuple[Judgement, ...]

    @property
    def worst(self) -> Judgement:
        """The judgement to show: the worst, and of equals the lowest bandwidth."""
        return max(self.judgements, key=_standing)

    @property
    def verdict(self) -> Worth:
        """The verdict of the worst."""
        return self.worst.verdict

    @property
    def number(self) -> str:
        """The number of the worst for a cell: Gb/s, else µs; "" if nothing was measured."""
        return short_number(self.worst.number)


class PairMatrix(NamedTuple):
    """The nodes in the order of rows and columns, and the cells of the pairs that were measured."""

    nodes: tuple[str, ...]
    #: In the order of their numbers. None, the last, stands for failures without a device.
    devices: tuple[str | None, ...]
    cells: dict[NodePair, MatrixCell]

    @property
    def by_device(self) -> dict[str | None, dict[NodePair, MatrixCell]]:
        """The cells of each device."""
        found: dict[str | None, dict[NodePair, list[Judgement]]] = {one: {} for one in self.devices}
        for pair, cell in self.cells.items():
            for one in cell.judgements:
                found[device_of(one)].setdefault(pair, []).append(one)
        return {
            device: {pair: MatrixCell(pair, tuple(several)) for pair, several in cells.items()}
            for device, cells in found.items()
        }


def pair_matrix(report: RunReport) -> PairMatrix:
    """Arrange a report; results of one pair go into one cell."""
    found: dict[NodePair, tuple[Judgement, ...]] = {}
    for pair, judgements in report.results:
        if judgements:
            found[pair] = (*found.get(pair, ()), *judgements)
    nodes = dict.fromkeys([*report.nodes, *(node for pair in found for node in pair)])
    devices = {device_of(one) for several in found.values() for one in several}
    return PairMatrix(
        tuple(nodes),
        tuple(sorted(devices, key=_device_order)),
        {pair: MatrixCell(pair, several) for pair, several in found.items()},
    )


def is_dense(matrix: PairMatrix) -> bool:
    """Return whether so many pairs were measured that a matrix shows more than a list."""
    nodes = len(matrix.nodes)
    return nodes > _FEW and len(matrix.cells) >= nodes * (nodes - 1) // 2


def device_of(one: Judgement) -> str | None:
    """Return the device that was tested; None if that is not known."""
    return one.measurement.device if one.measurement else None


def unit_of(cells: Iterable[MatrixCell]) -> str:
    """Return the unit of the numbers in cells."""
    shown = {"Gb/s" if cell.worst.gbps is not None else "µs" for cell in cells if cell.number}
    return "Gb/s or µs" if len(shown) > 1 else next(iter(shown), "Gb/s")


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


def _device_order(device: str | None) -> tuple[bool, int, str]:
    """Sort mlx5_2 before mlx5_10."""
    return device is None, len(device or ""), device or ""


def _standing(one: Judgement) -> tuple[int, int, bool, float]:
    """Order judgements: the verdict, the layer, bandwidths above latencies, the worse number."""
    number = -one.gbps if one.gbps is not None else one.latency_us or 0.0
    return (*weight_of(one), one.gbps is not None, number)
