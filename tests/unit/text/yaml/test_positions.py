"""Tests of line numbers: they match an editor's, and take little memory."""

from __future__ import annotations

import sys

import pytest

from webhook.text.yaml import tree
from webhook.text.yaml.tree import LineIndex


@pytest.mark.parametrize("block", [1, 2, 3, 7, 4096])
@pytest.mark.parametrize("text", ["", "a", "\n", "a\nb", "\n\n\n", "ab\r\nc\n\u2028d\x85\re"])
def test_a_line_ends_with_a_newline_only(
    text: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds at every offset, including the end, wherever the blocks begin."""
    monkeypatch.setattr(tree, "_BLOCK_LENGTH", block)
    index = LineIndex(text)
    numbers = [index.line(offset) for offset in range(len(text) + 1)]
    assert numbers == [1 + text[:offset].count("\n") for offset in range(len(text) + 1)]


def test_many_lines_take_little_memory() -> None:
    """A preview's process has 192 MiB, and a document may be 8 MiB of empty lines."""
    index = LineIndex("\n" * (1 << 20))
    assert index.line(1 << 20) == (1 << 20) + 1
    assert sys.getsizeof(index._before) < 1 << 13
