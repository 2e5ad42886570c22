"""The mount, network, pid and cgroup namespaces that a cluster lives in.

Ending their first process ends every process, mount and network device in them at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.cluster.state import ProcessId

TEMPLATES = Path(__file__).parent / "templates"
_INIT = TEMPLATES / "init.sh"
_JOIN = (TEMPLATES / "join.sh").read_text()

#: Where processes inside see the cluster's directory: short, since paths of sockets are limited.
INSIDE = Path("/run/cluster")

_UNSHARE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


class NamespaceError(Exception):
    """The namespaces could not be made, or a command in them failed; the message is its output."""


@dataclass(frozen=True)
class Namespaces:
    """The namespaces of a running cluster."""

    init: ProcessId

    def command(self, argv: Sequence[str | os.PathLike[str]]) -> list[str]:
        """Return the command that runs `argv` inside, as a process of the cluster's cgroup."""
        enter = ["nsenter", "--target", str(self.init.pid), "--mount", "--net", "--pid", "--cgroup"]
        return [*enter, "--", "sh", "-c", _JOIN, "sh", *(os.fspath(word) for word in argv)]

    def run(
        self,
        argv: Sequence[str | os.PathLike[str]],
        stdin: str | None = None,
        file: IO[bytes] | None = None,
    ) -> str:
        """Run a command inside and return its output; raise NamespaceError if it fails.

        Its input is a text, or a file, which need not be visible inside; otherwise it is empty.
        """
        source: dict[str, Any] = {"stdin": file or subprocess.DEVNULL}
        if stdin is not None:
            source = {"input": stdin}
        ran = subprocess.run(
            self.command(argv),
            **source,
            capture_output=True,
            text=True,
            env=environ(),
            check=False,
        )
        if ran.returncode:
            message = ran.stderr.strip() or ran.stdout.strip()
            raise NamespaceError(f"{os.fspath(argv[0])} ended with {ran.returncode}: {message}")
        printed: str = ran.stdout
        return printed

    def end(self, seconds: float = 120.0) -> None:
        """Kill the first process, and wait until the kernel has ended all others."""
        deadline = time.monotonic() + seconds
        while self.init.alive():
            with suppress(ProcessLookupError):
                os.kill(self.init.pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise NamespaceError(f"process {self.init.pid} does not end")
            time.sleep(0.02)


def create(
    directory: Path, cgroup: str, *, bound: bool
) -> tuple[Namespaces, subprocess.Popen[str]]:
    """Make the namespaces, with `directory` at INSIDE.

    `bound` ones end with the calling thread, however it ends. Return them, and the process outside
    that waits for their first process.
    """
    argv = [*_UNSHARE, "--propagation", "private", "sh", str(_INIT), str(directory), cgroup]
    if bound:
        argv = ["setpriv", "--pdeathsig", "KILL", *argv]
    with (directory / "init.log").open("w") as log:
        outer = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # Ctrl-C must not reach it: the cluster is taken down in order
        )
    assert outer.stdout is not None
    with outer.stdout as stdout:
        if stdout.readline() != "ready\n":
            outer.wait()
            raise NamespaceError((directory / "init.log").read_text().strip())
    return Namespaces(ProcessId.of(child(outer.pid))), outer


def environ() -> dict[str, str]:
    """Return the environment without proxies, which cannot reach addresses inside.

    Programs in Go collect garbage when the heap is four times what was in use, instead of twice: a
    cluster lives for minutes, and has more memory than processors.
    """
    variables = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return {"GOGC": "300", **variables}


def child(pid: int) -> int:
    """Return the only child of a process; raise ProcessLookupError if it has none (yet)."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    if not children:
        raise ProcessLookupError(f"{pid} has no child")
    return int(children[0])
