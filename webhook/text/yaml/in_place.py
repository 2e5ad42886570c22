"""Find the edits that give a YAML text a new value.

`InPlaceEditor` edits block style and passes `{}`, `[]` and JSON to `FlowEditor`.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from webhook.model.json import Json, JsonObject
from webhook.text.yaml.edits import Edits, Entries, kept_index_pairs
from webhook.text.yaml.emit import (
    Style,
    flow,
    json_lines,
    literal_header,
    mapping_lines,
    sequence_lines,
    under_dash,
    under_key,
)
from webhook.text.yaml.tree import YamlNode
from webhook.text.yaml.values import same_json

# In block style.

_DASH = re.compile(r"\n *(-)(?=\s|\Z)")
_LITERAL = re.compile(r"\|-?(?=[ \r\n])")


class Slot(NamedTuple):
    """The place of a value in block style: after a key's colon or after a dash."""

    node: YamlNode
    separator_end: int  #: the offset after that colon or dash
    column: int  #: the column of the key or the dash
    dash: bool


class InPlaceEditor:
    """An editor that gives a text a new value; with `inside_strings`, also inside a string."""

    def __init__(self, edits: Edits, style: Style, *, inside_strings: bool) -> None:
        self.edits = edits
        self._style = style
        self._inside_strings = inside_strings
        self._flow = FlowEditor(edits)

    def change_root(self, node: YamlNode, old: JsonObject, new: JsonObject) -> None:
        """Turn the document's mapping `old` into `new`."""
        if not self._edit_inside(node, old, new):
            column = self.edits.column(node.start)
            lines = mapping_lines(new, column, self._style) if new else ["{}"]
            newline = self.edits.newline
            self.edits.replace(node.start, self._end(node), newline.join(lines).lstrip(" "))

    def _change(self, slot: Slot, old: Json, new: Json) -> None:
        if not same_json(old, new) and not self._edit_inside(slot.node, old, new):
            self._replace(slot, old, new)

    def _edit_inside(self, node: YamlNode, old: Json, new: Json) -> bool:
        """Edit inside `node` if part of it stays; return whether that was done."""
        if node.flow:
            return self._flow.edit_inside(node, old, new)
        if node.kind == "mapping" and isinstance(old, dict) and isinstance(new, dict):
            return self._edit_mapping(node, old, new)
        if node.kind == "sequence" and isinstance(old, list) and isinstance(new, list):
            return self._edit_sequence(node, old, new)
        return False

    def _edit_mapping(self, node: YamlNode, old: JsonObject, new: JsonObject) -> bool:
        entries = Entries(node, old, new)
        if not any(entries.stays):
            return False
        column = self.edits.column(entries.node_pairs[0][0].start)
        for name, key, value in entries.kept_entries():
            separator_end = self.edits.text.index(":", key.end) + 1
            self._change(Slot(value, separator_end, column, dash=False), old[name], new[name])
        ends = [self._end(value) for _, value in entries.node_pairs]
        starts = [key.start for key, _ in entries.node_pairs]
        self._drop(list(zip(starts, ends, strict=True)), entries.stays)
        below = ends[entries.last_kept]
        self._insert_below(below, column, mapping_lines(entries.added, column, self._style))
        return True

    def _edit_sequence(self, node: YamlNode, old: list[Json], new: list[Json]) -> bool:
        index_pairs = kept_index_pairs(old, new)
        if not index_pairs:
            return False
        dashes = self._dashes(node)
        column = self.edits.column(dashes[0])
        ends = [self._end(child) for child in node.children]
        for old_index, new_index in index_pairs:
            slot = Slot(node.children[old_index], dashes[old_index] + 1, column, dash=True)
            self._change(slot, old[old_index], new[new_index])
        stays = {old_index for old_index, _ in index_pairs}
        self._drop(
            list(zip(dashes, ends, strict=True)), [index in stays for index in range(len(old))]
        )
        self._insert_first(dashes[0], column, new[: index_pairs[0][1]])
        for (old_index, new_index), (_, next_index) in pairwise([*index_pairs, (0, len(new))]):
            lines = sequence_lines(new[new_index + 1 : next_index], column, self._style)
            self._insert_below(ends[old_index], column, lines)
        return True

    def _end(self, node: YamlNode) -> int:
        return node.content_end(self.edits.text)

    def _dashes(self, node: YamlNode) -> list[int]:
        text = self.edits.text
        start = node.start
        dashes: list[int] = []
        for item in node.children:
            match = None if text[start] == "-" and not dashes else _DASH.search(text, start)
            dashes.append(match.start(1) if match else start)
            start = self._end(item)
        return dashes

    def _drop(self, spans: list[Span], stays: list[bool]) -> None:
        """Remove the entries that do not stay, with their lines; at least one stays."""
        edits = self.edits
        first = 0
        if not stays[0] and not edits.first_on_line(spans[0][0]):  # `- name: x`: the dash stays
            first = stays.index(True)
            below = edits.next_line(spans[first - 1][1])
            edits.replace(spans[0][0], edits.skip(below, " "), "")
        for (start, end), retained in zip(spans[first:], stays[first:], strict=True):
            if not retained:
                edits.remove_lines(start, end)

    def _insert_below(self, offset: int, column: int, lines: list[str]) -> None:
        if lines:
            self.edits.insert_lines(self.edits.after_comments(offset, column), lines)

    def _insert_first(self, dash: int, column: int, values: list[Json]) -> None:
        if not values:
            return
        lines = sequence_lines(values, column, self._style)
        newline = self.edits.newline
        if self.edits.first_on_line(dash):
            start = self.edits.before_comments(dash)
            self.edits.replace(start, start, "".join(line + newline for line in lines))
        else:  # `- - a`
            above = newline.join(lines).lstrip(" ") + newline + " " * column
            self.edits.replace(dash, dash, above)

    def _replace(self, slot: Slot, old: Json, new: Json) -> None:
        if isinstance(old, str) and isinstance(new, str) and self._edit_string(slot.node, old, new):
            return
        write = under_dash if slot.dash else under_key
        head, lines = write(new, slot.column, self._style)
        edits, node = self.edits, slot.node
        spaced = f" {head}" if head else ""
        if node.is_block:
            below = "".join(edits.newline + line for line in lines)
            edits.replace(slot.separator_end, edits.line_end(self._end(node)), spaced + below)
            return
        if edits.text[slot.separator_end : node.start].strip():
            # A comment follows; the value is on a later line.
            edits.replace(node.start, node.end, head)
        else:
            edits.replace(slot.separator_end, node.end, spaced)
        edits.insert_lines(node.end, lines)

    def _edit_string(self, node: YamlNode, old: str, new: str) -> bool:
        if not self._inside_strings or node.kind != "scalar":
            return False
        header = _LITERAL.match(self.edits.text, node.start)
        if header and header[0] == literal_header(new) == literal_header(old):
            self._edit_literal(node, old, new)
            return True
        return node.style != "|" and insert_text(self.edits, node, old, new)

    def _edit_literal(self, node: YamlNode, old: str, new: str) -> None:
        """Replace the lines of a literal block that differ, at least one with at least one."""
        edits = self.edits
        old_lines = old.removesuffix("\n").split("\n")
        new_lines = new.removesuffix("\n").split("\n")
        shorter = min(len(old_lines), len(new_lines)) - 1
        top = common_length(old_lines, new_lines, shorter)
        bottom = common_length(old_lines[::-1], new_lines[::-1], shorter - top)
        starts = [edits.next_line(node.start)]
        for _ in old_lines[1:]:
            starts.append(edits.next_line(starts[-1]))
        sample = next(index for index, line in enumerate(old_lines) if line)
        source = edits.text[starts[sample] : edits.line_end(starts[sample])]
        indent = source.removesuffix(old_lines[sample])
        lines = [indent + line if line else "" for line in new_lines[top : len(new_lines) - bottom]]
        edits.replace(
            starts[top],
            edits.line_end(starts[len(old_lines) - bottom - 1]),
            edits.newline.join(lines),
        )


