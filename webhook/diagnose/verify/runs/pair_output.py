"""The output of both ends of a pair as one text: for each test the client's, then the server's.

The ends print each command before its output (`pair.sh`), and a test has the same port at both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Kind, Measurement
from webhook.diagnose.tools.known_lines import KNOWN_LINES
from webhook.diagnose.verify.evaluate import grade_file, read_benchmark_files
from webhook.diagnose.verify.grade import NO_RESULT, location_of
from webhook.diagnose.verify.matrix import pair_title
from webhook.diagnose.verify.results import BenchmarkResult, NodePair, severity_key
from webhook.diagnose.verify.runs.plan import RunPlan
from webhook.model.finding import Code, Finding

TIMED_OUT = Code(
    "TimedOut",
    "A benchmark printed no result within the time given by --seconds plus 30 seconds.",
    "Run the command again with --logs DIR, and read the output of both ends in DIR.",
)
NO_PERFTEST = Code(
    "NoPerftest",
    "The image lacks ib_write_bw or ib_write_lat.",
    "Use an image with perftest, and name it with --image.",
)
PAIR_CODES = (TIMED_OUT, NO_PERFTEST)

_COMMAND = re.compile(r"\+ (ib_\w{1,20}) -d (\S{1,64}) -p (\d{1,5}) ")
_NOTE = "rdma-verify: "
_DEVICES = f"{_NOTE}devices"
#: Around the name of a program in a note, which would otherwise look like its command.
_QUOTE = "'"


class SectionOfTest(NamedTuple):
    """The lines of one test."""

    test: str
    device: str
    #: The first and the last line in the whole text, counted from 1.
    line_range: tuple[int, int]
    #: The notes of `pair.sh` on the test, the client's first.
    notes: tuple[str, ...]


class PairLog(NamedTuple):
    """The combined logs of both ends."""

    text: str
    sections: tuple[SectionOfTest, ...]
    #: The notes of `pair.sh` that belong to no test.
    notes: tuple[str, ...]


class _Part(NamedTuple):
    """The lines of one end on one test; lines before any test have no command."""

    test: str
    device: str
    lines: list[str]


def pair_log(client: str, server: str) -> PairLog:
    """Join the logs of both ends."""
    ends = (_parts(client), _parts(server))
    lines = [line for parts in ends for line in parts[0].lines]
    notes = _notes(lines)
    sections: list[SectionOfTest] = []
    for port in sorted({port for parts in ends for port in parts if port}):
        test_parts = [end_parts[port] for end_parts in ends if port in end_parts]
        test_lines = [line for part in test_parts for line in part.lines]
        line_range = (len(lines) + 1, len(lines) + len(test_lines))
        sections.append(
            SectionOfTest(test_parts[0].test, test_parts[0].device, line_range, _notes(test_lines))
        )
        lines += test_lines
    return PairLog("".join(f"{line}\n" for line in lines), tuple(sections), notes)


def devices_in(log: str) -> list[str]:
    """Return the devices that an end detected by itself."""
    notes = (line for line in log.splitlines() if line.startswith(_DEVICES))
    return next(notes, "").removeprefix(_DEVICES).split()


def _parts(log: str) -> dict[int, _Part]:
    """Return the output of each test by its port, and under 0 the lines before any test."""
    parts = {0: _Part("", "", [])}
    part = parts[0]
    for line in log.splitlines():
        if command := _COMMAND.match(line):
            part = parts.setdefault(int(command[3]), _Part(command[1], command[2], []))
        part.lines.append(line)
    return parts


def _notes(lines: list[str]) -> tuple[str, ...]:
    return tuple(
        line.removeprefix(_NOTE).replace(_QUOTE, "") for line in lines if line.startswith(_NOTE)
    )


# Grade the output of both ends of a pair: one result for each device and test.

_NO_DEVICE = next(known_line for known_line in KNOWN_LINES if known_line.code == "NoRdmaDevice")
#: The lines of a test without output.
_NO_LINES = (1, 1)


def grade_pair(pair: NodePair, log: PairLog, plan: RunPlan) -> tuple[BenchmarkResult, ...]:
    """Return the results of the logs of a pair, at least one."""
    results = [
        result
        for file in read_benchmark_files(pair_title(pair), log.text)
        for result in grade_file(file, plan.rate)
    ]
    test_results = [
        _of_section(section, [result for result in results if _is_in(result, section)])
        for section in log.sections
    ]
    if test_results:
        test_results += map(_by_notes, _missing_sections(log, plan))
    else:
        test_results = [_without_tests(log, results)]
    return tuple(result.with_location("", pair) for result in test_results)


def _missing_sections(log: PairLog, plan: RunPlan) -> list[SectionOfTest]:
    """Return the tests of the fabric's HCAs that neither end began."""
    started = {(section.test, section.device) for section in log.sections}
    tests = [(test, hca) for hca in plan.fabric.hcas for test in plan.tests]
    return [SectionOfTest(*pending, _NO_LINES, ()) for pending in tests if pending not in started]


def _is_in(result: BenchmarkResult, section: SectionOfTest) -> bool:
    first, last = section.line_range
    return first <= (result.finding.location.line or 0) <= last


def _of_section(section: SectionOfTest, results: Sequence[BenchmarkResult]) -> BenchmarkResult:
    """Return the result of a test, from the output of one end or both.

    The client measures. If it did not, the lowest layer that failed at either end is the cause of
    the other failures.
    """
    measured = next((result for result in results if result.graded_figure is not None), None)
    if measured is not None:
        return measured
    failed = [result for result in results if result.finding.level == "error"]
    if not failed:
        return results[0] if results and not section.notes else _by_notes(section)
    cause = max(failed, key=severity_key)
    codes = [code for result in failed for code in (result.finding.code, *result.further_codes)]
    further_codes = dict.fromkeys(code for code in codes if code != cause.finding.code)
    return cause._replace(further_codes=tuple(further_codes))


def _by_notes(section: SectionOfTest) -> BenchmarkResult:
    """Grade a test without known output at either end."""
    kind: Kind = "latency" if section.test.endswith("_lat") else "bandwidth"
    run = Measurement("perftest", section.test, kind, section.line_range, device=section.device)
    note = next(iter(section.notes), "")
    if "no result within" in note:
        finding = TIMED_OUT.finding("error", f"{note}.", location=location_of(run))
    else:
        silent = f"{section.test} on {section.device} printed no result."
        text = f"{note}, and printed no result." if note else silent
        finding = NO_RESULT.finding("unsure", text, TIMED_OUT.remedy, location_of(run))
    return BenchmarkResult(finding, run)


def _without_tests(log: PairLog, results: Sequence[BenchmarkResult]) -> BenchmarkResult:
    """Grade logs without any test."""
    for note in log.notes:
        if note.startswith("this image has no "):
            text = f"The image has no {note.split()[-1]}."
            return BenchmarkResult(NO_PERFTEST.finding("unsure", text))
        if note == "this container has no RDMA device":
            text = "The container has no RDMA device that NCCL_IB_HCA selects."
            finding = Finding("error", _NO_DEVICE.code, text, _NO_DEVICE.remedy)
            return BenchmarkResult(finding, citation=_NO_DEVICE.source, layer=_NO_DEVICE.layer)
    if results:
        return results[0]
    text = "The pods ended, but printed no output of perftest."
    return BenchmarkResult(NO_RESULT.finding("unsure", text, TIMED_OUT.remedy))
