"""Names and counts in sentences: natural order, short lists, and nouns in the plural."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: So few digits that no name is slow to convert.
_DIGITS = re.compile(r"(\d{1,18})")


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return a sort key that compares numbers in names as numbers: node-2 before node-10."""
    parts = _DIGITS.split(name)
    return [(int(part), "") if index % 2 else (0, part) for index, part in enumerate(parts)]


def shortened_list(names: Sequence[str], limit: int = 4) -> str:
    """List at most `limit` names; of more, the first ones and a count: "n1, n2, n3 and 5 more"."""
    if len(names) <= limit:
        return ", ".join(names)
    listed = max(limit - 1, 1)
    return f"{', '.join(names[:listed])} and {len(names) - listed} more"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 node", "1,200 nodes"; the plural must end with -s."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
