from __future__ import annotations

from typing import get_args

import pytest

from webhook.model.finding import LEVELS, Finding, Level
from webhook.text.terminal import SIGNS, Sheet, Span, TableColumn, lines_of, write_finding

_FINDING = Finding("error", "PortDown", "A port is down.", "Check the cable.")


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a wrapped text."""
    return [text[start:end] for start, end in lines_of(text, width)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", [""]),
        ("one two", ["one two"]),
        ("one two three", ["one two", "three"]),
        ("one  two  three", ["one  two", "three"]),
        ("a morethantwelve b", ["a", "morethan", "twelve b"]),
        ("morethantwelve", ["morethan", "twelve"]),
        ("  morethantwelve", ["morethan", "twelve"]),
        ("\u4e00\u4e01\u4e02 \u4e03\u4e04", ["\u4e00\u4e01\u4e02", "\u4e03\u4e04"]),
        ("\u4e00\u4e01\u4e02\u4e03\u4e04", ["\u4e00\u4e01\u4e02\u4e03", "\u4e04"]),
    ],
)
def test_lines_are_broken_between_words_and_long_words_are_cut(text: str, lines: list[str]) -> None:
    """The width is eight columns, and an ideograph takes two."""
    assert wrapped(text, 8) == lines


def test_a_paragraph_hangs_under_its_sign() -> None:
    """The second line is aligned with the words of the first."""
    sheet = Sheet(20)
    sheet.paragraph(Span("some words, "), Span("more words"), sign=Span("!"), indent=2)
    sheet.blank()
    assert sheet.text == "  ! some words, more\n    words\n\n"


def test_colors_follow_their_words_over_a_line_break() -> None:
    """Each line has its own color codes, so that a pager can cut anywhere."""
    sheet = Sheet(9, color=True)
    sheet.paragraph(Span("red and "), Span("green words", "green"))
    assert sheet.text == "red and\n\x1b[32mgreen\x1b[0m\n\x1b[32mwords\x1b[0m\n"


COLUMNS = (TableColumn("what"), TableColumn("whom", 6), TableColumn("why"))
ROWS = [[Span("a"), Span("one, two", "green"), Span("because of these reasons")], [Span("b")] * 3]


def test_a_table_gives_the_last_column_what_is_left() -> None:
    """A column with a maximum width is wrapped."""
    sheet = Sheet(36)
    sheet.table(COLUMNS, ROWS, indent=2)
    assert sheet.text == (
        "  what  whom    why\n"
        "  a     one,    because of these\n"
        "        two     reasons\n"
        "  b     b       b\n"
    )


def test_a_table_too_narrow_to_read_is_written_as_paragraphs() -> None:
    """A column with one word on each line is hard to read; each cell follows its heading."""
    sheet = Sheet(24)
    sheet.table(COLUMNS, ROWS, indent=2)
    assert sheet.text == (
        "  a: whom one, two; why\n  because of these\n  reasons\n  b: whom b; why b\n"
    )


def test_a_grid_has_a_line_for_each_row() -> None:
    """Each column is as wide as its widest cell; ideographs take two columns."""
    sheet = Sheet(14)
    rows = [[Span("a"), Span("bbb"), Span("c")], [Span("节点"), Span(""), Span("\n")]]
    assert sheet.grid(rows, indent=1)
    assert sheet.text == " a     bbb  c\n 节点       \\n\n"


def test_a_grid_that_is_too_wide_is_not_written() -> None:
    """The caller finds another way."""
    sheet = Sheet(7)
    row = [Span("aaa"), Span("bbb", "green")]
    assert not sheet.grid([row])
    assert sheet.text == ""
    assert sheet.grid([row], gap=1)
    assert sheet.text == "aaa bbb\n"


def test_every_level_has_a_sign() -> None:
    """A level without a sign could not be written; no two signs look alike."""
    assert set(SIGNS) == set(get_args(Level))
    assert len({sign.text for sign in SIGNS.values()}) == len(SIGNS)


@pytest.mark.parametrize("level", LEVELS)
def test_a_finding_is_written_with_its_sign_and_its_remedy(level: Level) -> None:
    """The sign, the subject, the text, a code for `why`; the remedy, if any, after an arrow."""
    sheet = Sheet(80, color=False)
    write_finding(sheet, _FINDING._replace(level=level), subject="n1")
    write_finding(sheet, _FINDING._replace(level=level)._replace(remedy=""))
    sign = SIGNS[level].text
    code = "" if level in {"ok", "info"} else " [PortDown]"
    assert sheet.text.splitlines() == [
        f"  {sign} n1: A port is down.{code}",
        "    → Check the cable.",
        f"  {sign} A port is down.{code}",
    ]
