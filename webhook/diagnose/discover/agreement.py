"""Put together what several tools say of one thing; where they differ, nothing is chosen.

The order of what was said has no influence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")


class Said(NamedTuple, Generic[Value]):
    """One tool's value, and where it stands."""

    value: Value
    tool: str
    file: str
    line: int

    def says(self, shown: object) -> str:
        """Return who says a value, for people: "ibstat says Down (node1.txt:12)"."""
        return f"{self.tool} says {shown} ({self.file}{f':{self.line}' if self.line else ''})"


class Agreed(NamedTuple, Generic[Value]):
    """The value on which all that was said agrees."""

    #: None if nothing was said, or if tools differ.
    value: Value | None
    #: Two statements that differ, or None.
    conflict: tuple[Said[Value], Said[Value]] | None = None


def agreed(
    said: Iterable[Said[Value | None]], key: Callable[[Value], object] = lambda value: value
) -> Agreed[Value]:
    """Return the one value that was said, or the first two statements that differ.

    Values with one `key` are the same value; of these the longest spelling is returned.
    """
    told = list(_given(said))
    if not told:
        return Agreed(None)
    if all(one.value == told[0].value for one in told):
        return Agreed(told[0].value)
    told.sort(key=lambda one: (one[1:], str(one.value)))
    first = told[0]
    other = next((one for one in told if key(one.value) != key(first.value)), None)
    if other is not None:
        return Agreed(None, (first, other))
    return Agreed(max((one.value for one in told), key=lambda value: (len(str(value)), str(value))))


def _given(said: Iterable[Said[Value | None]]) -> Iterator[Said[Value]]:
    for one in said:
        if one.value is not None:
            yield Said(one.value, one.tool, one.file, one.line)
