"""Two small benchmarks: ucx_perftest, and rping, which measures nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from webhook.diagnose.tools.benchmarks.measurements import Kind, Latency, MeasuredRow, Measurement
from webhook.diagnose.tools.benchmarks.ucx_settings import UcxCommands, is_ucx_command
from webhook.diagnose.tools.observations import Line

# ucx_perftest: bandwidth and latency through UCX, over the network that UCX chose.
#
# Format: openucx/ucx, src/tools/perf/perftest.c (print_progress); "MB" there are 2^20 bytes. The
# figures of the whole run are in the columns "overall".

_HEADER = re.compile(r"\|.{0,80}\b(overhead|latency) \(usec\).{0,40}bandwidth \(MB/s\)")
_TEST = re.compile(r"\| Test: {1,40}(\S.{0,80}?) {1,120}\|$")
_SIZE = re.compile(r"\| Message size: {1,40}(\d{1,18}) {1,120}\|$")
_MEMORY = re.compile(r"\| (?:Send|Recv) memory: {1,40}(\S{1,40}) {1,120}\|$")
_ROW = re.compile(r"(?:Final:|\[thread \d{1,4}\])((?:\s{1,40}\d{1,18}(?:\.\d{1,9})?){8})$")
_KINDS: dict[str, Kind] = {"overhead": "bandwidth", "latency": "latency"}
_GBPS_OF_MIB = 8 * 2**20 / 1e9


class _Run:
    """A run that is being read."""

    def __init__(self, number: int, commands: UcxCommands) -> None:
        self.first = self.last = number
        self.commands = commands
        self.kind: Kind | None = None
        self.test: str | None = None
        self.size: int | None = None
        self.memory: list[str] = []
        self.row: MeasuredRow | None = None
        self.final = False


def read_ucx_perftest(lines: Iterable[Line]) -> list[Measurement]:
    """Read all runs in a text; of the rows that a run prints as progress, the last one counts."""
    runs: list[_Run] = []
    commands = UcxCommands({})
    for line in lines:
        header = _HEADER.match(line.text)
        if runs and commands is runs[-1].commands and _is_over(runs[-1], line, header is not None):
            commands = UcxCommands(commands.exported)
        if header and (not runs or runs[-1].row):
            runs.append(_Run(line.number, commands))
        commands.read(line.text)
        if runs and not runs[-1].final:
            run = runs[-1]
            run.kind = _KINDS[header[1]] if header else run.kind
            run.last = line.number if _take(run, line) or header else run.last
    return [_ucx_measurement(run) for run in runs]


def _is_over(run: _Run, line: Line, is_header: bool) -> bool:
    """Return whether a line comes after a run: a run that was stopped ends at the next one."""
    return run.final or (run.row is not None and (is_header or is_ucx_command(line.text)))


def _take(run: _Run, line: Line) -> bool:
    if test := _TEST.match(line.text):
        run.test = test[1]
    elif size := _SIZE.match(line.text):
        run.size = int(size[1])
    elif memory := _MEMORY.match(line.text):
        run.memory.append(memory[1])
    elif row := _ROW.match(line.text):
        run.row, run.final = _row(run, line.number, row[1].split()), row[0].startswith("Final")
    else:
        return False
    return True


def _row(run: _Run, number: int, words: list[str]) -> MeasuredRow:
    iterations, typical, _, overall, _, bandwidth, _, _ = words
    return MeasuredRow(
        number,
        run.size,
        int(float(iterations)),
        gbps=round(float(bandwidth) * _GBPS_OF_MIB, 3) if run.kind == "bandwidth" else None,
        latency=Latency(typical=float(typical), average=float(overall))
        if run.kind == "latency"
        else None,
    )


def _ucx_measurement(run: _Run) -> Measurement:
    setting, over_rdma = run.commands.transport
    return Measurement(
        program="ucx_perftest",
        test=run.test,
        kind=run.kind,
        line_range=(run.first, run.last),
        rows=(run.row,) if run.row else (),
        complete=run.final,
        cuda=any(memory.startswith("cuda") for memory in run.memory) if run.memory else None,
        loopback=run.commands.loopback,
        transport_setting=setting,
        over_rdma=over_rdma,
    )


# rping: whether two nodes reach each other by the RDMA connection manager; no figures.
#
# Format: rdma-core, librdmacm/examples/rping.c; with -v it prints a line for each answer.

_PING = re.compile(r"(server )?ping data: rdma-ping-(\d{1,9}):")


def read_rping(lines: Iterable[Line]) -> list[Measurement]:
    """Read all runs in a text; a run begins at ping 0."""
    pings = [(line.number, ping) for line in lines if (ping := _PING.match(line.text))]
    begun = 0
    runs: list[tuple[tuple[bool, int], int]] = []
    for number, ping in pings:
        begun += int(ping[2]) == 0
        runs.append(((bool(ping[1]), begun), number))
    return [
        _rping_measurement([number for _, number in run])
        for _, run in groupby(runs, lambda ping: ping[0])
    ]


def _rping_measurement(numbers: list[int]) -> Measurement:
    return Measurement(
        program="rping",
        test="rping",
        kind="connection",
        line_range=(numbers[0], numbers[-1]),
        rows=(MeasuredRow(numbers[0], iterations=len(numbers)),),
    )
