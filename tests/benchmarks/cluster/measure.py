"""The measurements on the stage, and the resulting figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.benchmarks.cluster import counts
from tests.benchmarks.cluster.load import Report
from tests.benchmarks.cluster.modes import MODES, NONE, OURS, Mode
from tests.benchmarks.cluster.stage import Stage
from tests.cluster import progress


@dataclass(frozen=True)
class Effort:
    """The duration of the measurements."""

    turns: int
    seconds: float
    """For one mode in one turn at full speed."""
    slow_turns: int
    slow_seconds: float
    """The same at the fixed rate."""


@dataclass(frozen=True)
class Figures:
    """The measurements."""

    #: Pods per second of each mode, turn by turn.
    turns: list[dict[Mode, float]]
    #: At the fixed rate, all turns as one.
    slow: dict[Mode, Report]
    #: The milliseconds of a call by the API server's histogram, at the fixed rate.
    call_means: dict[Mode, float]
    #: The API server's calls of a mode's webhook per pod.
    calls: dict[Mode, float]
    #: Pods that did not opt in, and the calls for them: by the API server's count, and by ours.
    uninvited: tuple[int, int, int]

    def rate(self, mode: Mode) -> float:
        """Return the median of a mode's pods per second."""
        return median(turn[mode] for turn in self.turns)

    def ratios(self, mode: Mode, to: Mode) -> list[float]:
        """Return the ratio of two modes in each turn: a slow moment affects both."""
        return sorted(turn[mode] / turn[to] for turn in self.turns)


def measure(stage: Stage, effort: Effort) -> Figures:
    """Measure everything; raise LoadError if a pod was rejected."""
    with progress.step("warming up"):
        _turn(stage, effort.seconds)
    before, created = counts.calls(stage.cluster), dict(stage.load.created)
    with progress.step(f"{effort.turns} turns at full speed"):
        turns = [_turn(stage, effort.seconds, number) for number in range(effort.turns)]
    with progress.step("at the fixed rate"):
        slow, call_means = _slowly(stage, effort)
    after = counts.calls(stage.cluster)
    calls = {
        mode: (after[mode.webhook] - before[mode.webhook])
        / (stage.load.created[mode.namespace] - created[mode.namespace])
        for mode in MODES
        if mode.port
    }
    with progress.step("pods that did not opt in"):
        uninvited = _uninvited(stage, effort.slow_seconds)
    return Figures(turns, slow, call_means, calls, uninvited)


def _turn(stage: Stage, seconds: float, number: int = 0) -> dict[Mode, float]:
    """Give each mode its turn, in reverse order every second time."""
    order = MODES[::-1] if number % 2 else MODES
    return {
        mode: stage.load.full_speed(mode.namespace, stage.asking, seconds).throughput
        for mode in order
    }


def _slowly(stage: Stage, effort: Effort) -> tuple[dict[Mode, Report], dict[Mode, float]]:
    """Create pods at the fixed rate; return the reports, and the mean duration of each call."""
    before = counts.durations(stage.cluster)
    results: dict[Mode, list[Path]] = {mode: [] for mode in MODES}
    for _ in range(effort.slow_turns):
        for mode, files in results.items():
            files.append(stage.load.fixed_rate(mode.namespace, stage.asking, effort.slow_seconds))
    after = counts.durations(stage.cluster)
    means = {
        mode: after[mode.webhook].since(before[mode.webhook]).mean for mode in MODES if mode.port
    }
    return {mode: stage.load.report(files) for mode, files in results.items()}, means


def _uninvited(stage: Stage, seconds: float) -> tuple[int, int, int]:
    """Create opted-in pods in a namespace that has not, and pods that have not in one that has."""
    before, answered = counts.calls(stage.cluster)[OURS.webhook], counts.answered(stage.cluster)
    results = [
        stage.load.fixed_rate(namespace, body, seconds)
        for namespace, body in (
            (NONE.namespace, stage.asking),
            (OURS.namespace, stage.silent),
            (OURS.namespace, stage.declining),
        )
    ]
    pods = stage.load.report(results).pods
    return (
        pods,
        counts.calls(stage.cluster)[OURS.webhook] - before,
        counts.answered(stage.cluster) - answered,
    )
