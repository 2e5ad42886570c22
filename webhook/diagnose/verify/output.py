"""An evaluation as text, as JSON and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from typing_extensions import TypedDict

from webhook.diagnose.tools.benchmarks.measurements import (
    Latency,
    MeasuredRow,
    Measurement,
    Program,
)
from webhook.diagnose.tools.known_lines import Layer
from webhook.diagnose.tools.observations import LinkLayer
from webhook.diagnose.verify.collective import GIGABYTE
from webhook.diagnose.verify.results import BenchmarkResult, Evaluation
from webhook.model.finding import Level, Location
from webhook.model.names import counted
from webhook.text.findings import FindingForm, file_position, finding_form, tally
from webhook.text.junit import JunitCase, junit_document
from webhook.text.terminal import SIGNS, Sheet, Span, write_finding

#: The name of the suite of tests in JUnit XML.
SUITE = "rdma-webhook verify"
_ALL_RUNS = "All runs"
#: From this number on, the results that passed are written as one line.
_MANY_PASSED = 4
_HUNDRED = 100
_DASH = "\N{EN DASH}"
_INDENT = 2
_MIN_WIDTH = 40


def verify_text(evaluation: Evaluation, *, width: int = 100, color: bool = False) -> str:
    """Return an evaluation as lines of at most `width` columns."""
    sheet = Sheet(max(width, _MIN_WIDTH), color=color)
    passed = [result for result in evaluation.results if result.finding.level == "ok"]
    summarized = len(passed) >= _MANY_PASSED
    for result in sorted(evaluation.results, key=lambda result: result.finding.level == "ok"):
        if summarized and result.finding.level == "ok":
            continue
        position = f"  {position_of(result.finding.location)}"
        sheet.paragraph(Span(title_of(result.measurement), "bold"), Span(position, "dim"))
        write_finding(sheet, result.finding)
        if result.expected is not None:
            expected = f"expected: {expectation(result)}"
            sheet.paragraph(Span(expected, "dim"), indent=2 * _INDENT)
        if result.further_codes:
            sheet.paragraph(
                Span(f"also: {', '.join(result.further_codes)}", "dim"), indent=2 * _INDENT
            )
    for finding in evaluation.findings:
        sheet.paragraph(Span(_ALL_RUNS, "bold"))
        write_finding(sheet, finding)
    if summarized:
        write_passed(sheet, passed, len(passed), len(evaluation.results), "run")
    sheet.blank()
    write_summary(sheet, evaluation)
    return sheet.text


def write_passed(
    sheet: Sheet, passed: Sequence[BenchmarkResult], count: int, total: int, noun: str
) -> None:
    """Write a line on all that passed: their number, and the range of their figures."""
    text = ", ".join([f"{count} of {counted(total, noun)} passed", *_ranges(passed)])
    sheet.paragraph(Span(text), sign=SIGNS["ok"])


def _ranges(results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Yield the range of the figures in each unit."""
    figures: dict[str, list[float]] = {}
    for result in results:
        if result.gbps is None:
            if result.latency_us is not None:
                figures.setdefault("µs", []).append(result.latency_us)
        elif result.measurement and result.measurement.kind == "collective":
            figures.setdefault("GB/s", []).append(result.gbps / GIGABYTE)
        else:
            figures.setdefault("Gb/s", []).append(result.gbps)
    for unit, numbers in figures.items():
        ends = dict.fromkeys((_rounded(min(numbers)), _rounded(max(numbers))))
        yield f"{_DASH.join(ends)} {unit}"


def _rounded(number: float) -> str:
    """Write a number with three digits, or all of those before the point."""
    return f"{number:.0f}" if number >= _HUNDRED else f"{number:.3g}"


def title_of(measurement: Measurement | None) -> str:
    """Name a run: its test, device and port."""
    if measurement is None:
        return "Output"
    name = measurement.test or measurement.program
    words = [
        name,
        measurement.device,
        f"port {measurement.port}" if measurement.port is not None else None,
    ]
    if measurement.bidirectional:
        words.append("bidirectional")
    return " ".join(word for word in words if word)


def position_of(location: Location) -> str:
    """Return the file and line of a result, and its node if the file has several."""
    nodes = f" on {', '.join(location.nodes)}" if location.nodes else ""
    return file_position(location) + nodes


def expectation(result: BenchmarkResult) -> str:
    """Return the expected rate, and how it was computed; that of a collective in GB/s."""
    expected = result.expected or 0.0
    if result.measurement and result.measurement.kind == "collective":
        return f"{expected / GIGABYTE:g} GB/s = {result.computation} ÷ {GIGABYTE:g}"
    return f"{expected:g} Gb/s = {result.computation}"


def write_summary(sheet: Sheet, evaluation: Evaluation) -> None:
    """Write the last line: the worst level and code, and the count of each level."""
    finding = evaluation.worst
    summary = f"{finding.level} ({finding.code}): {tally(evaluation.levels)}"
    sheet.paragraph(Span(summary), sign=SIGNS[finding.level])


# An evaluation as JSON.


class LatencyForm(TypedDict):
    """The latency of a message in µs."""

    minimum: float | None
    typical: float | None
    average: float | None
    maximum: float | None
    p99: float | None


