from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.case_names import case_name
from webhook.decide import VOCABULARY as REAL
from webhook.decide.status import StatusSummary, StatusVocabulary, render
from webhook.model.annotations import (
    MAX_ANNOTATIONS_SIZE,
    MAX_STATUS_LENGTH,
    STATUS_ANNOTATION,
    size_of,
)
from webhook.model.decision import REQUEST_CHECK, Outcome, Reason, Status, Verdict

NAMES = ("first", "second", "third")
#: The codes of each mutation; the pipeline has one more.
MUTATION_CODES = frozenset({"Code", "A", "B", "C", "Old", "W", "Z"})
CODE = Reason("Code", "A reason.", "", rdma="no")
FINE = Reason("Fine", "All is well.", "", rdma="yes")
VOCABULARY = StatusVocabulary(
    mutations={**dict.fromkeys(NAMES, MUTATION_CODES), "third": frozenset({"Code"})},
    codes=tuple(sorted({*MUTATION_CODES, "Request"})),
    verdicts={"Fine": "yes", "Code": "no"},
)
#: The beginning of the status of an equipped pod, as a mapping and as text.
EQUIPPED = {"rdma": "yes", "because": "Fine", "fabric": "north"}
BEGINS = '{"rdma":"yes","because":"Fine","fabric":"north",'
NOT_REPORTED = Reason("NotReported", "Nothing to do.", "", reportable=False)


def outcome(
    mutation: str, status: Status, code: str = "Code", *, reportable: bool = True
) -> Outcome:
    """Make an outcome."""
    return Outcome(mutation, "a", status, Reason(code, "", "", reportable=reportable), "sentence")


def status(
    *outcomes: Outcome,
    annotations: dict[str, Any] | None = None,
    fabric: str | None = "north",
    reason: Reason | None = None,
    because: Reason = FINE,
) -> str:
    """Write a status under the configuration `hash`."""
    summary = StatusSummary(Verdict.of(because, "so"), fabric, reason, "hash")
    return render(annotations or {}, outcomes, summary, VOCABULARY)


def after(previous: Any, *outcomes: Outcome) -> dict[str, Any]:
    """Read the status that replaces a previous one."""
    written = previous if isinstance(previous, str) else orjson.dumps(previous).decode()
    body: dict[str, Any] = orjson.loads(status(*outcomes, annotations={STATUS_ANNOTATION: written}))
    return body


def test_a_pod_that_got_nothing_has_a_status_too() -> None:
    """It shows that we were called, and the reason for the lack of changes."""
    assert status() == BEGINS + '"applied":[],"config":"hash"}'
    assert status(fabric=None, reason=CODE) == (
        '{"rdma":"yes","because":"Fine","fabric":null,"reason":"Code","applied":[],"config":"hash"}'
    )


def test_it_names_the_assumption() -> None:
    """After the reason of the verdict; a second call reads the status back."""
    verdict = Verdict.of(FINE, "so")._replace(assumption=Reason("Taken", "Assumed.", ""))
    summary = StatusSummary(verdict, "north", None, "hash")
    first = render({}, (outcome("first", "applied"),), summary, VOCABULARY)
    assert first == (
        '{"rdma":"yes","because":"Fine","assumed":"Taken","fabric":"north","applied":["first"],'
        '"config":"hash"}'
    )
    second = outcome("first", "already")
    assert render({STATUS_ANNOTATION: first}, (second,), summary, VOCABULARY) == first


def test_it_has_each_code_once() -> None:
    """As the verdict's, the pod's, a skipped mutation's or a warning's: the first of these."""
    assert status(fabric=None, reason=CODE, because=CODE) == (
        '{"rdma":"no","because":"Code","fabric":null,"applied":[],"config":"hash"}'
    )
    outcomes = (
        outcome("first", "skipped"),
        outcome("second", "warned"),
        outcome("first", "skipped", "A"),
        outcome("second", "skipped", "A"),
        outcome("first", "warned", "A"),
        outcome("first", "warned", "B"),
    )
    assert status(*outcomes, because=CODE) == (
        '{"rdma":"no","because":"Code","fabric":"north","applied":[],"skipped":["A"],'
        '"warned":["B"],"config":"hash"}'
    )
    assert '"reason":"Code","applied":[],"skipped":["A"],"warned":["B"]' in status(
        *outcomes, reason=CODE
    )


