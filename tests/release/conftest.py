"""A release of this commit, made as a maintainer makes it, and a registry on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from tests.cluster import archives, pip_settings, rootfs
from tests.cluster.binaries import binary
from tests.waiting import until
from webhook import __version__

ROOT = Path(__file__).parents[2]
CYCLONEDX = ROOT / ".cache" / "release" / "bin" / "cyclonedx-py"


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with a release of this commit."""
    return make(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="session")
def commands(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel as `pipx` and `uv tool` do, in its own environment; return its commands."""
    folder = tmp_path_factory.mktemp("environment")
    _run(sys.executable, "-m", "venv", str(folder))
    (wheel,) = release.glob("*.whl")
    pip = (str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check")
    _run(*pip, str(wheel))
    return folder / "bin"


@pytest.fixture(scope="session")
def registry() -> Iterator[str]:
    """Serve a registry that keeps its images in memory; return its address."""
    with _free_port() as port:
        address = f"127.0.0.1:{port}"
    command = [str(binary("crane")), "registry", "serve", "--address", address]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: _answers(port))
            yield address
        finally:
            process.terminate()


def make(folder: Path) -> Path:
    """Make a release in a clone whose CHANGELOG has a section for the version."""
    clone, output = folder / "clone", folder / "dist"
    _run("git", "clone", "--quiet", f"file://{ROOT}", str(clone))
    _run("git", "-C", str(clone), "reset", "--quiet", "--hard", _commit())
    log = clone / "CHANGELOG.md"
    log.write_text(log.read_text().replace("\n## Unreleased\n", f"\n## {__version__}\n", 1))
    time = _run("git", "-C", str(ROOT), "log", "-1", "--format=%ct", _commit()).strip()
    _run(
        *("git", "-C", str(clone), "-c", "user.name=test", "-c", "user.email=test@example.com"),
        *("commit", "--quiet", "--all", "--message", "A release"),
        GIT_COMMITTER_DATE=time,
        GIT_AUTHOR_DATE=time,
    )
    options = ("--output", str(output), "--cyclonedx", str(CYCLONEDX))
    _run(sys.executable, "-m", "release", __version__, *options, folder=clone, **_build(folder))
    return output


@cache
def _commit() -> str:
    """Return the commit that all releases of this run are made of, even if somebody commits."""
    return _run("git", "-C", str(ROOT), "rev-parse", "HEAD").strip()


def _build(folder: Path) -> dict[str, str]:
    """Return the variables of images/build.sh: bases of Debian, a new store, this machine's pip."""
    with archives.alone() as lock:
        base, builder = (rootfs.archive(base, lock) for base in (rootfs.PYTHON, rootfs.DEBIAN))
        (folder / f"base-{rootfs.ARCHITECTURE}.tar").symlink_to(base)
    volumes = " ".join(f"--volume={volume}" for volume in pip_settings.volumes(folder))
    store = f"buildah --root={folder}/store --runroot={folder}/run"
    return {
        "BASE": str(folder / "base-{architecture}.tar"),
        "BUILDER": str(builder),
        "BUILDAH": f"unshare --mount --propagation=private {store}",
        "BUILD_OPTIONS": volumes,
    }


def _run(*command: str, folder: Path = ROOT, **environ: str) -> str:
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environ},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


@contextmanager
def _free_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
