from __future__ import annotations

from webhook.decide.settings.process import Process
from webhook.decide.settings.setting import Memlock, Setting


def test_a_child_inherits() -> None:
    """It sees what its parent set, until something drops it."""
    parent = Process()
    parent.assign("NCCL_NET", "IB", "x")
    child = Process(parent)
    assert child.current("NCCL_NET") == Setting("NCCL_NET", "IB", "x")
    assert child.current("NCCL_DEBUG") is None
    assert not child.changed
    child.drop("su -")
    assert child.current("NCCL_NET") == Setting("NCCL_NET", None, "su -", removed=True)
    assert child.changed


def test_only_variables_of_libraries_are_recorded() -> None:
    """Others do not decide anything."""
    process = Process()
    process.assign("PATH", "/bin", "x")
    process.remove("PATH", "x")
    assert process.settings == {}


def test_a_removal() -> None:
    """It is a setting that says what removed the variable."""
    process = Process()
    process.remove("NCCL_NET", "x")
    assert process.settings == {"NCCL_NET": Setting("NCCL_NET", None, "x", removed=True)}


def test_a_default() -> None:
    """It replaces only a removed variable, and is one no longer then."""
    process = Process()
    process.assign("NCCL_NET", "${NCCL_NET:-IB}", "x")
    assert process.settings["NCCL_NET"].yields_to_env
    process.assign("NCCL_NET", "${NCCL_NET:-Socket}", "x")
    assert process.settings["NCCL_NET"].value == "IB"
    process.remove("NCCL_NET", "x")
    process.assign("NCCL_NET", "${NCCL_NET-Socket}", "x")
    assert process.settings["NCCL_NET"] == Setting("NCCL_NET", "Socket", "x")


def test_a_parent_takes_over_a_childs_changes() -> None:
    """Settings, user and limit; a dropped environment drops the parent's."""
    parent, child = Process(), Process()
    parent.assign("NCCL_NET", "IB", "x")
    child.assign("UCX_TLS", "rc", "x")
    child.user_changed_by, child.memlock = "gosu", Memlock("64", "x")
    parent.absorb(child)
    assert (list(parent.settings), parent.user_changed_by) == (["NCCL_NET", "UCX_TLS"], "gosu")
    parent.absorb(Process())
    assert (parent.user_changed_by, parent.memlock) == ("gosu", Memlock("64", "x"))
    dropping = Process()
    dropping.drop("su -")
    parent.absorb(dropping)
    assert (parent.settings, parent.env_dropped_by) == ({}, "su -")