def test_a_code_is_not_repeated() -> None:
    """A list without new codes is left out; the verdict's code is not also a warning."""
    outcomes = (outcome("first", "skipped", "A"), outcome("second", "warned"))
    assert status(*outcomes, because=CODE) == (
        '{"rdma":"no","because":"Code","fabric":"north","applied":[],"skipped":["A"],'
        '"config":"hash"}'
    )
    assert '"skipped"' not in status(outcome("first", "skipped"), because=CODE)


def test_it_lists_what_was_applied_skipped_and_warned() -> None:
    """In the chain's order, each code once, sorted; without unreportable reasons and `already`."""
    assert status(
        outcome("third", "applied"),
        outcome("second", "skipped", "Z"),
        outcome("second", "skipped", "A"),
        outcome("second", "skipped", "A"),
        outcome("second", "skipped", "Q", reportable=False),
        outcome("first", "already"),
        outcome("first", "applied"),
        outcome(REQUEST_CHECK, "warned", "B"),
        outcome("first", "warned", "C"),
    ) == (
        BEGINS + '"applied":["first","third"],"skipped":["A","Z"],"warned":["B","C"],'
        '"config":"hash"}'
    )


PREVIOUS = {
    "rdma": "no",
    "because": "Code",
    "fabric": "other",
    "applied": ["first", "third"],
    "skipped": ["Old"],
    "warned": ["Request", "Z"],
    "config": "hash",
}
DONE = (outcome("first", "already"), outcome("third", "already"))


def test_what_the_first_call_applied_carries_over() -> None:
    """With its warnings, which the second call cannot repeat; but without a request's."""
    second_call = (*DONE, outcome("second", "applied"), outcome("first", "warned", "A"))
    assert after(PREVIOUS, *second_call) == {
        **EQUIPPED,
        "applied": ["first", "second", "third"],
        "warned": ["A", "Z"],
        "config": "hash",
    }


def test_a_code_that_holds_for_every_call_carries_over() -> None:
    """Even without its mutation, since it belongs to none."""
    vocabulary = VOCABULARY._replace(persistent_warning_codes=frozenset({"Request"}))
    summary = StatusSummary(Verdict.of(FINE, "so"), "north", None, "hash")
    before = {STATUS_ANNOTATION: orjson.dumps(PREVIOUS).decode()}
    assert orjson.loads(render(before, (), summary, vocabulary))["warned"] == ["Request"]
    before = {STATUS_ANNOTATION: orjson.dumps({**PREVIOUS, "warned": ["Z"]}).decode()}
    assert "warned" not in orjson.loads(render(before, (), summary, vocabulary))


def test_what_is_not_in_place_does_not_carry_over() -> None:
    """A status written by a user cannot claim changes that are not in place."""
    assert after(PREVIOUS, outcome("third", "already"), outcome("first", "skipped", "A")) == {
        **EQUIPPED,
        "applied": ["third"],
        "skipped": ["A"],
        "config": "hash",
    }


def test_a_second_call_writes_the_same_bytes() -> None:
    """Nothing is left to apply, and the status must not change once more."""
    first = status(outcome("first", "applied"), outcome("first", "warned", "W"))
    assert status(outcome("first", "already"), annotations={STATUS_ANNOTATION: first}) == first


OURS = BEGINS + '"applied":["first"],"config":"hash"}'


def test_a_status_that_we_wrote_counts() -> None:
    """Each case below differs from it in one detail."""
    assert after(OURS, *DONE)["applied"] == ["first"]


