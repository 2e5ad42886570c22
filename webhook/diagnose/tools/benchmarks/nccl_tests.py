"""nccl-tests (and rccl-tests): all_reduce_perf, alltoall_perf and similar programs.

Format: NVIDIA/nccl-tests, src/util.cu (writeResultHeader, writeBenchmarkLineBody,
writeResultFooter); ROCm/rccl-tests also writes "nThreads: 1". busbw is the throughput of each
rank's link in 10^9 bytes per second: unlike algbw, it is comparable with the rate of a link
(doc/PERFORMANCE.md there).

Programs that are built without MPI=1 do not see each other: on each node, one run has the ranks
from 0 on, and the tables of all runs are mixed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from webhook.diagnose.tools.benchmarks.measurements import Latency, MeasuredRow, Measurement
from webhook.diagnose.tools.benchmarks.nccl_test_names import CHECKED_COLUMNS, test_of_row
from webhook.diagnose.tools.observations import Line

_TEST = re.compile(r"\b([a-z][a-z_]{1,40}_perf)(?:_mpi)?\b")
_BEGIN = re.compile(r"# {1,4}nThreads?:? {1,4}\d")
_RANK = re.compile(r"#\s{1,8}Rank\s{1,8}(\d{1,6})\b.{0,60}? on\s{1,40}(\S{1,255}) device")
_HEADER = re.compile(r"#\s{1,40}size\s{1,40}count\s{1,40}type\b")
_OUT_OF_BOUNDS = re.compile(r"# Out of bounds values\s{0,20}: {1,4}(\d{1,18})\b")
_AVERAGE = re.compile(r"# Avg bus bandwidth\s{0,20}: {1,4}(\d{1,9}(?:\.\d{1,9})?)(?:\s|$)")
_SIZE = re.compile(r"\d{1,18}")
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{0,12})?(?:e[+-]?\d{1,2})?")
#: The largest error of a row, in older versions.
_ERROR = re.compile(r"\de[+-]\d\d|N/A")
#: The columns for buffers out of place, and again in place.
_RESULT_COLUMNS = ("time", "cputime"), ("algbw",), ("busbw",), CHECKED_COLUMNS
#: The rank that MPICH's mpirun -prepend-rank writes before each piece of a row.
_LABEL = re.compile(r"\[\d{1,6}\]")
#: The settings that may turn RDMA off, as a command has them; NCCL writes them without "=".
_SETTING = re.compile(r"\b(NCCL_IB_DISABLE|NCCL_NET)=(\w{1,20})\b")
_LIBFABRIC = re.compile(r"\bFI_[A-Z]|\befa\b|\bofi[-_]|-ofi\b|NET/OFI")
_SEPARATE = "Each node ran nccl-tests by itself, as it does if nccl-tests was built without MPI=1."
_GIGABYTE = 8.0


class _Command:
    """What the lines before a run show: the program, and settings that turn RDMA off."""

    def __init__(self) -> None:
        self.test: str | None = None
        #: The value of each variable in _SETTING.
        self.settings: dict[str, str] = {}
        self.libfabric = False

    def read(self, text: str) -> None:
        """Read a line that comes before a run."""
        if named := _TEST.search(text):
            self.test = named[1]
        self.settings.update(_SETTING.findall(text))
        self.libfabric = self.libfabric or _LIBFABRIC.search(text) is not None

    @property
    def without_rdma(self) -> str | None:
        """The setting that leaves only TCP; NCCL_IB_DISABLE does not turn libfabric off."""
        if self.settings.get("NCCL_NET", "").lower() == "socket":
            return f"NCCL_NET={self.settings['NCCL_NET']}"
        disable = self.settings.get("NCCL_IB_DISABLE", "")
        return f"NCCL_IB_DISABLE={disable}" if disable.strip("0") and not self.libfabric else None


class _Run:
    """A run that is being read."""

    def __init__(self, number: int, command: _Command) -> None:
        self.first = self.last = number
        self.command = command
        #: Whether all lines so far begin with #.
        self.only_comments = True
        #: The hosts of each rank.
        self.hosts: dict[str, set[str]] = {}
        self.columns: list[str] = []
        self.rows: list[MeasuredRow] = []
        #: The words of the row with the largest messages.
        self.largest: list[str] = []
        #: The words of the last row.
        self.last_words: list[str] = []
        self.checked: bool | None = None
        self.wrong_elements: int | None = None
        self.average: float | None = None

    @property
    def complete(self) -> bool:
        """Whether its table has an end."""
        return self.average is not None or self.wrong_elements is not None


def read_nccl_tests(lines: Sequence[Line]) -> list[Measurement]:
    """Read all runs in a text."""
    runs: list[_Run] = []
    command = _Command()
    for line in lines:
        if not runs or runs[-1].rows:
            command.read(line.text)
        if _begins_run(runs, line):
            runs.append(_Run(line.number, command))
            command = _Command()
        elif runs and line.text and not line.text.startswith("#"):
            runs[-1].only_comments = False
        if runs and _take(runs[-1], line):
            runs[-1].last = line.number
    return [_measurement(run)._replace(cut_line=_cut_line(run, lines[-1].number)) for run in runs]


def _begins_run(runs: list[_Run], line: Line) -> bool:
    """Return whether a run begins; each process writes its header if they do not see each other."""
    if _BEGIN.match(line.text):
        return not (runs and runs[-1].only_comments and not runs[-1].hosts)
    return bool(_HEADER.match(line.text)) and _starts_run(runs)


def _starts_run(runs: list[_Run]) -> bool:
    """Return whether a table begins a run, because the lines before it were cut off."""
    return not runs or bool(runs[-1].rows)


def _take(run: _Run, line: Line) -> bool:
    if rank := _RANK.match(line.text):
        run.hosts.setdefault(rank[1], set()).add(rank[2])
    elif out_of_bounds := _OUT_OF_BOUNDS.match(line.text):
        run.wrong_elements = int(out_of_bounds[1])
    elif average := _AVERAGE.match(line.text):
        run.average = round(float(average[1]) * _GIGABYTE, 3)
    elif _HEADER.match(line.text):
        run.columns = line.text.removeprefix("#").split()
    else:
        words = _LABEL.sub(" ", line.text).split()
        rows = list(_rows(run.columns, words, line.number))
        run.rows += rows
        if rows:
            _note(run, words)
        return bool(rows)
    return True


def _cut_line(run: _Run, last_line: int) -> int | None:
    """Return the line with the last row if the output is cut in it; None if it is whole.

    Of such a row, only whole figures are read. `last_line` is the number of the last line of the
    text, which is empty if the text ends with a line end.
    """
    if not run.rows or run.complete:
        return None
    line, words, columns = run.rows[-1].line, run.last_words, run.columns
    error_cut = columns[-1] == "error" and not _ERROR.fullmatch(words[-1])
    is_cut = len(words) < len(columns) or (line == last_line and error_cut)
    return line if is_cut else None


def _note(run: _Run, words: list[str]) -> None:
    """Note what only the words of a row show."""
    checks = [
        word for name, word in zip(run.columns, words, strict=False) if name in CHECKED_COLUMNS
    ]
    run.checked = bool(run.checked) or any(_value(word) is not None for word in checks)
    run.last_words = words
    if not run.largest or int(words[0]) >= int(run.largest[0]):
        run.largest = words


def _rows(columns: list[str], words: list[str], line: int) -> Iterator[MeasuredRow]:
    """Yield the figures of a row, first for buffers out of place and then in place."""
    if (
        len(words) < len(_RESULT_COLUMNS)
        or len(words) > len(columns)
        or not _SIZE.fullmatch(words[0])
    ):
        return
    starts = [index for index, name in enumerate(columns) if name in _RESULT_COLUMNS[0]]
    ends = [*starts, len(columns)]
    for in_place, (start, end) in zip((False, True), pairwise(ends), strict=False):
        if len(words) < end:
            return
        cells = dict(zip(columns[start:end], words[start:end], strict=True))
        yield _row(line, int(words[0]), cells)._replace(in_place=in_place)


def _row(line: int, size: int, cells: dict[str, str]) -> MeasuredRow:
    time, _, bus, _ = (
        next((_value(cells[name]) for name in names if name in cells), None)
        for names in _RESULT_COLUMNS
    )
    return MeasuredRow(
        line,
        size,
        gbps=None if bus is None else round(bus * _GIGABYTE, 3),
        latency=None if time is None else Latency(average=time),
        wrong_elements=_count(cells.get("#wrong", "")),
    )


def _count(word: str) -> int | None:
    """Read a number of elements; with a fraction, the row's columns do not match the header."""
    number = _value(word)
    return int(number) if number is not None and number.is_integer() else None


def _value(word: str) -> float | None:
    """Read a number; None for "N/A", which means unchecked."""
    return float(word) if _NUMBER.fullmatch(word) else None


def _measurement(run: _Run) -> Measurement:
    wrong_counts = [row.wrong_elements for row in run.rows if row.wrong_elements is not None]
    separate = any(len(hosts) > 1 for hosts in run.hosts.values())
    hosts = {host for hosts in run.hosts.values() for host in hosts}
    return Measurement(
        program="nccl-tests",
        test=run.command.test or test_of_row(run.columns, run.largest),
        kind="collective",
        line_range=(run.first, run.last),
        rows=tuple(run.rows),
        complete=run.complete,
        ranks=len(run.hosts) or None,
        nodes=1 if separate else len(hosts) or None,
        loopback=_SEPARATE if separate else None,
        checked=run.checked,
        transport_setting=run.command.without_rdma,
        over_rdma=False if run.command.without_rdma else None,
        average_gbps=run.average,
        cuda=True if run.hosts or run.rows else None,
        wrong_elements=run.wrong_elements
        if run.wrong_elements is not None
        else sum(wrong_counts)
        if wrong_counts
        else None,
    )
