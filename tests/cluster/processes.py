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

#: What a message quotes of a log.
_TAIL = 25
_START = (TEMPLATES / "start.sh").read_text()


class ClusterError(Exception):
    """A part of the cluster ended or did not come up; the message quotes its log."""


@dataclass(frozen=True)
class Process:
    """A program that runs inside, and its log."""

    name: str
    log: Path
    id: ProcessId
    argv: tuple[str | os.PathLike[str], ...] = ()
    env: Mapping[str, str] | None = None

    def ended(self) -> bool:
        """Tell whether it has ended, by itself or not."""
        return not self.id.alive()

    def stop(self, seconds: float = 10.0) -> None:
        """Ask it to end, and after `seconds` make it end."""
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
        """Return its log's last lines."""
        lines = self.log.read_text(errors="replace").splitlines()[-_TAIL:]
        return "\n".join((f"--- {self.log}", *lines))


class Processes:
    """The programs of one cluster that this process started."""

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
        """Start a program; what it prints goes to its log."""
        log = self._logs / f"{name}.log"
        command = ["sh", "-c", _START, "sh", INSIDE / "log" / log.name, *argv]
        launcher = subprocess.Popen(
            self._namespaces.command(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**environ(), **(env or {})},
            start_new_session=True,  # Ctrl-C is for whoever takes the cluster down in order
        )
        assert launcher.stdout is not None
        launcher.stdout.readline()
        process = Process(name, log, ProcessId.of(child(child(launcher.pid))), tuple(argv), env)
        launcher.communicate()
        self.started.append(process)
        return process

    @contextmanager
    def without(self, name: str, seconds: float = 10.0) -> Iterator[None]:
        """Stop a program for the time of the block, then start it again as it was.

        With `seconds` 0 it is killed. Who needs it to answer again waits for that.
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
        """Keep a program from running for the time of the block: its connections stay, unheard."""
        process = self._named(name)
        assert process.id.alive()
        os.kill(process.id.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process.id.pid, signal.SIGCONT)

    def _named(self, name: str) -> Process:
        (found,) = (process for process in self.started if process.name == name)
        return found

    def until(self, what: str, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Wait for a condition; ClusterError where time runs out or a program ends before."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                tails = "\n".join(process.tail() for process in self.started)
                raise ClusterError(f"{what}: not within {seconds:.0f} s\n{tails}")
            time.sleep(0.1)

    def check(self) -> None:
        """Raise ClusterError where a program has ended."""
        for process in self.started:
            if process.ended():
                raise ClusterError(f"{process.name} has ended\n{process.tail()}")
