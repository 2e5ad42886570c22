"""Find the edits that give a YAML text another value: in `{}`, `[]` and JSON."""

from __future__ import annotations

from typing import Any

from webhook.text.yaml.edits import Edits
from webhook.text.yaml.emit import flow, json_lines
from webhook.text.yaml.mapping_diff import Entries
from webhook.text.yaml.pairing import pairs_of
from webhook.text.yaml.tree import YamlNode
from webhook.text.yaml.values import same_json

Span = tuple[int, int]
_JSON_STEP = 2


class FlowRewriter:
    """Edits collections in flow style; new entries look like their neighbours."""

    def __init__(self, edits: Edits) -> None:
        self._edits = edits

    def descends(self, node: YamlNode, old: Any, new: Any) -> bool:
        """Edit inside a flow collection if part of it stays; return whether that was done."""
        if node.kind == "mapping" and isinstance(old, dict) and isinstance(new, dict):
            return self._mapping(node, old, new)
        if node.kind == "sequence" and isinstance(old, list) and isinstance(new, list):
            return self._sequence(node, old, new)
        return False

    def _mapping(self, node: YamlNode, old: dict[str, Any], new: dict[str, Any]) -> bool:
        entries = Entries(node, old, new)
        if not any(entries.stays):
            return False
        as_json = entries.pairs[0][0].style == '"'
        for name, _, value in entries.kept():
            self._change(value, old[name], new[name], as_json=as_json)
        spans = [(key.start, max(key.end, value.end)) for key, value in entries.pairs]
        self._drop(spans, entries.stays)
        added = [
            f"{flow(key, as_json=as_json)}: {self._written(value, spans, as_json=as_json)}"
            for key, value in entries.added.items()
        ]
        self._insert_behind(spans, entries.last_kept, added)
        return True

    def _sequence(self, node: YamlNode, old: list[Any], new: list[Any]) -> bool:
        pairs = pairs_of(old, new)
        if not pairs:
            return False
        as_json = any(_quotes(item) for item in node.children)
        for before, after in pairs:
            self._change(node.children[before], old[before], new[after], as_json=as_json)
        spans = [(item.start, item.end) for item in node.children]
        stays = {before for before, _ in pairs}
        self._drop(spans, [index in stays for index in range(len(old))])
        written = [self._written(value, spans, as_json=as_json) for value in new]
        first = pairs[0][1]
        between = self._separator(spans)
        start = spans[0][0]
        self._edits.replace(start, start, "".join(item + between for item in written[:first]))
        for (before, after), (_, until) in zip(pairs, [*pairs[1:], (0, len(new))], strict=True):
            self._insert_behind(spans, before, written[after + 1 : until])
        return True

    def _change(self, node: YamlNode, old: Any, new: Any, *, as_json: bool) -> None:
        if same_json(old, new) or self.descends(node, old, new):
            return
        absent = " " if self._edits.text[node.start - 1] == ":" else ""  # `{a:}`
        self._edits.replace(node.start, node.end, absent + flow(new, as_json=as_json))

    def _drop(self, spans: list[Span], stays: list[bool]) -> None:
        """Remove the entries that do not stay, each with one comma; at least one stays."""
        last = max(index for index, kept in enumerate(stays) if kept)
        for index, kept in enumerate(stays[:last]):
            if not kept:
                self._edits.replace(spans[index][0], spans[index + 1][0], "")
        if last < len(spans) - 1:
            self._edits.replace(spans[last][1], spans[-1][1], "")

    def _insert_behind(self, spans: list[Span], index: int, written: list[str]) -> None:
        end = spans[index][1]
        between = self._separator(spans)
        self._edits.replace(end, end, "".join(between + item for item in written))

    def _separator(self, spans: list[Span]) -> str:
        """Return what separates two entries, with a line break if the first has its own line."""
        indent = self._indent(spans)
        return ", " if indent is None else f",{self._edits.newline}{' ' * indent}"

    def _indent(self, spans: list[Span]) -> int | None:
        start = spans[0][0]
        return self._edits.column(start) if self._edits.first_on_line(start) else None

    def _written(self, value: Any, spans: list[Span], *, as_json: bool) -> str:
        indent = self._indent(spans)
        if not as_json or indent is None:
            return flow(value, as_json=as_json)
        return f"{self._edits.newline}{' ' * indent}".join(json_lines(value, _JSON_STEP))


def _quotes(node: YamlNode) -> bool:
    """Return whether a node, or its first key, is in double quotes, as in JSON."""
    while node.kind in ("mapping", "sequence") and node.children:
        node = node.children[0]
    return node.style == '"'
