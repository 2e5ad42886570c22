"""The JSON values that the nodes of a YAML text stand for, as kubectl makes them."""

from __future__ import annotations

from typing import Any, NamedTuple

from webhook.yamltext.scalars import resolve
from webhook.yamltext.tree import TAG, Node, UnreadableError

_TYPED: dict[str, tuple[type, ...]] = {
    f"{TAG}int": (int,),
    f"{TAG}float": (int, float),
    f"{TAG}bool": (bool,),
    f"{TAG}null": (type(None),),
}
_WORDS = {"mapping": "mapping", "sequence": "list"}


class Duplicate(NamedTuple):
    """A key that its mapping has already."""

    offset: int
    key: str


class Values:
    """Makes the JSON values that nodes stand for; aliases of one anchor share one value."""

    def __init__(self) -> None:
        self.duplicates: dict[Duplicate, None] = {}  # in the order of the text, each once
        self._made: dict[Node, Any] = {}  # what aliases stand for

    def of(self, node: Node) -> Any:
        """Return the value of a node, or raise UnreadableError."""
        if node.kind == "scalar":
            return _scalar(node)
        if node.kind == "mapping":
            return self._mapping(node)
        if node.kind == "sequence":
            return [self.of(child) for child in node.children]
        return self._shared(node.children[0])

    def _shared(self, target: Node) -> Any:
        if target not in self._made:
            self._made[target] = self.of(target)
        return self._made[target]

    def _mapping(self, node: Node) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: list[Node] = []
        for key_node, value_node in node.pairs:
            if key_node.merges:
                merged.append(value_node)
                continue
            key = key_of(key_node)
            if key in made:
                self.duplicates[Duplicate(key_node.start, key)] = None
            made[key] = self.of(value_node)
        for value_node in merged:
            self._merge(value_node, made)
        return made

    def _merge(self, node: Node, made: dict[str, Any]) -> None:
        value = self.of(node)
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict):
                raise UnreadableError(node.start, "`<<` merges mappings, and this is none")
            for key, inner in source.items():
                made.setdefault(key, inner)


def key_of(node: Node) -> str:
    """Return the key that a node stands for, as a string as kubectl does: 1 is "1".

    Raises UnreadableError for null and for collections, as an unrendered `{{ name }}` is.
    """
    node = node.children[0] if node.kind == "alias" else node
    if node.kind != "scalar":
        raise UnreadableError(node.start, f"a key must be a string, but is a {_WORDS[node.kind]}")
    key = _scalar(node)
    if key is None:
        raise UnreadableError(node.start, "a key must be a string, but is null")
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _scalar(node: Node) -> str | float | bool | None:
    """Return a scalar's value; a tag of no JSON type leaves the text as it is."""
    if node.tag is None and not node.plain:
        return node.text
    wanted = _TYPED.get(node.tag or "")
    if node.tag is not None and wanted is None:
        return node.text
    try:
        value = resolve(node.text)
    except ValueError as error:
        raise UnreadableError(node.start, str(error)) from None
    if wanted and type(value) not in wanted:
        short = (node.tag or "").removeprefix(TAG)
        raise UnreadableError(node.start, f"{node.text!r:.60} is no !!{short}")
    return value
