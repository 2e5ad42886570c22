"""Tests of the YAML reader: which values stay strings, and which errors it reports."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from webhook.config.files import decode, parse_yaml, read_file
from webhook.config.findings import InvalidConfiguration
from webhook.config.load import LIMITS
from webhook.text.yaml.tree import roots_of


def read(text: str, **limits: int) -> Any:
    """Read the only document in a text."""
    (document,) = parse_yaml(text, "f.yaml", LIMITS._replace(**limits))
    return document.data


def problem(text: str, **limits: int) -> str:
    """Return the error for a text that cannot be read."""
    with pytest.raises(InvalidConfiguration) as caught:
        parse_yaml(text, "f.yaml", LIMITS._replace(**limits))
    return str(caught.value)


@pytest.mark.parametrize(
    "word",
    [
        "on",
        "No",
        "y",
        "True",
        "2024-01-01",
        "1:30",
        "010",
        "0x10",
        "0o7",
        "1_000",
        "1e3",
        ".5",
        ".inf",
        "+1",
        "-0",
        "=",
        "1.0",
        "9" * 19,
        "nul",
    ],
)
def test_what_is_no_plain_word_of_json_stays_a_string(word: str) -> None:
    """A device named `on`, a date, a time and an octal number keep their text."""
    assert read(f"a: {word}\n{word}: a") == {"a": word, word: "a"}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("false", False),
        ("0", 0),
        ("-12", -12),
        ("null", None),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ("|\n 1", "1"),
    ],
)
def test_plain_words_of_json_are_values(written: str, value: object) -> None:
    """Booleans, decimal numbers and null are read as such, unless quoted or tagged !!str."""
    converted = read(f"a: {written}")["a"]
    assert (converted, type(converted)) == (value, type(value))


def test_lines_are_those_of_keys_and_items() -> None:
    """A path leads to the line of its key or item; an unknown path, to its parent's line."""
    text = "# head\na: 1\nb:\n  - x\n  - c: >\n      y\n    d: &d\n      e: 1\nf: *d\n"
    (document,) = parse_yaml(text, "f.yaml", LIMITS)
    paths: dict[tuple[str | int, ...], int] = {
        (): 2, ("a",): 2, ("b",): 3, ("b", 0): 4, ("b", 1): 5, ("b", 1, "c"): 5,
        ("b", 1, "d", "e"): 8, ("f",): 9, ("f", "e"): 8, ("b", 1, "zzz"): 5, ("zzz", 0): 2,
    }  # fmt: skip
    assert {path: document.line(path) for path in paths} == paths


def test_aliases_are_read() -> None:
    """An alias has the value of its anchor, within one document."""
    assert read("a: &x [1, {b: 2}]\nc: *x\n&k d: *x") == {
        "a": [1, {"b": 2}],
        "c": [1, {"b": 2}],
        "d": [1, {"b": 2}],
    }
    assert read("&k a: 1\nb: *k") == {"a": 1, "b": "a"}


def test_a_quoted_merge_key_is_a_key() -> None:
    """A quoted word is always a plain string."""
    assert read("'<<': {a: 1}") == {"<<": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: [1",
            "f.yaml:1:4: not YAML: the [ that opens here is not closed; write ]",
        ),
        (
            "a: 1\nb: @x",
            'f.yaml:2:4: not YAML: a value that begins with @ must be quoted; write `"@x"`',
        ),
        (
            "a: {{ .x }}",
            (
                "f.yaml:1: a key must be a string, not a list or a mapping (this is a template; "
                "render it first, for example with `helm template`)"
            ),
        ),
        ("a: \x07", "f.yaml: not YAML: control characters are not allowed"),
        ("a: \ud800", "f.yaml: not YAML: surrogates not allowed"),
        ("a: 1\nb: 2\na: 3", "f.yaml:3: 'a' is here and on line 1; remove one"),
        (
            "a: {b: 1, b: 2}\na: 1",
            (
                "f.yaml:1: 'b' is here and on line 1; remove one\nf.yaml:2: 'a' is here and on "
                "line 1; remove one"
            ),
        ),
        ("a: !!binary aGk=", "f.yaml:1: the tag !!binary is not supported; write the plain value"),
        (
            "a: !!python/name:os.system x",
            "f.yaml:1: the tag !!python/name:os.system is not supported; write the plain value",
        ),
        ("a: !!set {b}", "f.yaml:1: the tag !!set is not supported; write the plain value"),
        (
            "x: &x {a: 1}\ny:\n  <<: *x",
            "f.yaml:3: merge keys (<<) are not supported; write the merged fields out",
        ),
        ("[a]: 1", "f.yaml:1: a key must be a string, not a list or a mapping"),
        ("a: &a x\n*a : b", "f.yaml:2: alias *a cannot be a key; write the key out"),
        (
            "a: *b",
            ("f.yaml:1: alias *b has no anchor before it (quote a value that begins with *)"),
        ),
        ("a: &a [*a]", "f.yaml:1: alias *a is inside its own anchor"),
        (
            "a: &a 1\n---\n*a",
            ("f.yaml:3: alias *a has no anchor before it (quote a value that begins with *)"),
        ),
        ("[" * 101, "f.yaml:1: is nested deeper than 100 levels"),
        ("[" * 50_000, "f.yaml:1: is nested deeper than 100 levels"),
    ],
)
def test_what_cannot_be_read_is_reported_with_its_line(text: str, message: str) -> None:
    """Broken, ambiguous or hostile YAML gives one clear error, or one for each repeated key."""
    assert problem(text) == message


