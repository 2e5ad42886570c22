"""The output of both ends of a pair as one text: for each test the client's, then the server's.

The ends print each command before its output (`pair.sh`), and a test has the same port at both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Kind, Measurement
from webhook.diagnose.tools.causes import CAUSES
from webhook.diagnose.verify.evaluate import judge_file, read_benchmark_files
from webhook.diagnose.verify.results import BenchmarkResult, Evaluation, NodePair
from webhook.diagnose.verify.runs.plan import RunPlan

_COMMAND = re.compile(r"\+ (ib_\w{1,20}) -d (\S{1,64}) -p (\d{1,5}) ")
_NOTE = "rdma-verify: "
_DEVICES = f"{_NOTE}devices"


class SectionOfTest(NamedTuple):
    """The lines of one test."""

    test: str
    device: str
    #: The first and the last line in the whole text, counted from 1.
    lines: tuple[int, int]
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
        span = (len(lines) + 1, len(lines) + len(test_lines))
        sections.append(
            SectionOfTest(test_parts[0].test, test_parts[0].device, span, _notes(test_lines))
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
    return tuple(line.removeprefix(_NOTE) for line in lines if line.startswith(_NOTE))


# Judge the output of both ends of a pair: one judgement for each device and test.

_NO_DEVICE = next(cause for cause in CAUSES if cause.code == "NoRdmaDevice")
_QUOTE = "'"
_READ = "Read the output of both ends: --logs DIR keeps it."
#: The place of a judgement without output.
_NOWHERE = (1, 1)


def pair_name(pair: NodePair) -> str:
    """Return the name of a pair, which is also the name of the file with its logs."""
    return f"{pair.client} → {pair.server}"


def judge_pair(pair: NodePair, log: PairLog, plan: RunPlan) -> tuple[BenchmarkResult, ...]:
    """Return the judgements on the logs of a pair, at least one."""
    name = pair_name(pair)
    judgements = [
        judgement
        for file in read_benchmark_files(name, log.text)
        for judgement in judge_file(file, plan.rate)
    ]
    test_judgements = [
        _of_section(section, [judgement for judgement in judgements if _is_in(judgement, section)])
        for section in log.sections
    ]
    if test_judgements:
        test_judgements += map(_by_notes, _not_begun(log, plan))
    else:
        test_judgements = [_without_tests(log, judgements)]
    return tuple(judgement._replace(file=name) for judgement in test_judgements)


def _not_begun(log: PairLog, plan: RunPlan) -> list[SectionOfTest]:
    """Return the tests of the fabric's HCAs that neither end began."""
    begun = {(section.test, section.device) for section in log.sections}
    tests = [(test, hca) for hca in plan.fabric.hcas for test in plan.tests]
    return [SectionOfTest(*pending, _NOWHERE, ()) for pending in tests if pending not in begun]


def named_after(pair: NodePair, judgement: BenchmarkResult) -> BenchmarkResult:
    """Return a judgement on a pair without a measurement, with the name of the pair as its file."""
    return judgement._replace(file=pair_name(pair))


def _is_in(judgement: BenchmarkResult, section: SectionOfTest) -> bool:
    return section.lines[0] <= judgement.lines[0] <= section.lines[1]


def _of_section(section: SectionOfTest, judgements: Sequence[BenchmarkResult]) -> BenchmarkResult:
    """Return the judgement on a test that both ends printed output for.

    The client measures. If it did not, the lowest layer that failed at either end is the cause of
    the other failures.
    """
    measured = next((judgement for judgement in judgements if judgement.number is not None), None)
    if measured is not None:
        return measured
    failed = [judgement for judgement in judgements if judgement.verdict == "fail"]
    if not failed:
        return judgements[0] if judgements and not section.notes else _by_notes(section)
    worst = Evaluation(tuple(failed), ()).worst
    assert isinstance(worst, BenchmarkResult)
    codes = [
        code
        for judgement in failed
        for code in (judgement.code, *judgement.also)
        if code != worst.code
    ]
    return worst._replace(also=tuple(dict.fromkeys(codes)))


def _by_notes(section: SectionOfTest) -> BenchmarkResult:
    """Judge a test without known output at either end."""
    kind: Kind = "latency" if section.test.endswith("_lat") else "bandwidth"
    run = Measurement("perftest", section.test, kind, section.lines, device=section.device)
    start = BenchmarkResult(section.lines, "inconclusive", "NoResult", "", _READ, measurement=run)
    note = next(iter(section.notes), f"{section.device} ({section.test}) printed no result")
    if "no result within" in note:
        return start._replace(verdict="fail", code="TimedOut", because=f"{note}.")
    return start._replace(because=f"{note}, and nothing that is known.")


def _without_tests(log: PairLog, judgements: Sequence[BenchmarkResult]) -> BenchmarkResult:
    """Judge logs without any test."""
    start = BenchmarkResult(_NOWHERE, "inconclusive", "NoResult", "")
    for note in log.notes:
        if note.startswith("this image has no "):
            return start._replace(
                code="NoPerftest",
                because=f"The image has no {note.split()[-1].strip(_QUOTE)}.",
                remedy="Name an image that has perftest: --image.",
            )
        if note == "this container has no RDMA device":
            return start._replace(
                verdict="fail",
                code=_NO_DEVICE.code,
                because="No RDMA device is in the container that NCCL_IB_HCA chooses.",
                remedy=_NO_DEVICE.remedy,
                source=_NO_DEVICE.source,
                layer=_NO_DEVICE.layer,
            )
    if judgements:
        return judgements[0]
    return start._replace(
        because="The pods ended, and printed nothing that is known.", remedy=_READ
    )
