"""The checkout that a release is made from: whether it is fit for one, and its files."""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from pathlib import Path

_VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


def problems(root: Path, version: str) -> list[str]:
    """Return the reasons why this checkout cannot become that release; none if it can."""
    return [*_changes(root), *_tag(root, version), *_package(root, version), *_log(root, version)]


def commit(root: Path) -> str:
    """Return the hash of the commit."""
    return _git(root, "rev-parse", "HEAD").strip()


def commit_time(root: Path) -> int:
    """Return the time of the commit, in seconds since 1970."""
    return int(_git(root, "log", "-1", "--format=%ct"))


def export(root: Path, folder: Path) -> None:
    """Write the committed files into a folder, with the same modes whatever the umask."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=root, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")


def _changes(root: Path) -> list[str]:
    changed = _git(root, "status", "--porcelain").splitlines()
    if not changed:
        return []
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return [f"{changed[0][3:]}{more}: not committed; commit the changes or remove them"]


def _tag(root: Path, version: str) -> list[str]:
    tagged = _git(root, "tag", "--list", "--format=%(objectname) %(*objectname)", f"v{version}")
    if not tagged or commit(root) in tagged.split():
        return []
    return [f"the tag v{version} is on another commit; check that out, or choose a new version"]


def _package(root: Path, version: str) -> list[str]:
    file = "webhook/__init__.py"
    match = _VERSION.search((root / file).read_text())
    actual = match[1] if match else "nothing"
    if actual == version:
        return []
    return [f'{file}: __version__ is "{actual}", not "{version}"; change one of them']


def _log(root: Path, version: str) -> list[str]:
    file = "CHANGELOG.md"
    if re.search(rf"^## {re.escape(version)}(?![\w.])", (root / file).read_text(), re.MULTILINE):
        return []
    return [f"{file}: no section ## {version}; rename Unreleased, and add the date"]


def _git(root: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
