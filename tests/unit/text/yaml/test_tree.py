"""Tests of the common YAML reader: its limits, and the places of errors."""

from __future__ import annotations

import pytest

from webhook.text.yaml.tree import (
    AliasError,
    NotYamlError,
    OverLimitError,
    TextLimits,
    UnreadableTextError,
    roots_of,
)

LIMITS = TextLimits(size=20, values=8, depth=3)


def failure(text: str) -> UnreadableTextError:
    """Return the error for a text that cannot be read."""
    with pytest.raises(UnreadableTextError) as caught:
        list(roots_of(text, LIMITS))
    return caught.value


@pytest.mark.parametrize(
    ("text", "exceeded", "offset"),
    [
        ("[1,2,3,4,5,6,7,8]", "values", 15),
        ("[1,2,3,4,5,6,7]", "", 0),
        ("- 1\n- 1\n- 1\n- 1\n- 1\n- 1\n- 1\n- [1]", "values", 30),
        ("[&a [1,2],*a,*a]", "values", 13),
        ("1\n--- 2\n--- [3,4,5,6,7,8]", "values", 23),
        ("- aaaaaaaaaa\n- aaaaaaaaaa", "", 0),
        ("- aaaaaaaaaaa\n- aaaaaaaaaa", "size", 16),
        ("- &a aaaaaaaaaaa\n- *a", "size", 19),
        ("[[[]]]", "", 0),
        ("[[[[]]]]", "depth", 3),
        ("- &a [[]]\n- *a", "", 0),
        ("- &a [[]]\n- [*a]", "depth", 13),
    ],
)
def test_a_limit_is_reported_where_it_is_exceeded(text: str, exceeded: str, offset: int) -> None:
    """Aliases count as much as their anchors; a collection counts at its beginning."""
    if not exceeded:
        assert list(roots_of(text, LIMITS))
        return
    error = failure(text)
    assert isinstance(error, OverLimitError)
    assert (error.exceeded, error.offset) == (exceeded, offset)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("*a", "not YAML: the alias *a has no anchor before it"),
        ("&a 1\n--- *a", "not YAML: the alias *a has no anchor before it"),
        ("&a [*a]", "the alias *a is inside its own anchor"),
        ("- &a 1\n- &a [*a]", "the alias *a is inside its own anchor"),
    ],
)
def test_an_alias_needs_an_anchor_that_is_complete(text: str, message: str) -> None:
    """It must be in the same document; the later of two equal ones counts (YAML 1.1, 3.2.2.2)."""
    error = failure(text)
    assert isinstance(error, AliasError)
    assert (str(error), error.anchor, error.offset) == (message, "a", text.index("*a"))


def test_a_mistake_is_reported_with_its_context() -> None:
    """The words are the parser's; an incomplete text fails at its end."""
    error = failure("a:\n  [1")
    assert isinstance(error, NotYamlError)
    assert str(error) == "not YAML: did not find expected ',' or ']'"
    assert (error.context, error.context_offset) == ("while parsing a flow sequence", 5)
    assert error.offset == 7


@pytest.mark.parametrize("text", ["a: \x07", "a: \ud800"])
def test_a_character_that_yaml_forbids_has_no_place(text: str) -> None:
    """The parser does not report one; callers look for the character beforehand."""
    error = failure(text)
    assert isinstance(error, NotYamlError)
    assert (error.context_offset, error.offset) == (None, None)
