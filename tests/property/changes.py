"""Every difference between a user's pod and the result of a decision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from webhook.model.pod import Path


class Change(NamedTuple):
    """One difference; `added` if there was nothing, or null, before."""

    kind: str  #: added | removed | replaced
    path: Path
    before: Any
    after: Any


def changes(before: Any, after: Any, path: Path = ()) -> Iterator[Change]:
    """Compare two documents; items appended to a list count as added."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _of_mappings(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, path)
    elif before is None and after is not None:
        yield Change("added", path, before, after)
    elif before != after or before.__class__ is not after.__class__:
        yield Change("replaced", path, before, after)


def _of_mappings(before: dict[str, Any], after: dict[str, Any], path: Path) -> Iterator[Change]:
    for key, value in before.items():
        if key in after:
            yield from changes(value, after[key], (*path, key))
        else:
            yield Change("removed", (*path, key), value, None)
    for key in after.keys() - before.keys():
        yield Change("added", (*path, key), None, after[key])


def _of_lists(before: list[Any], after: list[Any], path: Path) -> Iterator[Change]:
    """Pair the items in order; `command` and `args` may have grown anywhere, others at the end."""
    if path[-1:] in (("command",), ("args",)):
        if before != after:
            yield Change("replaced", path, before, after)
        return
    for index, value in enumerate(before):
        if index < len(after):
            yield from changes(value, after[index], (*path, index))
        else:
            yield Change("removed", (*path, index), value, None)
    for index in range(len(before), len(after)):
        yield Change("added", (*path, index), None, after[index])


def keeps_key_order(before: Any, after: Any) -> bool:
    """Return whether the remaining keys of every mapping have kept their order."""
    if isinstance(before, dict) and isinstance(after, dict):
        before_keys = [key for key in before if key in after]
        after_keys = [key for key in after if key in before]
        return before_keys == after_keys and all(
            keeps_key_order(before[key], after[key]) for key in before_keys
        )
    if isinstance(before, list) and isinstance(after, list):
        return all(map(keeps_key_order, before, after))
    return True
