"""Judge files together: each run, each failure, and whether every HCA was tested."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook.machine.log_lines import CauseLine
from webhook.machine.measure.measurements import Measurement
from webhook.machine.measure.read_output import ToolOutput
from webhook.verify.expectation import PortRate
from webhook.verify.failures import judge_failure, judge_log
from webhook.verify.judgement import Assessment, Judgement, Remark
from webhook.verify.judging import judge_run
from webhook.verify.peers import compare


class JudgedFile(NamedTuple):
    """A file, as it was read."""

    name: str
    output: ToolOutput
    #: How many lines it has.
    lines: int


def assess(
    files: Sequence[JudgedFile], rate: PortRate | None, hcas: Sequence[str] = ()
) -> Assessment:
    """Judge all files; `hcas` are the RDMA devices that should have been tested."""
    judgements = compare([one for file in files for one in _judged(file, rate)])
    return Assessment(judgements, tuple(_untested(judgements, hcas)))


def _judged(file: JudgedFile, rate: PortRate | None) -> Iterator[Judgement]:
    """Yield the judgements on a file in the order of its lines."""
    runs, log = file.output.measurements, file.output.log
    of_runs, loose = _shared_out(file.output.failures, runs)
    found = [
        judge_failure(file.name, of_runs[place], run)
        if place in of_runs
        else judge_run(file.name, run, rate, log)
        for place, run in enumerate(runs)
    ]
    found += [judge_failure(file.name, part) for part in loose.values()]
    if not found and (judged := judge_log(file.name, log, file.lines)):
        found.append(judged)
    yield from sorted(found, key=lambda one: one.lines)


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
