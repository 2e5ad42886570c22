"""Judge files together: each run, each failure, and whether every HCA was tested."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.machine_prefixes import split_machines
from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.tools.benchmarks.output_lines import output_lines, plain_text
from webhook.diagnose.tools.benchmarks.read_output import ToolOutput, read_output_lines
from webhook.diagnose.tools.logs import CauseLine
from webhook.diagnose.tools.observations import Line
from webhook.diagnose.tools.readers import read
from webhook.diagnose.tools.transcripts import captures
from webhook.diagnose.verify.expectation import PortRate
from webhook.diagnose.verify.failures import judge_failure, judge_log
from webhook.diagnose.verify.grade import KnownOfRun, judge_run
from webhook.diagnose.verify.peers import compare
from webhook.diagnose.verify.results import Assessment, Judgement, Remark
from webhook.diagnose.verify.shown_ports import ShownPorts, shown_ports


class JudgedFile(NamedTuple):
    """A file, or what one machine wrote into it, as it was read."""

    name: str
    #: The machine, where the file has the output of several.
    node: str | None
    output: ToolOutput
    shown: ShownPorts
    #: The first and the last line.
    lines: tuple[int, int]


def judged_files(name: str, text: str) -> list[JudgedFile]:
    """Read a file, or each machine of a file by itself: pdsh and clush put many into one."""
    lines = output_lines(plain_text(text))
    machines = split_machines(lines)
    if len(machines) == 1:
        shown = [line for capture in captures(text) for line in capture.lines]
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
    ports = shown_ports(read(shown)) if tested else ShownPorts()
    return JudgedFile(name, node, output, ports, (lines[0].number, lines[-1].number))


def assess(
    files: Sequence[JudgedFile], rate: PortRate | None, hcas: Sequence[str] = ()
) -> Assessment:
    """Judge all files; `hcas` are the RDMA devices that should have been tested."""
    judgements = compare([one for file in files for one in judge_file(file, rate)])
    return Assessment(judgements, tuple(_untested(judgements, hcas)))


def judge_file(file: JudgedFile, rate: PortRate | None) -> Iterator[Judgement]:
    """Yield the judgements on a file in the order of its lines, each without its peers."""
    runs, log = file.output.measurements, file.output.log
    of_runs, loose = _shared_out(file.output.failures, runs)
    found = [
        judge_failure(of_runs[place], run)
        if place in of_runs
        else judge_run(run, _known(file, run, rate))
        for place, run in enumerate(runs)
    ]
    found += [judge_failure(part) for part in loose.values()]
    if not found and (judged := judge_log(log, file.lines)):
        found.append(judged)
    for one in sorted(found, key=lambda one: one.lines):
        yield one._replace(file=file.name, node=file.node)


def _known(file: JudgedFile, run: Measurement, rate: PortRate | None) -> KnownOfRun:
    return KnownOfRun(rate or file.shown.rate(run), file.shown.bus(run), file.output.log)


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


def _untested(judgements: Sequence[Judgement], hcas: Sequence[str]) -> Iterator[Remark]:
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
