"""Files that take long to make, cached for the user under a key of their inputs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import progress

#: The number of versions of one file that are kept: enough to switch between a few branches.
KEEP = 3

_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.py[cod]")


def folder() -> Path:
    """Return the cache folder ($XDG_CACHE_HOME/rdma-webhook/images)."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = base / "rdma-webhook" / "images"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def alone() -> Iterator[int]:
    """Lock the folder; yield the lock's file descriptor, for programs that may outlive this one."""
    with (folder() / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step("waiting for another process that builds images"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def used(path: Path) -> bool:
    """Return whether the file exists, and mark it as used, so that others are pruned first."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def prune(name: str) -> None:
    """Remove all but the last used `NAME-KEY.tar`, and the unfinished files of dead processes.

    The caller must hold the folder's lock.
    """
    archives = (path for path in folder().glob(f"{name}-*.tar"))
    for path in sorted(archives, key=lambda path: path.stat().st_mtime, reverse=True)[KEEP:]:
        path.unlink()
    for path in folder().glob(".*.new"):
        path.unlink()


def copy(root: Path, names: Iterable[str], target: Path) -> None:
    """Copy files and folders without bytecode, and with the same fixed times for all.

    So an edit during a build does not affect it, and a fresh checkout gives the same result.
    """
    target.mkdir(exist_ok=True)
    for name in names:
        if (root / name).is_dir():
            shutil.copytree(root / name, target / name, ignore=_LEFT_OUT)
        else:
            shutil.copy2(root / name, target / name)
    for path in [target, *target.rglob("*")]:
        os.utime(path, (0, 0))


def key(root: Path, *parts: str) -> str:
    """Return twelve digits that depend on the files' names, contents and modes, and on `parts`."""
    files = (
        (path.relative_to(root).as_posix(), os.access(path, os.X_OK), path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    )
    return digest(*parts, *map(repr, files))


def digest(*parts: str) -> str:
    """Return twelve digits that depend on every part."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
