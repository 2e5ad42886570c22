"""The cost of admission by a real API server, and of a replica in a large cluster, as tables."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.benchmarks.cluster.large_cluster import OBJECTS, large_rows, measure_large, stolen
from tests.benchmarks.cluster.load import IN_FLIGHT, RATE
from tests.benchmarks.cluster.measure import Effort, Figures, measure
from tests.benchmarks.cluster.modes import (
    FASTAPI,
    GATEKEEPER,
    MODES,
    NONE,
    OURS,
    POLICY,
    RAW,
    Mode,
)
from tests.benchmarks.cluster.stage import staged
from tests.benchmarks.figures import NO_GOAL, Row, figure_text, print_rows
from tests.cluster.missing import missing
from tests.cluster.versions import DEFAULT_MINOR, KUBERNETES, MODULES

#: The goals: pods/s in relation to FastAPI, and the duration of a call in relation to the bare one.
PODS_GOAL, CALL_GOAL = 0.95, 1.6
_LIBRARIES = ("uvicorn", "fastapi", "orjson", "uvloop")


class _Chosen(NamedTuple):
    """The measurements to make, and their duration."""

    admission: Effort | None
    #: Processes, and objects of each kind; no processes: the large cluster is left out.
    replicas: int
    objects: int
    realtime: bool


def main() -> int:
    """Print the tables; exit with 1 if a goal was missed, with 2 if no cluster can run here."""
    chosen = _chosen()
    lacking = missing()
    if lacking is not None:
        sys.stderr.write(f"{lacking}\n")
        return 2
    rows = [*_admission(chosen.admission)] if chosen.admission else []
    if chosen.replicas:
        rows += _large(chosen)
    return 0 if all(row.met for row in rows) else 1


def _large(chosen: _Chosen) -> list[Row]:
    """Measure replicas in a large cluster, and print the table."""
    before, stolen_before = os.getloadavg()[0], stolen()
    figures = measure_large(chosen.replicas, chosen.objects, realtime=chosen.realtime)
    rows = large_rows(figures, chosen.objects)
    withheld, passed = (now - then for now, then in zip(stolen(), stolen_before, strict=True))
    print(f"{_machine()}, load before {before:.1f}, after {os.getloadavg()[0]:.1f},", end=" ")
    print(f"the hypervisor kept {withheld / passed:.0%} of the processors\n{_software()}")
    print("replicas and their clients with real-time priority" if chosen.realtime else "")
    print()
    print_rows(rows)
    return rows


def _admission(effort: Effort) -> list[Row]:
    """Compare ways of admission, and print both tables."""
    before = os.getloadavg()[0]
    with staged() as stage:
        figures = measure(stage, effort)
        operations, size = stage.operations, stage.asking[0].stat().st_size
    print(f"{_machine()}, load before {before:.1f}\n{_software()}")
    print(f"{effort.turns} turns of {effort.seconds:g} s, pods of {size / 1000:.1f} kB,", end=" ")
    print(f"patches of {operations} operations\n")
    _print_figures(figures)
    rows = _rows(figures)
    print()
    print_rows(rows)
    return rows


def _chosen() -> _Chosen:
    parser = argparse.ArgumentParser(prog="make bench-cluster", description=__doc__)
    parser.add_argument("--only", choices=("admission", "large"), help="one of the two parts")
    parser.add_argument("--turns", type=int, default=9, help="at full speed")
    parser.add_argument("--seconds", type=float, default=4, help="of each mode in a turn")
    parser.add_argument("--slow-turns", type=int, default=3, help="at the fixed rate")
    parser.add_argument("--slow-seconds", type=float, default=10, help="of each mode in a turn")
    parser.add_argument("--replicas", type=int, default=2, help="in a large cluster, in turns")
    parser.add_argument("--objects", type=int, default=OBJECTS, help="Nodes, and Namespaces, there")
    parser.add_argument(
        "--realtime",
        action="store_true",
        help="give replicas and their clients real-time priority, on a machine that others use",
    )
    given = vars(parser.parse_args())
    only, replicas, objects = (given.pop(name) for name in ("only", "replicas", "objects"))
    realtime = given.pop("realtime")
    admission = None if only == "large" else Effort(**given)
    return _Chosen(admission, 0 if only == "admission" else replicas, objects, realtime)


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
    programs += f", Gatekeeper {MODULES['gatekeeper'].version}"
    return f"{programs}, CPython {platform.python_version()}, {libraries}"


def _print_figures(figures: Figures) -> None:
    print(f"| pods created with | pods/s, {IN_FLIGHT} in flight | / none |", end="")
    print(f" p50 at {RATE} pods/s | p99 | a call, mean | calls per pod |\n{'|---' * 7}|")
    for mode in MODES:
        slow = figures.slow[mode]
        _, share, _ = _spread(figures.ratios(mode, NONE))
        mean = f"{figures.call_means[mode]:.1f} ms" if mode.port else ""
        calls = f"{figures.calls[mode]:.2f}" if mode.port else ""
        print(f"| {mode.title} | {figures.rate(mode):.0f} | {share:.2f} |", end="")
        print(f" {slow.p50:.1f} ms | {slow.p99:.1f} ms | {mean} | {calls} |")


def _rows(figures: Figures) -> list[Row]:
    pods, called, answered = figures.uninvited
    return [
        _ratio(figures, RAW),
        _ratio(figures, FASTAPI, PODS_GOAL),
        _ratio(figures, POLICY),
        _ratio(figures, GATEKEEPER),
        _call(figures.call_means),
        Row(
            f"calls for {pods} pods that did not opt in (API server's count, ours)",
            f"{called}, {answered}",
            "0",
            called == answered == 0,
        ),
    ]


def _ratio(figures: Figures, to: Mode, goal: float | None = None) -> Row:
    low, middle, high = _spread(figures.ratios(OURS, to))
    return Row(
        f"pods/s, {OURS.title} / {to.title}",
        f"{_middle(middle, goal)} ({low:.2f} to {high:.2f})",
        NO_GOAL if goal is None else f">= {goal}",
        goal is None or middle >= goal,
    )


def _call(means: dict[Mode, float]) -> Row:
    ratio = means[OURS] / means[RAW]
    return Row(
        "the API server's histogram of the call, mean, rdma-webhook / the bare constant patch"
        f" ({means[OURS]:.1f} / {means[RAW]:.1f} ms)",
        figure_text(ratio, CALL_GOAL),
        f"<= {CALL_GOAL}",
        ratio <= CALL_GOAL,
    )


def _middle(ratio: float, goal: float | None) -> str:
    return f"{ratio:.2f}" if goal is None else figure_text(ratio, goal)


def _spread(ratios: list[float]) -> tuple[float, float, float]:
    """Return the smallest, the median and the largest ratio."""
    return ratios[0], median(ratios), ratios[-1]


if __name__ == "__main__":
    sys.exit(main())
