"""Files that take long to make, kept in the user's cache under a key of what they are made of."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import progress

#: Versions of one file that are kept: some branches that a developer goes back and forth between.
KEPT = 3

_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.py[cod]")


def folder() -> Path:
    """Return where they lie ($XDG_CACHE_HOME/rdma-webhook/images)."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = base / "rdma-webhook" / "images"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def alone() -> Iterator[int]:
    """Hold the folder, and give the lock's file descriptor, for programs that may outlive us."""
    with (folder() / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with progress.step("waiting for another process that builds images"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def used(path: Path) -> bool:
    """Tell whether the file is there, and mark it as wanted, so that others are pruned first."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def prune(name: str) -> None:
    """Remove all `NAME-KEY.tar` but the few that were wanted last, and halves of dead processes.

    Only for who holds the folder.
    """
    archives = (path for path in folder().glob(f"{name}-*.tar"))
    for path in sorted(archives, key=lambda path: path.stat().st_mtime, reverse=True)[KEPT:]:
        path.unlink()
    for path in folder().glob(".*.new"):
        path.unlink()


def copy(root: Path, names: Iterable[str], target: Path) -> None:
    """Copy files and folders, bytecode left out, with times that say nothing.

    What builds from the copy is not surprised by an edit halfway, nor by a fresh checkout.
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
    """Return twelve digits that change with the folder's names, contents and modes, or a part."""
    files = (
        (path.relative_to(root).as_posix(), os.access(path, os.X_OK), path.read_bytes())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    )
    return digest(*parts, *map(repr, files))


def digest(*parts: str) -> str:
    """Return twelve digits that change with any part."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