def common_length(first: list[str], second: list[str], limit: int) -> int:
    """Count the items that two lists have in common at the start, up to `limit`."""
    count = 0
    while count < limit and first[count] == second[count]:
        count += 1
    return count


# Find the edits that give a YAML text a new value: in `{}`, `[]` and JSON.

Span = tuple[int, int]
_JSON_STEP = 2


class FlowEditor:
    """An editor of collections in flow style; new entries look like their neighbors."""

    def __init__(self, edits: Edits) -> None:
        self._edits = edits

    def edit_inside(self, node: YamlNode, old: Json, new: Json) -> bool:
        """Edit inside a flow collection if part of it stays; return whether that was done."""
        if node.kind == "mapping" and isinstance(old, dict) and isinstance(new, dict):
            return self._edit_mapping(node, old, new)
        if node.kind == "sequence" and isinstance(old, list) and isinstance(new, list):
            return self._edit_sequence(node, old, new)
        return False

    def _edit_mapping(self, node: YamlNode, old: JsonObject, new: JsonObject) -> bool:
        entries = Entries(node, old, new)
        if not any(entries.stays):
            return False
        as_json = entries.node_pairs[0][0].style == '"'
        for name, _, value in entries.kept_entries():
            self._change(value, old[name], new[name], as_json=as_json)
        spans = [(key.start, max(key.end, value.end)) for key, value in entries.node_pairs]
        self._drop(spans, entries.stays)
        added = [
            f"{flow(key, as_json=as_json)}: {self._write_value(value, spans, as_json=as_json)}"
            for key, value in entries.added.items()
        ]
        self._insert_after(spans, entries.last_kept, added)
        return True

    def _edit_sequence(self, node: YamlNode, old: list[Json], new: list[Json]) -> bool:
        index_pairs = kept_index_pairs(old, new)
        if not index_pairs:
            return False
        as_json = any(_is_json(child) for child in node.children)
        for old_index, new_index in index_pairs:
            child = node.children[old_index]
            self._change(child, old[old_index], new[new_index], as_json=as_json)
        spans = [(child.start, child.end) for child in node.children]
        stays = {old_index for old_index, _ in index_pairs}
        self._drop(spans, [index in stays for index in range(len(old))])
        written = [self._write_value(value, spans, as_json=as_json) for value in new]
        first = index_pairs[0][1]
        between = self._separator(spans)
        start = spans[0][0]
        self._edits.replace(start, start, "".join(piece + between for piece in written[:first]))
        for (old_index, new_index), (_, next_index) in pairwise([*index_pairs, (0, len(new))]):
            self._insert_after(spans, old_index, written[new_index + 1 : next_index])
        return True

    def _change(self, node: YamlNode, old: Json, new: Json, *, as_json: bool) -> None:
        if same_json(old, new) or self.edit_inside(node, old, new):
            return
        space = " " if self._edits.text[node.start - 1] == ":" else ""  # `{a:}`
        self._edits.replace(node.start, node.end, space + flow(new, as_json=as_json))

    def _drop(self, spans: list[Span], stays: list[bool]) -> None:
        """Remove the entries that do not stay, each with one comma; at least one stays."""
        last = max(index for index, retained in enumerate(stays) if retained)
        for index, retained in enumerate(stays[:last]):
            if not retained:
                self._edits.replace(spans[index][0], spans[index + 1][0], "")
        if last < len(spans) - 1:
            self._edits.replace(spans[last][1], spans[-1][1], "")

    def _insert_after(self, spans: list[Span], index: int, written: list[str]) -> None:
        end = spans[index][1]
        between = self._separator(spans)
        self._edits.replace(end, end, "".join(between + piece for piece in written))

    def _separator(self, spans: list[Span]) -> str:
        """Return the separator of entries, with a line break if the first has its own line."""
        indent = self._indent(spans)
        return ", " if indent is None else f",{self._edits.newline}{' ' * indent}"

    def _indent(self, spans: list[Span]) -> int | None:
        start = spans[0][0]
        return self._edits.column(start) if self._edits.first_on_line(start) else None

    def _write_value(self, value: Json, spans: list[Span], *, as_json: bool) -> str:
        indent = self._indent(spans)
        if not as_json or indent is None:
            return flow(value, as_json=as_json)
        return f"{self._edits.newline}{' ' * indent}".join(json_lines(value, _JSON_STEP))


