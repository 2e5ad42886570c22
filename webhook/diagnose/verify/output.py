"""An assessment for people."""

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

#: Of a verdict.
SIGNS: dict[Worth, Span] = {
    "pass": Span("✔", "green"),
    "warn": Span("!", "yellow"),
    "inconclusive": Span("?", "yellow"),
    "fail": Span("✘", "bold red"),
}
_ARROW = Span("→", "bold")
_INDENT = 2
_NARROWEST = 40


class Sayable(Protocol):
    """What has a verdict, a reason and a remedy."""

    @property
    def verdict(self) -> Worth:
        """How bad it is."""

    @property
    def because(self) -> str:
        """A sentence."""

    @property
    def remedy(self) -> str:
        """What to do; empty if there is nothing to do."""


def verify_text(assessment: Evaluation, *, width: int = 100, colour: bool = False) -> str:
    """Return an assessment as lines of at most `width` columns."""
    sheet = Sheet(max(width, _NARROWEST), colour=colour)
    for one in assessment.judgements:
        heading = [
            Span(title_of(one.measurement), "bold"),
            Span(f"  {where_judged(one)}", "dim"),
        ]
        sheet.paragraph(*heading)
        write_said(sheet, one)
        if one.expected is not None:
            sheet.paragraph(Span(f"expected: {one.source}", "dim"), indent=2 * _INDENT)
        if one.also:
            sheet.paragraph(Span(f"also: {', '.join(one.also)}", "dim"), indent=2 * _INDENT)
    for remark in assessment.remarks:
        sheet.paragraph(Span("All runs", "bold"))
        write_said(sheet, remark)
    sheet.blank()
    write_whole(sheet, assessment)
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


def where_judged(one: BenchmarkResult) -> str:
    """Name where a judgement was read: file, line, and machine where there are several."""
    of = f" of {one.node}" if one.node else ""
    return f"{one.file}:{one.lines[0]}{of}"


def write_said(sheet: Sheet, one: Sayable) -> None:
    """Write what is to be said, and what to do."""
    sheet.paragraph(Span(one.because), sign=SIGNS[one.verdict], indent=_INDENT)
    if one.remedy:
        sheet.paragraph(Span(one.remedy), sign=_ARROW, indent=2 * _INDENT)


def write_whole(sheet: Sheet, assessment: Evaluation) -> None:
    """Write the last line: what decides, and how many there are of each verdict."""
    worst = assessment.worst
    counted = Counter(one.verdict for one in assessment.everything)
    tally = ", ".join(f"{counted[one]} {one}" for one in WORTHS if counted[one])
    sheet.paragraph(Span(f"{worst.verdict} ({worst.code}): {tally}"), sign=SIGNS[worst.verdict])


# An assessment for programs: stable, and described by `verify.schema.json`.
#
# Keys may be added, but are never renamed; so is every code.

_SCHEMA = Path(__file__).with_name("verify.schema.json")


def verify_form(assessment: Evaluation) -> JsonObject:
    """Return an assessment as plain JSON values."""
    worst = assessment.worst
    return {
        "verdict": worst.verdict,
        "code": worst.code,
        "because": worst.because,
        "remedy": worst.remedy,
        "measurements": [judgement_form(one) for one in assessment.judgements],
        "findings": [one._asdict() for one in assessment.remarks],
    }


def judgement_form(one: BenchmarkResult) -> JsonObject:
    """Return a judgement as plain JSON values."""
    return {
        "verdict": one.verdict,
        "code": one.code,
        "gbps": one.gbps,
        "latencyUs": one.latency_us,
        "expected": one.expected,
        "because": one.because,
        "remedy": one.remedy,
        "source": one.source,
        "layer": one.layer,
        "also": list(one.also),
        "file": one.file,
        "node": one.node,
        "lines": list(one.lines),
        "run": _run(one.measurement) if one.measurement else None,
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
        "machines": run.machines,
        "averageGbps": run.average_gbps,
        "wrong": run.wrong,
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
        "wrong": row.wrong,
    }


def verify_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of the form."""
    return _SCHEMA.read_text(encoding="utf-8")


# An assessment as JUnit XML, which CI systems show as tests.
#
# A run is a test case: a failure for fail, skipped for inconclusive; a warning passes, with its
# text. Elements and attributes: the XML of Ant's JUnit task, as Jenkins and GitLab read it.

_NAME = "rdma-webhook verify"


class JunitCase(NamedTuple):
    """A test case, and what is said of it."""

    classname: str
    name: str
    said: BenchmarkResult | Remark


def verify_junit(assessment: Evaluation) -> str:
    """Return an assessment as an XML document."""
    runs = (
        JunitCase(title_of(one.measurement), where_judged(one), one)
        for one in assessment.judgements
    )
    remarks = (JunitCase("All runs", one.code, one) for one in assessment.remarks)
    return junit_document([*runs, *remarks])


def junit_document(cases: Sequence[JunitCase]) -> str:
    """Return an XML document with a suite of these cases."""
    counted = Counter(one.said.verdict for one in cases)
    suite = Element(
        "testsuite",
        name=_NAME,
        tests=str(len(cases)),
        failures=str(counted["fail"]),
        errors="0",
        skipped=str(counted["inconclusive"]),
    )
    for one in cases:
        _case(suite, one)
    suites = Element("testsuites", name=_NAME)
    suites.append(suite)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _case(suite: Element, of: JunitCase) -> None:
    """Add a test case; control characters, which XML does not have, are escaped."""
    case = SubElement(suite, "testcase", classname=visible(of.classname), name=visible(of.name))
    one, code = of.said, visible(of.said.code)
    because, text = visible(one.because), visible(f"{one.because} {one.remedy}".strip())
    if one.verdict == "fail":
        SubElement(case, "failure", type=code, message=because).text = text
    elif one.verdict == "inconclusive":
        SubElement(case, "skipped", message=f"{code}: {text}")
    else:
        SubElement(case, "system-out").text = f"{one.verdict} ({code}): {text}"
