"""JSON values: those that the nodes of a YAML text stand for, as kubectl makes them."""

from __future__ import annotations

from typing import Any, NamedTuple

from webhook.text.yaml.hints import misread_key
from webhook.text.yaml.scalars import kubectl_value
from webhook.text.yaml.tree import TAG, UnreadableTextError, YamlNode

_TYPED: dict[str, tuple[type, ...]] = {
    f"{TAG}int": (int,),
    f"{TAG}float": (int, float),
    f"{TAG}bool": (bool,),
    f"{TAG}null": (type(None),),
}
_NAMES = {"mapping": "mapping", "sequence": "list"}


class KeyFound(NamedTuple):
    """A key that is noteworthy, as one that its mapping already has."""

    offset: int
    key: str


class Values:
    """Makes the JSON values that nodes stand for; an anchor and its aliases share one value."""

    def __init__(self) -> None:
        self.duplicates: list[KeyFound] = []  # in the order of the text
        self.misread: list[KeyFound] = []  #: keys that people write by mistake
        self._anchored: dict[YamlNode, Any] = {}

    def of(self, node: YamlNode) -> Any:
        """Return the value of a node; UnreadableTextError for what JSON cannot say."""
        if node.kind == "alias":
            node = node.children[0]
        if node in self._anchored:
            return self._anchored[node]
        value: Any
        if node.kind == "scalar":
            value = _scalar(node)
        elif node.kind == "mapping":
            value = self._mapping(node)
        else:
            value = [self.of(child) for child in node.children]
        if node.anchor is not None:
            self._anchored[node] = value
        return value

    def _mapping(self, node: YamlNode) -> dict[str, Any]:
        made: dict[str, Any] = {}
        merged: list[tuple[YamlNode, Any]] = []
        for key_node, value_node in node.pairs:
            if key_node.merges:
                merged.append((value_node, self.of(value_node)))
                continue
            key = mapping_key(key_node)
            if not key.isascii() or key[:1] == "-":
                self._check(key_node.start, key)
            if key in made:
                self.duplicates.append(KeyFound(key_node.start, key))
            made[key] = self.of(value_node)
        for value_node, value in merged:
            _merge(value_node, value, made)
        return made

    def _check(self, offset: int, key: str) -> None:
        if misread_key(key):
            self.misread.append(KeyFound(offset, key))


def _merge(node: YamlNode, value: Any, made: dict[str, Any]) -> None:
    """Add the keys of `<<` that the mapping does not have itself; the first mapping wins."""
    for source in value if isinstance(value, list) else [value]:
        if not isinstance(source, dict):
            raise UnreadableTextError(node.start, "`<<` merges mappings, but this is not one")
        for key, inner in source.items():
            made.setdefault(key, inner)


def mapping_key(node: YamlNode) -> str:
    """Return the key that a node stands for, as a string like kubectl: 1 is "1".

    Raises UnreadableTextError for null and for collections, as an unrendered `{{ name }}` is.
    """
    node = node.children[0] if node.kind == "alias" else node
    if node.kind != "scalar":
        message = f"a key must be a string, but is a {_NAMES[node.kind]}"
        raise UnreadableTextError(node.start, message)
    key = _scalar(node)
    if key is None:
        raise UnreadableTextError(node.start, "a key must be a string, but is null")
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def same_json(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; `true`, `1` and `1.0` are three values.

    What is one object in both, as all that a patch leaves alone, is not looked into.
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return repr(one) == repr(other) if isinstance(one, float) else bool(one == other)


def _scalar(node: YamlNode) -> str | float | bool | None:
    """Return a scalar's value; a tag that is not a JSON type leaves the text as it is."""
    if node.tag is None and not node.plain:
        return node.text
    wanted = _TYPED.get(node.tag or "")
    if node.tag is not None and wanted is None:
        return node.text
    try:
        value = kubectl_value(node.text)
    except ValueError as error:
        raise UnreadableTextError(node.start, str(error)) from None
    if wanted and type(value) not in wanted:  # a bool is an int to isinstance
        short = (node.tag or "").removeprefix(TAG)
        raise UnreadableTextError(node.start, f"{node.text!r:.60} is not a !!{short}")
    return value
