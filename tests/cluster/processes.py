"""A cluster's programs: started inside its namespaces, watched, and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.namespaces import Namespaces, child, environ

#: What a message quotes of a log.
_TAIL = 25


class ClusterError(Exception):
    """A part of the cluster ended or did not come up; the message quotes its log."""


@dataclass(frozen=True)
class Process:
    """A program that runs inside, and its log."""

    name: str
    log: Path
    _outer: subprocess.Popen[bytes] = field(repr=False)

    def ended(self) -> int | None:
        """Return its exit status, None while it runs."""
        return self._outer.poll()

    def stop(self, seconds: float = 10.0) -> None:
        """Ask it to end, and after `seconds` make it end."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(child(self._outer.pid), how)
                self._outer.wait(seconds)
            except (ProcessLookupError, FileNotFoundError):
                break  # it has just ended
            except subprocess.TimeoutExpired:
                continue
            break
        self._outer.wait()

    def wait(self) -> None:
        """Wait for its end."""
        self._outer.wait()

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
        with log.open("ab") as output:
            outer = subprocess.Popen(
                self._namespaces.command(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**environ(), **(env or {})},
                start_new_session=True,  # Ctrl-C is for whoever takes the cluster down in order
            )
        process = Process(name, log, outer)
        self.started.append(process)
        return process

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
            if (status := process.ended()) is not None:
                raise ClusterError(f"{process.name} ended with {status}\n{process.tail()}")

    def forget(self, process: Process) -> None:
        """Expect the end of a program."""
        self.started.remove(process)

    def reap(self) -> None:
        """Wait for what runs the programs, once the namespaces have ended."""
        for process in self.started:
            process.wait()
        self.started.clear()
