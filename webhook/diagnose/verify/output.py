"""An assessment as text, as JSON and as JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from webhook.diagnose.tools.benchmarks.measurements import MeasuredRow, Measurement
from webhook.diagnose.verify.results import WORTHS, BenchmarkResult, Evaluation, Remark, Worth
from webhook.model.json import JsonObject
from webhook.text.escape import visible
from webhook.text.terminal import Sheet, Span

#: The sign of each verdict.
SIGNS: dict[Worth, Span] = {
    "pass": Span("✔", "green"),
    "warn": Span("!", "yellow"),
    "inconclusive": Span("?", "yellow"),
    "fail": Span("✘", "bold red"),
}
_ARROW = Span("→", "bold")
_INDENT = 2
_NARROWEST = 40


class Reportable(Protocol):
    """A judgement, remark or suspect: a verdict, a reason and a remedy."""

    @property
    def verdict(self) -> Worth:
        """The verdict."""

    @property
    def because(self) -> str:
        """The reason, as a sentence."""

    @property
    def remedy(self) -> str:
        """The remedy; "" if no action is needed."""


def verify_text(assessment: Evaluation, *, width: int = 100, colour: bool = False) -> str:
    """Return an assessment as lines of at most `width` columns."""
    sheet = Sheet(max(width, _NARROWEST), colour=colour)
    for judgement in assessment.judgements:
        heading = [
            Span(title_of(judgement.measurement), "bold"),
            Span(f"  {where_judged(judgement)}", "dim"),
        ]
        sheet.paragraph(*heading)
        write_judgement(sheet, judgement)
        if judgement.expected is not None:
            sheet.paragraph(Span(f"expected: {judgement.source}", "dim"), indent=2 * _INDENT)
        if judgement.also:
            sheet.paragraph(Span(f"also: {', '.join(judgement.also)}", "dim"), indent=2 * _INDENT)
    for remark in assessment.remarks:
        sheet.paragraph(Span("All runs", "bold"))
        write_judgement(sheet, remark)
    sheet.blank()
    write_summary(sheet, assessment)
    return sheet.text


def title_of(run: Measurement | None) -> str:
    """Name a run: its test, device and port."""
    if run is None:
        return "Output"
    name = run.test or run.program
    words = [name, run.device, f"port {run.port}" if run.port is not None else None]
    if run.bidirectional:
        words.append("bidirectional")
    return " ".join(word for word in words if word)


def where_judged(judgement: BenchmarkResult) -> str:
    """Return the place of a judgement: file and line, and the node if there are several."""
    of = f" of {judgement.node}" if judgement.node else ""
    return f"{judgement.file}:{judgement.lines[0]}{of}"


def write_judgement(sheet: Sheet, judgement: Reportable) -> None:
    """Write the reason and the remedy."""
    sheet.paragraph(Span(judgement.because), sign=SIGNS[judgement.verdict], indent=_INDENT)
    if judgement.remedy:
        sheet.paragraph(Span(judgement.remedy), sign=_ARROW, indent=2 * _INDENT)


def write_summary(sheet: Sheet, assessment: Evaluation) -> None:
    """Write the last line: the deciding judgement, and the count of each verdict."""
    worst = assessment.worst
    counts = Counter(judgement.verdict for judgement in assessment.everything)
    tally = ", ".join(f"{counts[verdict]} {verdict}" for verdict in WORTHS if counts[verdict])
    sheet.paragraph(Span(f"{worst.verdict} ({worst.code}): {tally}"), sign=SIGNS[worst.verdict])


# An assessment as JSON, which is stable and described by `verify.schema.json`.
#
# Keys may be added, but neither keys nor codes are ever renamed.

_SCHEMA = Path(__file__).with_name("verify.schema.json")


def verify_form(assessment: Evaluation) -> JsonObject:
    """Return an assessment as plain JSON values."""
    worst = assessment.worst
    return {
        "verdict": worst.verdict,
        "code": worst.code,
        "because": worst.because,
        "remedy": worst.remedy,
        "measurements": [judgement_form(judgement) for judgement in assessment.judgements],
        "findings": [remark._asdict() for remark in assessment.remarks],
    }


def judgement_form(judgement: BenchmarkResult) -> JsonObject:
    """Return a judgement as plain JSON values."""
    return {
        "verdict": judgement.verdict,
        "code": judgement.code,
        "gbps": judgement.gbps,
        "latencyUs": judgement.latency_us,
        "expected": judgement.expected,
        "because": judgement.because,
        "remedy": judgement.remedy,
        "source": judgement.source,
        "layer": judgement.layer,
        "also": list(judgement.also),
        "file": judgement.file,
        "node": judgement.node,
        "lines": list(judgement.lines),
        "run": _run(judgement.measurement) if judgement.measurement else None,
    }


def _run(run: Measurement) -> JsonObject:
    return {
        "program": run.program,
        "test": run.test,
        "device": run.device,
        "port": run.port,
        "linkLayer": run.link_layer,
        "mtu": run.mtu,
        "qps": run.qps,
        "bidirectional": run.bidirectional,
        "cuda": run.cuda,
        "duration": run.duration,
        "loopback": run.loopback if run.loopback is None else bool(run.loopback),
        "ranks": run.ranks,
        "nodes": run.nodes,
        "averageGbps": run.average_gbps,
        "wrongElements": run.wrong_elements,
        "rows": [_row(row) for row in run.rows],
    }


def _row(row: MeasuredRow) -> JsonObject:
    latency = row.latency
    return {
        "line": row.line,
        "size": row.size,
        "iterations": row.iterations,
        "gbps": row.gbps,
        "peakGbps": row.peak_gbps,
        "latencyUs": latency._asdict() if latency else None,
        "inPlace": row.in_place,
        "wrongElements": row.wrong_elements,
    }


def verify_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form."""
    return _SCHEMA.read_text(encoding="utf-8")


