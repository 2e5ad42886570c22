"""Runs that are worse than their peers: the others on the same rail, and all of the same test.

The median and the median absolute deviation hold while fewer than half of the runs are outliers,
and need three runs (Rousseeuw and Croux, 1993; 1.4826 scales the deviation to a normal
distribution). Variation below `_USUAL` is noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from statistics import median
from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Kind, Measurement
from webhook.diagnose.verify.collective import GIGABYTE
from webhook.diagnose.verify.grade import LOOPBACK, NOT_RDMA, TOO_FEW_PEERS, TRANSPORT_UNKNOWN
from webhook.diagnose.verify.results import BenchmarkResult
from webhook.model.finding import Code, Finding

AS_PEERS = Code(
    "AsPeers",
    "The latency is in line with that of the run's peers: the runs of the same test on devices "
    "with the same name or, if there are fewer than three such runs, on all devices.",
)
OUTLIER = Code(
    "Outlier",
    "The run is worse than its peers: the other runs of the same test, on devices with the same "
    "name or on all devices.",
    "Test each node of this run with other nodes, to find the slow port or cable.",
)
PEER_CODES = (AS_PEERS, OUTLIER)

#: The fewest runs whose median no single run decides.
ENOUGH = 3
_DEVIATIONS = 3 * 1.4826
#: Results without proof that the data went over RDMA to another node: they are no peers.
_OF_NO_CABLE = frozenset({LOOPBACK.code, NOT_RDMA.code, TRANSPORT_UNKNOWN.code})
#: The deviation that is noise, as a share of the median.
_USUAL = {"bandwidth": 0.05, "collective": 0.05, "latency": 0.2}


def flag_outliers(results: Sequence[BenchmarkResult]) -> tuple[BenchmarkResult, ...]:
    """Return the results, with a warning for each run that is worse than its peers."""
    outliers: dict[int, _Peers] = {}
    compared: dict[int, _Peers] = {}
    for group, indexes in _groups(results).items():
        if len(indexes) >= ENOUGH:
            peer_median = median(_number(results[index]) for index in indexes)
            peers = _Peers(str(group[0]), peer_median, len(indexes))
            for index in indexes:
                compared.setdefault(index, peers)
            for index in _outliers(results, indexes, peer_median):
                outliers.setdefault(index, peers)
    return tuple(
        _with_warning(result, outliers[index])
        if index in outliers
        else _ok_if_compared(result, compared.get(index))
        for index, result in enumerate(results)
    )


#: The unit of the figures, and how many of the unit of `graded_figure` it has.
_UNITS: dict[Kind | None, tuple[str, float]] = {
    "latency": ("µs", 1.0),
    "collective": ("GB/s", GIGABYTE),
}


class _Peers(NamedTuple):
    """The runs that a run is compared with, and itself."""

    #: "on mlx5_0" or "of this test".
    scope: str
    median: float
    runs: int

    def text(self, kind: Kind | None) -> str:
        """Return the median, in the unit of a kind of test, and the number of runs."""
        unit, scale = _UNITS.get(kind, ("Gb/s", 1.0))
        return f"{self.median / scale:g} {unit} ({self.runs} runs {self.scope})"


def _groups(results: Sequence[BenchmarkResult]) -> dict[tuple[Hashable, ...], list[int]]:
    """Return the indexes of runs that are peers: on one rail first, then on all rails."""
    rails: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    tests: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    for index, result in enumerate(results):
        measurement = result.measurement
        if (
            measurement is None
            or result.graded_figure is None
            or result.finding.code in _OF_NO_CABLE
        ):
            continue
        key = (
            measurement.test,
            measurement.kind,
            measurement.bidirectional,
            measurement.cuda,
            measurement.ranks,
            _size(measurement),
        )
        tests[("of this test", *key)].append(index)
        if measurement.device is not None:
            rails[(f"on {measurement.device}", *key)].append(index)
    return {**rails, **tests}


def _size(measurement: Measurement) -> int | None:
    """Return the size to compare at: the smallest message for latencies, else the largest."""
    sizes = [row.size for row in measurement.rows if row.size is not None]
    return min(sizes, default=None) if measurement.kind == "latency" else max(sizes, default=None)


def _number(result: BenchmarkResult) -> float:
    assert result.graded_figure is not None  # a result without a number is in no group
    return result.graded_figure


def _outliers(
    results: Sequence[BenchmarkResult], indexes: Sequence[int], peer_median: float
) -> list[int]:
    """Return the indexes of runs that are worse than the median by more than the tolerance."""
    measurement = results[indexes[0]].measurement
    assert measurement is not None
    numbers = {index: _number(results[index]) for index in indexes}
    spread = _DEVIATIONS * median(abs(number - peer_median) for number in numbers.values())
    tolerance = max(spread, peer_median * _USUAL.get(measurement.kind or "", max(_USUAL.values())))
    sign = 1 if measurement.kind == "latency" else -1
    return [index for index, number in numbers.items() if sign * (number - peer_median) > tolerance]


def _with_warning(result: BenchmarkResult, peers: _Peers) -> BenchmarkResult:
    finding = result.finding
    assert result.measurement is not None  # a result without a measurement is in no group
    kind = result.measurement.kind
    position = "above" if kind == "latency" else "below"
    comparison = f"This is {position} the median of its peers, {peers.text(kind)}."
    lead = f"{_latency_text(finding)}." if finding.code == TOO_FEW_PEERS.code else finding.text
    text = f"{lead} {comparison}"
    if finding.level == "error":
        return result._replace(finding=finding._replace(text=text))
    return result._replace(finding=OUTLIER.finding("warning", text, location=finding.location))


def _ok_if_compared(result: BenchmarkResult, peers: _Peers | None) -> BenchmarkResult:
    """Return a result that is ok if its latency was compared with peers, else unchanged."""
    finding = result.finding
    if peers is None or finding.code != TOO_FEW_PEERS.code:
        return result
    text = (
        f"{_latency_text(finding)}, in line with that of the run's peers, whose median is "
        f"{peers.text('latency')}."
    )
    return result._replace(finding=AS_PEERS.finding("ok", text, location=finding.location))


def _latency_text(finding: Finding) -> str:
    """Return the latency of TOO_FEW_PEERS without the reason why it was not compared."""
    return finding.text.partition(";")[0]
