"""Compare runs with their peers: the others on the same rail, and all of the same test.

The median and the median absolute deviation stand firm where up to half of the runs are odd, and
need three runs (Rousseeuw and Croux, 1993; 1.4826 makes the deviation that of a normal
distribution). Whatever varies less than `_USUAL` is noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from statistics import median

from webhook.diagnose.tools.benchmarks.measurements import Measurement
from webhook.diagnose.verify.results import Judgement

#: Fewer runs have no median that one of them does not decide.
ENOUGH = 3
_DEVIATIONS = 3 * 1.4826
#: The part of the median by which runs may differ.
_USUAL = {"bandwidth": 0.05, "collective": 0.05, "latency": 0.2}


def compare(judgements: Sequence[Judgement]) -> tuple[Judgement, ...]:
    """Return the judgements, with a warning for each run that its peers outdo."""
    outdone: dict[int, tuple[str, float, int]] = {}
    compared: set[int] = set()
    for what, places in _groups(judgements).items():
        if len(places) >= ENOUGH:
            compared.update(places)
            middle = median(_number(judgements[place]) for place in places)
            for place in _odd(judgements, places, middle):
                outdone.setdefault(place, (str(what[0]), middle, len(places)))
    return tuple(
        _warned(one, *outdone[place]) if place in outdone else _settled(one, place in compared)
        for place, one in enumerate(judgements)
    )


def _groups(judgements: Sequence[Judgement]) -> dict[tuple[Hashable, ...], list[int]]:
    """Return which runs are peers: of one rail first, then of all rails."""
    rails: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    every: dict[tuple[Hashable, ...], list[int]] = defaultdict(list)
    for place, one in enumerate(judgements):
        run = one.measurement
        if run is None or one.number is None or one.code == "Loopback":
            continue
        alike = (run.test, run.kind, run.bidirectional, run.cuda, run.ranks, _size(run))
        every[("of the test", *alike)].append(place)
        if run.device is not None:
            rails[(f"on {run.device}", *alike)].append(place)
    return {**rails, **every}


def _size(run: Measurement) -> int | None:
    """Return the size that counts: latencies of the smallest message, bandwidths of the largest."""
    sizes = [row.size for row in run.rows if row.size is not None]
    return min(sizes, default=None) if run.kind == "latency" else max(sizes, default=None)


def _number(one: Judgement) -> float:
    assert one.number is not None  # those without one are in no group
    return one.number


def _odd(judgements: Sequence[Judgement], places: Sequence[int], middle: float) -> list[int]:
    """Return which runs are worse than the others by more than these differ."""
    run = judgements[places[0]].measurement
    assert run is not None
    numbers = {place: _number(judgements[place]) for place in places}
    spread = _DEVIATIONS * median(abs(one - middle) for one in numbers.values())
    room = max(spread, middle * _USUAL.get(run.kind or "", max(_USUAL.values())))
    sign = 1 if run.kind == "latency" else -1
    return [place for place, number in numbers.items() if sign * (number - middle) > room]


def _warned(one: Judgement, where: str, middle: float, count: int) -> Judgement:
    latency = one.measurement is not None and one.measurement.kind == "latency"
    unit, word = ("µs", "Slower") if latency else ("Gb/s", "Less")
    said = f"{word} than its peers: their median is {middle:g} {unit} ({count} runs {where})."
    because = f"{one.because} {said}"
    if one.verdict == "fail":
        return one._replace(because=because)
    return one._replace(
        verdict="warn",
        code="Outlier",
        because=because,
        remedy="Test both machines of this run with others, to find the slow port or cable.",
    )


def _settled(one: Judgement, compared: bool) -> Judgement:
    """Let a latency pass that is as its peers are."""
    if not compared or one.code != "NoPeers":
        return one
    said = one.because.partition(";")[0]
    return one._replace(verdict="pass", code="AsPeers", because=f"{said}, as its peers.", remedy="")
