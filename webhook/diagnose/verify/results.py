"""The results of benchmarks: findings with their figures, and the rates that are expected."""

from __future__ import annotations

from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.tools.hardware import RDMA_MTUS, data_rate, payload_share
from webhook.diagnose.tools.known_lines import LAYERS, Layer
from webhook.model.finding import Finding, Level, severity


class BenchmarkResult(NamedTuple):
    """A finding on a run, a failure or a log, with its figures."""

    finding: Finding
    measurement: Measurement | None = None
    gbps: float | None = None
    latency_us: float | None = None
    #: Gb/s.
    expected: float | None = None
    #: How `expected` was computed.
    computation: str = ""
    #: The publication that the finding's text or limit comes from.
    citation: str = ""
    #: For a failure: the part of the stack that failed.
    layer: Layer | None = None
    #: Codes of the other failures of the same run, lowest layer first.
    further_codes: tuple[str, ...] = ()

    @property
    def graded_figure(self) -> float | None:
        """The bandwidth or latency to compare with other runs."""
        return self.gbps if self.gbps is not None else self.latency_us

    def with_location(self, file: str, nodes: tuple[str, ...]) -> BenchmarkResult:
        """Return the result with the file of its output, and with its nodes."""
        location = self.finding.location._replace(file=file, nodes=nodes)
        return self._replace(finding=self.finding._replace(location=location))


class Evaluation(NamedTuple):
    """The results of single runs, and the findings on all runs together."""

    results: tuple[BenchmarkResult, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def worst(self) -> Finding:
        """The worst finding, and of errors the first on the lowest layer."""
        results = (*self.results, *map(BenchmarkResult, self.findings))
        return max(results, key=severity_key).finding

    @property
    def levels(self) -> list[Level]:
        """The levels of all results and findings."""
        return [finding.level for finding in (*map(_finding_of, self.results), *self.findings)]


def _finding_of(result: BenchmarkResult) -> Finding:
    return result.finding


def severity_key(result: BenchmarkResult) -> tuple[int, int]:
    """Return a sort key: the level, then the layer, where a lower layer weighs more."""
    height = LAYERS.index(result.layer) if result.layer else len(LAYERS)
    return severity(result.finding.level), -height


# The expectation for a run: the data rate of the port, less the headers of packets.
#
# A card in a slot that is slower than its port reaches the rate of the slot.

#: The shares of the expectation from which a run is ok, and from which it is a warning. NVIDIA's
#: own test passes at 0.9 (Mellanox/ngc_multinode_perf); Azure passes its V100 nodes at 0.78
#: (azurehpc-health-checks).
OK_SHARE, WARNING_SHARE = 0.9, 0.75


class PortRate(NamedTuple):
    """The rate of a port in Gb/s as tools show it, and its source."""

    gbps: float
    source: str


class PcieRate(NamedTuple):
    """The rate of a PCI Express link in Gb/s, and its source."""

    gbps: float
    source: str


class ExpectedRate(NamedTuple):
    """The expectation for a run, in Gb/s."""

    gbps: float
    #: How it was computed, and from which values.
    computation: str


def expected_rate(
    measurement: Measurement, rate: PortRate, pcie_rate: PcieRate | None = None
) -> ExpectedRate:
    """Return the expectation for a run on ports of this rate and cards with this PCIe link."""
    gbps, computation, comparison = data_rate(rate.gbps, measurement.link_layer), rate.source, ""
    if gbps != rate.gbps:
        computation += f" ({gbps:g} Gb/s after InfiniBand's encoding)"
    if measurement.link_layer is not None and measurement.mtu in RDMA_MTUS:
        share = payload_share(measurement.mtu, measurement.link_layer)
        gbps *= share
        computation += f" × {share:.3f} payload share at MTU {measurement.mtu}"
    if measurement.dual_port:
        gbps *= 2
        computation += " × 2 ports"
    if pcie_rate is not None and pcie_rate.gbps < gbps:
        gbps, computation = pcie_rate.gbps, pcie_rate.source
        comparison = f", slower than {rate.source}"
    if measurement.bidirectional:
        gbps *= 2
        computation += " × 2 directions"
    return ExpectedRate(round(gbps, 2), computation + comparison)


# The results of a run over a fabric's nodes, pair by pair, independent of their output.


class NodePair(NamedTuple):
    """Two nodes of a measurement; data goes from the client to the server."""

    client: str
    server: str


class PairResult(NamedTuple):
    """The results of a pair."""

    pair: NodePair
    #: A result for each device and test; without a measurement, a single one with the reason.
    results: tuple[BenchmarkResult, ...]


class RunReport(NamedTuple):
    """A run, whole or interrupted."""

    #: The name of the run: the value of the label on all objects that it created.
    name: str
    fabric: str
    image: str
    #: The nodes in the run, in the order of rows and columns.
    nodes: tuple[str, ...]
    pairs: tuple[PairResult, ...]
    #: The findings on the run as a whole.
    findings: tuple[Finding, ...] = ()

    @property
    def evaluation(self) -> Evaluation:
        """All results and findings; there is at least one."""
        results = tuple(result for pair in self.pairs for result in pair.results)
        return Evaluation(results, self.findings)
