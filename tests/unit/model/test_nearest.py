"""Suggestions for unknown words: near ones only."""

from __future__ import annotations

import pytest

from webhook.model.nearest import nearest, suggestion

WORDS = ("enable", "filename", "check-config", "check", "ofed")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("enabel", ["enable"]),
        ("ENABLED", ["enable"]),
        ("Check", ["check"]),
        ("chek-config", ["check-config"]),
        ("file", ["filename"]),
        ("fi", []),
        ("field", []),
        ("fel", []),
        ("name", []),
    ],
)
def test_only_a_near_word_is_suggested(word: str, expected: list[str]) -> None:
    """A similar word, or a longer one that begins the same, is near; case does not matter."""
    assert nearest(word, WORDS) == expected


def test_an_abbreviation_means_the_shortest_word() -> None:
    """A similar word is preferred to a longer one."""
    assert nearest("log", ["log-a-level", "logging"]) == ["logging"]
    assert nearest("names", ["names-of-all-nodes-of-the-fabric", "nmaes"]) == ["nmaes"]


def test_the_nearest_words_come_first() -> None:
    """At most `limit` words are returned."""
    assert nearest("gpu-00", ["gpu-10", "gpu-0", "cpu"], limit=2) == ["gpu-0", "gpu-10"]


def test_only_some_candidates_are_compared() -> None:
    """Comparing takes time, but the same word in another case is cheap to find."""
    assert nearest("gpu-9", ["cpu", "gpu-99"], compared=1) == ["gpu-99"]
    assert nearest("gup-99", ["cpu", "gpu-99"], compared=1) == []
    assert nearest("GPU-99", ["cpu", "gpu-99"], compared=1) == ["gpu-99"]


def test_long_words_are_not_compared() -> None:
    """The time of a comparison is quadratic in the length of the words."""
    assert nearest("e" * 79, ["e" * 80]) == ["e" * 80]
    assert nearest("e" * 81, ["e" * 80]) == []
    assert nearest("e" * 80, ["e" * 81]) == []


def test_a_suggestion_is_part_of_a_message() -> None:
    """Without a near word, the message has no suggestion."""
    assert suggestion("enabel", WORDS) == " (did you mean enable?)"
    assert suggestion("enabel", WORDS, "rdma.lab/") == " (did you mean rdma.lab/enable?)"
    assert suggestion(7, WORDS) == ""