def test_values_are_counted_with_aliases_as_often_as_used() -> None:
    """Ten anchors of ten aliases each would be 10^10 values, and are refused without a walk."""
    bomb = "a0: &a0 [x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 11))
    assert problem(bomb) == "f.yaml:6: contains more than the maximum of 35,000 values"
    assert read("[1, 2]", values=3) == [1, 2]
    assert problem("[1, 2]", values=2) == "f.yaml:1: contains more than the maximum of 2 values"


def test_values_are_counted_where_they_stand() -> None:
    """The line is the first value's beyond the limit, even if it is a list."""
    assert (
        problem("- 1\n- [\n  2]\n", values=2)
        == "f.yaml:2: contains more than the maximum of 2 values"
    )


def test_aliases_count_for_the_depth() -> None:
    """Anchors cannot nest lists deeper than brackets can."""
    deeper = "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200))
    assert problem(f"a0: &a0 [x]\n{deeper}") == "f.yaml:100: is nested deeper than 100 levels"


def test_a_mistake_below_an_anchor_is_reported_once() -> None:
    """It is reported once, however often the aliases are used."""
    message = "f.yaml:1: 'b' is here and on line 1; remove one"
    assert problem("a: &a {b: 1, b: 2}\nc: [*a, *a]") == message


def _peak(call: Callable[[], object]) -> int:
    """Return the peak memory of a call, in bytes."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_tree_goes_as_the_data_comes() -> None:
    """The tree is freed while it is converted.

    The facts of a large cluster are 150 MB of text; keeping both would take a third more memory.
    """
    text = "".join(f"- name: n{at}\n  labels: {{a: x{at}, b: y{at}}}\n" for at in range(500))
    tree = _peak(lambda: list(roots_of(text, LIMITS)))
    assert _peak(lambda: parse_yaml(text, "f.yaml", LIMITS)) < 1.15 * tree


def test_a_file_is_read_as_utf8(tmp_path: Path) -> None:
    """A byte order mark is skipped; another encoding is an error with the line and the byte."""
    path = tmp_path / "f"
    path.write_bytes(b"\xef\xbb\xbfa: \xc3\xa9")
    assert decode(read_file(path, LIMITS), "f") == "a: é"
    with pytest.raises(
        InvalidConfiguration, match=r"^f:2: byte 0xe9 is not UTF-8; save the file as"
    ):
        decode(b"a: 1\nb: \xe9", "f")


def test_what_is_no_readable_file_is_reported(tmp_path: Path) -> None:
    """A missing file, a directory, a pipe or a large file gives one clear error, and no hang."""
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    large.write_bytes(b"12345")
    messages = {
        tmp_path / "none": "no such file or directory",
        tmp_path: "is a directory; name a file in it",
        pipe: "is not a regular file",
        large: "is larger than the maximum of 4 bytes",
        large / "x": "cannot be read: Not a directory",
    }
    for path, message in messages.items():
        with pytest.raises(InvalidConfiguration) as caught:
            read_file(path, LIMITS._replace(size=4))
        assert str(caught.value) == f"{path}: {message}"
    with pytest.raises(InvalidConfiguration, match="cannot be read: embedded null"):
        read_file(Path("a\0b"), LIMITS)
