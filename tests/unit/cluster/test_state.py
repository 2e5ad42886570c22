"""Tests of a cluster's record, and of whether its processes are still the same ones."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster import state
from tests.cluster.state import ProcessId, State

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


def test_a_running_process_is_alive_and_an_earlier_process_with_its_number_is_not() -> None:
    """The number alone is not enough, since the kernel reuses it."""
    this = ProcessId.of(os.getpid())

    assert this.alive()
    assert not replace(this, started=this.started - 1).alive()


def test_a_dead_process_is_not_alive_before_its_parent_has_noticed() -> None:
    """A zombie counts as dead, even if its parent has not collected it."""
    with subprocess.Popen(["sleep", "60"]) as process:
        process_id = ProcessId.of(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        assert not process_id.alive()

    with pytest.raises(ProcessLookupError):
        ProcessId.of(process.pid)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Another process reads the whole record; a directory without one has no cluster."""
    this = ProcessId.of(os.getpid())
    written = State("1.36", owner=this, init=this, network=3)

    assert state.read(tmp_path) is None
    written.write(tmp_path)
    assert state.read(tmp_path) == written


def test_a_cluster_lives_as_long_as_its_first_process_or_its_starter() -> None:
    """Until the cluster is complete, its starter counts, whatever is already running."""
    this = ProcessId.of(os.getpid())
    dead = replace(this, started=0)

    assert State("1.36", owner=this).alive()
    assert not State("1.36", owner=dead, init=this).alive()
    assert State("1.36", owner=dead, init=this, complete=True).alive()
    assert not State("1.36", owner=this, init=dead, complete=True).alive()


def test_the_environment_sets_the_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is XDG_STATE_HOME if that is set and not empty, else a folder in the home folder."""
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
    assert state.home() == Path("/somewhere/rdma-webhook")

    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", "/home/dev")
    assert state.home() == Path("/home/dev/.local/state/rdma-webhook")
