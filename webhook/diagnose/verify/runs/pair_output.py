"""What both ends of a pair printed, as one text: of each test the client's part, then the server's.

The ends print each command before what it says (`pair.sh`), and a test has the same port at both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Kind, Measurement
from webhook.diagnose.tools.causes import CAUSES
from webhook.diagnose.verify.evaluate import judge_file, judged_files
from webhook.diagnose.verify.results import BenchmarkResult, Evaluation, NodePair
from webhook.diagnose.verify.runs.plan import RunPlan

_COMMAND = re.compile(r"\+ (ib_\w{1,20}) -d (\S{1,64}) -p (\d{1,5}) ")
_NOTE = "rdma-verify: "
_DEVICES = f"{_NOTE}devices"


class SectionOfTest(NamedTuple):
    """The lines of one test."""

    test: str
    device: str
    #: Of the text; 1 is the first line of all.
    lines: tuple[int, int]
    #: What `pair.sh` said of it, the client's first.
    notes: tuple[str, ...]


class PairLog(NamedTuple):
    """The logs of both ends as one."""

    text: str
    sections: tuple[SectionOfTest, ...]
    #: What `pair.sh` said of no test.
    notes: tuple[str, ...]


class _Part(NamedTuple):
    """The lines of one end on one test; those before any test have no command."""

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
        found = [parts[port] for parts in ends if port in parts]
        said = [line for part in found for line in part.lines]
        span = (len(lines) + 1, len(lines) + len(said))
        sections.append(SectionOfTest(found[0].test, found[0].device, span, _notes(said)))
        lines += said
    return PairLog("".join(f"{line}\n" for line in lines), tuple(sections), notes)


def devices_in(log: str) -> list[str]:
    """Return the devices that an end found by itself."""
    found = (line for line in log.splitlines() if line.startswith(_DEVICES))
    return next(found, "").removeprefix(_DEVICES).split()


def _parts(log: str) -> dict[int, _Part]:
    """Return what was printed of each test by its port, and under 0 what stands before."""
    parts = {0: _Part("", "", [])}
    part = parts[0]
    for line in log.splitlines():
        if command := _COMMAND.match(line):
            part = parts.setdefault(int(command[3]), _Part(command[1], command[2], []))
        part.lines.append(line)
    return parts


def _notes(lines: list[str]) -> tuple[str, ...]:
    return tuple(line.removeprefix(_NOTE) for line in lines if line.startswith(_NOTE))


# Judge what both ends of a pair printed: one judgement for each device and test.

_NO_DEVICE = next(one for one in CAUSES if one.code == "NoRdmaDevice")
_QUOTE = "'"
_READ = "Read the output of both ends: --logs DIR keeps it."
#: The first line of a text that has none.
_NOWHERE = (1, 1)


def pair_name(pair: NodePair) -> str:
    """Return the name of a pair, as that of the file with its logs."""
    return f"{pair.client} → {pair.server}"


def judge_pair(pair: NodePair, log: PairLog, plan: RunPlan) -> tuple[BenchmarkResult, ...]:
    """Judge the logs of a pair; there is at least one judgement."""
    name = pair_name(pair)
    found = [one for file in judged_files(name, log.text) for one in judge_file(file, plan.rate)]
    judged = [
        _of_section(section, [one for one in found if _is_in(one, section)])
        for section in log.sections
    ]
    if judged:
        judged += map(_by_notes, _not_begun(log, plan))
    else:
        judged = [_without_tests(log, found)]
    return tuple(one._replace(file=name) for one in judged)


def _not_begun(log: PairLog, plan: RunPlan) -> list[SectionOfTest]:
    """Return the tests of the fabric's HCAs that neither end began."""
    begun = {(section.test, section.device) for section in log.sections}
    every = [(test, hca) for hca in plan.fabric.hcas for test in plan.tests]
    return [SectionOfTest(*one, _NOWHERE, ()) for one in every if one not in begun]


def named_after(pair: NodePair, judgement: BenchmarkResult) -> BenchmarkResult:
    """Return a judgement on a pair that measured nothing, under the name of the pair."""
    return judgement._replace(file=pair_name(pair))


def _is_in(one: BenchmarkResult, section: SectionOfTest) -> bool:
    return section.lines[0] <= one.lines[0] <= section.lines[1]


def _of_section(section: SectionOfTest, found: Sequence[BenchmarkResult]) -> BenchmarkResult:
    """Return the judgement on a test of which both ends said something.

    The client is the one that measures. If it did not, the lowest layer that failed at either end
    is the cause of the rest.
    """
    measured = next((one for one in found if one.number is not None), None)
    if measured is not None:
        return measured
    failed = [one for one in found if one.verdict == "fail"]
    if not failed:
        return found[0] if found and not section.notes else _by_notes(section)
    worst = Evaluation(tuple(failed), ()).worst
    assert isinstance(worst, BenchmarkResult)
    others = [code for one in failed for code in (one.code, *one.also) if code != worst.code]
    return worst._replace(also=tuple(dict.fromkeys(others)))


def _by_notes(section: SectionOfTest) -> BenchmarkResult:
    """Judge a test of which neither end printed anything that is known."""
    kind: Kind = "latency" if section.test.endswith("_lat") else "bandwidth"
    run = Measurement("perftest", section.test, kind, section.lines, device=section.device)
    start = BenchmarkResult(section.lines, "inconclusive", "NoResult", "", _READ, measurement=run)
    said = next(iter(section.notes), f"{section.device} ({section.test}) printed no result")
    if "no result within" in said:
        return start._replace(verdict="fail", code="TimedOut", because=f"{said}.")
    return start._replace(because=f"{said}, and nothing that is known.")


def _without_tests(log: PairLog, found: Sequence[BenchmarkResult]) -> BenchmarkResult:
    """Judge logs in which no test began."""
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
    if found:
        return found[0]
    return start._replace(
        because="The pods ended, and printed nothing that is known.", remedy=_READ
    )
