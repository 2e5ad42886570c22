"""What a run of a benchmark measured: records without interpretation.

What the program did not print is None; nothing is assumed. Rates are in Gb/s, 10^9 bits a second.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from webhook.diagnose.tools.observations import LinkLayer

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
