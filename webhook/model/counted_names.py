"""Names in the order in which people count: node-2 before node-10."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"(\d{1,9})")


def as_counted(name: str) -> list[tuple[int, str]]:
    """Return a key for sorting, by which numbers in names count as numbers."""
    parts = _DIGITS.split(name)
    return [(int(part), "") if place % 2 else (0, part) for place, part in enumerate(parts)]
