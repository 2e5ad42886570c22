"""Judge files together: each run, each failure, and whether every HCA was tested."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from webhook.diagnose.tools.benchmarks import ToolOutput, read_output_lines
from webhook.diagnose.tools.benchmarks.measurements import (
    Measurement,
    output_lines,
    plain_text,
    split_machines,
)
from webhook.diagnose.tools.causes import LAYERS, Cause
from webhook.diagnose.tools.hardware import pcie_rate
from webhook.diagnose.tools.logs import CauseLine, LogReport
from webhook.diagnose.tools.observations import (
    CardObservation,
    Line,
    Origin,
    PcieLink,
    PortObservation,
    Reading,
)
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.transcripts import split_by_node
from webhook.diagnose.verify.grade import RunContext, flag_outliers, grade_run
from webhook.diagnose.verify.results import BenchmarkResult, BusRate, Evaluation, PortRate, Remark

# Judge what failed: by the table of causes, the lowest layer first.
#
# A port that is down makes registering memory, connecting and NCCL fail after it, so the lowest
# layer is the one to repair; the others are listed.

_LONGEST = 200


def grade_failure(found: Sequence[CauseLine], run: Measurement | None = None) -> BenchmarkResult:
    """Judge lines that tell why something failed, of a run or of none that is known."""
    first, *others = _lowest_first(one.cause for one in found)
    line = next(one.line for one in found if one.cause is first)
    lines = (found[0].number, found[-1].number)
    return BenchmarkResult(
        run.lines if run else lines,
        "fail",
        first.code,
        f"{first.means} In the output: {line:.{_LONGEST}}",
        first.remedy,
        source=first.source,
        measurement=run,
        layer=first.layer,
        also=tuple(one.code for one in others),
    )


def _lowest_first(causes: Iterable[Cause]) -> list[Cause]:
    """Return each cause once; within a layer in the order of the text."""
    return sorted(dict.fromkeys(causes), key=lambda one: LAYERS.index(one.layer))


def judge_log(log: LogReport, lines: tuple[int, int]) -> BenchmarkResult | None:
    """Judge the log of a job that ran no benchmark; None if it is not one."""
    start = BenchmarkResult(lines, "inconclusive", "", "")
    if log.transport == "no":
        return _sockets(start, log)
    slower = [seen.cause for seen in log.seen if seen.cause.sort == "slower"]
    if log.transport == "mixed":
        return start._replace(
            verdict="warn",
            code="MixedTransports",
            because="The log shows both RDMA and TCP sockets.",
            remedy="Compare the ranks: all need RDMA, and the same NCCL_IB_HCA.",
        )
    if log.transport == "yes" and slower:
        cause = slower[0]
        return start._replace(
            verdict="warn",
            code=cause.code,
            because=cause.means,
            remedy=cause.remedy,
            source=cause.source,
        )
    if log.transport == "yes":
        how = {True: ", with GPUDirect RDMA", False: ", without GPUDirect RDMA", None: ""}
        because = f"The log shows RDMA{how[log.gpu_direct]}. It says nothing about speed."
        return start._replace(verdict="pass", code="OverRdma", because=because)
    if log.nccl:
        return start._replace(
            code="TransportUnknown",
            because="The log does not say which network NCCL uses.",
            remedy="Run it again with NCCL_DEBUG=INFO on at least two machines.",
        )
    return None


def _sockets(start: BenchmarkResult, log: LogReport) -> BenchmarkResult:
    reasons = [seen.cause for seen in log.seen if seen.cause.sort in ("setting", "trouble")]
    told = [seen.cause for seen in log.seen if seen.cause.rdma is False]
    causes: list[Cause] = [*_lowest_first(reasons), *told]
    first, others = causes[0], causes[1:]
    return start._replace(
        verdict="fail",
        code=first.code,
        because=f"The log shows TCP sockets, not RDMA. {first.means}",
        remedy=first.remedy,
        source=first.source,
        layer=first.layer,
        also=tuple(one.code for one in others),
    )


# What other tools in the same text show of the ports that were tested: rates and PCIe links.
#
# `ibstat` and `lspci -vv` above a benchmark save the reader `--rate`. What contradicts itself, or
# is of another device, is not used.

_T = TypeVar("_T")


class PortContext(NamedTuple):
    """What tools showed of the ports and cards of a machine."""

    ports: tuple[PortObservation, ...] = ()
    cards: tuple[CardObservation, ...] = ()

    def rate(self, run: Measurement) -> PortRate | None:
        """Return the rate of the port of a run; that of a port that is not Active means nothing."""
        shown = [
            (one.rate_gbps, one.origin)
            for one in self._ports(run)
            if one.state == "Active" and one.rate_gbps
        ]
        found = _only(shown)
        return found and PortRate(found[0], f"{found[0]:g} Gb/s by {_named(found[1])}")

    def bus(self, run: Measurement) -> BusRate | None:
        """Return what the PCIe link of the card carries."""
        places = {_short(one.pci) for one in self._ports(run) if one.pci}
        found = _only(
            (one.link, one.origin) for one in self.cards if one.link and _short(one.pci) in places
        )
        carried = pcie_rate(found[0]) if found else None
        if found is None or carried is None:
            return None
        return BusRate(carried, f"{_link(found[0])} by {_named(found[1])}")

    def _ports(self, run: Measurement) -> list[PortObservation]:
        return [
            one
            for one in self.ports
            if run.device is not None
            and one.device == run.device
            and (run.port is None or one.port in (None, run.port))
        ]


def shown_ports(reading: Reading) -> PortContext:
    """Take the ports and cards of what was read."""
    return PortContext(
        tuple(one for one in reading.sightings if isinstance(one, PortObservation)),
        tuple(one for one in reading.sightings if isinstance(one, CardObservation)),
    )


def _only(shown: Iterable[tuple[_T, Origin]]) -> tuple[_T, Origin] | None:
    """Return the value that all agree on, with the first tool that shows it."""
    found = list(shown)
    return found[0] if len({value for value, _ in found}) == 1 else None


def _short(pci: str) -> str:
    """Return a PCI address without the domain that some tools leave out."""
    return pci.removeprefix("0000:")


def _named(origin: Origin) -> str:
    return f"{origin.tool}, line {origin.line}" if origin.line else origin.tool


def _link(link: PcieLink) -> str:
    return f"PCIe {link.speed:g} GT/s x{link.width}"


class JudgedFile(NamedTuple):
    """A file, or what one machine wrote into it, as it was read."""

    name: str
    #: The machine, where the file has the output of several.
    node: str | None
    output: ToolOutput
    shown: PortContext
    #: The first and the last line.
    lines: tuple[int, int]


def judged_files(name: str, text: str) -> list[JudgedFile]:
    """Read a file, or each machine of a file by itself: pdsh and clush put many into one."""
    lines = output_lines(plain_text(text))
    machines = split_machines(lines)
    if len(machines) == 1:
        shown = [line for capture in split_by_node(text) for line in capture.lines]
        return [_judged_file(name, None, lines, shown)]
    return [_judged_file(name, node, own, own) for node, own in machines.items() if _any(own)]


def _any(lines: Sequence[Line]) -> bool:
    return any(line.text for line in lines)


def _judged_file(
    name: str, node: str | None, lines: Sequence[Line], shown: Sequence[Line]
) -> JudgedFile:
    """Read the lines of one machine; `shown` are those in which tools may show its ports."""
    output = read_output_lines(lines)
    tested = any(run.device and run.kind == "bandwidth" for run in output.measurements)
    ports = shown_ports(read(shown)) if tested else PortContext()
    return JudgedFile(name, node, output, ports, (lines[0].number, lines[-1].number))


def assess(
    files: Sequence[JudgedFile], rate: PortRate | None, hcas: Sequence[str] = ()
) -> Evaluation:
    """Judge all files; `hcas` are the RDMA devices that should have been tested."""
    judgements = flag_outliers([one for file in files for one in judge_file(file, rate)])
    return Evaluation(judgements, tuple(_untested(judgements, hcas)))


def judge_file(file: JudgedFile, rate: PortRate | None) -> Iterator[BenchmarkResult]:
    """Yield the judgements on a file in the order of its lines, each without its peers."""
    runs, log = file.output.measurements, file.output.log
    of_runs, loose = _shared_out(file.output.failures, runs)
    found = [
        grade_failure(of_runs[place], run)
        if place in of_runs
        else grade_run(run, _known(file, run, rate))
        for place, run in enumerate(runs)
    ]
    found += [grade_failure(part) for part in loose.values()]
    if not found and (judged := judge_log(log, file.lines)):
        found.append(judged)
    for one in sorted(found, key=lambda one: one.lines):
        yield one._replace(file=file.name, node=file.node)


def _known(file: JudgedFile, run: Measurement, rate: PortRate | None) -> RunContext:
    return RunContext(rate or file.shown.rate(run), file.shown.bus(run), file.output.log)


_Parts = dict[int, list[CauseLine]]


def _shared_out(
    failures: Sequence[CauseLine], runs: Sequence[Measurement]
) -> tuple[_Parts, _Parts]:
    """Return the failures of each run, and those of no run, by the run that they stand after.

    A run with rows has failed only where a failure stands among its lines; all that follows a run
    without rows tells why it has none.
    """
    starts = [run.lines[0] for run in runs]
    of_runs: _Parts = {}
    loose: _Parts = {}
    for one in failures:
        place = bisect_right(starts, one.number) - 1
        run = runs[place] if place >= 0 else None
        own = run is not None and (not run.rows or one.number <= run.lines[1])
        (of_runs if own else loose).setdefault(place, []).append(one)
    return of_runs, loose


def _untested(judgements: Sequence[BenchmarkResult], hcas: Sequence[str]) -> Iterator[Remark]:
    tested = {one.measurement.device for one in judgements if one.measurement and one.number}
    missing = [name for name in hcas if name not in tested]
    if missing:
        names = ", ".join(missing)
        yield Remark(
            "inconclusive",
            "NotTested",
            f"No result of these HCAs of the fabric: {names}.",
            "Run the benchmark on each of them: -d names the device.",
        )
