"""A judgement: a verdict with its number, the expectation, the reason, and what to do."""

from __future__ import annotations

from typing import Literal, NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.tools.causes import LAYERS, Layer
from webhook.diagnose.tools.hardware import data_rate, payload_share

#: inconclusive: the output proves neither a good link nor a bad one.
Worth = Literal["pass", "warn", "inconclusive", "fail"]
#: Best first.
WORTHS: tuple[Worth, ...] = ("pass", "warn", "inconclusive", "fail")


class BenchmarkResult(NamedTuple):
    """The judgement on a run, a failure or a log."""

    lines: tuple[int, int]
    verdict: Worth
    #: Stable: keys of docs and of scripts.
    code: str
    because: str
    remedy: str = ""
    #: The file of the output, "-" for standard input, and the node if the file has several.
    file: str = ""
    node: str | None = None
    #: The basis of the judgement: how the expectation was computed, or where a text comes from.
    source: str = ""
    measurement: Measurement | None = None
    gbps: float | None = None
    latency_us: float | None = None
    #: Gb/s.
    expected: float | None = None
    #: For a failure: the part of the stack that failed.
    layer: Layer | None = None
    #: Codes of the other failures of the same run, lowest layer first.
    also: tuple[str, ...] = ()

    @property
    def number(self) -> float | None:
        """The number to compare with other runs."""
        return self.gbps if self.gbps is not None else self.latency_us


class Remark(NamedTuple):
    """The judgement on all runs together."""

    verdict: Worth
    code: str
    because: str
    remedy: str


class Evaluation(NamedTuple):
    """The judgements on single runs and on all runs."""

    judgements: tuple[BenchmarkResult, ...]
    remarks: tuple[Remark, ...]

    @property
    def worst(self) -> BenchmarkResult | Remark:
        """The deciding judgement: the worst, and of failures the first on the lowest layer."""
        return max(self.everything, key=severity_key)

    @property
    def everything(self) -> list[BenchmarkResult | Remark]:
        """All judgements and remarks."""
        return [*self.judgements, *self.remarks]


def severity_key(judgement: BenchmarkResult | Remark) -> tuple[int, int]:
    """Return a sort key: the verdict, then the layer, where a lower layer weighs more."""
    layer = judgement.layer if isinstance(judgement, BenchmarkResult) else None
    height = LAYERS.index(layer) if layer else len(LAYERS)
    return WORTHS.index(judgement.verdict), -height


# The expectation for a run: the data rate of the port, less the headers of packets.
#
# A card in a slot that is slower than its port reaches the rate of the slot.

#: The shares of the expectation at which a run passes, and at which it warns. NVIDIA's own test
#: passes at 0.9 (Mellanox/ngc_multinode_perf); Azure passes its V100 nodes at 0.78
#: (azurehpc-health-checks).
PASS, WARN = 0.9, 0.75

#: The MTUs of RDMA, in bytes; any other number is not an MTU.
_MTUS = (256, 512, 1024, 2048, 4096)


class PortRate(NamedTuple):
    """The rate of a port in Gb/s as tools show it, and its source."""

    gbps: float
    source: str


class BusRate(NamedTuple):
    """The rate of a PCI Express link in Gb/s, and its source."""

    gbps: float
    source: str


class DueRate(NamedTuple):
    """The expectation for a run, in Gb/s."""

    gbps: float
    #: How it was computed, and from which values.
    source: str


def due_rate(measurement: Measurement, rate: PortRate, bus: BusRate | None = None) -> DueRate:
    """Return the expectation for a run on ports of this rate and cards with this PCIe link."""
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


# The results of a run over a fabric's nodes, pair by pair, independent of their output.


class NodePair(NamedTuple):
    """Two nodes of a measurement; data goes from the client to the server."""

    client: str
    server: str


class PairResult(NamedTuple):
    """The judgements on a pair."""

    pair: NodePair
    #: A judgement for each device and test; without a measurement, a single one with the reason.
    judgements: tuple[BenchmarkResult, ...]


class RunReport(NamedTuple):
    """A run, whole or interrupted."""

    #: The name of the run: the value of the label on all objects that it created.
    name: str
    fabric: str
    image: str
    #: The nodes in the run, in the order of rows and columns.
    nodes: tuple[str, ...]
    results: tuple[PairResult, ...]
    #: The judgements on the run as a whole.
    remarks: tuple[Remark, ...] = ()

    @property
    def assessment(self) -> Evaluation:
        """All judgements and remarks; there is at least one."""
        judgements = tuple(judgement for result in self.results for judgement in result.judgements)
        return Evaluation(judgements, self.remarks)
