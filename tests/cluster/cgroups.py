"""The cluster's own cgroup, in each hierarchy that the machine has (v1) or in the one (v2)."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_MOUNTS = Path("/proc/mounts")
#: The cluster's share of the processors in the words of v1 and v2: ten times the usual one. With
#: the usual one all of it together would count as much as one process that works outside of it.
_WEIGHTS = {"cpu.shares": "10240", "cpu.weight": "1000"}


def name_for(directory: Path) -> str:
    """Return the cgroup's name, which the cluster's directory decides."""
    return "rdma-webhook-" + hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]


def paths(name: str) -> list[Path]:
    """Return where the cgroup is, or would be."""
    return [hierarchy / name for hierarchy in _hierarchies()]


def create(name: str) -> None:
    """Make the cgroup, ready for processes."""
    for path in paths(name):
        path.mkdir(exist_ok=True)
        for kind in ("cpus", "mems"):  # version 1 starts with none
            own, parent = (at / f"cpuset.{kind}" for at in (path, path.parent))
            if parent.exists() and own.exists() and not own.read_text().strip():
                own.write_text(parent.read_text())
        for file, weight in _WEIGHTS.items():
            if (path / file).exists():
                (path / file).write_text(weight)


def kill(name: str) -> None:
    """Kill every process of the cgroup and of those below it."""
    for path in paths(name):
        for folder, _, _ in os.walk(path):
            with suppress(FileNotFoundError):
                for pid in (Path(folder) / "cgroup.procs").read_text().split():
                    _kill(int(pid))


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def remove(name: str, seconds: float = 10.0) -> None:
    """Remove the cgroup and those below it; OSError where a process keeps it for too long."""
    deadline = time.monotonic() + seconds
    for path in paths(name):
        for folder, _, _ in os.walk(path, topdown=False):
            _rmdir(Path(folder), deadline)


def _rmdir(folder: Path, deadline: float) -> None:
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)  # its last process is just ending
        else:
            return


def _hierarchies() -> Iterator[Path]:
    seen = set()
    for line in _MOUNTS.read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2") and where.startswith("/sys/fs/cgroup"):
            seen.add(Path(where))
    yield from sorted(seen)
