"""A target of the fuzzer: a maker of its cases, a function that runs them, and their laws."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from tests.fuzz.dice import Dice

#: The parts of a case: JSON values, and bytes.
Parts = dict[str, Any]
Law = Callable[[Any], None]


class Build(Protocol):
    """Makes a case; a large case has many copies of one thing. Runs nothing of the real code."""

    def __call__(self, dice: Dice, *, large: bool) -> Parts:
        """Make a case from the draws of `dice`."""
        ...


class Target(NamedTuple):
    """A part of the code that reads input of others."""

    name: str
    build: Build
    #: Runs the real code on a case.
    observe: Callable[[Parts], Any]
    laws: tuple[Law, ...]
    #: Lists the codes that the case reached.
    codes: Callable[[Any], Iterable[str]]
    #: The codes that a long enough run should reach.
    expected: frozenset[str]
    #: Its share of the cases, relative to the other targets.
    weight: int
