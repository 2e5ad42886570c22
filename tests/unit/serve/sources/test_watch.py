"""Tests of hot reload: which content is used, which is kept, and what is reported."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import pytest

from tests.unit.config.files import fabric, text
from webhook.serve.sources.configuration import PolledConfigFile


def watch(path: Path) -> PolledConfigFile:
    """Watch a file, with a clock that ticks at each good configuration: 1.0, 2.0, ..."""
    ticks = count(1)
    return PolledConfigFile(path, clock=lambda: float(next(ticks)))


def state(of: PolledConfigFile) -> tuple[list[str] | None, int, float | None, str]:
    """Return what a server reads from the watch."""
    names = list(of.loaded_configuration.compiled.fabrics) if of.loaded_configuration else None
    return names, of.load_count, of.loaded_at, of.error


def swap(folder: Path, number: int, content: str) -> None:
    """Change a mounted ConfigMap as the kubelet does: a new folder, then a renamed `..data`."""
    version = folder / f"..2026_01_01_{number}"
    version.mkdir()
    (version / "fabrics.yaml").write_text(content)
    fresh = folder / "..data_tmp"
    fresh.symlink_to(version.name)
    fresh.rename(folder / "..data")


def test_only_a_changed_file_is_taken(tmp_path: Path) -> None:
    """Each new content counts once, with the time when it was loaded."""
    path = tmp_path / "fabrics.yaml"
    path.write_text(text(fabric("a")))
    config = watch(path)
    assert state(config) == (None, 0, None, "")
    assert config.poll()
    assert state(config) == (["a"], 1, 1.0, "")
    assert not config.poll()
    path.write_text(text(fabric("b")))
    assert config.poll()
    assert state(config) == (["b"], 2, 2.0, "")


def test_a_configmap_swap_is_seen(tmp_path: Path) -> None:
    """The kubelet renames a symlink two levels above the file, whose path stays the same."""
    swap(tmp_path, 1, text(fabric("a")))
    (tmp_path / "fabrics.yaml").symlink_to("..data/fabrics.yaml")
    config = watch(tmp_path / "fabrics.yaml")
    assert config.poll()
    swap(tmp_path, 2, text(fabric("b")))
    assert config.poll()
    assert state(config) == (["b"], 2, 2.0, "")


def test_an_editors_rename_and_the_same_size_and_time_are_seen(tmp_path: Path) -> None:
    """Content is compared, so the same inode, size or time cannot hide a change."""
    path = tmp_path / "fabrics.yaml"
    path.write_text(text(fabric("a")))
    os.utime(path, (1, 1))
    config = watch(path)
    assert config.poll()
    fresh = tmp_path / "fabrics.yaml~"
    fresh.write_text(text(fabric("b")))
    os.utime(fresh, (1, 1))
    fresh.rename(path)
    assert config.poll()
    assert state(config) == (["b"], 2, 2.0, "")


def test_an_invalid_file_keeps_the_last_valid_file(tmp_path: Path) -> None:
    """The error is reported once and stays until the file is good, even with its old content."""
    path = tmp_path / "fabrics.yaml"
    content = text(fabric("a"))
    path.write_text(content)
    config = watch(path)
    assert config.poll()
    path.write_text("fabrics: ]")
    assert config.poll()
    assert state(config)[:3] == (["a"], 1, 1.0)
    assert config.error.startswith(f"{path}:1:10: not YAML: ")
    assert not config.poll()
    path.write_text(content)
    assert config.poll()
    assert state(config) == (["a"], 1, 1.0, "")


def test_a_file_that_is_missing_for_a_moment_changes_nothing(tmp_path: Path) -> None:
    """If the same content comes back, it is not a new load."""
    path = tmp_path / "fabrics.yaml"
    path.write_text(text(fabric("a")))
    config = watch(path)
    assert config.poll()
    aside = path.rename(tmp_path / "aside")
    assert config.poll()
    assert state(config) == (["a"], 1, 1.0, f"{path}: no such file or directory")
    aside.rename(path)
    assert config.poll()
    assert state(config) == (["a"], 1, 1.0, "")


@pytest.mark.parametrize("content", [None, b"\xff", b"", b"[" * 100_000])
def test_a_start_without_a_valid_file_is_not_the_end(tmp_path: Path, content: bytes | None) -> None:
    """The watch waits for the first valid file, and has the reason."""
    path = tmp_path / "fabrics.yaml"
    if content is not None:
        path.write_bytes(content)
    config = watch(path)
    assert config.poll()
    assert config.loaded_configuration is None
    assert config.error.startswith(f"{path}:")
    path.write_text(text())
    assert config.poll()
    assert state(config) == ([], 1, 1.0, "")


def test_polling_survives_any_exception(tmp_path: Path) -> None:
    """A path that the system rejects, or a defect, becomes an error text, and polling goes on."""
    path = tmp_path / "fabrics.yaml"
    path.write_text(text(fabric("a")))
    config = watch(path)
    assert config.poll()
    config.path = path.with_name("x" * 300)
    assert config.poll()
    assert config.error == f"{config.path}: cannot be read: File name too long"
    assert config.load_count == 1

    faulty = PolledConfigFile(path, clock=lambda: 1 / 0)
    assert faulty.poll()
    assert state(faulty) == (None, 0, None, f"{path}: ZeroDivisionError('division by zero')")
