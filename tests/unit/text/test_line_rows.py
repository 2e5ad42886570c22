"""Two versions of a text side by side."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from webhook.text.line_rows import Hunk, Row, hunks_between, lines_of

_LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n"]), max_size=30)


def test_rows_of_each_kind() -> None:
    """A changed line shares a row with its new version; additional lines have their own rows."""
    before = lines_of("a\nb\nc\nd\n")
    after = lines_of("a\nB\nB2\nc\n")
    assert [*hunks_between(before, after)] == [
        Hunk(
            0,
            0,
            (
                Row("a\n", "a\n", 0, 0),
                Row("b\n", "B\n", 1, 1),
                Row(None, "B2\n", None, 2),
                Row("c\n", "c\n", 2, 3),
                Row("d\n", None, 3, None),
            ),
        )
    ]


def test_kinds() -> None:
    """The kind follows from the lines."""
    before, after = lines_of("a\nb\nc\nd\n"), lines_of("a\nB\nB2\nc\n")
    (hunk,) = hunks_between(before, after)
    assert [row.kind for row in hunk.rows] == ["same", "changed", "added", "same", "removed"]


def test_distant_changes_are_separate_hunks() -> None:
    """Each has three lines of context, and starts where its first row is."""
    lines = [f"{number}\n" for number in range(40)]
    after = [*lines[:10], "x\n", *lines[11:30], *lines[31:]]
    first, second = hunks_between(lines, after)
    assert (first.before_start, first.after_start, len(first.rows)) == (7, 7, 7)
    assert (second.before_start, second.after_start, len(second.rows)) == (27, 27, 7)
    assert (first.before, second.after) == (lines[7:14], [*lines[27:30], *lines[31:34]])


def test_no_change() -> None:
    """Equal texts have no hunks."""
    assert [*hunks_between(["a\n"], ["a\n"])] == []


@given(_LINES, _LINES)
def test_the_rows_are_both_texts(before: list[str], after: list[str]) -> None:
    """With the lines between the hunks, each side is its text, line by line and by its numbers."""
    old, new = before[:], after[:]
    for hunk in reversed([*hunks_between(before, after)]):
        for row in hunk.rows:
            assert row.before is None or before[row.before_line or 0] == row.before
            assert row.after is None or after[row.after_line or 0] == row.after
        old[hunk.before_start : hunk.before_start + len(hunk.before)] = hunk.after
        new[hunk.after_start : hunk.after_start + len(hunk.after)] = hunk.before
    assert (old, new) == (after, before)


def test_only_line_feeds_end_lines() -> None:
    """The last line may have no break."""
    assert lines_of("a\rb\n\u2028c") == ["a\rb\n", "\u2028c"]
    assert lines_of("") == []
