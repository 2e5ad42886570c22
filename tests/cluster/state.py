"""The record of a cluster outside its namespaces, so that another process can end it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "state.json"


@dataclass(frozen=True)
class ProcessId:
    """A process, identified so that a later one with the same number is not taken for it."""

    pid: int
    started: int
    """Clock ticks after the machine's start."""

    @classmethod
    def of(cls, pid: int) -> ProcessId:
        """Identify a running process; raise ProcessLookupError if it does not run."""
        status = _status(pid)
        if status is None:
            raise ProcessLookupError(pid)
        return cls(pid, status[1])

    def alive(self) -> bool:
        """Return whether it runs; a zombie does not."""
        status = _status(self.pid)
        return status is not None and status == (status[0], self.started) and status[0] not in "ZX"


def _status(pid: int) -> tuple[str, int] | None:
    """Return a process's state and start, fields 3 and 22 of proc(5)'s stat."""
    try:
        # The name before them is in parentheses and may contain anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[19])


@dataclass(frozen=True)
class State:
    """A cluster's record, `state.json` in its directory."""

    minor: str
    owner: ProcessId
    """The process that starts it."""
    init: ProcessId | None = None
    """PID 1 of its namespaces, by its number outside."""
    network: int | None = None
    complete: bool = False
    """Whether the start is complete; until then the cluster depends on its owner."""

    def alive(self) -> bool:
        """Return whether the cluster runs, or is being started."""
        decides = self.init if self.complete else self.owner
        return decides is not None and decides.alive()

    def write(self, directory: Path) -> None:
        """Write the record; readers never see half of it."""
        new = directory / f".{FILE}"
        new.write_text(json.dumps(asdict(self)))
        new.replace(directory / FILE)


def read(directory: Path) -> State | None:
    """Return the directory's record, or None if it has none."""
    try:
        record = json.loads((directory / FILE).read_text())
    except (FileNotFoundError, NotADirectoryError):
        return None
    owner, init = record.pop("owner"), record.pop("init")
    return State(**record, owner=ProcessId(**owner), init=ProcessId(**init) if init else None)


def home() -> Path:
    """Return the folder of this user's clusters ($XDG_STATE_HOME/rdma-webhook)."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return base / "rdma-webhook"
