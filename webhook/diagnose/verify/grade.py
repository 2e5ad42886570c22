"""The grade of a single run.

A number can prove that a link is good. It proves that a link is bad only if the run could have
filled the link: one queue pair with small messages cannot (linux-rdma/perftest, issue 318). Data
that never left the node proves nothing about a cable.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import MeasuredRow, Measurement
from webhook.diagnose.tools.known_lines import KnownLine, Layer
from webhook.diagnose.tools.logs import LogReport
from webhook.diagnose.verify.collective import (
    COLLECTIVE_CODES,
    bandwidth_text,
    below_a_port,
    grade_over_rdma,
)
from webhook.diagnose.verify.results import (
    OK_SHARE,
    WARNING_SHARE,
    BenchmarkResult,
    ExpectedRate,
    PcieRate,
    PortRate,
    expected_rate,
)
from webhook.model.finding import Code, Finding, Level, Location
from webhook.model.names import counted

NO_RESULT = Code(
    "NoResult",
    "The output of a benchmark ends before its result.",
    "Pass the complete output, after the benchmark has finished; for perftest, pass the output of "
    "both the server and the client.",
)
CONNECTED = Code("Connected", "rping exchanged data over RDMA. rping does not measure bandwidth.")
ZERO_BANDWIDTH = Code(
    "ZeroBandwidth",
    "perftest printed a bandwidth of 0, most likely because it could not measure the CPU clock.",
    "Run the benchmark again when the node is less busy.",
)
UNIT_UNPROVEN = Code(
    "UnitUnproven",
    "The unit of the bandwidth is uncertain: no row of perftest's table has a message rate.",
    "Pass the complete table, with the column MsgRate.",
)
AT_RATE = Code("AtRate", "The bandwidth is at least 90% of the expected rate.")
BELOW_RATE = Code(
    "BelowRate",
    "The bandwidth is between 75% and 90% of the expected rate.",
    "Compare this result with those of other pairs of nodes to find the slow port. Check the "
    "port's PCIe link (lspci -vv, LnkSta), the port's error counters, and whether other jobs use "
    "its network link.",
)
FAR_BELOW_RATE = Code(
    "FarBelowRate", "The bandwidth is below 75% of the expected rate.", BELOW_RATE.remedy
)
FASTER_THAN_RATE = Code(
    "FasterThanRate",
    "The bandwidth is above 105% of the expected rate, more than a port of this rate can carry.",
    "Check that the expected rate is correct, and that the two ends ran on different nodes.",
)
SMALL_MESSAGES = Code(
    "SmallMessages",
    "The bandwidth is low, but one queue pair with messages below 1 MiB might not fill the link.",
    "Run the benchmark again with -s 1048576 (1 MiB), with -q 4, or with -a for all sizes.",
)
LOOPBACK = Code(
    "Loopback",
    "It is not certain that a cable was tested: the benchmark ran within one node, the server and "
    "the client have the same address, or both were run in the same terminal and no address "
    "distinguishes their nodes.",
    "Run the benchmark on at least two nodes. If it has a server and a client, run these on "
    "different nodes, and pass the server's address to the client.",
)
NO_RATE = Code(
    "NoRate",
    "The rate of the port is unknown.",
    "Give the rate with --rate GBPS or with -c FABRICS --fabric NAME, or add the output of ibstat "
    "to the file with the benchmark's output.",
)
QUICK = Code(
    "Quick",
    "For messages of up to 64 bytes, the latency is within the limit of NVIDIA's test "
    "ngc_multinode_perf.",
)
TOO_FEW_PEERS = Code(
    "NoPeers",
    "The latency is not graded: fewer than three runs can be compared, and either the latency is "
    "above the limit of NVIDIA's test ngc_multinode_perf, or that test has no limit for it.",
    "To compare latencies, pass the output of at least three runs.",
)
NOT_RDMA = Code(
    "NotRdma",
    "The benchmark used TCP, not RDMA.",
    "Find the cause in the pod's log: `rdma-webhook why POD --logs`.",
)
WRONG_RESULTS = Code(
    "WrongResults",
    "nccl-tests found wrong elements in the results.",
    "Do not run jobs on the nodes of this benchmark, and test these nodes pair by pair.",
)
TRANSPORT_UNKNOWN = Code(
    "TransportUnknown",
    "The output of a benchmark, or the log of a job, does not show which network was used.",
    "Run the benchmark or the job again on at least two nodes with NCCL_DEBUG=INFO (for UCX: "
    "UCX_LOG_LEVEL=info), and pass its complete output to `rdma-webhook verify judge`.",
)

_UCX_REMEDY = (
    "Run both ends again between two nodes with UCX_LOG_LEVEL=info, or with UCX_TLS=rc,sm,self, "
    "which excludes TCP, and pass the complete output with the commands."
)

_BUILD_WITH_MPI = (
    "Build nccl-tests with MPI=1 (after make clean), and start it with mpirun or srun, which must "
    "use the same MPI."
)

_WHOLE_TABLE = "Pass the complete table: -a measures messages of up to 8 MiB."
_MORE_QUEUE_PAIRS = (
    "Run the benchmark again with -q 4, or with messages of 1 MiB if it can send them."
)
#: Bytes of a message that fills a link with one queue pair.
LARGE = 1 << 20
#: Above this share of the expectation, the rate is wrong, or no cable was used.
_TOO_FAST = 1.05
#: µs of small messages that NVIDIA's own test accepts (Mellanox/ngc_multinode_perf).
_QUICK = {"ib_write_lat": 2.5, "ib_send_lat": 2.5, "ib_read_lat": 4.5}
_QUICK_CITATION = "Mellanox/ngc_multinode_perf accepts {} µs"
#: The largest message, in bytes, to which these apply.
_SMALL = 64


class RunContext(NamedTuple):
    """Facts about a run from outside its own output."""

    rate: PortRate | None
    pcie_rate: PcieRate | None
    #: The log of NCCL and UCX in the same file.
    log: LogReport


def grade_run(measurement: Measurement, context: RunContext) -> BenchmarkResult:
    """Grade a run without a failure in its output."""
    result = _result_of(measurement, context)
    finding = result.finding._replace(location=location_of(measurement))
    return result._replace(finding=finding, measurement=measurement)


def location_of(measurement: Measurement) -> Location:
    """Return the location of a run in its file."""
    return Location(line=measurement.line_range[0], device=measurement.device or "")


def _result_of(measurement: Measurement, context: RunContext) -> BenchmarkResult:
    if not measurement.rows:
        text = _cut_text(measurement) or NO_RESULT.meaning
        return BenchmarkResult(NO_RESULT.finding("unsure", text))
    if measurement.kind == "connection":
        return BenchmarkResult(_connection(measurement))
    if measurement.kind == "latency":
        return _latency(measurement, context.log)
    if measurement.kind == "collective":
        return _collective(measurement, context)
    return _bandwidth(measurement, context)


def _cut_text(measurement: Measurement) -> str:
    """Return a sentence if the output is cut within a result, or ""."""
    if measurement.cut_line is None:
        return ""
    return f"The output is cut in line {measurement.cut_line}."


def _connection(measurement: Measurement) -> Finding:
    pings = measurement.rows[0].iterations
    return CONNECTED.finding(
        "ok", f"RDMA connects and carries data ({pings} pings). rping does not measure bandwidth."
    )


def _bandwidth(measurement: Measurement, context: RunContext) -> BenchmarkResult:
    gbps = measurement.best_gbps
    if gbps == 0:
        text = (
            f"{measurement.program} printed a bandwidth of 0. Most likely it could not measure the "
            "CPU clock, as on a busy node (Correlation coefficient r^2)."
        )
        return BenchmarkResult(ZERO_BANDWIDTH.finding("unsure", text))
    if gbps is None:
        text = "The unit of the bandwidth is uncertain: no row has a message rate that confirms it."
        return BenchmarkResult(UNIT_UNPROVEN.finding("unsure", text))
    unproven = _no_proof_of_cable(measurement, context.log, _rate_text(gbps))
    if unproven is not None:
        return unproven._replace(gbps=gbps)
    if context.rate is None:
        finding = NO_RATE.finding("unsure", f"{_rate_text(gbps)}; the port's rate is unknown.")
        return BenchmarkResult(finding, gbps=gbps)
    expected = expected_rate(measurement, context.rate, context.pcie_rate)
    finding = _comparison(measurement, gbps, expected)
    layer: Layer | None = "link" if finding.level == "error" else None
    return BenchmarkResult(
        finding, gbps=gbps, expected=expected.gbps, computation=expected.computation, layer=layer
    )


def _no_proof_of_cable(
    measurement: Measurement, log: LogReport, number_text: str
) -> BenchmarkResult | None:
    """Return a result if the data did not, or may not, have gone over RDMA to another node."""
    is_ucx = measurement.program == "ucx_perftest"
    if is_ucx and (log.rdma_use == "no" or measurement.over_rdma is False):
        setting = measurement.transport_setting
        cause = f": {setting} excludes RDMA" if measurement.over_rdma is False else ""
        finding = NOT_RDMA.finding(
            "error",
            f"UCX carried {number_text} over TCP, not over RDMA{cause}.",
            f"Check UCX_TLS and UCX_NET_DEVICES. {NOT_RDMA.remedy}",
        )
        return BenchmarkResult(finding, layer="ucx")
    if measurement.loopback:
        return BenchmarkResult(LOOPBACK.finding("unsure", f"{number_text}. {measurement.loopback}"))
    if is_ucx and log.rdma_use != "yes" and not measurement.over_rdma:
        text = f"{number_text}; the output does not show whether UCX used RDMA."
        return BenchmarkResult(TRANSPORT_UNKNOWN.finding("unsure", text, _UCX_REMEDY))
    return None


def _comparison(measurement: Measurement, gbps: float, expected: ExpectedRate) -> Finding:
    """Compare a bandwidth with the expectation."""
    ratio = gbps / expected.gbps
    text = f"{_rate_text(gbps)}, {ratio:.0%} of the expected {expected.gbps:g} Gb/s"
    if ratio > _TOO_FAST:
        return FASTER_THAN_RATE.finding(
            "unsure", f"{text}: more than a port of this rate can carry."
        )
    level, code = _level(ratio)
    if level != "ok" and measurement.cut_line is not None:
        return NO_RESULT.finding("unsure", f"{text}. {_cut_text(measurement)}")
    if level != "ok" and _has_small_messages(measurement):
        sizes = {row.size or 0 for row in measurement.rows}
        end, remedy = "", None
        if len(sizes) > 1:
            end = f" The table ends at {counted(max(sizes), 'byte')}."
            remedy = _MORE_QUEUE_PAIRS if measurement.complete else _WHOLE_TABLE
        reason = "one queue pair with messages below 1 MiB might not fill the link"
        return SMALL_MESSAGES.finding("unsure", f"{text}: {reason}.{end}", remedy)
    return code.finding(level, f"{text}.", code.remedy + _gpu_hint(measurement, level))


def _level(ratio: float) -> tuple[Level, Code]:
    if ratio >= OK_SHARE:
        return "ok", AT_RATE
    return ("warning", BELOW_RATE) if ratio >= WARNING_SHARE else ("error", FAR_BELOW_RATE)


def _has_small_messages(measurement: Measurement) -> bool:
    """Return whether no row is certain to fill the link; unknown queue pairs count as one."""
    return (measurement.qps or 1) == 1 and all((row.size or 0) < LARGE for row in measurement.rows)


def _gpu_hint(measurement: Measurement, level: Level) -> str:
    if level == "ok" or not measurement.cuda:
        return ""
    return " For GPU memory, use the HCA closest to the GPU (nvidia-smi topo -m)."


def _latency(measurement: Measurement, log: LogReport) -> BenchmarkResult:
    row = min(measurement.rows, key=lambda row: row.size or 0)
    latency = _typical_latency(row)
    if latency is None:
        return BenchmarkResult(NO_RESULT.finding("unsure", "No row has a latency."))
    latency_text = f"{latency:g} µs at {row.size} bytes"
    unproven = _no_proof_of_cable(measurement, log, latency_text)
    if unproven is not None:
        return unproven._replace(latency_us=latency)
    quick = _QUICK.get(measurement.test or "")
    if quick is None or (row.size or 0) > _SMALL:
        obstacle = "NVIDIA's test ngc_multinode_perf has no limit for this test and message size"
    elif latency > quick:
        obstacle = f"this is above the {quick:g} µs that NVIDIA's test ngc_multinode_perf accepts"
    else:
        citation = _QUICK_CITATION.format(quick)
        return BenchmarkResult(
            QUICK.finding("ok", f"{latency_text}."), latency_us=latency, citation=citation
        )
    text = f"{latency_text}; {obstacle}, and there are too few runs to compare."
    return BenchmarkResult(TOO_FEW_PEERS.finding("unsure", text), latency_us=latency)


def _typical_latency(row: MeasuredRow) -> float | None:
    """Return the typical latency, or the average of a run with a duration, which has no other."""
    if row.latency is None:
        return None
    return row.latency.typical if row.latency.typical is not None else row.latency.average


def _collective(measurement: Measurement, context: RunContext) -> BenchmarkResult:
    """Grade nccl-tests: first by what is certain, then by the bandwidth."""
    start, log = bandwidth_text(measurement), context.log
    gbps = measurement.best_gbps
    if measurement.wrong_elements:
        elements = counted(measurement.wrong_elements, "wrong element")
        finding = WRONG_RESULTS.finding("error", f"The results have {elements}.")
    elif log.rdma_use == "no":
        cause = _socket_cause(log)
        text = f"{start} over TCP sockets, not over RDMA. {cause.meaning}"
        finding = NOT_RDMA.finding("error", text, cause.remedy)
    elif measurement.loopback:
        text = f"{start} within one node. {measurement.loopback} No cable was tested."
        finding = LOOPBACK.finding("unsure", text, _BUILD_WITH_MPI)
    elif measurement.nodes == 1:
        text = f"{start} within one node. No cable was tested."
        finding = LOOPBACK.finding("unsure", text, "Run the benchmark on at least two nodes.")
    elif not log.rdma_use and measurement.over_rdma is False:
        setting = measurement.transport_setting
        text = f"{start} over TCP sockets, not over RDMA: the command sets {setting}."
        finding = NOT_RDMA.finding("error", text, f"Remove {setting} from the command.")
    elif log.rdma_use == "yes":
        return grade_over_rdma(measurement, log, context.rate)
    else:
        text = f"{start}; the output does not show which network was used."
        text += below_a_port(measurement, context.rate)
        finding = TRANSPORT_UNKNOWN.finding("unsure", text)
    layer: Layer | None = "nccl" if finding.level == "error" else None
    return BenchmarkResult(finding, gbps=gbps, layer=layer)


def _socket_cause(log: LogReport) -> KnownLine:
    """Return the setting that turns RDMA off, or else the line that shows TCP."""
    known_lines = [count.known_line for count in log.line_counts]
    settings = [known_line for known_line in known_lines if known_line.kind == "setting"]
    over_tcp = [known_line for known_line in known_lines if known_line.rdma is False]
    return (settings or over_tcp)[0]


def _rate_text(number: float) -> str:
    return f"{number:.1f} Gb/s" if number >= 1 else f"{number:g} Gb/s"


#: The codes of the grade of one measurement.
GRADE_CODES = (
    *(AT_RATE, BELOW_RATE, FAR_BELOW_RATE, FASTER_THAN_RATE, SMALL_MESSAGES, LOOPBACK, NO_RATE),
    *(ZERO_BANDWIDTH, UNIT_UNPROVEN, NO_RESULT, QUICK, TOO_FEW_PEERS, CONNECTED),
    *(*COLLECTIVE_CODES, NOT_RDMA, WRONG_RESULTS, TRANSPORT_UNKNOWN),
)
