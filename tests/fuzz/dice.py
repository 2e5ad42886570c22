"""The choices of one case: a seed and a number determine all of them, on every machine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws the parts of a case.

    Unlike with coverage guidance, earlier cases have no influence: the number alone determines a
    case, and any process can make it, in any order.
    """

    def __init__(self, seed: int, number: int) -> None:
        self._random = random.Random(f"{seed}/{number}")

    def one_in(self, odds: float) -> bool:
        """Return True once in `odds` times on average."""
        return self._random.random() * odds < 1

    def below(self, end: int) -> int:
        """Draw a whole number from 0 to `end` - 1."""
        return self._random.randrange(end)

    def number(self, low: int, high: int) -> int:
        """Draw a whole number from `low` to `high`."""
        return self._random.randint(low, high)

    def small(self, limit: int) -> int:
        """Draw a whole number up to `limit`; smaller numbers are more likely."""
        return min(self.below(limit + 1), self.below(limit + 1))

    def pick(self, among: Sequence[T]) -> T:
        """Draw an item."""
        return among[self._random.randrange(len(among))]

    def several(self, among: Sequence[T], limit: int) -> list[T]:
        """Draw up to `limit` items, perhaps with repetitions."""
        return [self.pick(among) for _ in range(self.small(limit))]
