"""Judge what failed: by the table of causes, the lowest layer first.

A port that is down makes registering memory, connecting and NCCL fail after it, so the lowest layer
is the one to repair; the others are listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.tools.causes import LAYERS, Cause
from webhook.diagnose.tools.logs import CauseLine, LogFindings
from webhook.diagnose.verify.results import Judgement

_LONGEST = 200


def judge_failure(found: Sequence[CauseLine], run: Measurement | None = None) -> Judgement:
    """Judge lines that tell why something failed, of a run or of none that is known."""
    first, *others = _lowest_first(one.cause for one in found)
    line = next(one.line for one in found if one.cause is first)
    lines = (found[0].number, found[-1].number)
    return Judgement(
        run.lines if run else lines,
        "fail",
        first.code,
        f"{first.means} In the output: {line:.{_LONGEST}}",
        first.remedy,
        source=first.source,
        measurement=run,
        layer=first.layer,
        also=tuple(one.code for one in others),
    )


def _lowest_first(causes: Iterable[Cause]) -> list[Cause]:
    """Return each cause once; within a layer in the order of the text."""
    return sorted(dict.fromkeys(causes), key=lambda one: LAYERS.index(one.layer))


def judge_log(log: LogFindings, lines: tuple[int, int]) -> Judgement | None:
    """Judge the log of a job that ran no benchmark; None if it is not one."""
    start = Judgement(lines, "inconclusive", "", "")
    if log.transport == "no":
        return _sockets(start, log)
    slower = [seen.cause for seen in log.seen if seen.cause.sort == "slower"]
    if log.transport == "mixed":
        return start._replace(
            verdict="warn",
            code="MixedTransports",
            because="The log shows both RDMA and TCP sockets.",
            remedy="Compare the ranks: all need RDMA, and the same NCCL_IB_HCA.",
        )
    if log.transport == "yes" and slower:
        cause = slower[0]
        return start._replace(
            verdict="warn",
            code=cause.code,
            because=cause.means,
            remedy=cause.remedy,
            source=cause.source,
        )
    if log.transport == "yes":
        how = {True: ", with GPUDirect RDMA", False: ", without GPUDirect RDMA", None: ""}
        because = f"The log shows RDMA{how[log.gpu_direct]}. It says nothing about speed."
        return start._replace(verdict="pass", code="OverRdma", because=because)
    if log.nccl:
        return start._replace(
            code="TransportUnknown",
            because="The log does not say which network NCCL uses.",
            remedy="Run it again with NCCL_DEBUG=INFO on at least two machines.",
        )
    return None


def _sockets(start: Judgement, log: LogFindings) -> Judgement:
    reasons = [seen.cause for seen in log.seen if seen.cause.sort in ("setting", "trouble")]
    told = [seen.cause for seen in log.seen if seen.cause.rdma is False]
    causes: list[Cause] = [*_lowest_first(reasons), *told]
    first, others = causes[0], causes[1:]
    return start._replace(
        verdict="fail",
        code=first.code,
        because=f"The log shows TCP sockets, not RDMA. {first.means}",
        remedy=first.remedy,
        source=first.source,
        layer=first.layer,
        also=tuple(one.code for one in others),
    )
