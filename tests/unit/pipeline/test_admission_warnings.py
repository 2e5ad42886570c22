from __future__ import annotations

from webhook.decision.outcome import Outcome, Reason, Status
from webhook.pipeline.admission_warnings import LONGEST, TOTAL, single_lines

WHY = Reason("NoTarget", "No target.")


def outcome(message: str, container: str = "a", status: Status = "warned") -> Outcome:
    """Make an outcome of the mutation `env`."""
    return Outcome("env", container, status, Reason("Code", ""), message)


def test_a_decision_may_have_none() -> None:
    """Only outcomes with status `warned` give a warning."""
    assert single_lines(None, "", []) == ()
    assert single_lines(None, "", [outcome("x", status="skipped")]) == ()


def test_why_comes_first() -> None:
    """The decision's reason comes first, then each warning with its mutation and container."""
    assert single_lines(WHY, "no target", [outcome("b"), outcome("c", "")]) == (
        "rdma.lab: NoTarget: no target",
        "rdma.lab: env a: b",
        "rdma.lab: env: c",
    )


def test_doubles_are_left_out() -> None:
    """The same sentence about the same container is sent once."""
    assert single_lines(None, "", [outcome("x"), outcome("x"), outcome("x", "b")]) == (
        "rdma.lab: env a: x",
        "rdma.lab: env b: x",
    )


def test_a_warning_is_one_line_of_ascii() -> None:
    """The API server drops a warning that contains control characters."""
    assert single_lines(None, "", [outcome("a\nb\tc\x7fd\x00 ü…")]) == (
        "rdma.lab: env a: a?b?c?d? ??",
    )


def test_a_long_warning_is_cut() -> None:
    """Warnings are cut at 120 characters, with a visible mark."""
    fits = "x" * (LONGEST - len("rdma.lab: env a: "))
    assert single_lines(None, "", [outcome(fits)]) == (f"rdma.lab: env a: {fits}",)
    (cut,) = single_lines(None, "", [outcome(fits + "x")])
    assert cut == f"rdma.lab: env a: {fits[:-3]}..."
    assert len(cut) == LONGEST


def test_all_together_stay_below_the_limit() -> None:
    """If there are more, the last one says where to find the rest."""
    lines = single_lines(None, "", [outcome(f"{index:03}" + "x" * 200) for index in range(100)])
    assert lines[-1] == "rdma.lab: more in annotation rdma.lab/status"
    assert len(lines) == 34
    assert sum(map(len, lines)) < TOTAL
