"""The end of clusters: in order, after a failed start, or after their owner was killed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.cluster import cgroups, progress, state
from tests.cluster.namespaces import Namespaces
from tests.cluster.network import Network

_ROOT = Path(__file__).parents[2]


def remove(directory: Path) -> None:
    """End the cluster of this directory, if any, and leave no trace."""
    record = state.read(directory)
    if record is None:
        return
    if record.init is not None:
        Namespaces(record.init).end()
    cgroup = cgroups.name_for(directory)
    cgroups.kill(cgroup)  # one that was killed during its start may not be in the record
    if record.network is not None:
        Network(record.network).remove()
    cgroups.remove(cgroup)
    # The record goes last: until then, the next start can finish an interrupted removal.
    for folder in filter(Path.is_dir, directory.glob("*")):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(directory, ignore_errors=True)


def sweep() -> None:
    """Remove this user's clusters that died with their owner."""
    home = state.home()
    for directory in home.iterdir() if home.is_dir() else ():
        record = state.read(directory)
        if record is not None and not record.alive():
            progress.say(f"removing what is left of a cluster that was killed: {directory}")
            remove(directory)


class Guard:
    """A process that removes the cluster when the process that started the guard is gone."""

    def __init__(self, directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cluster.guard", directory],
            cwd=_ROOT,
            stdin=subprocess.PIPE,  # ends with this process
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """Let the guard end, since there is nothing left to remove."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
