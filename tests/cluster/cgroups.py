"""The cluster's cgroup, in each hierarchy that the machine has (v1) or in the only one (v2)."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_MOUNTS = Path("/proc/mounts")
#: The cluster's share of the processors, by the files of v1 and v2: ten times the default. With
#: the default, the whole cluster would get as much as one busy process outside it.
_WEIGHTS = {"cpu.shares": "10240", "cpu.weight": "1000"}


def name_for(directory: Path) -> str:
    """Return the cgroup's name, which depends on the cluster's directory."""
    return "rdma-webhook-" + hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]


def paths(name: str) -> list[Path]:
    """Return the cgroup's paths, whether or not it exists."""
    return [hierarchy / name for hierarchy in _hierarchies()]


def create(name: str) -> None:
    """Make the cgroup, ready for processes."""
    for path in paths(name):
        path.mkdir(exist_ok=True)
        for kind in ("cpus", "mems"):  # in version 1 these are empty at first
            setting, parent = (at / f"cpuset.{kind}" for at in (path, path.parent))
            if parent.exists() and setting.exists() and not setting.read_text().strip():
                setting.write_text(parent.read_text())
        for file, weight in _WEIGHTS.items():
            if (path / file).exists():
                (path / file).write_text(weight)


def kill(name: str) -> None:
    """Kill every process of the cgroup and of the cgroups below it."""
    for path in paths(name):
        for folder, _, _ in os.walk(path):
            with suppress(FileNotFoundError):
                for pid in (Path(folder) / "cgroup.procs").read_text().split():
                    _kill(int(pid))


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def remove(name: str, seconds: float = 60.0) -> None:
    """Remove the cgroup and the cgroups below it.

    Raises OSError if processes keep it for too long.
    """
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
            time.sleep(0.02)  # its last process is about to end
        else:
            return


def _hierarchies() -> Iterator[Path]:
    hierarchies = set()
    for line in _MOUNTS.read_text().splitlines():
        _, mount, kind, *_ = line.split()
        if kind in ("cgroup", "cgroup2") and mount.startswith("/sys/fs/cgroup"):
            hierarchies.add(Path(mount))
    yield from sorted(hierarchies)
