"""A target of the fuzzer: how to make its cases, how to run them, and the laws that they obey."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from tests.fuzz.dice import Dice

#: The parts of a case: JSON values, and bytes.
Parts = dict[str, Any]
Law = Callable[[Any], None]


class Build(Protocol):
    """Makes a case; a large one has many of one thing. Runs nothing of the real code."""

    def __call__(self, dice: Dice, *, large: bool) -> Parts:
        """Make a case from the draws of `dice`."""
        ...


class Target(NamedTuple):
    """A part of the code that reads what others write."""

    name: str
    build: Build
    #: Runs the real code on a case.
    observe: Callable[[Parts], Any]
    laws: tuple[Law, ...]
    #: Lists the codes that the case reached.
    codes: Callable[[Any], Iterable[str]]
    #: The codes that a long enough run should reach.
    expected: frozenset[str]
    #: Its share of the cases, relative to those of the other targets.
    weight: int
