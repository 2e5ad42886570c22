"""The evaluation of files: results for each run and each failure, and untested HCAs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.tools.benchmarks import ToolOutput, read_output_lines
from webhook.diagnose.tools.benchmarks.measurements import (
    Measurement,
    benchmark_lines_by_node,
    output_lines,
    plain_text,
)
from webhook.diagnose.tools.known_lines import LAYERS, KnownLine
from webhook.diagnose.tools.logs import LogReport, MatchedLine
from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.transcripts import split_by_node
from webhook.diagnose.verify.collective import OVER_RDMA
from webhook.diagnose.verify.grade import (
    TRANSPORT_UNKNOWN,
    RunContext,
    grade_run,
    location_of,
)
from webhook.diagnose.verify.outliers import flag_outliers
from webhook.diagnose.verify.published import with_published
from webhook.diagnose.verify.results import BenchmarkResult, Evaluation, PortRate
from webhook.diagnose.verify.shown_ports import PortContext, shown_ports
from webhook.model.finding import Code, Finding, Location
from webhook.model.names import counted

MIXED_TRANSPORTS = Code(
    "MixedTransports",
    "A log shows both RDMA and TCP sockets.",
    "Compare the ranks: all of them need RDMA and the same NCCL_IB_HCA.",
)
NOT_TESTED = Code(
    "NotTested",
    "An HCA of the fabric given with -c and --fabric has no result.",
    "Run ib_write_bw -d HCA for each HCA that has no result.",
)
NOT_USED = Code(
    "HcasNotUsed",
    "On the nodes where it ran, a collective did not use all of the fabric's HCAs, although it "
    "had at least one GPU for each HCA.",
    "Find the line `NET/IB : Using` in NCCL's log, and check NCCL_IB_HCA and the state of the "
    "HCAs that this line does not list.",
)
FILE_CODES = (MIXED_TRANSPORTS, NOT_TESTED, NOT_USED)

# Grade failures by the table of known lines, the lowest layer first.
#
# When a port is down, registering memory, connecting and NCCL fail as well, so the lowest layer is
# the one to repair; the others are listed.

_MAX_LINE = 200


def grade_failure(
    failures: Sequence[MatchedLine], measurement: Measurement | None = None
) -> BenchmarkResult:
    """Grade the log lines of a failure; `measurement` is the run that failed, if it is known."""
    first, *further = _lowest_first(failure.known_line for failure in failures)
    line = next(failure.line for failure in failures if failure.known_line is first)
    location = location_of(measurement) if measurement else Location(line=failures[0].number)
    text = f"{first.meaning}{_last_size(measurement)} Output: {line:.{_MAX_LINE}}"
    return BenchmarkResult(
        Finding("error", first.code, text, first.remedy, location),
        citation=first.source,
        measurement=measurement,
        layer=first.layer,
        further_codes=tuple(cause.code for cause in further),
    )


def _last_size(measurement: Measurement | None) -> str:
    """Return a sentence on how far a run came that failed, or ""."""
    sizes = [row.size for row in measurement.rows if row.size] if measurement else []
    return f" The last message that it measured had {counted(sizes[-1], 'byte')}." if sizes else ""


def _lowest_first(causes: Iterable[KnownLine]) -> list[KnownLine]:
    """Return each cause once, the lowest layer first, then in the order of the text.

    What is only a consequence of another failure comes last.
    """
    return sorted(
        dict.fromkeys(causes), key=lambda cause: (cause.consequence, LAYERS.index(cause.layer))
    )


def grade_log(log: LogReport) -> BenchmarkResult | None:
    """Grade the log of a job that ran no benchmark; None if the text is not such a log."""
    if log.rdma_use == "no":
        return _result_over_sockets(log)
    if log.rdma_use == "mixed":
        return BenchmarkResult(MIXED_TRANSPORTS.finding("warning", MIXED_TRANSPORTS.meaning))
    if log.rdma_use == "yes" and log.within_a_node:
        text = "NCCL chose an RDMA network, but all channels in the log are within a node."
        return BenchmarkResult(TRANSPORT_UNKNOWN.finding("unsure", text))
    if log.rdma_use == "yes":
        return _result_over_rdma(log)
    if log.nccl:
        text = "The log does not show which network NCCL uses."
        return BenchmarkResult(TRANSPORT_UNKNOWN.finding("unsure", text))
    return None


def _result_over_rdma(log: LogReport) -> BenchmarkResult:
    known_lines = (line.known_line for line in log.line_counts)
    slower = next((known_line for known_line in known_lines if known_line.kind == "slower"), None)
    if slower is not None:
        finding = Finding("warning", slower.code, slower.meaning, slower.remedy)
        return BenchmarkResult(finding, citation=slower.source)
    suffixes = {True: ", with GPUDirect RDMA", False: ", without GPUDirect RDMA", None: ""}
    text = f"The log shows RDMA{suffixes[log.gpu_direct]}. It contains no bandwidth measurement."
    return BenchmarkResult(OVER_RDMA.finding("ok", text))


def _result_over_sockets(log: LogReport) -> BenchmarkResult:
    matched = [line.known_line for line in log.line_counts]
    causes = [known_line for known_line in matched if known_line.kind in ("setting", "failure")]
    transports = [known_line for known_line in matched if known_line.rdma is False]
    ordered: list[KnownLine] = [*_lowest_first(causes), *transports]
    first, *further = ordered
    text = f"The log shows TCP sockets, not RDMA. {first.meaning}"
    return BenchmarkResult(
        Finding("error", first.code, text, first.remedy),
        citation=first.source,
        layer=first.layer,
        further_codes=tuple(known_line.code for known_line in further),
    )


class BenchmarkFile(NamedTuple):
    """The content of a file, or the part of it from one node."""

    name: str
    #: None unless the file has the output of several nodes.
    node: str | None
    output: ToolOutput
    ports: PortContext
    line_count: int


def read_benchmark_files(name: str, text: str, lines_above: int = 0) -> list[BenchmarkFile]:
    """Read a file, each node by itself: pdsh and clush write the output of many into one file.

    `text` may be a part of the file; `lines_above` is then the number of lines above it.
    """
    lines = _numbered(output_lines(plain_text(text)), lines_above)
    nodes = benchmark_lines_by_node(lines)
    if len(nodes) == 1:
        port_lines = [line for output in split_by_node(text) for line in output.lines]
        port_lines = _numbered(port_lines, lines_above)
        (only_lines,) = nodes.values()
        return [_benchmark_file(name, None, only_lines, port_lines)]
    return [
        _benchmark_file(name, node, node_lines, node_lines)
        for node, node_lines in nodes.items()
        if _has_text(node_lines)
    ]


def _numbered(lines: Iterable[Line], lines_above: int) -> list[Line]:
    return [line._replace(number=line.number + lines_above) for line in lines]


def _has_text(lines: Sequence[Line]) -> bool:
    return any(line.text for line in lines)


def _benchmark_file(
    name: str, node: str | None, lines: Sequence[Line], port_lines: Sequence[Line]
) -> BenchmarkFile:
    """Read the lines of one node; `port_lines` may have the output of tools that show its ports."""
    output = read_output_lines(lines)
    tested = any(
        measurement.device and measurement.kind == "bandwidth"
        for measurement in output.measurements
    )
    ports = shown_ports(port_lines) if tested else PortContext()
    return BenchmarkFile(name, node, output, ports, _line_count(lines))


def _line_count(lines: Sequence[Line]) -> int:
    """Count lines as an editor does: the line break at the end begins no line."""
    return len(lines) - (not lines[-1].text)


def evaluate(
    files: Sequence[BenchmarkFile],
    rate: PortRate | None,
    hcas: Sequence[str] = (),
    machine: str = "",
) -> Evaluation:
    """Grade all files; `hcas` are the RDMA devices that the runs should have tested.

    `machine` is the type of the nodes if a cloud has published a minimum for it.
    """
    graded = flag_outliers([result for file in files for result in grade_file(file, rate)])
    results = tuple(with_published(result, machine) for result in graded)
    in_use = {name for file in files for name in file.output.log.nccl_devices.used}
    return Evaluation(results, tuple(_findings_on_hcas(results, hcas, in_use)))


def grade_file(file: BenchmarkFile, rate: PortRate | None) -> Iterator[BenchmarkResult]:
    """Yield the results of a file in the order of its lines, not yet compared with peers."""
    measurements, log = file.output.measurements, file.output.log
    run_failures, other_failures = _split_failures(file.output.failures, measurements)
    results = [
        grade_failure(run_failures[index], measurement)
        if index in run_failures
        else grade_run(measurement, _run_context(file, measurement, rate))
        for index, measurement in enumerate(measurements)
    ]
    results += [grade_failure(failures) for failures in other_failures.values()]
    if not results and (log_result := grade_log(log)):
        results.append(log_result)
    nodes = (file.node,) if file.node else ()
    for result in sorted(results, key=_first_line):
        yield result.with_location(file.name, nodes)


def _first_line(result: BenchmarkResult) -> int:
    return result.finding.location.line or 0


def _run_context(
    file: BenchmarkFile, measurement: Measurement, rate: PortRate | None
) -> RunContext:
    return RunContext(
        rate or file.ports.rate(measurement), file.ports.pcie_rate(measurement), file.output.log
    )


_Failures = dict[int, list[MatchedLine]]


def _split_failures(
    failures: Sequence[MatchedLine], measurements: Sequence[Measurement]
) -> tuple[_Failures, _Failures]:
    """Return the failures of each run, and all others by the index of the run before them.

    A run whose table is complete has failed only if a failure is among its lines. Any other run has
    all failures that follow it.
    """
    starts = [measurement.line_range[0] for measurement in measurements]
    run_failures: _Failures = {}
    other_failures: _Failures = {}
    for failure in failures:
        index = bisect_right(starts, failure.number) - 1
        measurement = measurements[index] if index >= 0 else None
        is_of_run = measurement is not None and (
            not measurement.rows
            or measurement.complete is False
            or failure.number <= measurement.line_range[1]
        )
        (run_failures if is_of_run else other_failures).setdefault(index, []).append(failure)
    return run_failures, other_failures


def _findings_on_hcas(
    results: Sequence[BenchmarkResult], hcas: Sequence[str], in_use: Collection[str]
) -> Iterator[Finding]:
    """Yield a finding on the HCAs of a fabric without a result; collectives use those `in_use`."""
    measurements = [result.measurement for result in results if result.measurement]
    tested = {
        result.measurement.device
        for result in results
        if result.measurement and result.graded_figure
    }
    missing = [name for name in hcas if name not in tested and name not in in_use]
    count, names = counted(len(missing), "HCA"), ", ".join(missing)
    if missing and in_use and any(_could_use(run, len(hcas)) for run in measurements):
        yield NOT_USED.finding("warning", f"NCCL did not use {count} of the fabric: {names}.")
    elif missing and any(run.kind != "collective" for run in measurements):
        verb = "has" if len(missing) == 1 else "have"
        yield NOT_TESTED.finding("unsure", f"{count} of the fabric {verb} no result: {names}.")


def _could_use(measurement: Measurement, hca_count: int) -> bool:
    """Return whether a collective had a GPU for each HCA of its nodes."""
    ranks, nodes = measurement.ranks or 0, measurement.nodes or 0
    return nodes > 0 and ranks >= hca_count * nodes
