"""Run cases in several processes, and survive what a case does to its process.

It makes no difference which process runs a case, which is determined by its number. Processes get
ranges of numbers; if a process dies, or one case keeps it busy for too long, that case is a
finding, and the rest of its range is given to another process.
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
#: Seconds of wall time for one case; the slowest takes less than one on an idle machine.
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
        for key, found in other.first.items():
            mine = self.first.setdefault(key, found)
            self.first[key] = min(mine, found)

    def found(self, target: str, number: int, violation: Violation) -> None:
        """Count a broken law."""
        key = (target, violation.law, violation.where)
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


class Run(NamedTuple):
    """Which cases to run: those of a seed, of one target or of all."""

    seed: int
    only: str = ""


def run(
    of: Run, numbers: range, jobs: int, tell: Callable[[Tally], None] = lambda _: None
) -> Tally:
    """Run the cases with these numbers; `tell` is called every second or so."""
    ranges = [numbers[at : at + _RANGE] for at in range(0, len(numbers), _RANGE)][::-1]
    total = Tally()
    workers = [_start(of) for _ in range(min(jobs, len(ranges)))]
    try:
        for worker in workers:
            _hand_out(worker, ranges)
        while any(worker.numbers for worker in workers):
            for index, came in _heard(workers):
                if came is None:
                    _bury(workers[index], of, total, ranges)
                    workers[index] = _start(of)
                else:
                    total.add(came)
                _hand_out(workers[index], ranges)
            tell(total)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
    return total


def _start(of: Run) -> _Worker:
    ours, theirs = _FORK.Pipe()
    at = _FORK.Value("q", -1, lock=False)
    process = _FORK.Process(target=_work, args=(of, theirs, at), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours, at)


def _hand_out(worker: _Worker, ranges: list[range]) -> None:
    worker.numbers = ranges.pop() if ranges else range(0)
    worker.last, worker.since = -1, monotonic()
    if worker.numbers:
        worker.connection.send(worker.numbers)


def _heard(workers: list[_Worker]) -> Iterator[tuple[int, Tally | None]]:
    """Yield what workers send; None for one that has died, or that hung and was killed."""
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


def _bury(worker: _Worker, of: Run, total: Tally, ranges: list[range]) -> None:
    """Count the case that ended a process, and put the rest of its range back."""
    worker.process.join()
    number, code = worker.at.value, worker.process.exitcode
    target, _ = make(of.seed, number, of.only)
    hung = monotonic() - worker.since > PATIENCE
    where = "time" if hung else f"exit {code}"
    total.found(target.name, number, Violation(SURVIVES, where, f"exit code {code}"))
    total.cases += 1
    rest = [range(worker.numbers.start, number), range(number + 1, worker.numbers.stop)]
    ranges.extend(one for one in rest if one)


def _work(of: Run, connection: Connection, at: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()
    parent = os.getppid()
    while os.getppid() == parent:  # end when the parent has been killed
        if connection.poll(1.0):
            connection.send(_several(of, connection.recv(), at, parent))


def _several(of: Run, numbers: range, at: Any, parent: int) -> Tally:
    tally = Tally()
    for number in numbers:
        if os.getppid() != parent:
            break
        at.value = number
        _one(of, number, tally)
    return tally


def _one(of: Run, number: int, tally: Tally) -> None:
    target, parts = make(of.seed, number, of.only)
    checked = check(target, parts, number)
    tally.cases += 1
    tally.targets[target.name] += 1
    tally.codes.update((target.name, code) for code in set(checked.codes))
    if checked.violation is not None:
        tally.found(target.name, number, checked.violation)
