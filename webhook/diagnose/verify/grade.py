"""The judgement on a single run.

A number can prove that a link is good. It proves that a link is bad only if the run could have
filled the link: one queue pair with small messages cannot (linux-rdma/perftest, issue 318). Data
that never left the node proves nothing about a cable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from statistics import median
from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import MeasuredRow, Measurement
from webhook.diagnose.tools.logs import LogReport
from webhook.diagnose.verify.results import (
    PASS,
    WARN,
    BenchmarkResult,
    BusRate,
    DueRate,
    PortRate,
    Worth,
    due_rate,
)

#: Bytes of a message that fills a link with one queue pair.
LARGE = 1 << 20
#: Above this share of the expectation, the rate is wrong, or no cable was used.
_TOO_FAST = 1.05
#: µs of small messages that NVIDIA's test accepts (Mellanox/ngc_multinode_perf).
_QUICK = {"ib_write_lat": 2.5, "ib_send_lat": 2.5, "ib_read_lat": 4.5}
_QUICK_SOURCE = "Mellanox/ngc_multinode_perf accepts {} µs"
#: The largest message, in bytes, to which these apply.
_SMALL = 64

_USE_LARGE_MESSAGES = "Run it again with -s 1048576 (1 MiB), with -q 4, or with -a for all sizes."
_USE_TWO_NODES = (
    "Run the server on one machine and the client on another, and give the client the other "
    "machine's address."
)


class RunContext(NamedTuple):
    """Facts about a run from outside its own output."""

    rate: PortRate | None
    bus: BusRate | None
    #: The log of NCCL and UCX in the same file.
    log: LogReport


def grade_run(run: Measurement, context: RunContext) -> BenchmarkResult:
    """Judge a run without a failure in its output."""
    start = BenchmarkResult(run.lines, "inconclusive", "", "", measurement=run)
    if not run.rows:
        return start._replace(
            code="NoResult",
            because="The output ends before a result.",
            remedy="Give the whole output of both ends, and wait until both have ended.",
        )
    if run.kind == "connection":
        return _connected(start, run)
    if run.kind == "latency":
        return _latency(start, run)
    if run.kind == "collective":
        return _collective(start, run, context.log)
    return _bandwidth(start, run, context)


def _connected(start: BenchmarkResult, run: Measurement) -> BenchmarkResult:
    pings = run.rows[0].iterations
    because = f"RDMA connects and carries data ({pings} pings); this says nothing about speed."
    return start._replace(verdict="pass", code="Connected", because=because)


def _bandwidth(start: BenchmarkResult, run: Measurement, context: RunContext) -> BenchmarkResult:
    gbps = run.best_gbps
    if gbps == 0:
        return start._replace(
            code="ZeroBandwidth",
            because=f"{run.program} shows a bandwidth of 0. Most likely it could not measure the "
            "processor's clock, as on a busy machine (Correlation coefficient r^2).",
            remedy="Run it again when the machine has less to do.",
        )
    if gbps is None:
        return start._replace(
            code="UnitUnproven",
            because="No row has a bandwidth whose unit the message rate proves.",
            remedy="Give the whole table, with the column MsgRate.",
        )
    start = start._replace(gbps=gbps)
    if run.program == "ucx_perftest" and context.log.transport == "no":
        return start._replace(
            verdict="fail",
            code="NotRdma",
            because=f"UCX carried {_rate_text(gbps)} over TCP, not over RDMA.",
            remedy="Check UCX_TLS and UCX_NET_DEVICES: rdma-webhook why --logs names the cause.",
            layer="ucx",
        )
    if run.loopback:
        return start._replace(
            code="Loopback",
            because=f"{_rate_text(gbps)} within one machine: {run.loopback}. No cable was tested.",
            remedy=_USE_TWO_NODES,
        )
    if context.rate is None:
        return start._replace(
            code="NoRate",
            because=f"{_rate_text(gbps)}, but the rate of the port is not known.",
            remedy="Give it with --rate GBPS, with -c FABRICS --fabric NAME, or by the output of "
            "ibstat in the same file.",
        )
    return _against(start, run, gbps, due_rate(run, context.rate, context.bus))


def _against(
    start: BenchmarkResult, run: Measurement, gbps: float, due: DueRate
) -> BenchmarkResult:
    ratio = gbps / due.gbps
    verdict, code = _worth(ratio)
    start = start._replace(expected=due.gbps, source=due.source)
    because = f"{_rate_text(gbps)} of {due.gbps:g} Gb/s ({ratio:.2f})"
    if ratio > _TOO_FAST:
        return start._replace(
            code="FasterThanRate",
            because=f"{because}: more than such a port can carry.",
            remedy="Check the rate that was given, and whether both ends ran on one machine.",
        )
    if code != "AtRate" and _small(run):
        return start._replace(
            code="SmallMessages",
            because=f"{because}: one queue pair with messages below 1 MiB may not fill the link.",
            remedy=_USE_LARGE_MESSAGES,
        )
    remedy = "" if verdict == "pass" else _slow(run)
    return start._replace(
        verdict=verdict,
        code=code,
        because=f"{because}.",
        remedy=remedy,
        layer="link" if verdict == "fail" else None,
    )


def _worth(ratio: float) -> tuple[Worth, str]:
    if ratio >= PASS:
        return "pass", "AtRate"
    return ("warn", "BelowRate") if ratio >= WARN else ("fail", "FarBelowRate")


def _small(run: Measurement) -> bool:
    """Return whether no row is certain to fill the link; unknown queue pairs count as one."""
    return (run.qps or 1) == 1 and all((row.size or 0) < LARGE for row in run.rows)


def _slow(run: Measurement) -> str:
    gpu = " For GPU memory, use the HCA beside the GPU (nvidia-smi topo -m)." if run.cuda else ""
    return (
        "Compare with other pairs of machines to find the slow port; look at its PCIe link (lspci "
        "-vv, LnkSta), its error counters, and whether other jobs use the link." + gpu
    )


def _latency(start: BenchmarkResult, run: Measurement) -> BenchmarkResult:
    row = min(run.rows, key=lambda row: row.size or 0)
    latency = _shown_latency(row)
    if latency is None:
        return start._replace(code="NoResult", because="No row has a latency.")
    start = start._replace(latency_us=latency)
    statement = f"{latency:g} µs at {row.size} bytes"
    if run.loopback:
        because = f"{statement} within one machine: {run.loopback}. No cable was tested."
        return start._replace(code="Loopback", because=because, remedy=_USE_TWO_NODES)
    quick = _QUICK.get(run.test or "")
    if quick is not None and latency <= quick and (row.size or 0) <= _SMALL:
        source = _QUICK_SOURCE.format(quick)
        return start._replace(verdict="pass", code="Quick", because=f"{statement}.", source=source)
    return start._replace(
        code="NoPeers",
        because=f"{statement}; what is normal depends on cards and switches.",
        remedy="Give the outputs of at least three pairs of machines, so that they are compared.",
    )


def _shown_latency(row: MeasuredRow) -> float | None:
    """Return the typical latency, or the average of a run with a duration, which has no other."""
    if row.latency is None:
        return None
    return row.latency.typical if row.latency.typical is not None else row.latency.average


def _collective(start: BenchmarkResult, run: Measurement, log: LogReport) -> BenchmarkResult:
    """Judge nccl-tests by what is certain: correct results, and the network in use.

    The bus bandwidth within a job's reach depends on NVLink, on the number of HCAs and on NCCL's
    algorithm (NVIDIA/nccl-tests, doc/PERFORMANCE.md), so no ratio makes it fail.
    """
    gbps = run.best_gbps
    start = start._replace(gbps=gbps)
    statement = "Results" if gbps is None else f"Bus bandwidth {_rate_text(gbps)}"
    if run.wrong_elements:
        return start._replace(
            verdict="fail",
            code="WrongResults",
            because=f"{run.wrong_elements} elements of the results were wrong.",
            remedy="Stop using these machines for jobs, and test them pair by pair.",
            layer="nccl",
        )
    if log.transport == "no":
        return start._replace(
            verdict="fail",
            code="NotRdma",
            because=f"{statement} over TCP sockets, not over RDMA.",
            remedy="Look for the reason in NCCL's log: rdma-webhook why --logs names the cause.",
            layer="nccl",
        )
    if run.nodes == 1:
        return start._replace(
            code="Loopback",
            because=f"{statement} within one machine: no cable was tested.",
            remedy="Run it on at least two machines.",
        )
    if log.transport == "yes":
        because = f"{statement} over RDMA, without wrong results. No ratio is judged."
        return start._replace(verdict="pass", code="OverRdma", because=because)
    return start._replace(
        code="TransportUnknown",
        because=f"{statement}, but the output does not say over which network.",
        remedy="Run it again with NCCL_DEBUG=INFO, and give the whole output.",
    )


def _rate_text(number: float) -> str:
    return f"{number:.1f} Gb/s" if number >= 1 else f"{number:g} Gb/s"


# Compare runs with their peers: the others on the same rail, and all of the same test.
#
# The median and the median absolute deviation hold while up to half of the runs are outliers, and
# need three runs (Rousseeuw and Croux, 1993; 1.4826 scales the deviation to a normal distribution).
# Variation below `_USUAL` is noise.

#: The fewest runs whose median no single run decides.
ENOUGH = 3
_DEVIATIONS = 3 * 1.4826
#: The share of the median by which runs may differ.
_USUAL = {"bandwidth": 0.05, "collective": 0.05, "latency": 0.2}


def flag_outliers(judgements: Sequence[BenchmarkResult]) -> tuple[BenchmarkResult, ...]:
    """Return the judgements, with a warning for each run that is worse than its peers."""
    outliers: dict[int, tuple[str, float, int]] = {}
    compared: set[int] = set()
    for group, peers in _groups(judgements).items():
        if len(peers) >= ENOUGH:
            compared.update(peers)
            peer_median = median(_number(judgements[index]) for index in peers)
            for index in _outliers(judgements, peers, peer_median):
                outliers.setdefault(index, (str(group[0]), peer_median, len(peers)))
    return tuple(
        _with_warning(judgement, *outliers[index])
        if index in outliers
        else _pass_if_compared(judgement, index in compared)
        for index, judgement in enumerate(judgements)
    )


def _groups(judgements: Sequence[BenchmarkResult]) -> dict[tuple[Hashable, ...], list[int]]:
    """Return the indexes of runs that are peers: on one rail first, then on all rails."""
    rails: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    tests: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    for index, judgement in enumerate(judgements):
        run = judgement.measurement
        if run is None or judgement.number is None or judgement.code == "Loopback":
            continue
        key = (run.test, run.kind, run.bidirectional, run.cuda, run.ranks, _size(run))
        tests[("of the test", *key)].append(index)
        if run.device is not None:
            rails[(f"on {run.device}", *key)].append(index)
    return {**rails, **tests}


def _size(run: Measurement) -> int | None:
    """Return the size to compare at: the smallest message for latencies, else the largest."""
    sizes = [row.size for row in run.rows if row.size is not None]
    return min(sizes, default=None) if run.kind == "latency" else max(sizes, default=None)


def _number(judgement: BenchmarkResult) -> float:
    assert judgement.number is not None  # a judgement without a number is in no group
    return judgement.number


def _outliers(
    judgements: Sequence[BenchmarkResult], peers: Sequence[int], peer_median: float
) -> list[int]:
    """Return the indexes of runs that are worse than the median by more than the tolerance."""
    run = judgements[peers[0]].measurement
    assert run is not None
    numbers = {index: _number(judgements[index]) for index in peers}
    spread = _DEVIATIONS * median(abs(number - peer_median) for number in numbers.values())
    tolerance = max(spread, peer_median * _USUAL.get(run.kind or "", max(_USUAL.values())))
    sign = 1 if run.kind == "latency" else -1
    return [index for index, number in numbers.items() if sign * (number - peer_median) > tolerance]


def _with_warning(
    judgement: BenchmarkResult, scope: str, peer_median: float, count: int
) -> BenchmarkResult:
    latency = judgement.measurement is not None and judgement.measurement.kind == "latency"
    unit, word = ("µs", "Slower") if latency else ("Gb/s", "Less")
    comparison = (
        f"{word} than its peers: their median is {peer_median:g} {unit} ({count} runs {scope})."
    )
    because = f"{judgement.because} {comparison}"
    if judgement.verdict == "fail":
        return judgement._replace(because=because)
    return judgement._replace(
        verdict="warn",
        code="Outlier",
        because=because,
        remedy="Test both machines of this run with others, to find the slow port or cable.",
    )


def _pass_if_compared(judgement: BenchmarkResult, compared: bool) -> BenchmarkResult:
    """Return a judgement that passes if its latency was compared with peers, else unchanged."""
    if not compared or judgement.code != "NoPeers":
        return judgement
    statement = judgement.because.partition(";")[0]
    return judgement._replace(
        verdict="pass", code="AsPeers", because=f"{statement}, as its peers.", remedy=""
    )
