"""The nodes that a pod selects by its required node affinity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from webhook.model.json import Json, JsonObject
from webhook.model.pod.reading import Path, at, derived, items, strings, text

_REQUIRED = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
#: The terms of the required node affinity; a node must satisfy at least one of them.
NODE_TERMS: Path = (*_REQUIRED, "nodeSelectorTerms")

HOSTNAME = "kubernetes.io/hostname"


class Requirement(NamedTuple):
    """What a term requires of a label of a node."""

    key: str
    #: In, NotIn, Exists, …, as it is written.
    operator: Json
    values: list[str]


class NodeTerm:
    """A term of the required node affinity."""

    def __init__(self, manifest: JsonObject, path: Path) -> None:
        self._manifest = manifest
        self._path = path

    @derived
    def requirements(self) -> tuple[Requirement, ...]:
        """What it requires of labels: its `matchExpressions`."""
        if "matchExpressions" not in self._manifest:
            return ()
        where = (*self._path, "matchExpressions")
        listed = items(self._manifest, ("matchExpressions",), self._path)
        return tuple([_requirement(one, (*where, place)) for place, one in enumerate(listed)])

    @property
    def node_names(self) -> list[str]:
        """The names of the nodes that it requires, by a field or by a label."""
        labels = self.requirements
        return [
            *self._named_by_field(),
            *(
                name
                for one in labels
                if one.key == HOSTNAME and one.operator == "In"
                for name in one.values
            ),
        ]

    def _named_by_field(self) -> Iterator[str]:
        for one in items(self._manifest, ("matchFields",)):
            if one.get("key") == "metadata.name" and one.get("operator") == "In":
                yield from strings(one, ("values",))


def _requirement(written: JsonObject, where: Path) -> Requirement:
    key = text(written, ("key",), where) or ""
    return Requirement(key, written.get("operator"), strings(written, ("values",), where))


def affinity_entries(pod: JsonObject, most: int) -> int:
    """Count the entries of a pod's required node affinity, but stop above `most`."""
    terms = at(pod, NODE_TERMS)
    size = _size(terms)
    for term in terms if 0 < size <= most else ():
        for field in ("matchExpressions", "matchFields"):
            expressions = at(term, (field,))
            size += _size(expressions)
            if size > most:
                return size
            if _size(expressions):
                size += sum(_size(at(one, ("values",))) for one in expressions)
    return size


def _size(written: Json) -> int:
    return len(written) if isinstance(written, (list, dict)) else 0
