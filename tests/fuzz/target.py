"""What is fuzzed: how cases are made, what runs them, and the laws that hold for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from tests.fuzz.dice import Dice

#: What a case is made of: JSON values, and bytes.
Parts = dict[str, Any]
Law = Callable[[Any], None]


class Build(Protocol):
    """Make a case; a large one holds much of one thing. Runs nothing of the real code."""

    def __call__(self, dice: Dice, *, large: bool) -> Parts:
        """Make it out of these choices."""
        ...


class Target(NamedTuple):
    """Something that takes what others write."""

    name: str
    build: Build
    #: Run the real code on a case.
    observe: Callable[[Parts], Any]
    laws: tuple[Law, ...]
    #: Name what the case reached.
    codes: Callable[[Any], Iterable[str]]
    #: What a run of some size should reach.
    expected: frozenset[str]
    #: How many of the cases are its own, beside the others'.
    weight: int
