"""Judge one run on its own.

A number can prove that a link is good; that it is bad, only where the run could have filled the
link. One queue pair with small messages cannot (linux-rdma/perftest, issue 318), and data that
never left the machine says nothing about a cable.
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

#: A message of this many bytes fills a link with one queue pair.
LARGE = 1 << 20
#: More than this part of the expectation is no luck: the rate is wrong, or no cable was used.
_TOO_FAST = 1.05
#: µs of small messages that NVIDIA's test accepts (Mellanox/ngc_multinode_perf).
_QUICK = {"ib_write_lat": 2.5, "ib_send_lat": 2.5, "ib_read_lat": 4.5}
_QUICK_SOURCE = "Mellanox/ngc_multinode_perf accepts {} µs"
#: Bytes of a message that is small enough for these.
_SMALL = 64

_AGAIN_LARGE = "Run it again with -s 1048576 (1 MiB), with -q 4, or with -a for all sizes."
_AGAIN_APART = (
    "Run the server on one machine and the client on another, and give the client the other "
    "machine's address."
)


class RunContext(NamedTuple):
    """What is known of a run besides its own output."""

    rate: PortRate | None
    bus: BusRate | None
    #: What NCCL and UCX said in the same file.
    log: LogReport


def grade_run(run: Measurement, known: RunContext) -> BenchmarkResult:
    """Judge a run that nothing made fail."""
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
        return _collective(start, run, known.log)
    return _bandwidth(start, run, known)


def _connected(start: BenchmarkResult, run: Measurement) -> BenchmarkResult:
    pings = run.rows[0].iterations
    because = f"RDMA connects and carries data ({pings} pings); this says nothing about speed."
    return start._replace(verdict="pass", code="Connected", because=because)


def _bandwidth(start: BenchmarkResult, run: Measurement, known: RunContext) -> BenchmarkResult:
    best = run.best_gbps
    if best == 0:
        return start._replace(
            code="ZeroBandwidth",
            because=f"{run.program} shows a bandwidth of 0. Most likely it could not measure the "
            "processor's clock, as on a busy machine (Correlation coefficient r^2).",
            remedy="Run it again when the machine has less to do.",
        )
    if best is None:
        return start._replace(
            code="UnitUnproven",
            because="No row has a bandwidth whose unit the message rate proves.",
            remedy="Give the whole table, with the column MsgRate.",
        )
    start = start._replace(gbps=best)
    if run.program == "ucx_perftest" and known.log.transport == "no":
        return start._replace(
            verdict="fail",
            code="NotRdma",
            because=f"UCX carried {_gbps(best)} over TCP, not over RDMA.",
            remedy="Check UCX_TLS and UCX_NET_DEVICES: rdma-webhook why --logs names the cause.",
            layer="ucx",
        )
    if run.loopback:
        return start._replace(
            code="Loopback",
            because=f"{_gbps(best)} within one machine: {run.loopback}. No cable was tested.",
            remedy=_AGAIN_APART,
        )
    if known.rate is None:
        return start._replace(
            code="NoRate",
            because=f"{_gbps(best)}, but the rate of the port is not known.",
            remedy="Give it with --rate GBPS, with -c FABRICS --fabric NAME, or by the output of "
            "ibstat in the same file.",
        )
    return _against(start, run, best, due_rate(run, known.rate, known.bus))


def _against(
    start: BenchmarkResult, run: Measurement, best: float, due: DueRate
) -> BenchmarkResult:
    ratio = best / due.gbps
    verdict, code = _worth(ratio)
    start = start._replace(expected=due.gbps, source=due.source)
    because = f"{_gbps(best)} of {due.gbps:g} Gb/s ({ratio:.2f})"
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
            remedy=_AGAIN_LARGE,
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
    """Return whether no row could be sure to fill the link; unknown queue pairs count as one."""
    return (run.qps or 1) == 1 and all((row.size or 0) < LARGE for row in run.rows)


def _slow(run: Measurement) -> str:
    gpu = " For GPU memory, use the HCA beside the GPU (nvidia-smi topo -m)." if run.cuda else ""
    return (
        "Compare with other pairs of machines to find the slow port; look at its PCIe link (lspci "
        "-vv, LnkSta), its error counters, and whether other jobs use the link." + gpu
    )


def _latency(start: BenchmarkResult, run: Measurement) -> BenchmarkResult:
    row = min(run.rows, key=lambda one: one.size or 0)
    shown = _shown_latency(row)
    if shown is None:
        return start._replace(code="NoResult", because="No row has a latency.")
    start = start._replace(latency_us=shown)
    said = f"{shown:g} µs at {row.size} bytes"
    if run.loopback:
        because = f"{said} within one machine: {run.loopback}. No cable was tested."
        return start._replace(code="Loopback", because=because, remedy=_AGAIN_APART)
    quick = _QUICK.get(run.test or "")
    if quick is not None and shown <= quick and (row.size or 0) <= _SMALL:
        source = _QUICK_SOURCE.format(quick)
        return start._replace(verdict="pass", code="Quick", because=f"{said}.", source=source)
    return start._replace(
        code="NoPeers",
        because=f"{said}; what is normal depends on cards and switches.",
        remedy="Give the outputs of at least three pairs of machines, so that they are compared.",
    )


def _shown_latency(row: MeasuredRow) -> float | None:
    """Return the typical latency; the average of a run for a time, which has no other."""
    if row.latency is None:
        return None
    return row.latency.typical if row.latency.typical is not None else row.latency.average


def _collective(start: BenchmarkResult, run: Measurement, log: LogReport) -> BenchmarkResult:
    """Judge nccl-tests by what is certain: right results, and the network that was used.

    What bus bandwidth a job can reach depends on NVLink, on the number of HCAs and on NCCL's
    algorithm (NVIDIA/nccl-tests, doc/PERFORMANCE.md), so that no ratio fails it.
    """
    best = run.best_gbps
    start = start._replace(gbps=best)
    said = "Results" if best is None else f"Bus bandwidth {_gbps(best)}"
    if run.wrong:
        return start._replace(
            verdict="fail",
            code="WrongResults",
            because=f"{run.wrong} elements of the results were wrong.",
            remedy="Stop using these machines for jobs, and test them pair by pair.",
            layer="nccl",
        )
    if log.transport == "no":
        return start._replace(
            verdict="fail",
            code="NotRdma",
            because=f"{said} over TCP sockets, not over RDMA.",
            remedy="Look for the reason in NCCL's log: rdma-webhook why --logs names the cause.",
            layer="nccl",
        )
    if run.machines == 1:
        return start._replace(
            code="Loopback",
            because=f"{said} within one machine: no cable was tested.",
            remedy="Run it on at least two machines.",
        )
    if log.transport == "yes":
        because = f"{said} over RDMA, without wrong results. No ratio is judged."
        return start._replace(verdict="pass", code="OverRdma", because=because)
    return start._replace(
        code="TransportUnknown",
        because=f"{said}, but the output does not say over which network.",
        remedy="Run it again with NCCL_DEBUG=INFO, and give the whole output.",
    )


def _gbps(number: float) -> str:
    return f"{number:.1f} Gb/s" if number >= 1 else f"{number:g} Gb/s"


# Compare runs with their peers: the others on the same rail, and all of the same test.
#
# The median and the median absolute deviation stand firm where up to half of the runs are odd,
# and need three runs (Rousseeuw and Croux, 1993; 1.4826 makes the deviation that of a normal
# distribution). Whatever varies less than `_USUAL` is noise.

#: Fewer runs have no median that one of them does not decide.
ENOUGH = 3
_DEVIATIONS = 3 * 1.4826
#: The part of the median by which runs may differ.
_USUAL = {"bandwidth": 0.05, "collective": 0.05, "latency": 0.2}


def flag_outliers(judgements: Sequence[BenchmarkResult]) -> tuple[BenchmarkResult, ...]:
    """Return the judgements, with a warning for each run that its peers outdo."""
    outdone: dict[int, tuple[str, float, int]] = {}
    compared: set[int] = set()
    for what, places in _groups(judgements).items():
        if len(places) >= ENOUGH:
            compared.update(places)
            middle = median(_number(judgements[place]) for place in places)
            for place in _odd(judgements, places, middle):
                outdone.setdefault(place, (str(what[0]), middle, len(places)))
    return tuple(
        _warned(one, *outdone[place]) if place in outdone else _settled(one, place in compared)
        for place, one in enumerate(judgements)
    )


def _groups(judgements: Sequence[BenchmarkResult]) -> dict[tuple[Hashable, ...], list[int]]:
    """Return which runs are peers: of one rail first, then of all rails."""
    rails: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    every: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    for place, one in enumerate(judgements):
        run = one.measurement
        if run is None or one.number is None or one.code == "Loopback":
            continue
        alike = (run.test, run.kind, run.bidirectional, run.cuda, run.ranks, _size(run))
        every[("of the test", *alike)].append(place)
        if run.device is not None:
            rails[(f"on {run.device}", *alike)].append(place)
    return {**rails, **every}


def _size(run: Measurement) -> int | None:
    """Return the size that counts: latencies of the smallest message, bandwidths of the largest."""
    sizes = [row.size for row in run.rows if row.size is not None]
    return min(sizes, default=None) if run.kind == "latency" else max(sizes, default=None)


def _number(one: BenchmarkResult) -> float:
    assert one.number is not None  # those without one are in no group
    return one.number


def _odd(judgements: Sequence[BenchmarkResult], places: Sequence[int], middle: float) -> list[int]:
    """Return which runs are worse than the others by more than these differ."""
    run = judgements[places[0]].measurement
    assert run is not None
    numbers = {place: _number(judgements[place]) for place in places}
    spread = _DEVIATIONS * median(abs(one - middle) for one in numbers.values())
    room = max(spread, middle * _USUAL.get(run.kind or "", max(_USUAL.values())))
    sign = 1 if run.kind == "latency" else -1
    return [place for place, number in numbers.items() if sign * (number - middle) > room]


def _warned(one: BenchmarkResult, where: str, middle: float, count: int) -> BenchmarkResult:
    latency = one.measurement is not None and one.measurement.kind == "latency"
    unit, word = ("µs", "Slower") if latency else ("Gb/s", "Less")
    said = f"{word} than its peers: their median is {middle:g} {unit} ({count} runs {where})."
    because = f"{one.because} {said}"
    if one.verdict == "fail":
        return one._replace(because=because)
    return one._replace(
        verdict="warn",
        code="Outlier",
        because=because,
        remedy="Test both machines of this run with others, to find the slow port or cable.",
    )


def _settled(one: BenchmarkResult, compared: bool) -> BenchmarkResult:
    """Let a latency pass that is as its peers are."""
    if not compared or one.code != "NoPeers":
        return one
    said = one.because.partition(";")[0]
    return one._replace(verdict="pass", code="AsPeers", because=f"{said}, as its peers.", remedy="")
