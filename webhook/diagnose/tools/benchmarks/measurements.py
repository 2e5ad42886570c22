"""The measurements of a benchmark, and the lines, prefixes and units that its readers share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from webhook.diagnose.tools.observations import Line, LinkLayer

# Records without interpretation.
#
# A value that the program did not print is None; nothing is assumed. Rates are in Gb/s, 10^9 bits
# per second.

Program = Literal["perftest", "nccl-tests", "ucx_perftest", "rping"]
#: connection: whether data arrives, without a figure.
Kind = Literal["bandwidth", "latency", "collective", "connection"]


class Latency(NamedTuple):
    """The latency of a message in µs."""

    minimum: float | None = None
    typical: float | None = None
    average: float | None = None
    maximum: float | None = None
    p99: float | None = None


class MeasuredRow(NamedTuple):
    """One row of a table, for one message size."""

    line: int
    #: The message size in bytes.
    size: int | None = None
    iterations: int | None = None
    #: The average; for nccl-tests the bus bandwidth, which is comparable with a link's rate.
    gbps: float | None = None
    peak_gbps: float | None = None
    latency: Latency | None = None
    #: nccl-tests: whether the buffers are used in place, and the number of wrong elements.
    in_place: bool | None = None
    wrong_elements: int | None = None


class Measurement(NamedTuple):
    """One run; without rows if it ended before any figure."""

    program: Program
    #: The command as typed: "ib_write_bw", "all_reduce_perf"; for UCX the description of the test.
    test: str | None
    kind: Kind | None
    #: The first and the last line.
    line_range: tuple[int, int]
    rows: tuple[MeasuredRow, ...] = ()
    #: Whether the program printed the end of its table; None if its output does not show that.
    complete: bool | None = None
    #: The line with the last row, if the output is cut in it: `rows` has at most its whole figures.
    cut_line: int | None = None
    #: None if the two ends show different devices.
    device: str | None = None
    port: int | None = None
    link_layer: LinkLayer | None = None
    #: The path MTU in bytes.
    mtu: int | None = None
    qps: int | None = None
    bidirectional: bool | None = None
    #: Whether both ports of a card were used at once (-O).
    dual_port: bool | None = None
    #: Whether a GPU's memory was sent.
    cuda: bool | None = None
    #: Whether it ran for a time (-D) instead of for a number of iterations.
    duration: bool | None = None
    #: A sentence on why both ends are, or may be, on one node, so that no cable carried the data;
    #: "" if they are not; None if unknown.
    loopback: str | None = None
    #: ucx_perftest, nccl-tests: the setting that decides about RDMA, such as "UCX_TLS=tcp".
    transport_setting: str | None = None
    #: Whether that setting leaves only RDMA; False if it excludes RDMA.
    over_rdma: bool | None = None
    #: nccl-tests: the number of ranks and of their nodes.
    ranks: int | None = None
    nodes: int | None = None
    #: nccl-tests: the printed average bus bandwidth, in Gb/s.
    average_gbps: float | None = None
    #: nccl-tests: the printed sum of wrong elements.
    wrong_elements: int | None = None
    #: nccl-tests: whether it compared results with the right ones; None without rows.
    checked: bool | None = None

    @property
    def best_gbps(self) -> float | None:
        """The highest bandwidth of a row, in Gb/s; None if no row has one."""
        return max((row.gbps for row in self.rows if row.gbps is not None), default=None)


#: The beginning of an address of the node itself.
LOCAL_HOST = re.compile(r"127\.|localhost$|::1$")

# The prefixes of pdsh and clush before the lines of benchmarks: the names of nodes.
#
#   gpu-01:  #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
#   gpu-02: Couldn't allocate MR
#
# Programs, too, begin lines with a word and a colon ("libibverbs: Warning"). So a word is the
# name of a node only before the header of a benchmark, or if it differs from such a name only in
# digits. `srun --label` writes the number of the task instead. The ranks of nccl-tests are one run:
# only the first prints the table, and each prints its own log.

_NODE_PREFIX = re.compile(
    r"(?:pdsh@\S{1,80}: |clush: )?([A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})):(?: (.*))?"
)
_NCCL_TESTS = r"# nThreads?:? \d|#\s{1,40}size\s{1,40}count\s"
_HEADER = re.compile(
    rf"\s*(?:#bytes\s{{1,40}}#iterations|{_NCCL_TESTS}|\S.{{0,60}}(?:BW|Latency) Test$)"
)
_NCCL_TESTS_HEADER = re.compile(_NCCL_TESTS)
_DIGITS = re.compile(r"\d+")


def benchmark_lines_by_node(lines: Sequence[Line]) -> dict[str | None, list[Line]]:
    """Return the lines by node, without prefixes; lines without a prefix have the key None."""
    split = [(line, _NODE_PREFIX.fullmatch(line.text)) for line in lines]
    nodes_with_header = {match[1] for _, match in split if match and _HEADER.match(match[2] or "")}
    shapes = {_shape(name) for name in nodes_with_header}
    ranks = any(match and _is_rank(match) for _, match in split)
    nodes: dict[str | None, list[Line]] = {}
    for line, match in split:
        if match and _shape(match[1]) in shapes:
            name = None if ranks and match[1].isdigit() else match[1]
            nodes.setdefault(name, []).append(line._replace(text=(match[2] or "").strip()))
        else:
            nodes.setdefault(None, []).append(line)
    return nodes


def _is_rank(labeled: re.Match[str]) -> bool:
    """Return whether a line with a label is the header of nccl-tests, as a task of Slurm."""
    return labeled[1].isdigit() and bool(_NCCL_TESTS_HEADER.match((labeled[2] or "").lstrip()))


def _shape(name: str) -> str:
    return _DIGITS.sub("0", name)


# The lines of an output, without the additions of terminals and launchers.

#: Colors and cursor movements (ECMA-48).
_ESCAPE = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]")
#: Open MPI's mpirun --tag-output, MPICH's mpirun -prepend-rank, and kubectl logs --prefix.
_OUTPUT_PREFIX = re.compile(
    r"\s{0,8}(?:\[\d{1,6},\d{1,6}\]<std(?:out|err)>:|\[pod/[^\]\s]{1,200}\]\s)"
    r"|^\s{0,8}\[\d{1,6}\]\s"
)
#: Characters of a line that are read.
_MAX_LINE = 4000


def plain_text(text: str) -> str:
    """Return a text without colors and with line feeds as line ends."""
    return _ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def output_lines(text: str) -> list[Line]:
    """Split a plain text into lines without prefixes and surrounding blanks, numbered from 1."""
    return [
        Line(number, _OUTPUT_PREFIX.sub("", line[:_MAX_LINE], count=1).strip())
        for number, line in enumerate(text.split("\n"), 1)
    ]


# Prove the unit of a bandwidth by the message rate in the same row.
#
# perftest prints the unit only in the header, which may belong to another process: two of them may
# share a terminal, and a server prints the client's figures. Messages per second times bytes are
# unambiguous.

#: Gb/s per unit. perftest's MB are 2^20 bytes (renamed to MiB in 24.07).
_PERFTEST_UNITS = (1.0, 8 * 2**20 / 1e9)
#: The relative difference that is allowed between two ways of computing the value.
_TOLERANCE = 0.01


class Throughput(NamedTuple):
    """An average and a peak in Gb/s."""

    average: float
    #: None if it was not measured.
    peak: float | None


class PrintedNumber(NamedTuple):
    """A number, and half a unit of its last digit."""

    value: float
    half: float


def printed_number(word: str) -> PrintedNumber:
    """Read a number in decimal notation; raise ValueError for other text."""
    decimals = len(word.partition(".")[2])
    return PrintedNumber(float(word), 0.5 * 10.0**-decimals)


def proven_throughput(
    size: int, average: str, peak: str | None, mega_messages: str
) -> Throughput | None:
    """Return the throughput in Gb/s; None unless exactly one unit fits the message rate.

    Zero is zero in any unit; perftest prints it if it could not measure the clock
    (linux-rdma/perftest, src/get_clock.c).

    size           message size in bytes
    average, peak  as printed, both in the same unit
    mega_messages  millions of messages per second, as printed
    """
    rate, printed = printed_number(mega_messages), printed_number(average)
    if printed.value == rate.value == 0:
        return Throughput(0.0, None)
    bits = size * 8 / 1000
    fitting = [
        unit
        for unit in _PERFTEST_UNITS
        if abs(printed.value * unit - rate.value * bits)
        <= rate.half * bits + printed.half * unit + _TOLERANCE * printed.value * unit
    ]
    if len(fitting) != 1 or printed.value <= 0:
        return None
    (unit,) = fitting
    highest = float(peak) * unit if peak else 0.0
    return Throughput(round(printed.value * unit, 3), round(highest, 3) or None)
