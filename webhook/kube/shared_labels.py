"""The labels of thousands of nodes in little memory.

A node with GPUs has fifty to a hundred labels, most of them from node feature discovery and equal
on many nodes. As dicts, those of 10,000 nodes would take up to 100 MB. Here the names are kept once
for all nodes that have the same, and equal values once for all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakValueDictionary


class LabelNames:
    """The names of labels, each with the place of its value; shared by nodes with the same."""

    __slots__ = ("__weakref__", "places")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.places = {sys.intern(name): place for place, name in enumerate(names)}


#: Those in use, by their names in order.
_SHARED: WeakValueDictionary[tuple[str, ...], LabelNames] = WeakValueDictionary()


class SharedLabels(Mapping[str, str]):  # noqa: PLW1641 -- not hashable, as a dict
    """The labels of one object, which cannot be changed."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: LabelNames, values: tuple[str, ...]) -> None:
        self._names = names
        self._values = values

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> SharedLabels:
        """Return the same labels; call this in one thread only."""
        keys = tuple(labels)
        names = _SHARED.get(keys)
        if names is None:
            names = _SHARED[keys] = LabelNames(keys)
        return cls(names, tuple(map(sys.intern, labels.values())))

    def __getitem__(self, name: str) -> str:
        return self._values[self._names.places[name]]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a label's value; faster than the one of Mapping, which catches an exception."""
        place = self._names.places.get(name)
        return default if place is None else self._values[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.places)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SharedLabels) and self._names is other._names:
            return self._values == other._values
        return super().__eq__(other)
