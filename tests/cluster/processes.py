"""A cluster's programs: started inside its namespaces, watched, and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.namespaces import INSIDE, TEMPLATES, Namespaces, child, environ
from tests.cluster.state import ProcessId

#: The lines of a log that an error quotes.
_TAIL = 25
_START = (TEMPLATES / "start.sh").read_text()


class ClusterError(Exception):
    """A part of the cluster ended or did not come up; the message quotes its log."""


@dataclass(frozen=True)
class Process:
    """A program that runs inside, with its log."""

    name: str
    log: Path
    id: ProcessId
    argv: tuple[str | os.PathLike[str], ...] = ()
    env: Mapping[str, str] | None = None

    def ended(self) -> bool:
        """Return whether the program has ended, for whatever reason."""
        return not self.id.alive()

    def stop(self, seconds: float = 10.0) -> None:
        """Send SIGTERM, and SIGKILL after `seconds`."""
        self._kill(signal.SIGTERM, seconds)
        self._kill(signal.SIGKILL, seconds)

    def _kill(self, how: signal.Signals, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        with suppress(ProcessLookupError):
            if self.id.alive():
                os.kill(self.id.pid, how)
        while self.id.alive() and time.monotonic() < deadline:
            time.sleep(0.02)

    def tail(self) -> str:
        """Return the last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines()[-_TAIL:]
        return "\n".join((f"--- {self.log}", *lines))


class Processes:
    """The programs of one cluster that were started by this process."""

    def __init__(self, namespaces: Namespaces, logs: Path) -> None:
        self._namespaces = namespaces
        self._logs = logs
        self.started: list[Process] = []

    def start(
        self,
        name: str,
        argv: Sequence[str | os.PathLike[str]],
        env: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a program; its output goes to its log."""
        log = self._logs / f"{name}.log"
        command = ["sh", "-c", _START, "sh", INSIDE / "log" / log.name, *argv]
        launcher = subprocess.Popen(
            self._namespaces.command(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environ(), **(env or {})},
            start_new_session=True,  # Ctrl-C must not reach it: the cluster is taken down in order
        )
        assert launcher.stdout is not None
        launcher.stdout.readline()
        process = Process(name, log, ProcessId.of(child(child(launcher.pid))), tuple(argv), env)
        launcher.communicate()
        self.started.append(process)
        return process

    @contextmanager
    def without(self, name: str, seconds: float = 10.0) -> Iterator[None]:
        """Stop a program for the duration of the block, then start it again as before.

        With `seconds` 0 it is killed. This does not wait until the program answers again.
        """
        stopped = self._named(name)
        stopped.stop(seconds)
        self.started.remove(stopped)
        self.until(f"{name} ended", stopped.ended)
        try:
            yield
        finally:
            self.start(name, stopped.argv, stopped.env)

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """Stop a program from running during the block; its connections stay, but get no answer."""
        process = self._named(name)
        assert process.id.alive()
        os.kill(process.id.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process.id.pid, signal.SIGCONT)

    def _named(self, name: str) -> Process:
        (process,) = (process for process in self.started if process.name == name)
        return process

    def until(self, goal: str, condition: Callable[[], bool], seconds: float = 300.0) -> None:
        """Wait for a condition.

        Raises ClusterError if it takes too long, or if a program ends first.
        """
        deadline = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                tails = "\n".join(process.tail() for process in self.started)
                raise ClusterError(f"{goal}: not within {seconds:.0f} s\n{tails}")
            time.sleep(0.1)

    def check(self) -> None:
        """Raise ClusterError if a program has ended."""
        for process in self.started:
            if process.ended():
                raise ClusterError(f"{process.name} has ended\n{process.tail()}")