def _is_json(node: YamlNode) -> bool:
    """Return whether a node, or its first key, is in double quotes, as in JSON."""
    while node.kind in ("mapping", "sequence") and node.children:
        node = node.children[0]
    return node.style == '"'


# Insert words into a string on several lines, and keep its line breaks.

_SPACE = " \t\r\n"


def insert_text(edits: Edits, node: YamlNode, old: str, new: str) -> bool:
    """Edit a folded (`>`) or plain string of several lines; return whether that was done.

    Folding changes white space only, so the other characters before the insertion are counted to
    find its offset. The text is read back, which reveals a wrong guess.
    """
    source = edits.text[node.start : node.end]
    if "\n" not in source.rstrip() or node.style not in ("", ">"):
        return False
    index = len(_common_prefix(old, new))
    inserted = new[index : index + len(new) - len(old)]
    if not inserted or "\n" in inserted or old != new[:index] + new[index + len(inserted) :]:
        return False
    start = edits.next_line(node.start) if node.style == ">" else node.start
    offset = _offset_after(edits.text, start, sum(not char.isspace() for char in old[:index]))
    if index and old[index - 1].isspace():
        offset = edits.skip(offset, _SPACE)
    edits.replace(offset, offset, inserted)
    return True


def _common_prefix(first: str, second: str) -> str:
    for index, (char, other) in enumerate(zip(first, second, strict=False)):
        if char != other:
            return first[:index]
    return min(first, second, key=len)


def _offset_after(text: str, offset: int, count: int) -> int:
    """Return the offset after `count` characters other than white space."""
    while count and offset < len(text):
        count -= not text[offset].isspace()
        offset += 1
    return offset
