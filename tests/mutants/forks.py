"""Run the tests of each mutant in a process of its own, forked from one that collected the tests.

The collecting process runs no test, so a mutant finds nothing that a test left behind: no cached
result of the code that it changes.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import waiting

KILLED, SURVIVED, TIMEOUT, UNREACHED = "killed", "survived", "timeout", "no tests"
#: What a mutant may take: seconds of processor time and of time, and so often what its tests took.
_PROCESSOR, _CLOCK, _TIMES = 10, 60, 10
#: Seconds that its tests wait for anything, and more if they take long without a mutant.
_PATIENCE = 10.0
#: What it may allocate, in bytes: a loop without end must not take the machine's memory.
_MEMORY = 4 * 2**30


class ForkedTests:
    """A plugin of pytest that runs the tests of mutants instead of all tests.

    `activate` makes this process run a mutant, or with "stats" record what it calls; `reached`
    returns, and forgets, the functions called since the last time. `report` gets the name of each
    mutant and how it ended. `failed` has the tests that fail without a mutant: none is run then.
    """

    def __init__(
        self,
        mutants: Iterable[str],
        *,
        jobs: int,
        folder: Path,
        activate: Callable[[str], None],
        reached: Callable[[], Iterable[str]],
        report: Callable[[str, str], None],
    ) -> None:
        self._mutants = mutants
        self._jobs = jobs
        self._reach = folder.absolute() / "reach.json"
        self._activate = activate
        self._reached = reached
        self._report = report
        self._running: dict[int, str] = {}
        self.failed: list[str] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Find out which tests reach which function; then run the mutants, `jobs` at a time."""
        if session.testsfailed:  # to collect
            return True
        gc.freeze()  # so that the processes below share more memory
        try:
            self._fork("", partial(self._record, session.items))
            os.wait()
            found = json.loads(self._reach.read_text("utf-8"))
            self.failed = found["failed"]
            self._running.clear()
            for name in () if self.failed else self._mutants:
                self._start(name, session.items, found)
            while self._running:
                self._wait()
        finally:
            for pid in self._running:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
        return True

    def _fork(self, name: str, run: Callable[[], bool]) -> None:
        """Start a process that leads those that its tests start; it says whether the tests pass."""
        pid = os.fork()
        if pid:
            self._running[pid] = name
            return
        passed = False
        try:
            os.setpgid(0, 0)
            passed = run()
        finally:
            os._exit(not passed)  # nothing ends that began before the fork

    def _record(self, items: Sequence[pytest.Item]) -> bool:
        """Run all tests, and write down which functions each of them reaches."""
        self._activate("stats")
        tests: dict[str, list[int]] = {}
        seconds, failed, breadth = [], [], []
        for index, item in enumerate(items):
            start = time.monotonic()
            passed = _passes([item, *items[index + 1 : index + 2]])
            seconds.append(time.monotonic() - start)
            failed += [] if passed else [item.nodeid]
            functions = list(self._reached())
            breadth.append(len(functions))
            for function in functions:
                tests.setdefault(function, []).append(index)
        for indexes in tests.values():  # first those that test little else, and quickly
            indexes.sort(key=lambda index: (breadth[index], seconds[index]))
        found = {"tests": tests, "seconds": seconds, "failed": failed}
        self._reach.write_text(json.dumps(found), "utf-8")
        return True

    def _start(self, name: str, items: Sequence[pytest.Item], found: dict[str, Any]) -> None:
        indexes = found["tests"].get(name.partition("__mutmut_")[0])
        if not indexes:
            self._report(name, UNREACHED)
            return
        while len(self._running) >= self._jobs:
            self._wait()
        seconds = sum(found["seconds"][index] for index in indexes)
        self._fork(name, partial(self._mutant, name, [items[index] for index in indexes], seconds))

    def _mutant(self, name: str, tests: list[pytest.Item], seconds: float) -> bool:
        _bound(seconds)
        self._activate(name)
        return all(_passes(tests[at : at + 2]) for at in range(len(tests)))

    def _wait(self) -> None:
        pid, status = os.wait()
        if os.WIFSIGNALED(status):
            stopped = os.WTERMSIG(status) in {signal.SIGXCPU, signal.SIGALRM}
            ended = TIMEOUT if stopped else KILLED
        else:
            ended = KILLED if os.WEXITSTATUS(status) else SURVIVED
        self._report(self._running.pop(pid), ended)


def _passes(tests: list[pytest.Item]) -> bool:
    """Run the first of the tests; the next one, if any, may share its fixtures."""
    test, *following = tests
    failures = _Failures()
    test.config.pluginmanager.register(failures)
    try:
        test.config.hook.pytest_runtest_protocol(item=test, nextitem=next(iter(following), None))
    finally:
        test.config.pluginmanager.unregister(failures)
    return not failures.found


class _Failures:
    """Whether a test failed, or a fixture of it did."""

    def __init__(self) -> None:
        self.found = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Report a failure in short: to describe it takes longer than most tests do."""
        if call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception):
            return None
        self.found = True
        return pytest.TestReport(
            item.nodeid, item.location, {}, "failed", call.excinfo.exconly(), "call"
        )


def _bound(seconds: float) -> None:
    """Bound what this process may take and wait for, and silence it."""
    waiting.PATIENCE = _PATIENCE + _TIMES * seconds
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    processor = int(_PROCESSOR + _TIMES * seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (processor, processor + 10))
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(_CLOCK + _TIMES * seconds))
