"""Readers for the output of benchmarks: one file per program and format.

`read_output` reads a whole text. Several programs and runs may follow each other in it or, if two
processes share a terminal, be mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Measurement, output_lines, plain_text
from webhook.diagnose.tools.benchmarks.nccl_tests import read_nccl_tests
from webhook.diagnose.tools.benchmarks.perftest import read_perftest
from webhook.diagnose.tools.benchmarks.perftest_json import read_perftest_json
from webhook.diagnose.tools.benchmarks.ucx_perftest import read_rping, read_ucx_perftest
from webhook.diagnose.tools.logs import LogReport, MatchedLine, matched_lines, read_log
from webhook.diagnose.tools.observations import Line

_Read = Callable[[Sequence[Line]], list[Measurement]]
#: A text without any of these words has nothing for the reader of perftest, and is not read by it:
#: the log of a large job is long.
_PERFTEST = ("#bytes", " Test", "ib_")
#: The other readers, each after a word that a text for it must contain.
_READERS: tuple[tuple[str, _Read], ...] = (
    ("test_info", read_perftest_json),
    ("# ", read_nccl_tests),
    ("(usec)", read_ucx_perftest),
    ("rdma-ping-", read_rping),
)


class ToolOutput(NamedTuple):
    """The measurements, failures and log lines of a text."""

    #: In the order of the text.
    measurements: tuple[Measurement, ...]
    #: Known lines about failures, in the order of the text.
    failures: tuple[MatchedLine, ...]
    #: The log of NCCL and UCX.
    log: LogReport


def read_output(text: str) -> ToolOutput:
    """Read a text in time linear in its length; never raise."""
    return read_output_lines(output_lines(plain_text(text)))


def read_output_lines(lines: Sequence[Line]) -> ToolOutput:
    """Read the lines of one node, numbered as in the whole text."""
    text = "\n".join(line.text for line in lines)
    failures = tuple(
        matched_line._replace(number=lines[matched_line.number - 1].number)
        for matched_line in matched_lines(text)
        if matched_line.known_line.kind == "failure"
    )
    runs = [run for clue, reader in _READERS if clue in text for run in reader(lines)]
    if any(clue in text for clue in _PERFTEST):
        runs += read_perftest(lines, {failure.number for failure in failures})
    measurements = tuple(sorted(runs, key=lambda run: run.line_range))
    return ToolOutput(measurements, failures, read_log(text))
