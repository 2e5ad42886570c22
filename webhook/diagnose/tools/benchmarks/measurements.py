"""What a run of a benchmark measured, and what its readers share: lines, prefixes, units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from webhook.diagnose.tools.observations import Line, LinkLayer

# Records without interpretation.
#
# What the program did not print is None; nothing is assumed. Rates are in Gb/s, 10^9 bits a second.

Program = Literal["perftest", "nccl-tests", "ucx_perftest", "rping"]
#: connection: only whether data arrives, without a number.
Kind = Literal["bandwidth", "latency", "collective", "connection"]


class Latency(NamedTuple):
    """How long a message took, in µs."""

    minimum: float | None = None
    typical: float | None = None
    average: float | None = None
    maximum: float | None = None
    p99: float | None = None


class MeasuredRow(NamedTuple):
    """One row of a table: one size of message."""

    line: int
    #: Bytes of a message.
    size: int | None = None
    iterations: int | None = None
    #: The average. For nccl-tests the bus bandwidth, which compares with the rate of a link.
    gbps: float | None = None
    peak_gbps: float | None = None
    latency: Latency | None = None
    #: nccl-tests: whether the buffers are used in place, and how many elements were wrong.
    in_place: bool | None = None
    wrong: int | None = None


class Measurement(NamedTuple):
    """One run; without rows where it ended before any number."""

    program: Program
    #: As one types it: "ib_write_bw", "all_reduce_perf"; for UCX the text of the test.
    test: str | None
    kind: Kind | None
    #: The first and the last line.
    lines: tuple[int, int]
    rows: tuple[MeasuredRow, ...] = ()
    #: None if the two ends show different devices.
    device: str | None = None
    port: int | None = None
    link_layer: LinkLayer | None = None
    #: The path MTU in bytes.
    mtu: int | None = None
    qps: int | None = None
    bidirectional: bool | None = None
    #: Whether a GPU's memory was sent.
    cuda: bool | None = None
    #: Whether it ran for a time (-D) instead of for a number of iterations.
    duration: bool | None = None
    #: Why both ends are on one port or machine, or seem to be, so that no cable carried the data;
    #: "" if they are not; None if the output does not say.
    loopback: str | None = None
    #: nccl-tests: ranks, and the machines that they run on.
    ranks: int | None = None
    machines: int | None = None
    #: nccl-tests: the average bus bandwidth that it printed, in Gb/s.
    average_gbps: float | None = None
    #: nccl-tests: the sum of wrong elements that it printed.
    wrong: int | None = None

    @property
    def best_gbps(self) -> float | None:
        """The highest bandwidth of a row, in Gb/s; None if no row has one."""
        return max((row.gbps for row in self.rows if row.gbps is not None), default=None)


# The prefixes of pdsh and clush before the lines of benchmarks: the names of machines.
#
#   gpu-01:  #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
#   gpu-02: Couldn't allocate MR
#
# Programs, too, begin lines with a word and a colon ("libibverbs: Warning"). So a word is the
# name of a machine only before the head of a benchmark, or if it differs from such a name in
# digits alone.

_MACHINE_PREFIX = re.compile(
    r"(?:pdsh@\S{1,80}: |clush: )?([A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})):(?: (.*))?"
)
_HEAD = re.compile(r"\s*(?:#bytes\s{1,40}#iterations|# nThread \d|\S.{0,60}(?:BW|Latency) Test$)")
_DIGITS = re.compile(r"\d+")


def split_machines(lines: Sequence[Line]) -> dict[str | None, list[Line]]:
    """Return the lines of each machine, without prefixes; those of no machine are of None."""
    split = [(line, _MACHINE_PREFIX.fullmatch(line.text)) for line in lines]
    heads = {found[1] for _, found in split if found and _HEAD.match(found[2] or "")}
    shapes = {_shape(name) for name in heads}
    machines: dict[str | None, list[Line]] = {}
    for line, found in split:
        if found and _shape(found[1]) in shapes:
            mine = line._replace(text=(found[2] or "").strip())
            machines.setdefault(found[1], []).append(mine)
        else:
            machines.setdefault(None, []).append(line)
    return machines


def _shape(name: str) -> str:
    return _DIGITS.sub("0", name)


# The lines of an output, without what terminals and launchers add to them.

#: Colours and movements of the cursor (ECMA-48).
_ESCAPE = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]")
#: mpirun --tag-output, and kubectl logs --prefix.
_OUTPUT_PREFIX = re.compile(
    r"\s{0,8}(?:\[\d{1,6},\d{1,6}\]<std(?:out|err)>:|\[pod/[^\]\s]{1,200}\]\s)"
)
#: Characters of a line that are read.
_LONGEST = 4000


def plain_text(text: str) -> str:
    """Return a text without colours, and with each line ended by a line feed alone."""
    return _ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def output_lines(text: str) -> list[Line]:
    """Split a plain text, without prefixes and blanks around; lines are counted from 1."""
    return [
        Line(number, _OUTPUT_PREFIX.sub("", line[:_LONGEST], count=1).strip())
        for number, line in enumerate(text.split("\n"), 1)
    ]


# Prove the unit of a bandwidth by the rate of messages beside it.
#
# perftest prints one number whose unit only the header tells, and the header may be that of
# another process: two of them share a terminal, and a server prints the client's numbers.
# Messages a second times bytes have no such doubt.

#: Gb/s in one of each unit that is in use. perftest's MB are 2^20 bytes (renamed to MiB in 24.07).
_PERFTEST_UNITS = (1.0, 8 * 2**20 / 1e9)
#: The parts of the value by which two ways to compute it may differ.
_TOLERANCE = 0.01


class Throughput(NamedTuple):
    """An average and a peak in Gb/s."""

    average: float
    #: None if it was not measured.
    peak: float | None


class PrintedNumber(NamedTuple):
    """A number with the half of its last digit."""

    value: float
    half: float


def printed_number(word: str) -> PrintedNumber:
    """Read a number in decimal notation; ValueError if it is none."""
    decimals = len(word.partition(".")[2])
    return PrintedNumber(float(word), 0.5 * 10.0**-decimals)


def proven_throughput(
    size: int, average: str, peak: str | None, mega_messages: str
) -> Throughput | None:
    """Return what `average` means; None if no unit, or more than one, fits the message rate.

    A zero is zero in each unit; perftest prints it where it could not measure the clock
    (linux-rdma/perftest, src/get_clock.c).

    size           bytes of a message
    average, peak  as printed, both in the same unit
    mega_messages  millions of messages a second, as printed
    """
    rate, shown = printed_number(mega_messages), printed_number(average)
    if shown.value == rate.value == 0:
        return Throughput(0.0, None)
    bits = size * 8 / 1000
    fitting = [
        unit
        for unit in _PERFTEST_UNITS
        if abs(shown.value * unit - rate.value * bits)
        <= rate.half * bits + shown.half * unit + _TOLERANCE * shown.value * unit
    ]
    if len(fitting) != 1 or shown.value <= 0:
        return None
    (unit,) = fitting
    highest = float(peak) * unit if peak else 0.0
    return Throughput(round(shown.value * unit, 3), round(highest, 3) or None)
