"""The choices of one case: a seed and a number determine all of them, on every machine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws the parts of a case.

    Unlike with coverage guidance, nothing is learned from earlier cases: so a case is determined by
    its number alone, and any process can make it, in any order.
    """

    def __init__(self, seed: int, number: int) -> None:
        self._random = random.Random(f"{seed}/{number}")

    def chance(self, one_in: float) -> bool:
        """Return True once in `one_in` times on average."""
        return self._random.random() * one_in < 1

    def below(self, end: int) -> int:
        """Draw a whole number from 0 to `end` - 1."""
        return self._random.randrange(end)

    def number(self, low: int, high: int) -> int:
        """Draw a whole number from `low` to `high`."""
        return self._random.randint(low, high)

    def few(self, most: int) -> int:
        """Draw a whole number up to `most`, with small ones more often."""
        return min(self.below(most + 1), self.below(most + 1))

    def one(self, among: Sequence[T]) -> T:
        """Draw one item."""
        return among[self._random.randrange(len(among))]

    def several(self, among: Sequence[T], most: int) -> list[T]:
        """Draw up to `most` items, perhaps one twice."""
        return [self.one(among) for _ in range(self.few(most))]
