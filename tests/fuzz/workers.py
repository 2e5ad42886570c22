"""Run cases in several processes, and survive a case that ends its process.

Any process may run a case, since the number determines it. Processes get ranges of numbers. A case
that ends its process, or keeps it busy for too long, is a finding; another process gets the
remaining range.
"""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import resource
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any, NamedTuple

from tests.fuzz.check import SURVIVES, Violation, check, make

_FORK = multiprocessing.get_context("fork")
_RANGE = 250
#: Seconds of wall time for one case; the slowest takes less than one second on an idle machine.
PATIENCE = 120.0
#: Bytes of address space: a case that needs more gets a MemoryError, and the machine survives.
_MEMORY = 8 << 30


class First(NamedTuple):
    """The first case that led to a finding."""

    number: int
    violation: Violation


@dataclass(slots=True)
class Tally:
    """The results of some cases."""

    cases: int = 0
    targets: Counter[str] = field(default_factory=Counter)
    #: How many cases reached a target's code: (target, code).
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)
    first: dict[tuple[str, str, str], First] = field(default_factory=dict)
    broken: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Add the results of other cases."""
        self.cases += other.cases
        self.targets += other.targets
        self.codes += other.codes
        self.broken += other.broken
        for key, theirs in other.first.items():
            mine = self.first.setdefault(key, theirs)
            self.first[key] = min(mine, theirs)

    def add_violation(self, target: str, number: int, violation: Violation) -> None:
        """Count a broken law."""
        key = (target, violation.law, violation.place)
        self.broken[key] += 1
        self.first.setdefault(key, First(number, violation))


@dataclass(slots=True)
class _Worker:
    """One process, with its range of numbers."""

    process: BaseProcess
    connection: Connection
    at: Any  #: shared: the number of the current case
    numbers: range = range(0)
    last: int = -1
    since: float = 0.0


class Selection(NamedTuple):
    """The cases to run: of a seed, for one target or for all."""

    seed: int
    only: str = ""


def run(
    selection: Selection,
    numbers: range,
    jobs: int,
    report: Callable[[Tally], None] = lambda _: None,
) -> Tally:
    """Run the cases with these numbers, and call `report` about every second."""
    ranges = [numbers[at : at + _RANGE] for at in range(0, len(numbers), _RANGE)][::-1]
    total = Tally()
    workers = [_start(selection) for _ in range(min(jobs, len(ranges)))]
    try:
        for worker in workers:
            _hand_out(worker, ranges)
        while any(worker.numbers for worker in workers):
            for index, tally in _heard(workers):
                if tally is None:
                    _bury(workers[index], selection, total, ranges)
                    workers[index] = _start(selection)
                else:
                    total.add(tally)
                _hand_out(workers[index], ranges)
            report(total)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
    return total


def _start(selection: Selection) -> _Worker:
    ours, theirs = _FORK.Pipe()
    at = _FORK.Value("q", -1, lock=False)
    process = _FORK.Process(target=_work, args=(selection, theirs, at), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, at)


def _hand_out(worker: _Worker, ranges: list[range]) -> None:
    worker.numbers = ranges.pop() if ranges else range(0)
    worker.last, worker.since = -1, monotonic()
    if worker.numbers:
        worker.connection.send(worker.numbers)


def _heard(workers: list[_Worker]) -> Iterator[tuple[int, Tally | None]]:
    """Yield the results of workers; None for a worker that died, or that hung and was killed."""
    busy = {worker.connection: index for index, worker in enumerate(workers) if worker.numbers}
    for connection in wait(list(busy), timeout=1.0):
        assert isinstance(connection, Connection)
        index = busy.pop(connection)
        try:
            yield index, connection.recv()
        except EOFError:
            yield index, None
    for index in busy.values():
        worker, now = workers[index], monotonic()
        if worker.at.value != worker.last:
            worker.last, worker.since = worker.at.value, now
        elif now - worker.since > PATIENCE:
            worker.process.kill()


def _bury(worker: _Worker, selection: Selection, total: Tally, ranges: list[range]) -> None:
    """Count the case that ended a process, and put the remaining range back."""
    worker.process.join()
    number, code = worker.at.value, worker.process.exitcode
    target, _ = make(selection.seed, number, selection.only)
    hung = monotonic() - worker.since > PATIENCE
    place = "time" if hung else f"exit {code}"
    total.add_violation(target.name, number, Violation(SURVIVES, place, f"exit code {code}"))
    total.cases += 1
    remaining = [range(worker.numbers.start, number), range(number + 1, worker.numbers.stop)]
    ranges.extend(part for part in remaining if part)


def _work(selection: Selection, connection: Connection, at: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()
    parent = os.getppid()
    while os.getppid() == parent:  # end when the parent has been killed
        if connection.poll(1.0):
            connection.send(_run_cases(selection, connection.recv(), at, parent))


def _run_cases(selection: Selection, numbers: range, at: Any, parent: int) -> Tally:
    tally = Tally()
    for number in numbers:
        if os.getppid() != parent:
            break
        at.value = number
        _run_case(selection, number, tally)
    return tally


def _run_case(selection: Selection, number: int, tally: Tally) -> None:
    target, parts = make(selection.seed, number, selection.only)
    checked = check(target, parts, number)
    tally.cases += 1
    tally.targets[target.name] += 1
    tally.codes.update((target.name, code) for code in set(checked.codes))
    if checked.violation is not None:
        tally.add_violation(target.name, number, checked.violation)
