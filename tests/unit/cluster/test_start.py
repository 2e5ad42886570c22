from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cluster import bringup, lifetime, state
from tests.cluster.cluster import up
from tests.cluster.processes import ClusterError
from tests.cluster.state import ProcessId, State


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the user's clusters in a folder of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return state.home()


def test_a_start_is_on_record_before_it_builds(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it is killed during the build, the next start can judge the folder that is left."""
    records: list[State | None] = []

    def build(minor: str) -> None:
        records.append(state.read(home / "cluster"))
        raise ClusterError(minor)

    monkeypatch.setattr(bringup, "build", build)
    with pytest.raises(ClusterError, match=r"1\.36"):
        up("1.36", home / "cluster")

    assert records == [State("1.36", ProcessId.of(os.getpid()))]
    assert not (home / "cluster").exists()


def test_folders_of_the_dead_are_removed_and_no_others(home: Path) -> None:
    """A process is identified by its number together with its start time."""
    mine = ProcessId.of(os.getpid())
    for name, owner in {"mine": mine, "dead": ProcessId(mine.pid, mine.started - 1)}.items():
        (home / name).mkdir(parents=True)
        State("1.36", owner).write(home / name)
    (home / "somebody's").mkdir()

    lifetime.sweep()

    assert {folder.name for folder in home.iterdir()} == {"mine", "somebody's"}
