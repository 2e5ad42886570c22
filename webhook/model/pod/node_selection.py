"""The nodes that a pod selects with its required node affinity."""

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
    """A requirement of a term on a label of a node."""

    key: str
    #: In, NotIn, Exists, …; unchecked.
    operator: Json
    values: list[str]


class NodeTerm:
    """A term of the required node affinity."""

    def __init__(self, manifest: JsonObject, path: Path) -> None:
        self._manifest = manifest
        self._path = path

    @derived
    def requirements(self) -> tuple[Requirement, ...]:
        """Its requirements on labels, the `matchExpressions`."""
        if "matchExpressions" not in self._manifest:
            return ()
        path = (*self._path, "matchExpressions")
        listed = items(self._manifest, ("matchExpressions",), self._path)
        return tuple(
            [_requirement(expression, (*path, index)) for index, expression in enumerate(listed)]
        )

    @property
    def node_names(self) -> list[str]:
        """The names of the nodes that it requires, by a field or by a label."""
        requirements = self.requirements
        return [
            *self._named_by_field(),
            *(
                name
                for requirement in requirements
                if requirement.key == HOSTNAME and requirement.operator == "In"
                for name in requirement.values
            ),
        ]

    def _named_by_field(self) -> Iterator[str]:
        for expression in items(self._manifest, ("matchFields",)):
            if expression.get("key") == "metadata.name" and expression.get("operator") == "In":
                yield from strings(expression, ("values",))


def _requirement(written: JsonObject, path: Path) -> Requirement:
    key = text(written, ("key",), path) or ""
    return Requirement(key, written.get("operator"), strings(written, ("values",), path))


def count_affinity_entries(pod: JsonObject, limit: int) -> int:
    """Count the entries of a pod's required node affinity, but stop above `limit`."""
    terms = at(pod, NODE_TERMS)
    size = _size(terms)
    for term in terms if 0 < size <= limit else ():
        for field in ("matchExpressions", "matchFields"):
            expressions = at(term, (field,))
            size += _size(expressions)
            if size > limit:
                return size
            if _size(expressions):
                size += sum(_size(at(expression, ("values",))) for expression in expressions)
    return size


def _size(written: Json) -> int:
    return len(written) if isinstance(written, (list, dict)) else 0
