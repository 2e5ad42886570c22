"""Names in natural order, and short lists of them."""

from __future__ import annotations

import pytest

from webhook.model.names import (
    capitalized,
    counted,
    enumerated,
    natural_key,
    shortened_list,
    uncapitalized,
)


def test_names_are_sorted_as_people_count() -> None:
    """A number in any place of a name counts as a number."""
    names = ["n10-1", "n2-10", "n2-9", "n", "n1", "m3", "2", "10", "1234567890", "n1a"]
    expected = ["2", "10", "1234567890", "m3", "n", "n1", "n1a", "n2-9", "n2-10", "n10-1"]
    assert sorted(names, key=natural_key) == expected


@pytest.mark.parametrize("name", ["n\u00b2", "7" * 5_000], ids=["superscript", "long"])
def test_any_name_can_be_sorted(name: str) -> None:
    """A superscript is a digit to Python, but no number; nor is a number of 5,000 digits."""
    assert sorted([name, ""], key=natural_key) == ["", name]


@pytest.mark.parametrize(
    ("count", "limit", "expected"),
    [
        (0, 4, ""),
        (4, 4, "n1, n2, n3, n4"),
        (5, 4, "n1, n2, n3 and 2 more"),
        (3, 2, "n1 and 2 more"),
        (3, 1, "n1 and 2 more"),
    ],
)
def test_a_shortened_list_has_a_limited_number_of_names(
    count: int, limit: int, expected: str
) -> None:
    """The count takes the place of a name, so a list never ends with "and 1 more"."""
    names = [f"n{number}" for number in range(1, count + 1)]
    assert shortened_list(names, limit) == expected


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes"), (1234, "1,234 nodes")]
)
def test_a_count_has_its_noun_in_the_right_form(number: int, text: str) -> None:
    """Only one is singular; thousands have a comma."""
    assert counted(number, "node") == text


@pytest.mark.parametrize(
    ("count", "expected"), [(0, ""), (1, "n1"), (2, "n1 and n2"), (3, "n1, n2 and n3")]
)
def test_names_are_enumerated_as_in_a_sentence(count: int, expected: str) -> None:
    """The last one has "and" in front of it."""
    assert enumerated([f"n{number}" for number in range(1, count + 1)]) == expected


def test_the_start_of_a_sentence() -> None:
    """Only the first letter changes, and none of an acronym."""
    assert capitalized("the pod of Job A") == "The pod of Job A"
    assert uncapitalized("The pod of Job A") == "the pod of Job A"
    assert uncapitalized("RDMA is off") == "RDMA is off"
    assert capitalized("") == uncapitalized("") == ""
