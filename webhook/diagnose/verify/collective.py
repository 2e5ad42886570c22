"""The grade of a collective of nccl-tests: its bus bandwidth against the HCAs that NCCL used.

The bus bandwidth already has the factor of the algorithm, so that it is comparable with the
hardware (NVIDIA/nccl-tests, doc/PERFORMANCE.md). For a node with B Gb/s of HCAs, g GPUs, and n
ranks in total:

    all_reduce, all_gather, reduce_scatter, broadcast, reduce   B, since NVLink joins the GPUs
    alltoall                                                    B/g x (n-1)/(n-g): of the n-1
                                                                messages of a rank, n-g leave
    sendrecv                                                    B/g: each GPU has its share

Trees and NVLS may exceed this on a few nodes, but not twice this. Below half,
a part of the hardware is not in use, or slow.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.tools.hardware import data_rate
from webhook.diagnose.tools.known_lines import Layer
from webhook.diagnose.tools.logs import LogReport
from webhook.diagnose.verify.results import BenchmarkResult, PortRate
from webhook.model.finding import Code, Finding
from webhook.model.names import counted

OVER_RDMA = Code(
    "OverRdma",
    "A collective ran over RDMA, with at least half of the bandwidth of the HCAs that NCCL used; "
    "or the log of a job without a benchmark shows that the job used RDMA.",
)
COLLECTIVE_SLOW = Code(
    "CollectiveSlow",
    "The bus bandwidth of a collective is below half of what the HCAs that NCCL used can carry.",
    "Run the benchmark on pairs of nodes to find the slow node, and compare the HCAs in NCCL's "
    "log with those of the fabric. Check that GPUDirect RDMA is in use, and look at the links "
    "between GPUs and HCAs: `nvidia-smi topo -m`.",
)
COLLECTIVE_UNGRADED = Code(
    "CollectiveUngraded",
    "A collective ran over RDMA, but its bus bandwidth cannot be compared with the bandwidth of "
    "the HCAs.",
    "Run all_reduce_perf on at least two nodes with NCCL_DEBUG=INFO and messages of up to 1 GiB "
    "(-e 1G), and give `verify judge` the rate of the HCAs, with --rate GBPS or with -c FABRICS "
    "--fabric NAME.",
)
NO_GPU_DIRECT = Code(
    "NoGpuDirect",
    "A collective ran over RDMA, but without GPUDirect RDMA: NCCL copies each message through "
    "host memory.",
    "Ask the cluster administrator whether nvidia-peermem is loaded or DMA-BUF is available on the "
    "nodes.",
)
COLLECTIVE_CODES = (OVER_RDMA, COLLECTIVE_SLOW, COLLECTIVE_UNGRADED, NO_GPU_DIRECT)

#: Below this share of the expectation, a collective does not pass.
_SLOW_SHARE = 0.5
#: Above this share, other links carried the data as well. In a tree, or if switches add, each node
#: sends the data once, so that the bus bandwidth is below twice the bandwidth of its HCAs.
_FAST_SHARE = 2.0
_TOO_FAST = (
    "This is more than they can carry: the log shows only a part of the HCAs, or NVLink carried "
    "the data."
)
_NO_HCAS = "the log does not show which HCAs NCCL used"
_ALL_LOGS = (
    "Pass the complete log of all ranks with NCCL_DEBUG=INFO: its lines with `via NET/` show the "
    "HCAs. Check that the rate is that of one HCA."
)
#: Bytes of a message with which a collective on many nodes reaches its bandwidth.
_LARGE = 128 << 20
_WHOLE_NODE = frozenset(
    f"{name}_perf" for name in ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
)
#: Gb/s of 1 GB/s.
GIGABYTE = 8.0


class _Expectation(NamedTuple):
    """The bus bandwidth that the HCAs of a node can carry."""

    gbps: float
    computation: str


def grade_over_rdma(
    measurement: Measurement, log: LogReport, rate: PortRate | None
) -> BenchmarkResult:
    """Grade a collective between nodes whose log shows RDMA."""
    expected = _expectation(measurement, log, rate) if rate is not None else None
    finding = _finding(measurement, log, rate, expected)
    result = BenchmarkResult(finding, gbps=measurement.best_gbps)
    if expected is None:
        return result
    layer: Layer | None = "nccl" if finding.level == "error" else None
    return result._replace(expected=expected.gbps, computation=expected.computation, layer=layer)


def _finding(
    measurement: Measurement,
    log: LogReport,
    rate: PortRate | None,
    expected: _Expectation | None,
) -> Finding:
    gbps = measurement.best_gbps
    end = _checked(measurement)
    if gbps is None or expected is None:
        obstacle = _obstacle(measurement, log, rate)
        text = f"{bandwidth_text(measurement)} over RDMA{end}. It is not graded, since {obstacle}."
        remedy = _ALL_LOGS if obstacle == _NO_HCAS else None
        return COLLECTIVE_UNGRADED.finding("unsure", text, remedy)
    text = (
        f"{bandwidth_text(measurement)} over RDMA, {gbps / expected.gbps:.0%} of the "
        f"{_gigabytes(expected.gbps)} that the HCAs can carry{end}"
    )
    copies = bool(measurement.cuda) and log.gpu_direct is False
    if copies:
        text += ", and without GPUDirect RDMA"
    if gbps > _FAST_SHARE * expected.gbps:
        return COLLECTIVE_UNGRADED.finding("unsure", f"{text}. {_TOO_FAST}", _ALL_LOGS)
    if gbps < _SLOW_SHARE * expected.gbps:
        obstacle = _obstacle(measurement, log, rate)
        if obstacle:
            return COLLECTIVE_UNGRADED.finding(
                "unsure", f"{text}. This proves nothing, since {obstacle}."
            )
        return COLLECTIVE_SLOW.finding("error", f"{text}.")
    if copies:
        return NO_GPU_DIRECT.finding("warning", f"{text}.")
    return OVER_RDMA.finding("ok", f"{text}.")


def bandwidth_text(measurement: Measurement) -> str:
    """Return the subject of a sentence on a collective, with its bandwidth if it is known."""
    gbps = measurement.best_gbps
    return "The collective ran" if gbps is None else f"Bus bandwidth {_gigabytes(gbps)}"


def below_a_port(measurement: Measurement, rate: PortRate | None) -> str:
    """Return a sentence if the bandwidth of a collective is below that of one port, or "".

    One GPU per node has a single port, and never reaches all of its rate: there, less than half is
    too low.
    """
    gbps = measurement.best_gbps
    if gbps is None or rate is None or measurement.test not in _WHOLE_NODE:
        return ""
    port = data_rate(rate.gbps, None)
    single_gpu_nodes = measurement.ranks is not None and measurement.ranks == measurement.nodes
    limit = _SLOW_SHARE * port if single_gpu_nodes else port
    if gbps >= limit or _largest(measurement) < _LARGE:
        return ""
    half = "half of " if single_gpu_nodes else ""
    return f" It is below {half}the {_gigabytes(port)} of a single port."


def _gigabytes(gbps: float) -> str:
    """Write a bandwidth in GB/s, the unit of nccl-tests."""
    return f"{gbps / GIGABYTE:.4g} GB/s"


def _largest(measurement: Measurement) -> int:
    return max((row.size or 0 for row in measurement.rows), default=0)


def _checked(measurement: Measurement) -> str:
    """Return the clause on the results: correct, or unchecked."""
    if measurement.checked and measurement.cut_line is not None:
        return (
            f", without wrong results before line {measurement.cut_line}, where the output is cut"
        )
    if measurement.checked:
        return ", without wrong results"
    return "; nccl-tests did not check the results (-c 0)"


def _obstacle(measurement: Measurement, log: LogReport, rate: PortRate | None) -> str:
    """Return why a low bandwidth, or a bandwidth without an expectation, proves nothing; or ""."""
    largest = _largest(measurement)
    obstacles = {
        "no row has a bus bandwidth": measurement.best_gbps is None,
        f"the output is cut in line {measurement.cut_line}": measurement.cut_line is not None,
        "the rate of the HCAs is unknown": rate is None,
        _NO_HCAS: not log.nccl_devices.used_count,
        f"{measurement.test or 'this test'} has no known relation to the HCAs, or the numbers of "
        "ranks and nodes are unknown": _share(measurement) is None,
        f"its largest message has {largest >> 20} MiB, and only 128 MiB or more fill many HCAs": (
            largest < _LARGE
        ),
        "the GPUs of a node exchange data through its memory, without NVLink": (
            log.nccl_devices.through_host_memory
        ),
    }
    return next((text for text, applies in obstacles.items() if applies), "")


def _expectation(measurement: Measurement, log: LogReport, rate: PortRate) -> _Expectation | None:
    """Return what the HCAs carry that NCCL used, or else all that it may use."""
    hcas = log.nccl_devices.used_count or log.nccl_devices.available_count
    share = _share(measurement)
    if not hcas or share is None:
        return None
    gbps = data_rate(rate.gbps, None)
    computation = f"{counted(hcas, 'HCA')} × {rate.source}"
    if share != 1:
        computation += f" × {share:.3g} of a node for {measurement.test}"
    return _Expectation(round(hcas * gbps * share, 2), computation)


def _share(measurement: Measurement) -> float | None:
    """Return the bus bandwidth as a share of a node's HCAs; None if it is not known."""
    if measurement.test in _WHOLE_NODE:
        return 1.0
    ranks, nodes = measurement.ranks, measurement.nodes
    if not ranks or not nodes or nodes == 1 or ranks % nodes:
        return None
    gpus = ranks // nodes
    if measurement.test == "alltoall_perf":
        return (ranks - 1) / (ranks - gpus) / gpus
    return 1 / gpus if measurement.test == "sendrecv_perf" else None
