"""`verify run` as a process, which tests follow by its output, and end by signals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster.second_node import TAINT
from tests.e2e.verify.conftest import RunNamespace
from tests.waiting import PATIENCE

_PROGRAM = (sys.executable, "-m", "webhook")


class Running:
    """A process of the command."""

    def __init__(self, lab: RunNamespace, *words: str | Path, command: str = "run") -> None:
        """Start it; `words` follow the options that every run needs."""
        access = ("--kubeconfig", lab.cluster.kubeconfig, "-n", lab.name)
        options = ("--fabric", "v100-ib", "--toleration", TAINT)
        self._process = subprocess.Popen(
            [*_PROGRAM, "verify", command, *access, *options, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "COLUMNS": "200"},
            text=True,
        )
        self.printed: list[str] = []
        self._out: str | None = None
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._news:
                self.printed.append(line.rstrip())
                self._news.notify_all()

    @property
    def name(self) -> str:
        """The name of the run, from its first line."""
        self.until("in namespace")
        return self.printed[0].removeprefix("rdma-webhook: run: ").partition(" ")[0]

    def until(self, words: str) -> None:
        """Wait until it has printed these words."""
        with self._news:
            appeared = self._news.wait_for(
                lambda: any(words in line for line in self.printed), PATIENCE
            )
        assert appeared, self.printed

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it, if a test left it."""
        self._process.kill()
        self.wait()

    def wait(self) -> tuple[int, str]:
        """Wait for the end; return the exit code and the output."""
        if self._out is None:
            assert self._process.stdout is not None
            assert self._process.stderr is not None
            self._out = self._process.stdout.read()
            self._process.wait(PATIENCE)
            self._reader.join(PATIENCE)
            self._process.stdout.close()
            self._process.stderr.close()
        return self._process.returncode, self._out


class Runs(NamedTuple):
    """Runs that take place at the same time, and the folder of their logs."""

    started: dict[str, Running]
    logs: Path

    def form(self, name: str, code: int) -> dict[str, Any]:
        """Return the -o json output of a run, once it has ended with this exit code."""
        run = self.started[name]
        ended, out = run.wait()
        assert ended == code, run.printed
        form: dict[str, Any] = json.loads(out)
        return form


def measured(form: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the results in the output of -o json, pair by pair."""
    return [result for pair in form["pairs"] for result in pair["results"]]


def verify(lab: RunNamespace, *words: str) -> subprocess.CompletedProcess[str]:
    """Run another command below `verify` to its end."""
    command: Sequence[str | Path] = (*words, "--kubeconfig", lab.cluster.kubeconfig)
    return subprocess.run(
        [*_PROGRAM, "verify", *command], capture_output=True, text=True, check=False
    )
