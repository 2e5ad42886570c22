"""The values in which two pods differ, each with its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

#: Lists whose items Kubernetes merges by this key have it in the place, and their order is free.
_KEY = "name"


class Leaf(NamedTuple):
    """A value that differs; None: it is not there. Lists without names are compared whole."""

    place: str  #: `spec.containers[trainer].env[NCCL_IB_HCA].value`
    before: str | None
    after: str | None


def differing(before: Any, after: Any) -> list[Leaf]:
    """Return the leaves that differ, in the order of the second value, then of the first."""
    was, now = dict(_leaves(before, "")), dict(_leaves(after, ""))
    places = [*now, *(place for place in was if place not in now)]
    found = (Leaf(place, was.get(place), now.get(place)) for place in places)
    return [one for one in found if one.before != one.after]


def _leaves(node: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from _leaves(value, _step(place, key))
    elif isinstance(node, list) and _named(node):
        for item in node:
            for key, value in item.items():
                if key != _KEY or len(item) == 1:
                    yield from _leaves(value, _step(f"{place}[{item[_KEY]}]", key))
    elif place:
        yield place, node if isinstance(node, str) else _json(node)


def _json(node: Any) -> str:
    """Write a value that is not text; Python's own module takes integers of any size."""
    return json.dumps(node, ensure_ascii=False, separators=(",", ":"))


def _step(place: str, key: str) -> str:
    """Add a key to a place; one that has dots or slashes is put into brackets, to stay readable."""
    if not key.replace("_", "").isalnum():
        return f"{place}[{key}]"
    return f"{place}.{key}" if place else key


def _named(items: list[Any]) -> bool:
    """Return whether each item is a mapping with a name of its own."""
    names = [one.get(_KEY) for one in items if isinstance(one, dict)]
    strings = {one for one in names if isinstance(one, str)}
    return bool(items) and len(strings) == len(items)
