"""Tests of rebuilds of images, and of the sources of their downloads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cluster import archives, buildah, images, pip_settings, rootfs


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep archives in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return archives.folder()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let only the programs in a folder of the test be found."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def _program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _sources(root: Path) -> Path:
    (root / "webhook").mkdir(parents=True)
    (root / "webhook" / "code.py").write_text("one = 1\n")
    (root / "Dockerfile").write_text("FROM scratch\n")
    return root


def _key(root: Path, target: Path, *parts: str) -> str:
    archives.copy(root, ["Dockerfile", "webhook"], target)
    return archives.key(target, *parts)


def test_key_of_same_files_is_the_same(tmp_path: Path) -> None:
    """Times, bytecode and files that are not in the image do not change the key."""
    root = _sources(tmp_path / "root")
    before = _key(root, tmp_path / "first")
    os.utime(root / "Dockerfile", (1, 1))
    (root / "webhook" / "__pycache__").mkdir()
    (root / "webhook" / "__pycache__" / "code.pyc").write_text("")
    (root / "README.md").write_text("hello\n")
    assert _key(root, tmp_path / "second") == before


def test_key_distinguishes_contents_names_modes_and_parts(tmp_path: Path) -> None:
    """Everything in the image or below it changes the key."""
    keys = [_key(_sources(tmp_path / "0"), tmp_path / "a")]
    keys.append(_key(tmp_path / "0", tmp_path / "b", "another base"))
    (tmp_path / "0" / "webhook" / "code.py").chmod(0o755)
    keys.append(_key(tmp_path / "0", tmp_path / "c"))
    (tmp_path / "0" / "webhook" / "code.py").write_text("one = 2\n")
    keys.append(_key(tmp_path / "0", tmp_path / "d"))
    (tmp_path / "0" / "webhook" / "code.py").rename(tmp_path / "0" / "webhook" / "core.py")
    keys.append(_key(tmp_path / "0", tmp_path / "e"))
    assert len(set(keys)) == 5


def test_copies_have_the_same_time(tmp_path: Path) -> None:
    """A layer's key includes file times, so equal times let a fresh checkout reuse layers."""
    archives.copy(_sources(tmp_path / "root"), ["Dockerfile", "webhook"], tmp_path / "copy")
    paths = [tmp_path / "copy", *(tmp_path / "copy").rglob("*")]
    assert {path.stat().st_mtime for path in paths} == {0.0}


def test_prune_keeps_the_last_used(cache: Path) -> None:
    """The cache keeps a few archives of each image, and no incomplete ones."""
    names = [f"mpi-{number}.tar" for number in range(archives.KEEP + 2)]
    for age, name in enumerate([*names, "pause-1.tar", ".mpi-9.tar.new"]):
        (cache / name).write_text("")
        os.utime(cache / name, (age, age))
    assert archives.used(cache / names[0])
    archives.prune("mpi")
    assert sorted(path.name for path in cache.iterdir()) == ["mpi-0.tar", *names[3:], "pause-1.tar"]


def test_absent_archive_is_not_used(cache: Path) -> None:
    """Checking for an archive does not create one."""
    assert not archives.used(cache / "mpi-1.tar")
    assert list(cache.iterdir()) == []


def test_the_context_has_the_files_of_the_dockerfile() -> None:
    """.dockerignore admits only what the image needs, and these files exist."""
    names = images._let_in((images.ROOT / ".dockerignore").read_text())
    assert names == ["LICENSE", "certs", "pyproject.toml", "requirements.lock", "webhook"]
    assert [name for name in names if not (images.ROOT / name).exists()] == []


def test_failed_program_is_quoted(programs: Path) -> None:
    """The error has the command and its output."""
    _program(programs, "buildah", "echo working; echo no space left >&2; exit 3")
    with pytest.raises(buildah.ImageError) as failed:
        buildah.run(["buildah", "bud"])
    assert str(failed.value) == "buildah bud\nfailed with 3:\nworking\nno space left"


def test_missing_program_is_named(programs: Path) -> None:
    """The error says how to install the tool."""
    assert list(programs.iterdir()) == []
    with pytest.raises(buildah.ImageError) as failed:
        buildah.run(["mmdebstrap"])
    assert str(failed.value) == "there is no mmdebstrap on the PATH: make cluster-deps"


def test_half_an_archive_is_none(cache: Path, programs: Path) -> None:
    """An archive is complete or absent."""
    half = 'for last; do :; done; path=${last#docker-archive:}; echo half >"${path%%:*}"; exit 1'
    _program(programs, "unshare", half)
    with (cache / "lock").open("w") as lock:
        store = buildah.Store(cache / "store", cache / "run", lock.fileno())
        with pytest.raises(buildah.ImageError):
            store.save("localhost/mpi:1", cache / "mpi-1.tar")
    assert sorted(path.name for path in cache.iterdir()) == [".mpi-1.tar.new", "lock"]


def test_the_base_has_the_debian_sources_of_this_machine(programs: Path) -> None:
    """Only Debian's own sources of the suite are used, once each."""
    lines = [
        "Debian deb http://mirror.test/debian/ bookworm main",
        "Debian deb http://mirror.test/debian/ bookworm main",
        "Debian deb http://mirror.test/debian/ trixie main",
        "Debian deb http://mirror.test/security/ bookworm-security main",
        "Another vendor deb http://mirror.test/another/ bookworm main",
    ]
    _program(programs, "apt-get", f"printf '%s\\n' {' '.join(map(repr, lines))}")
    assert rootfs.sources() == [
        "deb http://mirror.test/debian/ bookworm main",
        "deb http://mirror.test/security/ bookworm-security main",
    ]


def test_proxy_of_apt_is_passed_on(programs: Path) -> None:
    """A proxy that is set only for apt is used for the base too; an empty one is unset."""
    dump = (
        'Acquire::http::Proxy "http://proxy.test:3128";',
        'Acquire::https::Proxy "";',
        'Acquire::Languages "none";',
    )
    _program(programs, "apt-config", f"printf '%s\\n' {' '.join(map(repr, dump))}")
    assert list(rootfs.proxies()) == ['Acquire::http::Proxy "http://proxy.test:3128"']


def test_pip_settings_of_the_environment_win() -> None:
    """As in pip, the order is environment, install, global; other settings are left out."""
    listed = (
        ":env:.index-url='https://environment.test/simple'\n"
        "global.cert='/etc/ca.crt'\n"
        "global.index-url='https://global.test/simple'\n"
        "global.user='true'\n"
        "install.index-url='https://install.test/simple'\n"
        "install.find-links='/one\\n/two'\n"
    )
    assert pip_settings.parsed(listed) == {
        "cert": "/etc/ca.crt",
        "index-url": "https://environment.test/simple",
        "find-links": "/one\n/two",
    }


def test_pip_settings_are_mounted_with_the_files_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build's pip gets the settings in /etc/pip.conf, and their files at the same paths."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_FIND_LINKS", f"{wheels} /absent")
    monkeypatch.delenv("PIP_CERT", raising=False)
    mounted = pip_settings.volumes(tmp_path)
    assert mounted[0] == f"{tmp_path}/pip.conf:/etc/pip.conf:ro"
    assert f"{wheels}:{wheels}:ro" in mounted
    assert not any("absent" in volume for volume in mounted)
    assert f"find-links = {wheels} /absent" in (tmp_path / "pip.conf").read_text()
