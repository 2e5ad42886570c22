"""Collect replacements in a text, and pair the old and new entries of mappings and lists."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from difflib import SequenceMatcher

from webhook.model.json import Json, JsonObject
from webhook.text.yaml.documents import DOCUMENT_LIMITS
from webhook.text.yaml.tree import UnreadableTextError, YamlNode, roots_of
from webhook.text.yaml.values import mapping_key, same_json

# Replacements in a text, collected in any order and made at once; the offsets of its lines.


class Edits:
    """A text and the replacements in it; all offsets refer to the original text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self._edits: list[tuple[int, int, str]] = []

    def replace(self, start: int, end: int, new: str) -> None:
        """Replace the text from `start` to `end` with `new`."""
        self._edits.append((start, end, new))

    def insert_lines(self, offset: int, lines: list[str]) -> None:
        """Insert lines below the line of `offset`, after the lines of earlier calls."""
        end = self.line_end(offset)
        self.replace(end, end, "".join(self.newline + line for line in lines))

    def remove_lines(self, start: int, end: int) -> None:
        """Remove the lines from `start` to `end`, both included.

        The line break above them is removed, and the one below stays: lines may be inserted there.
        """
        above = self.line_start(start)
        if above == 0:
            self.replace(0, self.next_line(end), "")
        else:
            self.replace(self.line_end(above - 1), self.line_end(end), "")

    def result(self) -> str:
        """Return the text with all replacements; at one offset, insertions come first."""
        parts: list[str] = []
        position = 0
        for start, end, new in sorted(self._edits, key=lambda edit: edit[:2]):
            parts += (self.text[position:start], new)
            position = max(position, end)
        return "".join((*parts, self.text[position:]))

    def line_start(self, offset: int) -> int:
        """Return the offset at which the line of `offset` begins."""
        breaks_above = bisect_left(self._breaks, offset)
        return self._breaks[breaks_above - 1] + 1 if breaks_above else 0

    def line_end(self, offset: int) -> int:
        """Return the offset at which the line of `offset` ends, before its line break."""
        end = self._break(offset)
        if end == len(self.text):
            return end
        return end - 1 if end > 0 and self.text[end - 1] == "\r" else end

    def next_line(self, offset: int) -> int:
        """Return the offset at which the next line begins, at most the end of the text."""
        return min(self._break(offset) + 1, len(self.text))

    def _break(self, offset: int) -> int:
        """Return the offset of the next line break, or the end of the text."""
        below = bisect_left(self._breaks, offset)
        return self._breaks[below] if below < len(self._breaks) else len(self.text)

    def skip(self, offset: int, characters: str) -> int:
        """Return the first offset, from `offset` on, of a character not in `characters`."""
        while offset < len(self.text) and self.text[offset] in characters:
            offset += 1
        return offset

    def column(self, offset: int) -> int:
        """Return the number of characters before `offset` on its line."""
        return offset - self.line_start(offset)

    def first_on_line(self, offset: int) -> bool:
        """Return whether only spaces precede `offset` on its line."""
        start = self.line_start(offset)
        while offset > start and self.text[offset - 1] in " \t":
            offset -= 1
        return offset == start

    def after_comments(self, offset: int, column: int) -> int:
        """Return the end of the line of `offset`, or of the comments below it deeper than `column`.

        Such a comment is often a commented-out field; it belongs to the entry above it.
        """
        end = self.line_end(offset)
        while (start := self.next_line(end)) < len(self.text):
            line = self.text[start : self.line_end(start)]
            content = line.lstrip(" ")
            if not content.startswith("#") or len(line) - len(content) <= column:
                break
            end = self.line_end(start)
        return end

    def before_comments(self, offset: int) -> int:
        """Return the start of the line of `offset`, or of the comments directly above it."""
        start = self.line_start(offset)
        while start > 0:
            above = self.line_start(start - 1)
            if not self.text[above:start].lstrip(" ").startswith("#"):
                break
            start = above
        return start


# Add lines below a text that has no final line break, without changing its meaning.
#
# A literal or folded block at the end of such a text is a string without a line break at its
# end. A line break after it would become a part of the string, unless its header has `-`.

_HEADER = re.compile(r"([|>])([1-9]?)([+-]?)([1-9]?)(?=\s)")


def last_block_edit(text: str, root: YamlNode) -> tuple[int, int, str] | None:
    """Return the edit of the last block's header that preserves its string.

    Return None if the text has a final line break, does not end with a block, or the header has
    `-` already.
    """
    node = root
    while node.children and not node.flow and node.kind != "alias":
        node = node.children[-1]
    header = _HEADER.search(text, node.start, node.end) if node.style in ("|", ">") else None
    if text.endswith("\n") or header is None or header[3] == "-":
        return None
    return header.start(), header.end(), f"{header[1]}{header[2] or header[4]}-"


