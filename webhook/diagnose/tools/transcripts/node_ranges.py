"""Unfold the names of machines: "n[01-03,7],m1" is n01, n02, n03, n7 and m1."""

from __future__ import annotations

import re

#: Names that a text may unfold to; more are no names of machines.
MOST = 16_384

_NAME = re.compile(r"(?:[\w.-]|\[[\d,-]{1,200}\]){1,300}", re.ASCII)
_PART = re.compile(r"\[([\d,-]{1,200})\]|([\w.-]{1,255})", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


def unfold(folded: str) -> tuple[str, ...]:
    """Return the names; () if it is not a list of names, or one of more than `MOST`."""
    names: list[str] = []
    # A comma inside of brackets separates numbers.
    for one in re.split(r",(?![\d,-]{0,200}\])", folded):
        unfolded = _unfold_one(one) if _NAME.fullmatch(one) else ()
        if not unfolded or len(names) + len(unfolded) > MOST:
            return ()
        names.extend(unfolded)
    return tuple(names)


def _unfold_one(folded: str) -> tuple[str, ...]:
    names: tuple[str, ...] = ("",)
    for numbers, text in _PART.findall(folded):
        ends = _numbers(numbers) if numbers else (text,)
        if len(names) * len(ends) > MOST:
            return ()
        names = tuple(name + end for name in names for end in ends)
    return names


def _numbers(listed: str) -> tuple[str, ...]:
    found: list[str] = []
    for one in listed.split(","):
        ends = _RANGE.fullmatch(one)
        if ends is None:
            return ()
        first, last = int(ends[1]), int(ends[2] or ends[1])
        if last - first >= MOST:
            return ()
        found.extend(f"{number:0{len(ends[1])}}" for number in range(first, last + 1))
    return tuple(found)
