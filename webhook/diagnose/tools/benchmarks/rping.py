"""rping: whether two machines reach each other by the RDMA connection manager; no numbers.

Format: rdma-core, librdmacm/examples/rping.c; with -v it prints a line for each answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from webhook.diagnose.tools.benchmarks.measurements import MeasuredRow, Measurement
from webhook.diagnose.tools.observations import Line

_PING = re.compile(r"(server )?ping data: rdma-ping-(\d{1,9}):")


def read_rping(lines: Iterable[Line]) -> list[Measurement]:
    """Read all runs in a text; a run begins at ping 0."""
    pings = [(line.number, found) for line in lines if (found := _PING.match(line.text))]
    begun = 0
    runs: list[tuple[tuple[bool, int], int]] = []
    for number, found in pings:
        begun += int(found[2]) == 0
        runs.append(((bool(found[1]), begun), number))
    return [
        _rping_measurement([number for _, number in run])
        for _, run in groupby(runs, lambda one: one[0])
    ]


def _rping_measurement(numbers: list[int]) -> Measurement:
    return Measurement(
        program="rping",
        test="rping",
        kind="connection",
        lines=(numbers[0], numbers[-1]),
        rows=(MeasuredRow(numbers[0], iterations=len(numbers)),),
    )
