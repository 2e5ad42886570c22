"""Which items of a changed list are which items of the old one."""

from __future__ import annotations

import json
from difflib import SequenceMatcher
from typing import Any

Pairs = list[tuple[int, int]]

_LARGEST = 100_000  # comparisons: two lists of three hundred items; SequenceMatcher is cubic


def same(one: Any, other: Any) -> bool:
    """Say whether two JSON values are equal, `true`, `1` and `1.0` being three values."""
    return one is other or _token(one) == _token(other)


def pairs_of(old: list[Any], new: list[Any]) -> Pairs:
    """Pair indexes of items that stayed, changed or not, in rising order.

    Equal items pair as in a diff. Between them, as many old as new items pair one by one;
    else those of one `name`, as containers, volumes and variables have.
    """
    was, now = [_token(item) for item in old], [_token(item) for item in new]
    pairs: Pairs = []
    before = after = 0
    for start, other, size in _equal(was, now):
        pairs += _changed(old, new, (before, start), (after, other))
        pairs += [(start + index, other + index) for index in range(size)]
        before, after = start + size, other + size
    return pairs


def _token(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _equal(was: list[str], now: list[str]) -> list[tuple[int, int, int]]:
    """Return the runs of equal items, the last one empty and at both ends."""
    shorter = min(len(was), len(now))
    top = 0
    while top < shorter and was[top] == now[top]:
        top += 1
    bottom = 0
    while bottom < shorter - top and was[-1 - bottom] == now[-1 - bottom]:
        bottom += 1
    ends = len(was) - bottom, len(now) - bottom
    inner_was, inner_now = was[top : ends[0]], now[top : ends[1]]
    runs = [(0, 0, top)]
    if len(inner_was) * len(inner_now) <= _LARGEST:
        matcher = SequenceMatcher(None, inner_was, inner_now, autojunk=False)
        runs += [(top + one, top + two, size) for one, two, size in matcher.get_matching_blocks()]
    return [*runs, (*ends, bottom)]


def _changed(old: list[Any], new: list[Any], was: tuple[int, int], now: tuple[int, int]) -> Pairs:
    """Pair items of two stretches that have no equal ones."""
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
    """Return the name that an item goes by; one of its own for an item without."""
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else id(item)
