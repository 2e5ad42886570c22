"""Fuzz the real code: `make fuzz [CASES=1000000] [JOBS=2] [SEED=…] [TARGET=…]`.

With `CASE=…` and the seed it runs that case again, shrinks it if it breaks a law, and shows it.
Every finding is shrunk and written to tests/fuzz/found, where it is a test from then on.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from functools import partial
from pathlib import Path
from time import monotonic

from tests.fuzz.check import SURVIVES, TARGETS, Violation, check, check_apart, make
from tests.fuzz.found import FOLDER, keep
from tests.fuzz.shrink import shrunk
from tests.fuzz.table import Progress, table
from tests.fuzz.target import Parts, Target
from tests.fuzz.workers import PATIENCE, First, Selection, Tally, run


def main() -> int:
    """Fuzz; return 1 if a law was broken."""
    options = _arguments()
    selection = Selection(options.seed, options.target)
    if options.case is not None:
        return _rerun(selection, options.case, options.found)
    print(
        f"fuzz: {options.cases} cases, seed {selection.seed}, {options.jobs} processes", flush=True
    )
    progress = Progress(options.cases)
    numbers = range(options.first, options.first + options.cases)
    tally = run(selection, numbers, options.jobs, progress.report)
    progress.end(tally)
    print(table(tally))
    for (name, _, _), first in sorted(tally.first.items(), key=lambda pair: pair[1].number):
        _report(selection, TARGETS[name], first, options.found)
    _sum_up(tally)
    return 1 if tally.broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=None, help="default: a new one, printed")
    parser.add_argument("--case", type=int, default=None, help="run one case again")
    parser.add_argument("--found", type=Path, default=FOLDER, help="where findings are kept")
    parser.add_argument("--target", choices=("", *TARGETS), default="", help="default: all")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(10**9)
    return options


def _rerun(selection: Selection, number: int, folder: Path) -> int:
    target, parts = make(selection.seed, number, selection.only)
    violation = check_apart(target, parts, PATIENCE) or check(target, parts).violation
    for name, value in parts.items():
        print(f"{name}: {value!r}")
    if violation is None:
        print(f"case {number} of seed {selection.seed} ({target.name}) breaks no law")
        return 0
    _report(selection, target, First(number, violation), folder)
    return 1


def _report(selection: Selection, target: Target, first: First, folder: Path) -> None:
    """Shrink the first case of a finding, keep it, and describe it."""
    number, violation = first
    _, parts = make(selection.seed, number, selection.only)
    small = shrunk(parts, partial(_breaks, target, violation))
    path = keep(target, small, violation, folder)
    only = f" TARGET={selection.only}" if selection.only else ""
    print(f"\n{target.name} breaks {violation.law} ({violation.place})")
    print(f"  {violation.message[:500]}")
    print(f"  again: make fuzz SEED={selection.seed} CASE={number}{only}")
    print(f"  kept, shrunk: {os.path.relpath(path)}\n{path.read_text()}", flush=True)


def _breaks(target: Target, violation: Violation, parts: Parts) -> bool:
    if violation.law == SURVIVES:
        return violation.same_as(check_apart(target, parts, PATIENCE))
    return violation.same_as(check(target, parts).violation)


def _sum_up(tally: Tally) -> None:
    for (name, law, place), count in tally.broken.most_common():
        print(f"{count} cases of {name} break {law} ({place})")
    print(f"fuzz: {sum(tally.broken.values())} of {tally.cases} cases break a law")


if __name__ == "__main__":
    started = monotonic()
    code = main()
    print(f"fuzz: {monotonic() - started:.0f} s")
    sys.exit(code)
