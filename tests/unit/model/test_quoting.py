from __future__ import annotations

from typing import Any, NoReturn

import pytest

from webhook.model.quoting import describe, kind_of, quoted


class Mapping(dict[str, Any]):
    """A mapping that must not be written as a whole."""

    def __repr__(self) -> NoReturn:
        pytest.fail("the whole mapping was written")


class List(list[Any]):
    """A list that must not be written as a whole."""

    def __repr__(self) -> NoReturn:
        pytest.fail("the whole list was written")


class Text(str):
    """A string that must not be written as a whole."""

    __slots__ = ()

    def __repr__(self) -> NoReturn:
        pytest.fail("the whole string was written")


LARGE = [
    (Mapping(a=1, b=2, c=3, d=4, e=5), "a mapping"),
    (Mapping(a=[]), "a mapping"),
    (Mapping(a={}), "a mapping"),
    (Mapping({"k" * 81: 1}), "a mapping"),
    (List([1, 2, 3, 4, 5]), "a list"),
    (List([[]]), "a list"),
    (List(["x", "x" * 81]), "a list"),
]


@pytest.mark.parametrize(("value", "kind"), LARGE)
def test_a_large_value_is_not_written(value: object, kind: str) -> None:
    """Nested lists are written once for each level, which took half a minute for a request."""
    assert (quoted(value), describe(value)) == (kind, kind)


def test_a_long_string_is_cut_before_it_is_quoted() -> None:
    """The work does not grow with the string."""
    text = Text("x" * 10_000)

    assert (len(quoted(text)), quoted(text, 10)) == (80, "'xxxxxxxxx")
    assert describe(text) == f"a string ('{'x' * 58}…)"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": 1, "b": None}, "{'a': 1, 'b': None}"),
        ([], "[]"),
        (["a", "b", 1, True], "['a', 'b', 1, True]"),
        ("it's", '"it\'s"'),
        (None, "None"),
        (1.5, "1.5"),
    ],
)
def test_a_small_value_is_written(value: object, written: str) -> None:
    """Users recognize their own value."""
    assert quoted(value) == written
    assert describe(value) == f"{kind_of(value)} ({written})"


@pytest.mark.parametrize("value", [10**5000, [10**5000]], ids=["number", "list"])
def test_a_number_that_python_does_not_write(value: object) -> None:
    """Python refuses numbers of more than 4300 digits."""
    assert quoted(value) == "too many digits to be shown"


def test_the_longest_description() -> None:
    """A value of sixty characters is complete, and a longer one ends with an ellipsis."""
    assert describe("x" * 58) == f"a string ('{'x' * 58}')"
    assert describe("x" * 59) == f"a string ('{'x' * 58}…)"
    assert describe(["x" * 60]) == f"a list (['{'x' * 57}…)"
    assert describe(["x" * 61]) == "a list"


@pytest.mark.parametrize(
    ("value", "kind"),
    [({}, "a mapping"), ([], "a list"), ("", "a string"), (True, "a boolean"), (1, "a number")],
)
def test_kinds(value: object, kind: str) -> None:
    """The kinds have JSON's names."""
    assert kind_of(value) == kind
