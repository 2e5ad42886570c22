from __future__ import annotations

import pytest

from webhook.decide.admission_warnings import MAX_TOTAL_LENGTH, MAX_WARNING_LENGTH, warning_lines
from webhook.model.decision import Outcome, Rdma, Reason, Status, Verdict

NO_TARGET = Reason("NoTarget", "No target.", "", rdma="no")
FINE = Verdict.of(Reason("Equipped", "", "", rdma="yes"), "all is well")


def outcome(message: str, container: str = "a", status: Status = "warned") -> Outcome:
    """Make an outcome of the mutation `env`."""
    return Outcome("env", container, status, Reason("Code", "", ""), message)


def test_a_decision_may_have_none() -> None:
    """Only outcomes with status `warned` give a warning."""
    assert warning_lines(FINE, None, "", []) == ()
    assert warning_lines(FINE, None, "", [outcome("x", status="skipped")]) == ()


@pytest.mark.parametrize(
    ("rdma", "first"), [("no", "no RDMA: cut off"), ("unsure", "RDMA not certain: cut off")]
)
def test_the_verdict_comes_first(rdma: Rdma, first: str) -> None:
    """Then the decision's reason, and each warning with its mutation and container."""
    verdict = Verdict.of(Reason("Cut", "", "", rdma=rdma), "cut off")
    assert warning_lines(verdict, NO_TARGET, "no target", [outcome("b"), outcome("c", "")]) == (
        f"rdma.lab: {first}",
        "rdma.lab: NoTarget: no target",
        "rdma.lab: env a: b",
        "rdma.lab: env: c",
    )


def test_the_verdicts_sentence_is_not_repeated() -> None:
    """Neither as the decision's reason nor as a warning with the same code."""
    verdict = Verdict.of(NO_TARGET, "no target")
    duplicate = Outcome("env", "a", "warned", NO_TARGET, "no target here")
    assert warning_lines(verdict, NO_TARGET, "no target", [duplicate]) == (
        "rdma.lab: no RDMA: no target",
    )


def test_a_launcher_gets_no_warnings_for_other_pods() -> None:
    """The pod itself needs no fabric."""
    verdict = Verdict.of(Reason("Launcher", "", "", rdma="none"), "it launches")
    assert warning_lines(verdict, NO_TARGET, "no fabric", []) == ()


def test_doubles_are_left_out() -> None:
    """The same sentence about the same container is sent once."""
    assert warning_lines(FINE, None, "", [outcome("x"), outcome("x"), outcome("x", "b")]) == (
        "rdma.lab: env a: x",
        "rdma.lab: env b: x",
    )


def test_a_warning_is_a_single_line_of_ascii() -> None:
    """The API server drops a warning that contains control characters."""
    assert warning_lines(FINE, None, "", [outcome("a\nb\tc\x7fd\x00 ü…")]) == (
        "rdma.lab: env a: a?b?c?d? ??",
    )


def test_a_long_warning_is_cut() -> None:
    """Warnings are cut at 120 characters, with a visible mark."""
    fits = "x" * (MAX_WARNING_LENGTH - len("rdma.lab: env a: "))
    assert warning_lines(FINE, None, "", [outcome(fits)]) == (f"rdma.lab: env a: {fits}",)
    (cut,) = warning_lines(FINE, None, "", [outcome(fits + "x")])
    assert cut == f"rdma.lab: env a: {fits[:-3]}..."
    assert len(cut) == MAX_WARNING_LENGTH


def test_all_together_stay_below_the_limit() -> None:
    """If there are more, the last line refers to the status annotation."""
    lines = warning_lines(
        FINE, None, "", [outcome(f"{index:03}" + "x" * 200) for index in range(100)]
    )
    assert lines[-1] == "rdma.lab: more in annotation rdma.lab/status"
    assert len(lines) == 34
    assert sum(map(len, lines)) < MAX_TOTAL_LENGTH