@pytest.mark.parametrize(
    "previous",
    [
        "",
        "nonsense",
        "[]",
        "null",
        '"x"',
        '"config"',
        PREVIOUS | {"config": "other"},
        PREVIOUS | {"config": None},
        PREVIOUS | {"config": "hash", "note": "free text"},
        {"config": "hash"},
        {**EQUIPPED, "applied": ["first"]},
        {**EQUIPPED, "config": "hash"},
        {"fabric": "north", "applied": ["first"], "config": "hash"},
        {**EQUIPPED, "rdma": "no", "applied": ["first"], "config": "hash"},
        {**EQUIPPED, "rdma": None, "applied": ["first"], "config": "hash"},
        {**EQUIPPED, "because": "Other", "applied": ["first"], "config": "hash"},
        {**EQUIPPED, "because": ["Fine"], "applied": ["first"], "config": "hash"},
        {"config": "hash", **EQUIPPED, "applied": ["first"]},
        *(
            {**EQUIPPED, "applied": applied, "config": "hash"}
            for applied in (
                *("first", "", None, {"first": 1}, [1], [["first"]], ["first", "free text"]),
                *(["third", "first"], ["first", "first"], 1, True),
            )
        ),
        *(
            {**EQUIPPED, "applied": ["first"], field: codes, "config": "hash"}
            for field in ("skipped", "warned")
            for codes in (
                *(1, [], "", "W", {"first": ["W"]}, [1], ["free text"], ["W", "A"], ["W", "W"]),
            )
        ),
        OURS + " ",
        OURS.replace('"applied"', '"applied":["first"],"applied"'),
        OURS.replace(",", ", "),
        OURS + " " * MAX_STATUS_LENGTH,
    ],
    ids=case_name,
)
def test_a_status_that_we_did_not_write_is_replaced(previous: Any) -> None:
    """In another form, of another configuration, or with unknown words."""
    assert after(previous, *DONE) == {**EQUIPPED, "applied": [], "config": "hash"}


@pytest.mark.parametrize("levels", [253, 254, 1023, 1024])
def test_a_deep_status_is_replaced(levels: int) -> None:
    """Orjson writes 254 levels, and reads 1,024."""
    previous = '{"rdma":' + "[" * levels + "]" * levels + "}"
    assert after(previous, *DONE) == {**EQUIPPED, "applied": [], "config": "hash"}


def test_an_annotation_of_another_type_is_no_status() -> None:
    """Nothing is read from it."""
    for written in (["first"], 1):
        assert status(annotations={STATUS_ANNOTATION: written}) == status()


@pytest.mark.parametrize("size", [MAX_STATUS_LENGTH, MAX_STATUS_LENGTH + 1])
def test_a_status_of_the_longest_size_is_listed_and_read_back(size: int) -> None:
    """With one byte more, it has counts; the second call writes the same as the first."""
    code = "x" * (size - len(BEGINS + '"applied":["first"],"warned":[""],"config":"hash"}'))
    names = dict.fromkeys(NAMES, frozenset({code}))
    vocabulary = StatusVocabulary(mutations=names, codes=(code,), verdicts={"Fine": "yes"})
    summary = StatusSummary(Verdict.of(FINE, "so"), "north", None, "hash")
    warned = (outcome("first", "applied"), outcome("first", "warned", code))
    first = render({}, warned, summary, vocabulary)
    second = render({STATUS_ANNOTATION: first}, [outcome("first", "already")], summary, vocabulary)
    if size == MAX_STATUS_LENGTH:
        assert len(first) == size
        assert second == first
    else:
        assert first == BEGINS + '"applied":1,"warned":1,"config":"hash"}'


def test_a_long_status_counts_instead_of_listing() -> None:
    """It stays within 4 KiB in any case."""
    warnings = [outcome("first", "warned", f"Code{index:04}") for index in range(1000)]
    assert status(outcome("second", "applied"), *warnings) == (
        BEGINS + '"applied":1,"warned":1000,"config":"hash"}'
    )
    assert len(status(*warnings[:300])) <= MAX_STATUS_LENGTH


