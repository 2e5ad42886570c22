"""perftest as text: ib_write_bw, ib_read_bw, ib_send_bw, ib_atomic_bw and their `_lat`.

Its JSON is read in `perftest_json`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TypeVar

from webhook.diagnose.tools.benchmarks.measurements import (
    LOCAL_HOST,
    Kind,
    Latency,
    MeasuredRow,
    Measurement,
    proven_throughput,
)
from webhook.diagnose.tools.benchmarks.perftest_commands import (
    PerftestCommand,
    PerftestEnds,
    perftest_command,
)
from webhook.diagnose.tools.observations import Line, LinkLayer

# The output of a run.
#
# Formats: linux-rdma/perftest, src/perftest_parameters.c and .h (RESULT_FMT*, REPORT_FMT*). The
# difficulties:
#
# - Server and client may share a terminal, so that their lines are mixed and each row comes twice.
# - The header's unit may belong to the other process; `proven_throughput` proves the unit.
# - `-a` prints a row for each size at the client, and only the last at the server.
# - `-D` prints a peak of 0.00, and only the average of latencies.
# - Lines such as "Conflicting CPU frequency values detected" occur between the rows.
# - The program prints only an error if it fails early; the device is then known only from the
#   shell's echo of the command.

_TITLE = re.compile(
    r"(RDMA_Write|RDMA_Read|Send|Atomic) ([\w ()-]{0,60}?)(BW|Latency)\b.{0,30}Test$"
)
_VERBS = {"RDMA_Write": "write", "RDMA_Read": "read", "Send": "send", "Atomic": "atomic"}
_KINDS: dict[str, tuple[str, Kind]] = {"BW": ("bw", "bandwidth"), "Latency": ("lat", "latency")}
_LINKS: dict[str, LinkLayer] = {"IB": "InfiniBand", "Ethernet": "Ethernet"}

#: Facts in the lines before a table, and their patterns.
_FACTS = {
    "device": re.compile(r"Dual-port.{0,40}?\sDevice {0,20}: {0,20}([\w.-]{1,64})"),
    "dual": re.compile(r"Dual-port {0,20}: (ON|OFF)\b"),
    "qps": re.compile(r"Number of qps\s{0,20}:\s{0,20}(\d{1,6})\b"),
    "mtu": re.compile(r"Mtu\s{0,20}:\s{0,20}(\d{1,5})\[B\]"),
    "connection": re.compile(r"Connection type\s{0,20}:\s{0,20}(\w{1,8})\b"),
    "link": re.compile(r"Link type\s{0,20}:\s{0,20}(IB|Ethernet)\b"),
}  # fmt: skip
#: The transport of AWS EFA, whose link perftest calls IB.
_EFA = "SRD"
#: Lines about GPU memory before the title; the lines at the end do not belong to the next run.
_CUDA = re.compile(
    r"initializing CUDA|creating CUDA Ctx|Picking device No|allocated GPU buffer"
    r"|cuMemAlloc\(\) of a|Use CUDA memory\s{0,20}: ON"
)
_SHARED_ADDRESS = "Both ends have the same address, so no cable was tested."
_SHARED_TERMINAL = (
    "Server and client share a terminal, and no address distinguishes them: if both ran on one "
    "node, no cable was tested."
)

_COLUMN = re.compile(
    r"#bytes|#sl|#iterations|BW peak\[|BW average\[|MsgRate\[|BW Port\d\[|MsgRate Port\d\["
    r"|CPU_Util\[|t_min\[|t_max\[|t_typical\[|t_avg\[|t_stdev\[|99% perc|99\.9% perc|tps average"
)
#: The line below a table.
_END = "-----"
_ROW = re.compile(r"\d{1,20}(?:\s{1,60}\d{1,20}(?:\.\d{1,12})?){2,14}")
#: The beginning of a row.
_PART = re.compile(r"\d{1,20}(?:\s{1,60}\d{1,20}(?:\.\d{0,12})?){0,14}")
#: The decimals of message rates and of the other figures.
_RATE_DECIMALS, _DECIMALS = 6, 2
_T = TypeVar("_T")
_N = TypeVar("_N", int, float)


class _Run:
    """A run that is being read."""

    def __init__(self, number: int) -> None:
        self.first = self.last = number
        self.titles: list[tuple[str, Kind, bool]] = []
        self.commands: list[PerftestCommand] = []
        self.facts: dict[str, list[str]] = {name: [] for name in _FACTS}
        self.ends = PerftestEnds()
        self.columns: list[str] = []
        #: Words of a row → the row; two processes that share a terminal print each row twice.
        self.rows: dict[tuple[str, ...], MeasuredRow] = {}
        #: The line with the last row, if the output is cut in it.
        self.cut_line: int | None = None
        self.cuda = self.failed = False
        #: Dashed lines below the last row: the end of its table, then the top of the next run.
        self.dashed_lines = 0

    @property
    def over(self) -> bool:
        """Whether the next title or command belongs to another run."""
        return bool(self.rows) or self.failed

    @property
    def complete(self) -> bool:
        """Whether its table has an end, and no failure before that."""
        return self.dashed_lines > 0 and not self.failed

    @property
    def has_output(self) -> bool:
        """Whether it has more than a command."""
        return bool(self.titles or self.columns or self.failed)


def read_perftest(lines: Sequence[Line], failures: Collection[int]) -> list[Measurement]:
    """Read all runs of perftest; `failures` are the numbers of lines about failures."""
    runs: list[_Run] = []
    cuda_before_title = False
    for line in lines:
        run = _run_of(line, runs)
        if run and run.rows and line.text.startswith(_END):
            run.dashed_lines += 1
        cuda_before_title = cuda_before_title or bool(_CUDA.search(line.text))
        if run is None:
            continue
        if _read(run, line):
            run.last = line.number
            if run.titles:
                run.cuda, cuda_before_title = run.cuda or cuda_before_title, False
        if line.number in failures and not run.complete:
            run.failed, run.last = True, line.number
    _note_cuts(runs, lines[-1])
    return [_measurement(run) for run in runs if run.has_output]


def _run_of(line: Line, runs: list[_Run]) -> _Run | None:
    """Return the run of a line, a new one if the line begins it; None before the first run."""
    begins = "#bytes" in line.text and "#iterations" in line.text
    title, command = _TITLE.search(line.text), perftest_command(line.text)
    if not runs or (runs[-1].over and (title or command)):
        if not (begins or title or command):
            return runs[-1] if runs else None
        if runs and title:
            runs[-1].dashed_lines -= 1
        runs.append(_Run(line.number))
    return runs[-1]


def _read(run: _Run, line: Line) -> bool:
    """Add a line to a run; return whether the line is recognized."""
    if row := _row(run, line):
        run.rows.setdefault(*row)
        run.dashed_lines = 0
    elif "#bytes" in line.text and "#iterations" in line.text:
        run.columns = _COLUMN.findall(line.text)
    elif title := _TITLE.search(line.text):
        name, kind = _KINDS[title[3]]
        run.titles.append((f"ib_{_VERBS[title[1]]}_{name}", kind, "Bidirectional" in title[2]))
    elif command := perftest_command(line.text):
        run.commands.append(command)
    else:
        return not run.over and _read_facts(run, line.text)
    return True


def _read_facts(run: _Run, text: str) -> bool:
    facts = {name: fact[1] for name, pattern in _FACTS.items() if (fact := pattern.search(text))}
    for name, value in facts.items():
        run.facts[name].append(value)
    return run.ends.read(text) or bool(facts)


def _row(run: _Run, line: Line) -> tuple[tuple[str, ...], MeasuredRow] | None:
    """Return the words of a row and the row; None for other lines."""
    if not run.columns or not _ROW.fullmatch(line.text):
        return None
    words = line.text.split()
    cells = dict(zip(run.columns, words, strict=False))
    integers = all(cells.get(column, "0").isdecimal() for column in ("#bytes", "#iterations"))
    if len(words) > len(run.columns) or not integers:
        return None
    size = int(cells["#bytes"])
    row = MeasuredRow(line.number, size, _number(cells.get("#iterations"), int))
    return tuple(words), _with_bandwidth(row, size, cells)._replace(latency=_latency(cells))


def _note_cuts(runs: list[_Run], last_line: Line) -> None:
    for run in runs:
        _drop_cut_row(run, last_line.number)
    if runs and _begins_row(runs[-1], last_line):
        runs[-1].cut_line = last_line.number


def _drop_cut_row(run: _Run, last_line: int) -> None:
    """Drop the last row if the output is cut in it: a part of a number is another number.

    Below a whole row is a dashed line, or at least the row has all columns, and the last one has
    all its decimals or a line end. `last_line` is the number of the last line of the text, which is
    empty if the text ends with a line end.
    """
    if not run.rows or run.dashed_lines > 0:
        return
    words, row = next(reversed(run.rows.items()))
    decimals = _RATE_DECIMALS if run.columns[-1].startswith("MsgRate") else _DECIMALS
    has_end = row.line != last_line or len(words[-1].partition(".")[2]) >= decimals
    if len(words) < len(run.columns) or not has_end:
        del run.rows[words]
        run.cut_line = row.line


def _begins_row(run: _Run, last_line: Line) -> bool:
    """Return whether a table without an end ends with the first characters of a row."""
    is_open = bool(run.columns) and run.dashed_lines <= 0 and not run.failed
    return is_open and bool(_PART.fullmatch(last_line.text)) and not _row(run, last_line)


def _number(word: str | None, convert: type[_N]) -> _N | None:
    return None if word is None else convert(word)


def _with_bandwidth(row: MeasuredRow, size: int, cells: dict[str, str]) -> MeasuredRow:
    average, rate = cells.get("BW average["), cells.get("MsgRate[")
    throughput = (
        proven_throughput(size, average, cells.get("BW peak["), rate) if average and rate else None
    )
    return row._replace(gbps=throughput.average, peak_gbps=throughput.peak) if throughput else row


def _latency(cells: dict[str, str]) -> Latency | None:
    names = ("t_min[", "t_typical[", "t_avg[", "t_max[", "99% perc")
    values = [_number(cells.get(name), float) for name in names]
    return Latency(*values) if any(number is not None for number in values) else None


def _measurement(run: _Run) -> Measurement:
    test, kind, bidirectional = run.titles[0] if run.titles else _kind_without_title(run)
    facts, commands = run.facts, run.commands
    link = None if _EFA in facts["connection"] else _only(facts["link"])
    return Measurement(
        program="perftest",
        test=test,
        kind=kind,
        line_range=(run.first, run.last),
        rows=tuple(run.rows.values()),
        complete=run.complete,
        cut_line=run.cut_line,
        device=_only(facts["device"] or [command.device for command in commands]),
        port=_only([command.port for command in commands]),
        link_layer=_LINKS[link] if link else None,
        mtu=min(map(int, facts["mtu"]), default=None),
        qps=_number(_only(facts["qps"]), int),
        bidirectional=bidirectional,
        dual_port="ON" in facts["dual"] or None,
        cuda=run.cuda or None,
        duration=_duration(run),
        loopback=_loopback(run),
    )


def _kind_without_title(run: _Run) -> tuple[str | None, Kind | None, bool | None]:
    """Return test, kind and direction by the command, or the kind by the columns of the table."""
    for command in run.commands:
        _, kind = _KINDS["BW" if command.test.endswith("_bw") else "Latency"]
        return command.test, kind, command.bidirectional
    if "BW average[" in run.columns:
        return None, "bandwidth", None
    return None, "latency" if "t_min[" in run.columns or "t_avg[" in run.columns else None, None


def _duration(run: _Run) -> bool | None:
    if "tps average" in run.columns or any(command.has_duration for command in run.commands):
        return True
    return False if run.commands else None


def _loopback(run: _Run) -> str | None:
    """Return a sentence on why both ends are, or may be, on one node; see `Measurement`."""
    servers = [
        command.server
        for command in run.commands
        if command.server and LOCAL_HOST.match(command.server)
    ]
    if servers:
        return f"The client connected to {servers[0]}, so no cable was tested."
    if run.ends.shared_address is not None:
        return _SHARED_ADDRESS if run.ends.shared_address else ""
    if len(run.titles) > 1:
        return _SHARED_TERMINAL
    return None


def _only(reported: Sequence[_T | None]) -> _T | None:
    """Return the value on which all agree, or None."""
    values = {reading for reading in reported if reading is not None}
    return values.pop() if len(values) == 1 else None
