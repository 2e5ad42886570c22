from __future__ import annotations

from typing import Any

import orjson
import pytest

from webhook.core.annotations import STATUS
from webhook.core.decision import Outcome, Reason, Status
from webhook.core.status import ANNOTATIONS_LIMIT, LONGEST, render, size_of

CHAIN = ("first", "second", "third")
CODE = Reason("Code", "A reason.")
QUIET = Reason("Quiet", "Nothing to do.", quiet=True)


def outcome(mutation: str, status: Status, code: str = "Code", *, quiet: bool = False) -> Outcome:
    """Make an outcome."""
    return Outcome(mutation, "a", status, Reason(code, "", quiet=quiet), "sentence")


def status(
    *outcomes: Outcome,
    annotations: dict[str, Any] | None = None,
    fabric: str | None = "north",
    why: Reason | None = None,
) -> str:
    """Write a status under the configuration `hash`."""
    return render(
        annotations or {}, outcomes, fabric=fabric, why=why, config_hash="hash", chain=CHAIN
    )


def after(previous: Any, *outcomes: Outcome) -> dict[str, Any]:
    """Read the status that replaces a previous one."""
    written = previous if isinstance(previous, str) else orjson.dumps(previous).decode()
    found: dict[str, Any] = orjson.loads(status(*outcomes, annotations={STATUS: written}))
    return found


def test_a_pod_that_got_nothing_has_a_status_too() -> None:
    """It says that we were called, and why there was nothing."""
    assert status() == '{"fabric":"north","applied":[],"config":"hash"}'
    assert status(fabric=None, why=CODE) == (
        '{"fabric":null,"reason":"Code","applied":[],"config":"hash"}'
    )


def test_it_says_what_was_applied_skipped_and_warned() -> None:
    """In the chain's order, each code once, sorted; without quiet reasons and `already`."""
    assert status(
        outcome("third", "applied"),
        outcome("second", "skipped", "Z"),
        outcome("second", "skipped", "A"),
        outcome("second", "skipped", "A"),
        outcome("second", "skipped", "Q", quiet=True),
        outcome("first", "already"),
        outcome("first", "applied"),
        outcome("request", "warned", "B"),
        outcome("first", "warned", "C"),
    ) == (
        '{"fabric":"north","applied":["first","third"],"skipped":{"second":["A","Z"]},'
        '"warned":{"first":["C"],"request":["B"]},"config":"hash"}'
    )


def test_what_the_first_pass_applied_carries_over() -> None:
    """With its warnings, which the second pass has no more cause for."""
    previous = {
        "fabric": "other",
        "applied": ["third", "first"],
        "skipped": {"second": ["Old"]},
        "warned": {"first": ["Z"], "second": ["Old"]},
        "config": "hash",
    }
    assert after(previous, outcome("second", "applied"), outcome("first", "warned", "A")) == {
        "fabric": "north",
        "applied": ["first", "second", "third"],
        "warned": {"first": ["A", "Z"]},
        "config": "hash",
    }


def test_a_second_pass_writes_the_same_bytes() -> None:
    """Nothing is left to apply, and the status must not change once more."""
    first = status(outcome("first", "applied"), outcome("first", "warned", "W"))
    assert status(outcome("first", "already"), annotations={STATUS: first}) == first


@pytest.mark.parametrize(
    "previous",
    [
        "",
        "nonsense",
        "[]",
        "null",
        '"x"',
        {"applied": ["first"], "config": "other"},
        {"applied": ["first"]},
        {"config": "hash"},
        {"applied": "first", "config": "hash"},
        {"applied": [1], "config": "hash"},
        {"applied": ["first"], "warned": [], "config": "hash"},
        {"applied": ["first"], "warned": {"first": "W"}, "config": "hash"},
        {"applied": ["first"], "warned": {"first": [1]}, "config": "hash"},
        {"applied": ["stranger"], "warned": {"stranger": ["W"]}, "config": "hash"},
        '{"applied":["first"],"config":"hash"}' + " " * LONGEST,
    ],
    ids=range(15),
)
def test_a_status_that_we_did_not_write_is_replaced(previous: Any) -> None:
    """Not well formed, of another configuration, or about what is no mutation."""
    assert after(previous) == {"fabric": "north", "applied": [], "config": "hash"}


def test_an_annotation_of_another_type_is_no_status() -> None:
    """Nothing is read from it."""
    assert status(annotations={STATUS: ["first"]}) == status()


def test_a_long_status_counts_instead_of_listing() -> None:
    """It stays within 4 KiB, whatever happened."""
    many = [outcome("first", "warned", f"Code{index:04}") for index in range(1000)]
    assert status(outcome("second", "applied"), *many) == (
        '{"fabric":"north","applied":1,"warned":1,"config":"hash"}'
    )
    assert len(status(*many[:300])) <= LONGEST


@pytest.mark.parametrize(("letter", "count"), [("x", 1), ("ü", 2)])
def test_a_status_is_shortened_where_annotations_are_full(letter: str, count: int) -> None:
    """All of a pod's annotations share 256 KiB, counted in bytes."""
    listed = outcome("first", "applied")
    room = ANNOTATIONS_LIMIT - len("note") - len(STATUS)
    for left, expected in (
        (len(status(listed)), '{"fabric":"north","applied":["first"],"config":"hash"}'),
        (len(status(listed)) - 2, '{"fabric":"north","applied":1,"config":"hash"}'),
    ):
        filled = letter * ((room - left) // count) + "x" * ((room - left) % count)
        assert status(listed, annotations={"note": filled}) == expected


def test_a_shortened_status_stays_so() -> None:
    """The lists are lost, so a second decision that finds all in place keeps the counts."""
    before = '{"fabric":"north","applied":2,"warned":1,"config":"hash"}'
    assert status(annotations={STATUS: before}) == before
    more = status(outcome("first", "applied"), annotations={STATUS: before})
    assert more == before


def test_without_any_room_there_is_no_status() -> None:
    """It would make the API server refuse the pod."""
    full = "x" * (ANNOTATIONS_LIMIT - len("note") - len(STATUS))
    assert status(outcome("first", "applied"), annotations={"note": full}) == ""


@pytest.mark.parametrize(("text", "size"), [("", 0), ("abc", 3), ("ü", 2), ("\ud800", 3)])
def test_sizes_are_bytes(text: str, size: int) -> None:
    """Of UTF-8; half a surrogate pair is counted, not refused."""
    assert size_of(text) == size
