"""A judgement: a verdict with its number, the expectation, the reason, and what to do."""

from __future__ import annotations

from typing import Literal, NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.tools.causes import LAYERS, Layer

#: inconclusive: the output neither shows that the link is good nor that it is not.
Worth = Literal["pass", "warn", "inconclusive", "fail"]
#: Best first.
WORTHS: tuple[Worth, ...] = ("pass", "warn", "inconclusive", "fail")


class Judgement(NamedTuple):
    """What is to be said of one run, one failure or one log."""

    lines: tuple[int, int]
    verdict: Worth
    #: Stable: keys of docs and of scripts.
    code: str
    because: str
    remedy: str = ""
    #: The file that it was read from, "-" for standard input, and of several machines the one.
    file: str = ""
    node: str | None = None
    #: What the judgement rests on: how the expectation was made, or where a text comes from.
    source: str = ""
    measurement: Measurement | None = None
    gbps: float | None = None
    latency_us: float | None = None
    #: Gb/s.
    expected: float | None = None
    #: Of a failure: the part of the stack that failed.
    layer: Layer | None = None
    #: Codes of the other failures of the same run, lowest layer first.
    also: tuple[str, ...] = ()

    @property
    def number(self) -> float | None:
        """The number that is compared with that of others."""
        return self.gbps if self.gbps is not None else self.latency_us


class Remark(NamedTuple):
    """What is to be said of all runs together."""

    verdict: Worth
    code: str
    because: str
    remedy: str


class Assessment(NamedTuple):
    """All that was judged."""

    judgements: tuple[Judgement, ...]
    remarks: tuple[Remark, ...]

    @property
    def worst(self) -> Judgement | Remark:
        """What decides: the worst verdict; of failures, the first one of the lowest layer."""
        return max(self.everything, key=weight_of)

    @property
    def everything(self) -> list[Judgement | Remark]:
        """All that has a verdict."""
        return [*self.judgements, *self.remarks]


def weight_of(one: Judgement | Remark) -> tuple[int, int]:
    """Return what decides between two: the verdict; of failures, the lower layer weighs more."""
    layer = one.layer if isinstance(one, Judgement) else None
    height = LAYERS.index(layer) if layer else len(LAYERS)
    return WORTHS.index(one.verdict), -height
