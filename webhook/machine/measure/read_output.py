"""Read a text that benchmarks wrote: what was measured, and what failed."""

from __future__ import annotations

from typing import NamedTuple

from webhook.machine.log_lines import CauseLine, LogFindings, cause_lines, read_log
from webhook.machine.measure.measurements import Measurement
from webhook.machine.measure.nccl_tests import read_nccl_tests
from webhook.machine.measure.output_lines import output_lines, plain_text
from webhook.machine.measure.perftest import read_perftest
from webhook.machine.measure.perftest_json import read_perftest_json
from webhook.machine.measure.rping import read_rping
from webhook.machine.measure.ucx_perftest import read_ucx_perftest


class ToolOutput(NamedTuple):
    """What is in a text."""

    #: In the order of the text.
    measurements: tuple[Measurement, ...]
    #: Lines that tell why something failed, in the order of the text.
    failures: tuple[CauseLine, ...]
    #: What NCCL and UCX said.
    log: LogFindings


def read_output(text: str) -> ToolOutput:
    """Read a text, in a time that grows with its length; nothing in it raises."""
    text = plain_text(text)
    failures = tuple(one for one in cause_lines(text) if one.cause.sort == "trouble")
    lines = output_lines(text)
    measurements = [
        *read_perftest(lines, {one.number for one in failures}),
        *read_perftest_json(lines),
        *read_nccl_tests(lines),
        *read_ucx_perftest(lines),
        *read_rping(lines),
    ]
    return ToolOutput(
        tuple(sorted(measurements, key=lambda one: one.lines)), failures, read_log(text)
    )
