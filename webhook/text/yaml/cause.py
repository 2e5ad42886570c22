"""Say why a document could not be edited in place: what stands where the patch edits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webhook.text.yaml.pairing import pairs_of
from webhook.text.yaml.positions import LineIndex
from webhook.text.yaml.tree import YamlNode
from webhook.text.yaml.values import mapping_key, same_json

_LONGEST = 60
_OTHER = "it is written in a way that cannot be edited in place"
#: The likeliest cause first: another place shares what changes, or the text says something twice.
_CAUSES = {
    "anchor": "the patch edits below the anchor {}, and its aliases would change too",
    "merge": "the patch edits a mapping with a merge key (<<)",
    "repeated": "the patch edits the key {}, which is there twice",
    "alias": "the patch edits below the alias {}, and its anchor would change too",
}


def cause_of(root: YamlNode, old: Any, new: Any, lines: LineIndex) -> str:
    """Return the cause in a sentence, with its line; `old` and `new` are the root's values."""
    found: dict[str, str] = {}
    for kind, node, name in _met(root, old, new):
        said = _CAUSES[kind].format(name[:_LONGEST])
        found.setdefault(kind, f"in line {lines.line(node.start)} {said}")
    return next((found[kind] for kind in _CAUSES if kind in found), _OTHER)


def _met(root: YamlNode, old: Any, new: Any) -> Iterator[tuple[str, YamlNode, str]]:
    """Yield what may be a cause on the ways to the values that differ."""
    stack = [(root, old, new)]
    while stack:
        node, before, after = stack.pop()
        if same_json(before, after):
            continue
        if node.kind == "alias":
            yield "alias", node, f"*{node.anchor}"
        elif node.anchor is not None:
            yield "anchor", node, f"&{node.anchor}"
        if node.kind == "mapping" and isinstance(before, dict) and isinstance(after, dict):
            yield from _odd_keys(node, before, after)
            stack.extend(
                (value, before[name], after[name])
                for name, value in _named(node)
                if name in before and name in after
            )
        elif node.kind == "sequence" and isinstance(before, list) and isinstance(after, list):
            pairs = pairs_of(before, after)
            stack.extend((node.children[one], before[one], after[other]) for one, other in pairs)


def _odd_keys(
    node: YamlNode, before: dict[str, Any], after: dict[str, Any]
) -> Iterator[tuple[str, YamlNode, str]]:
    seen: set[str] = set()
    for key, _ in node.pairs:
        if key.merges:
            yield "merge", key, "<<"
            continue
        name = mapping_key(key)
        if name in seen and not same_json(before.get(name), after.get(name)):
            yield "repeated", key, name
        seen.add(name)


def _named(node: YamlNode) -> Iterator[tuple[str, YamlNode]]:
    for key, value in node.pairs:
        if not key.merges:
            yield mapping_key(key), value
