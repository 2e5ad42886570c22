"""The matrix of a run, and the content of its cells."""

from __future__ import annotations

import pytest

from tests.unit.diagnose.tools.benchmarks.outputs import bandwidth, latency, row
from tests.unit.diagnose.verify.evaluated import evaluated
from tests.unit.diagnose.verify.measured_runs import NO_MEMORY, measured_run
from webhook.diagnose.verify.matrix import (
    MatrixCell,
    group_findings,
    is_dense,
    pair_matrix,
    short_number,
)
from webhook.diagnose.verify.results import NodePair, PairResult

PAIR = NodePair("a", "b")


def cell(*texts: str) -> MatrixCell:
    """Grade texts as the outputs of a single pair."""
    return MatrixCell(PAIR, evaluated(*texts).results)


def test_a_cell_shows_the_worst() -> None:
    """The worst level decides, and its number is shown."""
    slowest = cell(bandwidth(row(95)), bandwidth(row(12)), bandwidth(row(80)))
    assert (slowest.level, slowest.number_text) == ("error", "12.0")


def test_of_equals_the_lowest_bandwidth() -> None:
    """Among devices that are ok, the slowest is shown."""
    assert cell(bandwidth(row(97)), bandwidth(row(95)), bandwidth(row(96))).number_text == "95.0"


def test_bandwidths_before_latencies() -> None:
    """A latency is shown only if no bandwidth is as bad; then the longest latency."""
    mixed = cell(latency(1.61), bandwidth(row(97)), latency(2.2))
    assert mixed.number_text == "97.0"
    assert cell(latency(1.61), latency(2.2)).number_text == "2.20 µs"


def test_a_failure_has_no_number() -> None:
    """A pair without a measurement has only a sign."""
    failed = cell(NO_MEMORY)
    assert (failed.level, failed.number_text) == ("error", "")


@pytest.mark.parametrize(
    ("number", "short"),
    [
        (397.26, "397"),
        (100.0, "100"),
        (99.94, "99.9"),
        (12.0, "12.0"),
        (9.31, "9.31"),
        (0.05, "0.05"),
    ],
    ids=str,
)
def test_short_numbers(number: float, short: str) -> None:
    """A number has three digits, but at most two decimals."""
    assert short_number(number) == short


def test_devices_in_the_order_of_their_numbers() -> None:
    """Each device has its cells; failures without a device come last."""
    report = measured_run(
        ("a", "b", "c"),
        lambda pair, device: NO_MEMORY if pair == PAIR and device == "mlx5_2" else 96,
        devices=("mlx5_10", "mlx5_2"),
    )
    matrix = pair_matrix(report)
    sizes = [(series.title, len(cells)) for series, cells in matrix.cells_by_series.items()]
    assert sizes == [("mlx5_2", 5), ("mlx5_10", 6), ("no device", 1)]


def test_latencies_have_a_column() -> None:
    """A device has a column for bandwidths and a column for latencies."""
    results = evaluated(latency(device="mlx5_4"), bandwidth(row(97), device="mlx5_4")).results
    report = measured_run(("a", "b"), lambda _pair, _device: 96)
    matrix = pair_matrix(report._replace(pairs=(PairResult(PAIR, results),)))
    numbers = {
        series.title: cells[PAIR].number_text for series, cells in matrix.cells_by_series.items()
    }
    assert numbers == {"mlx5_4": "97.0", "mlx5_4 latency": "1.61 µs"}


def test_results_of_a_pair_share_a_cell() -> None:
    """All results on a pair are in the same cell; a pair without results has no cell."""
    report = measured_run(("a", "b"), lambda _pair, _device: 96)
    twice = report._replace(
        pairs=(*report.pairs, report.pairs[0], PairResult(NodePair("b", "c"), ()))
    )
    cells = pair_matrix(twice).cells
    assert {pair: len(pair_cell.results) for pair, pair_cell in cells.items()} == {
        NodePair("a", "b"): 2,
        NodePair("b", "a"): 1,
    }


def test_nodes_that_only_results_name() -> None:
    """A node that the report does not list has a row nevertheless."""
    report = measured_run(("a", "b"), lambda _pair, _device: 96)._replace(nodes=("b", "z"))
    assert pair_matrix(report).nodes == ("b", "z", "a")


def test_dense() -> None:
    """A matrix is dense if half of its pairs were measured."""
    nodes = tuple("abcd")
    ring = [NodePair(client, server) for client, server in zip(nodes, "bcda", strict=True)]
    half = [NodePair(client, server) for client in nodes for server in nodes if client < server]
    for pairs, dense in ((None, True), (half, True), (half[1:], False), (ring, False)):
        matrix = pair_matrix(measured_run(nodes, lambda _pair, _device: 96, pairs=pairs))
        assert is_dense(matrix) is dense
    assert not is_dense(pair_matrix(measured_run(("a", "b"), lambda _pair, _device: 96)))


def test_groups() -> None:
    """Findings that are not ok form a group by code and remedy, the worst group first."""
    outputs = [
        bandwidth(row(95)),
        bandwidth(row(300)),
        bandwidth(row(80)),
        bandwidth(row(12)),
        "initializing CUDA\n" + bandwidth(row(12)),
    ]
    report = measured_run(("a", "b"), lambda _pair, _device: 96)
    results = evaluated(*outputs).results
    matrix = pair_matrix(report._replace(pairs=(PairResult(PAIR, results),)))
    groups = [group.finding for group in group_findings(matrix)]
    assert [(finding.level, finding.code) for finding in groups] == [
        ("error", "FarBelowRate"),
        ("error", "FarBelowRate"),
        ("unsure", "FasterThanRate"),
        ("warning", "BelowRate"),
    ]
    assert groups[0].remedy != groups[1].remedy