class RowForm(TypedDict):
    """One row of a table, for one message size."""

    line: int
    size: int | None
    """The message size in bytes."""
    iterations: int | None
    gbps: float | None
    """The average; for nccl-tests the bus bandwidth."""
    peakGbps: float | None
    latencyUs: LatencyForm | None
    inPlace: bool | None
    """For nccl-tests: whether the buffers are used in place."""
    wrongElements: int | None
    """For nccl-tests: the number of wrong elements."""


class RunForm(TypedDict):
    """The output of a benchmark; null for a value that it does not show."""

    program: Program
    test: str | None
    """The program or test, such as ib_write_bw."""
    device: str | None
    port: int | None
    linkLayer: LinkLayer | None
    mtu: int | None
    """The path MTU in bytes."""
    qps: int | None
    """The number of queue pairs."""
    bidirectional: bool | None
    cuda: bool | None
    """Whether a GPU's memory was sent."""
    duration: bool | None
    """Whether it ran for a time instead of for a number of iterations."""
    loopback: bool | None
    """Whether both ends were on one port or node."""
    ranks: int | None
    """For nccl-tests."""
    nodes: int | None
    """For nccl-tests: the number of nodes of these ranks."""
    averageGbps: float | None
    """For nccl-tests: the average bus bandwidth."""
    wrongElements: int | None
    """For nccl-tests: the number of wrong elements in the results."""
    rows: list[RowForm]


class ResultForm(TypedDict):
    """The result of a run, or of output without one, such as a failure or a log."""

    finding: FindingForm
    gbps: float | None
    """The bandwidth that was graded, in Gb/s."""
    latencyUs: float | None
    """The latency that was graded, in µs."""
    expected: float | None
    """The expected bandwidth in Gb/s."""
    computation: str
    """How `expected` was computed."""
    citation: str
    """The publication that the finding's text or limit comes from."""
    layer: Layer | None
    """The part of the stack that failed."""
    also: list[str]
    """Codes of the other failures of the same run, lowest layer first."""
    run: RunForm | None


class VerifyForm(TypedDict):
    """The output of rdma-webhook verify judge and verify nccl with -o json."""

    level: Level
    """The worst level: it decides the exit code."""
    code: str
    """The code, text and remedy are those of the worst finding."""
    text: str
    remedy: str
    results: list[ResultForm]
    findings: list[FindingForm]
    """Findings on all runs together."""


def verify_form(evaluation: Evaluation) -> VerifyForm:
    """Return an evaluation as plain JSON values."""
    finding = evaluation.worst
    return VerifyForm(
        level=finding.level,
        code=finding.code,
        text=finding.text,
        remedy=finding.remedy,
        results=[result_form(result) for result in evaluation.results],
        findings=[finding_form(finding) for finding in evaluation.findings],
    )


def result_form(result: BenchmarkResult) -> ResultForm:
    """Return a result as plain JSON values."""
    return ResultForm(
        finding=finding_form(result.finding),
        gbps=result.gbps,
        latencyUs=result.latency_us,
        expected=result.expected,
        computation=result.computation,
        citation=result.citation,
        layer=result.layer,
        also=list(result.further_codes),
        run=_run_form(result.measurement) if result.measurement else None,
    )


def _run_form(measurement: Measurement) -> RunForm:
    return RunForm(
        program=measurement.program,
        test=measurement.test,
        device=measurement.device,
        port=measurement.port,
        linkLayer=measurement.link_layer,
        mtu=measurement.mtu,
        qps=measurement.qps,
        bidirectional=measurement.bidirectional,
        cuda=measurement.cuda,
        duration=measurement.duration,
        loopback=measurement.loopback
        if measurement.loopback is None
        else bool(measurement.loopback),
        ranks=measurement.ranks,
        nodes=measurement.nodes,
        averageGbps=measurement.average_gbps,
        wrongElements=measurement.wrong_elements,
        rows=[_row_form(row) for row in measurement.rows],
    )


def _row_form(row: MeasuredRow) -> RowForm:
    return RowForm(
        line=row.line,
        size=row.size,
        iterations=row.iterations,
        gbps=row.gbps,
        peakGbps=row.peak_gbps,
        latencyUs=_latency_form(row.latency) if row.latency else None,
        inPlace=row.in_place,
        wrongElements=row.wrong_elements,
    )


def _latency_form(latency: Latency) -> LatencyForm:
    return LatencyForm(
        minimum=latency.minimum,
        typical=latency.typical,
        average=latency.average,
        maximum=latency.maximum,
        p99=latency.p99,
    )


def verify_schema() -> str:
    """Return the JSON Schema of the JSON."""
    from webhook.text.schema import form_schema  # noqa: PLC0415 -- slow to import

    return form_schema(VerifyForm, "The output of rdma-webhook verify judge -o json")


# An evaluation as JUnit XML: a test case for each result.


def verify_junit(evaluation: Evaluation) -> str:
    """Return an evaluation as an XML document."""
    return junit_document(SUITE, list(_cases(evaluation)))


def _cases(evaluation: Evaluation) -> Iterator[JunitCase]:
    for result in evaluation.results:
        finding = result.finding
        yield JunitCase(title_of(result.measurement), position_of(finding.location), finding)
    for finding in evaluation.findings:
        yield JunitCase(_ALL_RUNS, finding.code, finding)
