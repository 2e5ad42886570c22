"""Readers of what benchmarks print: one file per program.

`read_output` reads a whole text, in which several programs and runs may follow each other or, where
two processes share a terminal, be mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Measurement, output_lines, plain_text
from webhook.diagnose.tools.benchmarks.nccl_tests import read_nccl_tests
from webhook.diagnose.tools.benchmarks.perftest import read_perftest
from webhook.diagnose.tools.benchmarks.perftest_json import read_perftest_json
from webhook.diagnose.tools.benchmarks.ucx_perftest import read_rping, read_ucx_perftest
from webhook.diagnose.tools.logs import CauseLine, LogReport, cause_lines, read_log
from webhook.diagnose.tools.observations import Line

_Read = Callable[[Sequence[Line]], list[Measurement]]
#: A text without one of these has nothing for the reader; a log of a large job is long.
_PERFTEST = ("#bytes", " Test", "ib_")
_READERS: tuple[tuple[str, _Read], ...] = (
    ("test_info", read_perftest_json),
    ("# ", read_nccl_tests),
    ("(usec)", read_ucx_perftest),
    ("rdma-ping-", read_rping),
)


class ToolOutput(NamedTuple):
    """What is in a text."""

    #: In the order of the text.
    measurements: tuple[Measurement, ...]
    #: Lines that tell why something failed, in the order of the text.
    failures: tuple[CauseLine, ...]
    #: What NCCL and UCX said.
    log: LogReport


def read_output(text: str) -> ToolOutput:
    """Read a text, in a time that grows with its length; nothing in it raises."""
    return read_output_lines(output_lines(plain_text(text)))


def read_output_lines(lines: Sequence[Line]) -> ToolOutput:
    """Read the lines of one machine, which have the numbers that they have in the whole text."""
    text = "\n".join(line.text for line in lines)
    failures = tuple(
        one._replace(number=lines[one.number - 1].number)
        for one in cause_lines(text)
        if one.cause.sort == "trouble"
    )
    found = [one for clue, reader in _READERS if clue in text for one in reader(lines)]
    if any(clue in text for clue in _PERFTEST):
        found += read_perftest(lines, {one.number for one in failures})
    measurements = tuple(sorted(found, key=lambda one: one.lines))
    return ToolOutput(measurements, failures, read_log(text))
