"""Find which items of a changed list are which items of the old one."""

from __future__ import annotations

import json
from difflib import SequenceMatcher
from typing import Any

from webhook.text.yaml.values import same_json

Pairs = list[tuple[int, int]]

_LARGEST = 100_000  # comparisons: two lists of three hundred items; SequenceMatcher is cubic


def pairs_of(old: list[Any], new: list[Any]) -> Pairs:
    """Pair the indexes of items that stayed, changed or not, in rising order.

    Equal items pair as in a diff. The items between them pair one by one if there are as many old
    as new ones, else by `name`, which containers, volumes and variables have.
    """
    pairs: Pairs = []
    before = after = 0
    for start, other, size in _equal(old, new):
        pairs += _changed(old, new, (before, start), (after, other))
        pairs += [(start + index, other + index) for index in range(size)]
        before, after = start + size, other + size
    return pairs


def _equal(old: list[Any], new: list[Any]) -> list[tuple[int, int, int]]:
    """Return the runs of equal items: where in the old list, where in the new one, how many.

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
        runs += _runs(old[top : ends[0]], new[top : ends[1]], top)
    return [*runs, (*ends, bottom)]


def _runs(old: list[Any], new: list[Any], offset: int) -> list[tuple[int, int, int]]:
    """Match equal items of two lists, compared as JSON text."""
    if len(old) * len(new) > _LARGEST:
        return []
    was, now = ([json.dumps(item, sort_keys=True) for item in items] for items in (old, new))
    blocks = SequenceMatcher(None, was, now, autojunk=False).get_matching_blocks()
    return [(offset + one, offset + two, size) for one, two, size in blocks]


def _changed(old: list[Any], new: list[Any], was: tuple[int, int], now: tuple[int, int]) -> Pairs:
    """Pair the items of two stretches in which no item is equal."""
    if was[1] - was[0] == now[1] - now[0]:
        return list(zip(range(*was), range(*now), strict=True))
    names = {_name(new[index]): index for index in range(*now)}
    pairs: Pairs = []
    for index in range(*was):
        found = names.get(_name(old[index]), -1)
        if found > (pairs[-1][1] if pairs else -1):
            pairs.append((index, found))
    return pairs


def _name(item: Any) -> Any:
    """Return the `name` of an item; for an item without one, a value that no other has."""
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else id(item)