# An assessment as JUnit XML, which CI systems show as tests.
#
# A run is a test case: a failure for fail, skipped for inconclusive; a warning passes, with its
# text. Elements and attributes are those of Ant's JUnit task, which Jenkins and GitLab read.

_NAME = "rdma-webhook verify"


class JunitCase(NamedTuple):
    """A test case, and the judgement on it."""

    classname: str
    name: str
    judgement: BenchmarkResult | Remark


def verify_junit(assessment: Evaluation) -> str:
    """Return an assessment as an XML document."""
    runs = (
        JunitCase(title_of(judgement.measurement), where_judged(judgement), judgement)
        for judgement in assessment.judgements
    )
    remarks = (JunitCase("All runs", remark.code, remark) for remark in assessment.remarks)
    return junit_document([*runs, *remarks])


def junit_document(cases: Sequence[JunitCase]) -> str:
    """Return an XML document with a single suite, of these cases."""
    counts = Counter(case.judgement.verdict for case in cases)
    suite = Element(
        "testsuite",
        name=_NAME,
        tests=str(len(cases)),
        failures=str(counts["fail"]),
        errors="0",
        skipped=str(counts["inconclusive"]),
    )
    for case in cases:
        _case(suite, case)
    suites = Element("testsuites", name=_NAME)
    suites.append(suite)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _case(suite: Element, case: JunitCase) -> None:
    """Add a test case; control characters, which XML does not allow, are escaped."""
    element = SubElement(
        suite, "testcase", classname=visible(case.classname), name=visible(case.name)
    )
    judgement, code = case.judgement, visible(case.judgement.code)
    because, text = (
        visible(judgement.because),
        visible(f"{judgement.because} {judgement.remedy}".strip()),
    )
    if judgement.verdict == "fail":
        SubElement(element, "failure", type=code, message=because).text = text
    elif judgement.verdict == "inconclusive":
        SubElement(element, "skipped", message=f"{code}: {text}")
    else:
        SubElement(element, "system-out").text = f"{judgement.verdict} ({code}): {text}"
