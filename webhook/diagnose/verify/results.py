"""A judgement: a verdict with its number, the expectation, the reason, and what to do."""

from __future__ import annotations

from typing import Literal, NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.tools.causes import LAYERS, Layer
from webhook.diagnose.tools.hardware import data_rate, payload_share

#: inconclusive: the output neither shows that the link is good nor that it is not.
Worth = Literal["pass", "warn", "inconclusive", "fail"]
#: Best first.
WORTHS: tuple[Worth, ...] = ("pass", "warn", "inconclusive", "fail")


class BenchmarkResult(NamedTuple):
    """What is to be said of one run, one failure or one log."""

    lines: tuple[int, int]
    verdict: Worth
    #: Stable: keys of docs and of scripts.
    code: str
    because: str
    remedy: str = ""
    #: The file that it was read from, "-" for standard input, and of several machines the one.
    file: str = ""
    node: str | None = None
    #: What the judgement rests on: how the expectation was made, or where a text comes from.
    source: str = ""
    measurement: Measurement | None = None
    gbps: float | None = None
    latency_us: float | None = None
    #: Gb/s.
    expected: float | None = None
    #: Of a failure: the part of the stack that failed.
    layer: Layer | None = None
    #: Codes of the other failures of the same run, lowest layer first.
    also: tuple[str, ...] = ()

    @property
    def number(self) -> float | None:
        """The number that is compared with that of others."""
        return self.gbps if self.gbps is not None else self.latency_us


class Remark(NamedTuple):
    """What is to be said of all runs together."""

    verdict: Worth
    code: str
    because: str
    remedy: str


class Evaluation(NamedTuple):
    """All that was judged."""

    judgements: tuple[BenchmarkResult, ...]
    remarks: tuple[Remark, ...]

    @property
    def worst(self) -> BenchmarkResult | Remark:
        """What decides: the worst verdict; of failures, the first one of the lowest layer."""
        return max(self.everything, key=severity_key)

    @property
    def everything(self) -> list[BenchmarkResult | Remark]:
        """All that has a verdict."""
        return [*self.judgements, *self.remarks]


def severity_key(one: BenchmarkResult | Remark) -> tuple[int, int]:
    """Return what decides between two: the verdict; of failures, the lower layer weighs more."""
    layer = one.layer if isinstance(one, BenchmarkResult) else None
    height = LAYERS.index(layer) if layer else len(LAYERS)
    return WORTHS.index(one.verdict), -height


# What a run should reach: the data rate of the port, less what the headers of packets take.
#
# A card in a slot that is slower than its port reaches what the slot carries.

#: The parts of the expectation that pass, and that warn. NVIDIA's own test passes at 0.9
#: (Mellanox/ngc_multinode_perf); Azure passes its V100 machines at 0.78 (azurehpc-health-checks).
PASS, WARN = 0.9, 0.75

#: Of RDMA, in bytes; a number that is none of these is not an MTU.
_MTUS = (256, 512, 1024, 2048, 4096)


class PortRate(NamedTuple):
    """The rate of a port in Gb/s as tools show it, and who says so."""

    gbps: float
    source: str


class BusRate(NamedTuple):
    """What a PCI Express link carries, in Gb/s, and who says so."""

    gbps: float
    source: str


class DueRate(NamedTuple):
    """What a run should reach, in Gb/s."""

    gbps: float
    #: How it was computed, from what.
    source: str


def due_rate(measurement: Measurement, rate: PortRate, bus: BusRate | None = None) -> DueRate:
    """Return what a run on ports of this rate, behind this PCIe link, should reach."""
    gbps, steps = data_rate(rate.gbps, measurement.link_layer), [rate.source]
    if gbps != rate.gbps:
        steps.append(f"of which InfiniBand's encoding leaves {gbps:g} Gb/s")
    if measurement.link_layer is not None and measurement.mtu in _MTUS:
        share = payload_share(measurement.mtu, measurement.link_layer)
        gbps *= share
        steps.append(f"of which packets of MTU {measurement.mtu} leave {share:.3f}")
    if bus is not None and bus.gbps < gbps:
        gbps, steps = bus.gbps, [f"{bus.source}, which is less than {rate.source}"]
    if measurement.bidirectional:
        gbps *= 2
        steps.append("in both directions")
    return DueRate(round(gbps, 2), ", ".join(steps))


# What a run over a fabric's nodes found, pair by pair: records, whatever shows them.


class NodePair(NamedTuple):
    """Two nodes that measure; data goes from the client to the server."""

    client: str
    server: str


class PairResult(NamedTuple):
    """What came of a pair."""

    pair: NodePair
    #: One for each device and test; where nothing was measured, one that says why.
    judgements: tuple[BenchmarkResult, ...]


class RunReport(NamedTuple):
    """A run, whole or interrupted."""

    #: The name of the run: the value of the label on all that it created.
    name: str
    fabric: str
    image: str
    #: The nodes that took part, in the order of rows and columns.
    nodes: tuple[str, ...]
    results: tuple[PairResult, ...]
    #: What concerns the whole run.
    remarks: tuple[Remark, ...] = ()

    @property
    def assessment(self) -> Evaluation:
        """All that was judged; it has at least one judgement or remark."""
        judged = tuple(one for result in self.results for one in result.judgements)
        return Evaluation(judged, self.remarks)
