"""What admission costs through a real API server, as two tables: `make bench-cluster`."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from statistics import median

from tests.benchmarks.cluster.load import IN_FLIGHT, RATE
from tests.benchmarks.cluster.measure import Effort, Figures, measure
from tests.benchmarks.cluster.modes import FASTAPI, MODES, NONE, OURS, POLICY, RAW, Mode
from tests.benchmarks.cluster.stage import staged
from tests.benchmarks.decide import Row
from tests.cluster.missing import missing
from tests.cluster.versions import DEFAULT_MINOR, KUBERNETES, MODULES

GOAL = 0.93
_LIBRARIES = ("uvicorn", "fastapi", "orjson", "uvloop")


def main() -> int:
    """Print the tables; exit with 1 if a goal was missed, with 2 if no cluster can run here."""
    effort = _effort()
    lacking = missing()
    if lacking is not None:
        sys.stderr.write(f"{lacking}\n")
        return 2
    before = os.getloadavg()[0]
    with staged() as stage:
        figures = measure(stage, effort)
        operations, size = stage.operations, stage.asking.stat().st_size
    print(f"{_machine()}, load before {before:.1f}\n{_software()}")
    print(f"{effort.turns} turns of {effort.seconds:g} s, a pod of {size / 1000:.1f} kB,", end=" ")
    print(f"patches of {operations} operations\n")
    _print_figures(figures)
    rows = _rows(figures)
    print("\n| what | measured | goal | met |\n|---|---|---|---|")
    for row in rows:
        met = "" if row.goal == "none set" else "yes" if row.met else "NO"
        print(f"| {row.what} | {row.measured} | {row.goal} | {met} |")
    return 0 if all(row.met for row in rows) else 1


def _effort() -> Effort:
    parser = argparse.ArgumentParser(prog="make bench-cluster", description=__doc__)
    parser.add_argument("--turns", type=int, default=9, help="at full speed")
    parser.add_argument("--seconds", type=float, default=4, help="of each mode in a turn")
    parser.add_argument("--slow-turns", type=int, default=3, help="at the fixed rate")
    parser.add_argument("--slow-seconds", type=float, default=10, help="of each mode in a turn")
    return Effort(**vars(parser.parse_args()))


def _machine() -> str:
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return f"{os.cpu_count()} cores ({models[0] if models else platform.machine()})"


def _software() -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    programs = f"Kubernetes {KUBERNETES[DEFAULT_MINOR]}, vegeta {MODULES['vegeta'].version}"
    return f"{programs}, CPython {platform.python_version()}, {libraries}"


def _print_figures(figures: Figures) -> None:
    print(f"| pods created with | pods/s, {IN_FLIGHT} in flight | / none |", end="")
    print(f" p50 at {RATE} pods/s | p99 | calls per pod |\n|---|---|---|---|---|---|")
    for mode in MODES:
        slow = figures.slow[mode]
        _, share, _ = _spread(figures.ratios(mode, NONE))
        calls = f"{figures.calls[mode]:.2f}" if mode in figures.calls else ""
        print(f"| {mode.what} | {figures.rate(mode):.0f} | {share:.2f} |", end="")
        print(f" {slow.p50:.1f} ms | {slow.p99:.1f} ms | {calls} |")


def _rows(figures: Figures) -> list[Row]:
    pods, asked, answered = figures.uninvited
    return [
        _ratio(figures, RAW, GOAL),
        _ratio(figures, FASTAPI, GOAL),
        _ratio(figures, POLICY),
        Row(
            f"calls for {pods} pods that did not opt in (API server's count, ours)",
            f"{asked}, {answered}",
            "0",
            asked == answered == 0,
        ),
    ]


def _ratio(figures: Figures, to: Mode, goal: float | None = None) -> Row:
    low, middle, high = _spread(figures.ratios(OURS, to))
    return Row(
        f"pods/s, {OURS.what} / {to.what}",
        f"{middle:.2f} ({low:.2f} to {high:.2f})",
        "none set" if goal is None else f">= {goal}",
        goal is None or middle >= goal,
    )


def _spread(ratios: list[float]) -> tuple[float, float, float]:
    """Return the smallest, the median and the largest ratio."""
    return ratios[0], median(ratios), ratios[-1]


if __name__ == "__main__":
    sys.exit(main())
