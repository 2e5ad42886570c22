"""Text from users is escaped, so that no control character reaches a terminal, log or comment."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.text.escape import visible, visible_json, visible_lines

#: Characters of every class that must not be shown unescaped.
HIDDEN = (
    "\x00\x07\x08\t\n\r\x1b\x7f\x80\x85\x9b\x9f\xad\u0600\u061c\u200b\u200d\u200e\u200f\u2028\u2029"
    "\u202a\u202e\u2060\u2066\u2069\ufeff\ufffe\ud800\udfff\ue000\U000e0001\U000e0041\U000e0100"
    "\u034f\u115f\u3164\ufe0f\uffa0\u2800"
)


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ("trainer-0", "trainer-0"),
        ("训练 é ✔ 😀", "训练 é ✔ 😀"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x9b2J", r"\x9b2J"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("a\u200bb\U000e0041", r"a\u200bb\U000e0041"),
        ("\ud800", r"\ud800"),
        (r"\x1b", r"\x1b"),
    ],
)
def test_what_is_not_visible_is_escaped(words: str, written: str) -> None:
    """Escapes are Python's; letters of all scripts and backslashes stay unchanged."""
    assert visible(words) == written


@pytest.mark.parametrize("char", HIDDEN, ids=lambda char: f"{ord(char):04x}")
def test_no_hidden_character_is_left(char: str) -> None:
    """No control, line break, direction, zero-width or surrogate character is left."""
    assert visible(char).isascii()
    assert visible(char).isprintable()
    assert visible_json(f'"{char}"').isascii() or char == "\n"


def test_lines_stay_lines() -> None:
    """In a text of several lines, only a line feed breaks a line."""
    assert visible_lines("a\nb\x85c\u2028d\r\n") == "a\nb\\x85c\\u2028d\\r\n"


@given(st.text(st.characters(codec=None)))
def test_nothing_is_left_to_do(words: str) -> None:
    """Escaping an escaped text changes nothing, and the result is printable."""
    assert visible(words).isprintable()
    assert visible(visible(words)) == visible(words)


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_means_the_same(value: object) -> None:
    """The escapes are JSON's own, so a JSON parser gets every character back."""
    written = visible_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(written) == value
    assert all(char.isprintable() or char == "\n" for char in written)


def test_more_characters_than_are_remembered() -> None:
    """The table of escapes does not grow with users' input."""
    words = "".join(map(chr, range(0x3400, 0x9000)))
    assert visible(words) == words
    assert visible("\u202e") == r"\u202e"
