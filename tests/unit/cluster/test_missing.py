from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import missing as subject
from tests.cluster.missing import PROGRAMS, missing, require
from tests.softroce import machine as emulation

MAKEFILE = Path(__file__).parents[3] / "Makefile"


def go_that_is(version: str, folder: Path) -> None:
    """Put a go that reports this version into the folder."""
    program = folder / "go"
    program.write_text(f'#!/bin/sh\n[ "$GOTOOLCHAIN" = local ] && echo {version}\n')
    program.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pretend to have all that a cluster needs; return the folder that is first on the PATH.

    Root, the programs and the kernel's rights are faked, since not every test machine has them.
    """
    real = shutil.which
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(shutil, "which", lambda name: name if name in PROGRAMS else real(name))
    monkeypatch.setattr(subject, "_UNSHARE", ("true",))
    monkeypatch.setattr(subject, "_CGROUPS", tmp_path)
    (tmp_path / "cgroup.controllers").touch()
    go_that_is("go1.26.0", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("machine")
def test_nothing_is_missing() -> None:
    """On a machine that has everything there is no message, and the tests run."""
    assert missing() is None
    require()


@pytest.mark.usefixtures("machine")
def test_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster needs features of the Linux kernel."""
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert missing() == "a cluster needs Linux"


@pytest.mark.usefixtures("machine")
def test_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root, nothing else is checked."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert missing() == "a cluster needs root: run it with sudo -E"


@pytest.mark.usefixtures("machine")
def test_packages_are_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package is named once for all its missing programs, with the command to install it."""
    absent = ("containerd", "ctr", "/usr/lib/cni/bridge")
    monkeypatch.setattr(shutil, "which", lambda name: None if name in absent else name)
    assert missing() == (
        "a cluster needs containerd containernetworking-plugins: make cluster-deps"
    )


def test_a_folder_of_programs_is_read(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line names everything that is missing."""
    monkeypatch.undo()
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(machine / "empty"))
    message = missing()
    assert message is not None
    assert "buildah containerd" in message
    assert message.count("make cluster-deps") == 1
    assert "; Go 1.26 or newer on the PATH" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("version", "enough"),
    [("go1.19.8", False), ("go1.25.9", False), ("go1.26.0", True), ("go1.27rc1", True),
     ("go2.0", True), ("devel", False)],
)  # fmt: skip
def test_the_oldest_go(machine: Path, version: str, enough: bool) -> None:
    """The modules determine the required Go; Go's own version counts, and not a toolchain's."""
    go_that_is(version, machine)
    expected = None if enough else f"a cluster needs Go 1.26 or newer, not {version}"
    assert missing() == expected


@pytest.mark.usefixtures("machine")
def test_namespaces_are_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """If root may not create namespaces, the message names the missing right."""
    monkeypatch.setattr(subject, "_UNSHARE", ("false",))
    assert missing() == "a cluster needs the right to make namespaces (CAP_SYS_ADMIN)"


def test_cgroups_that_cannot_be_written(machine: Path) -> None:
    """Without the marker file of version 2, each hierarchy of version 1 must exist."""
    (machine / "cgroup.controllers").unlink()
    message = f"a cluster needs cgroups that can be written ({machine} is read-only)"
    assert missing() == message
    for name in ("cpu", "memory", "pids"):
        (machine / name).mkdir()
    assert missing() is None


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip), ("1", pytest.exit)])
def test_skip_or_failure(
    ci: str, outcome: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A developer's tests are skipped with the message; in CI a missing part is a failure."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome.Exception, match="a cluster needs root"):  # type: ignore[attr-defined]
        require()
    with pytest.raises(outcome.Exception, match="an emulated machine needs"):  # type: ignore[attr-defined]
        emulation.require()


def test_make_installs_every_named_package() -> None:
    """`make cluster-deps` installs every package that a message may name."""
    listed = re.search(r"^CLUSTER_DEBIAN := ((?:\\\n|.)*)$", MAKEFILE.read_text(), re.MULTILINE)
    assert listed
    assert set(listed[1].replace("\\\n", " ").split()) == set(PROGRAMS.values())