def crowded(spare: int, letter: str = "x") -> dict[str, str]:
    """Fill the annotations of a pod, and leave room for a status of `spare` bytes."""
    room = MAX_ANNOTATIONS_SIZE - len("note") - len(STATUS_ANNOTATION) - spare
    size = size_of(letter)
    return {"note": letter * (room // size) + "x" * (room % size)}


#: Counts of three digits in all three fields: the room that any status with counts needs.
WIDEST = BEGINS + '"applied":999,"skipped":999,"warned":999,"config":"hash"}'
LISTED = tuple(outcome(name, "warned", code) for name in NAMES for code in sorted(MUTATION_CODES))


def test_counts_have_three_digits() -> None:
    """There are fewer mutations, and fewer reason codes, than the room for counts allows."""
    max_count = max(len(REAL.mutations), len(REAL.codes))
    assert max_count <= 999, f"{max_count} codes: widen _MAX_COUNTS in webhook/decide/status.py"


@pytest.mark.parametrize("letter", ["x", "ü", "\N{ROCKET}"])
def test_a_status_is_shortened_where_annotations_are_full(letter: str) -> None:
    """All of a pod's annotations share 256 KiB, counted in bytes."""
    full = status(*LISTED)
    for spare, expected in (
        (len(full), full),
        (len(full) - 1, BEGINS + '"applied":0,"warned":7,"config":"hash"}'),
        (len(WIDEST), BEGINS + '"applied":0,"warned":7,"config":"hash"}'),
        (len(WIDEST) - 1, ""),
    ):
        assert status(*LISTED, annotations=crowded(spare, letter)) == expected


def test_keys_of_annotations_take_room_too() -> None:
    """Many long keys without a value leave none for a status."""
    keys = {f"{number:0317}": "" for number in range(MAX_ANNOTATIONS_SIZE // 317 + 1)}
    assert status(outcome("first", "applied"), annotations=keys) == ""


def test_a_shortened_status_stays_so() -> None:
    """The lists are lost, so a second decision without changes keeps the counts."""
    before = BEGINS + '"applied":2,"warned":1,"config":"hash"}'
    for spare in (MAX_STATUS_LENGTH - 1, len(WIDEST)):
        annotations = {**crowded(spare), STATUS_ANNOTATION: before}
        assert status(annotations=annotations) == before
        assert status(outcome("first", "applied"), annotations=annotations) == before


@pytest.mark.parametrize("applied", [0, 3])
def test_counts_of_none_and_of_all_mutations_are_ours(applied: int) -> None:
    """These are the least and the most."""
    before = BEGINS + f'"applied":{applied},"warned":1,"config":"hash"}}'
    annotations = {**crowded(len(WIDEST)), STATUS_ANNOTATION: before}
    assert status(outcome("first", "already"), annotations=annotations) == before


def test_counts_grow_with_what_a_second_decision_adds() -> None:
    """It may apply more than the first one did."""
    before = BEGINS + '"applied":1,"warned":3,"config":"hash"}'
    additional = [outcome(name, "applied") for name in NAMES]
    assert status(*additional, annotations={**crowded(len(WIDEST)), STATUS_ANNOTATION: before}) == (
        BEGINS + '"applied":3,"warned":3,"config":"hash"}'
    )


@pytest.mark.parametrize(
    "counts",
    [
        {"applied": 4},
        {"applied": 1, "warned": 9},
        {"applied": -1},
        {"applied": 1.0},
        {"applied": 1, "warned": {}},
        {"applied": 1, "warned": 0},
        {"applied": ["first"], "warned": 1},
        {"applied": 1, "skipped": True},
    ],
    ids=case_name,
)
def test_counts_that_cannot_be_ours_are_dropped(counts: dict[str, Any]) -> None:
    """More than the mutations, none at all, or lists together with counts."""
    before = orjson.dumps({**EQUIPPED, **counts, "config": "hash"}).decode()
    assert (
        status(annotations={**crowded(MAX_STATUS_LENGTH - 1), STATUS_ANNOTATION: before})
        == status()
    )


def test_counts_are_dropped_where_lists_had_room() -> None:
    """A number that a user writes into a status does not hide our lists."""
    before = BEGINS + '"applied":2,"warned":1,"config":"hash"}'
    listed = status(outcome("first", "applied"))
    assert status(outcome("first", "applied"), annotations={STATUS_ANNOTATION: before}) == listed
    annotations = {**crowded(MAX_STATUS_LENGTH), STATUS_ANNOTATION: before}
    assert status(outcome("first", "applied"), annotations=annotations) == listed


def test_without_any_room_there_is_no_status() -> None:
    """A status would make the API server refuse the pod, regardless of the counts."""
    for spare in (0, len(WIDEST) - 1):
        assert status(outcome("first", "applied"), annotations=crowded(spare)) == ""


@pytest.mark.parametrize(("text", "size"), [("", 0), ("abc", 3), ("ü", 2), ("\ud800", 3)])
def test_sizes_are_bytes(text: str, size: int) -> None:
    """Of UTF-8; half a surrogate pair is counted, not refused."""
    assert size_of(text) == size