def ensure_final_newline(text: str) -> str:
    """Return the text of one document with a line break at its end, and the same meaning."""
    if not text or text.endswith("\n"):
        return text
    try:
        edit = next(
            (last_block_edit(text, root.node) for root in roots_of(text, DOCUMENT_LIMITS)), None
        )
    except UnreadableTextError:  # JSON that is not YAML
        edit = None
    start, end, header = edit or (len(text), len(text), "")
    return f"{text[:start]}{header}{text[end:]}\n"


# Compare the entries of a mapping in a text with the new mapping.


class Entries:
    """The entries of a mapping that stay or are added; of a repeated key, the last one counts."""

    def __init__(self, node: YamlNode, old: JsonObject, new: JsonObject) -> None:
        self.node_pairs = list(node.pairs)
        self._names = [None if key.merges else mapping_key(key) for key, _ in self.node_pairs]
        written = set(self._names)
        #: Whether each pair stays; `<<` always does.
        self.stays = [name is None or name in new for name in self._names]
        #: The entries that the text lacks, other than those that `<<` merges in unchanged.
        self.added = {
            key: value
            for key, value in new.items()
            if key not in written and not (key in old and same_json(old[key], value))
        }

    @property
    def last_kept(self) -> int:
        """The index of the last pair that stays."""
        return max(index for index, stays in enumerate(self.stays) if stays)

    def kept_entries(self) -> Iterator[tuple[str, YamlNode, YamlNode]]:
        """Yield the name, key node and value node of each entry that stays, changed or not."""
        last = {name: value for name, (_, value) in zip(self._names, self.node_pairs, strict=True)}
        for name, (key, value), stays in zip(self._names, self.node_pairs, self.stays, strict=True):
            if name is not None and stays and value is last[name]:
                yield name, key, value


# Pair the items of a changed list with those of the old list.

IndexPairs = list[tuple[int, int]]

#: Two lists of three hundred items; SequenceMatcher is cubic.
_MAX_COMPARISONS = 100_000


def kept_index_pairs(old: list[Json], new: list[Json]) -> IndexPairs:
    """Pair the indexes of items that stayed, changed or not, in rising order.

    Equal items pair as in a diff. The items between them pair one by one if there are as many old
    as new ones, else by `name`, which containers, volumes and variables have.
    """
    pairs: IndexPairs = []
    old_index = new_index = 0
    for old_start, new_start, size in _equal_runs(old, new):
        pairs += _pair_changed(old, new, (old_index, old_start), (new_index, new_start))
        pairs += [(old_start + index, new_start + index) for index in range(size)]
        old_index, new_index = old_start + size, new_start + size
    return pairs


def _equal_runs(old: list[Json], new: list[Json]) -> list[tuple[int, int, int]]:
    """Return the runs of equal items: the index in the old and the new list, and the length.

    The first run is at the start and the last one at the end; either may be empty.
    """
    shorter = min(len(old), len(new))
    top = 0
    while top < shorter and same_json(old[top], new[top]):
        top += 1
    bottom = 0
    while bottom < shorter - top and same_json(old[-1 - bottom], new[-1 - bottom]):
        bottom += 1
    ends = len(old) - bottom, len(new) - bottom
    runs = [(0, 0, top)]
    if ends[0] != ends[1]:  # else the items in between changed in place
        runs += _inner_runs(old[top : ends[0]], new[top : ends[1]], top)
    return [*runs, (*ends, bottom)]


def _inner_runs(old: list[Json], new: list[Json], offset: int) -> list[tuple[int, int, int]]:
    """Match equal items of two lists, compared as JSON text."""
    if len(old) * len(new) > _MAX_COMPARISONS:
        return []
    old_texts, new_texts = (
        [json.dumps(item, sort_keys=True) for item in items] for items in (old, new)
    )
    blocks = SequenceMatcher(None, old_texts, new_texts, autojunk=False).get_matching_blocks()
    return [(offset + start, offset + new_start, size) for start, new_start, size in blocks]


def _pair_changed(
    old: list[Json], new: list[Json], old_range: tuple[int, int], new_range: tuple[int, int]
) -> IndexPairs:
    """Pair the items of two stretches without equal items."""
    if old_range[1] - old_range[0] == new_range[1] - new_range[0]:
        return list(zip(range(*old_range), range(*new_range), strict=True))
    names = {_name(new[index]): index for index in range(*new_range)}
    pairs: IndexPairs = []
    for index in range(*old_range):
        partner = names.get(_name(old[index]), -1)
        if partner > (pairs[-1][1] if pairs else -1):
            pairs.append((index, partner))
    return pairs


def _name(item: Json) -> str | int:
    """Return the `name` of an item; for an item without one, a unique number."""
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else id(item)
