"""A rule that is added to a namespace applies to the next pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.admission.pods import Answer
from tests.e2e.live.lab import MAXIMUM, ChangingNamespace

LEVEL = "pod-security.kubernetes.io/enforce"


@pytest.mark.parametrize(
    ("kind", "spec"),
    [("LimitRange", {"limits": MAXIMUM}), ("ResourceQuota", {"hard": {"limits.memory": "1Ti"}})],
)
def test_a_rule_that_is_added_keeps_the_limit(lab: ChangingNamespace, kind: str, spec: Any) -> None:
    """An added rule keeps the memory limit, and its removal drops the limit again."""
    lab.put(kind, **spec)
    added = lab.wait_for_answers(_limit_kept)
    lab.remove(kind)
    removed = lab.wait_for_answers(lambda answer: not _limit_kept(answer))
    _print_delays(kind, added, removed)


def test_a_level_that_is_enforced_leaves_the_capability_out(lab: ChangingNamespace) -> None:
    """A label set on a namespace in use leaves the capability out; its removal adds it again."""
    lab.wait_for_answers(lambda answer: answer.added_capabilities() == ["IPC_LOCK"])
    lab.label(LEVEL, "baseline")
    added = lab.wait_for_answers(
        lambda answer: bool(answer.object) and not answer.added_capabilities()
    )
    lab.label(LEVEL, None)
    removed = lab.wait_for_answers(lambda answer: answer.added_capabilities() == ["IPC_LOCK"])
    _print_delays("Pod Security", added, removed)


def _limit_kept(answer: Answer) -> bool:
    """Return whether the limit is kept; a pod without it is rejected."""
    return bool(answer.object) and answer.memory().limit == "64Gi"


def _print_delays(rule: str, added: float, removed: float) -> None:
    figures = f"seen {added * 1000:.0f} ms after it came, {removed * 1000:.0f} ms after it went"
    print(f"{rule}: {figures}")  # noqa: T201
