"""nccl-tests (and rccl-tests): all_reduce_perf, alltoall_perf and similar programs.

Format: NVIDIA/nccl-tests, src/util.cu (writeResultHeader, writeBenchmarkLineBody,
writeResultFooter). busbw is the throughput of each rank's link in 10^9 bytes per second: unlike
algbw, it is comparable with the rate of a link (doc/PERFORMANCE.md there).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from webhook.diagnose.tools.benchmarks.measurements import Latency, MeasuredRow, Measurement
from webhook.diagnose.tools.observations import Line

_TEST = re.compile(r"\b([a-z][a-z_]{1,40}_perf)\b")
_BEGIN = re.compile(r"# {1,4}nThread {1,4}\d")
_RANK = re.compile(r"#\s{1,8}Rank\s{1,8}(\d{1,6})\b.{0,60}? on\s{1,40}(\S{1,255}) device")
_HEADER = re.compile(r"#\s{1,40}size\s{1,40}count\s{1,40}type\b")
_OUT_OF_BOUNDS = re.compile(r"# Out of bounds values\s{0,20}: {1,4}(\d{1,18})\b")
_AVERAGE = re.compile(r"# Avg bus bandwidth\s{0,20}: {1,4}(\d{1,9}(?:\.\d{1,9})?)(?:\s|$)")
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{0,12})?(?:e[+-]?\d{1,2})?")
#: The columns for buffers out of place, and again in place; older versions call the last "error".
_RESULT_COLUMNS = ("time", "cputime"), ("algbw",), ("busbw",), ("#wrong", "error")
_GIGABYTE = 8.0


class _Run:
    """A run that is being read."""

    def __init__(self, number: int) -> None:
        self.first = self.last = number
        self.test: str | None = None
        self.hosts: dict[str, str] = {}
        self.columns: list[str] = []
        self.rows: list[MeasuredRow] = []
        self.wrong_elements: int | None = None
        self.average: float | None = None


def read_nccl_tests(lines: Iterable[Line]) -> list[Measurement]:
    """Read all runs in a text."""
    runs: list[_Run] = []
    test = None
    for line in lines:
        if not runs or runs[-1].rows:
            named = _TEST.search(line.text)
            test = named[1] if named else test
        if _BEGIN.match(line.text) or (_HEADER.match(line.text) and _starts_run(runs)):
            runs.append(_Run(line.number))
            runs[-1].test, test = test, None
        if runs and _take(runs[-1], line):
            runs[-1].last = line.number
    return [_measurement(run) for run in runs]


def _starts_run(runs: list[_Run]) -> bool:
    """Return whether a table begins a run, because the lines before it were cut off."""
    return not runs or bool(runs[-1].rows)


def _take(run: _Run, line: Line) -> bool:
    if rank := _RANK.match(line.text):
        run.hosts[rank[1]] = rank[2]
    elif out_of_bounds := _OUT_OF_BOUNDS.match(line.text):
        run.wrong_elements = int(out_of_bounds[1])
    elif average := _AVERAGE.match(line.text):
        run.average = round(float(average[1]) * _GIGABYTE, 3)
    elif _HEADER.match(line.text):
        run.columns = line.text.removeprefix("#").split()
    else:
        rows = list(_rows(run.columns, line))
        run.rows += rows
        return bool(rows)
    return True


def _rows(columns: list[str], line: Line) -> Iterator[MeasuredRow]:
    """Yield the figures of a row, first for buffers out of place and then in place."""
    words = line.text.split()
    if len(words) < len(_RESULT_COLUMNS) or len(words) > len(columns) or not words[0].isdecimal():
        return
    starts = [index for index, name in enumerate(columns) if name in _RESULT_COLUMNS[0]]
    ends = [*starts, len(columns)]
    for in_place, (start, end) in zip((False, True), pairwise(ends), strict=False):
        if len(words) < end:
            return
        cells = dict(zip(columns[start:end], words[start:end], strict=True))
        yield _row(line.number, int(words[0][:18]), cells)._replace(in_place=in_place)


def _row(line: int, size: int, cells: dict[str, str]) -> MeasuredRow:
    time, _, bus, wrong_elements = (
        next((_value(cells[name]) for name in names if name in cells), None)
        for names in _RESULT_COLUMNS
    )
    return MeasuredRow(
        line,
        size,
        gbps=None if bus is None else round(bus * _GIGABYTE, 3),
        latency=None if time is None else Latency(average=time),
        # A count; with a fraction, the columns of the row do not match the header.
        wrong_elements=int(wrong_elements)
        if wrong_elements is not None and wrong_elements.is_integer()
        else None,
    )


def _value(word: str) -> float | None:
    """Read a number; None for "N/A", which means unchecked."""
    return float(word) if _NUMBER.fullmatch(word) else None


def _measurement(run: _Run) -> Measurement:
    wrong_counts = [row.wrong_elements for row in run.rows if row.wrong_elements is not None]
    return Measurement(
        program="nccl-tests",
        test=run.test,
        kind="collective",
        line_range=(run.first, run.last),
        rows=tuple(run.rows),
        complete=run.average is not None or run.wrong_elements is not None,
        ranks=len(run.hosts) or None,
        nodes=len(set(run.hosts.values())) or None,
        average_gbps=run.average,
        cuda=True if run.hosts or run.rows else None,
        wrong_elements=run.wrong_elements
        if run.wrong_elements is not None
        else sum(wrong_counts)
        if wrong_counts
        else None,
    )
