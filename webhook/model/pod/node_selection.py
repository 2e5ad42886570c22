"""The nodes that a pod selects with its required node affinity."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from webhook.model.json import Json, JsonObject
from webhook.model.pod.reading import (
    Path,
    at,
    cached_field,
    dotted,
    read_mappings,
    read_string,
    read_strings,
)
from webhook.model.quantity import is_unexpanded
from webhook.model.quoting import describe, quoted

_REQUIRED = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
#: The terms of the required node affinity; a node must satisfy at least one of them.
NODE_TERMS: Path = (*_REQUIRED, "nodeSelectorTerms")

HOSTNAME = "kubernetes.io/hostname"


#: The value of a label, of at most 63 characters.
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


def node_selector_problems(selector: JsonObject) -> list[str]:
    """Return a clause on each value of a nodeSelector that the API server rejects; null is "".

    Source: kubernetes pkg/apis/core/validation, ValidatePodSpec, and apimachinery
    pkg/util/validation, IsValidLabelValue.
    """
    return [
        _problem(dotted(("spec", "nodeSelector", key)), value)
        for key, value in selector.items()
        if value is not None and not (isinstance(value, str) and _LABEL_VALUE.fullmatch(value))
    ]


def _problem(place: str, value: Json) -> str:
    if not isinstance(value, str):
        return f"{place:.200} must be a string, but is {describe(value)}"
    if is_unexpanded(value):
        return f"{place:.200}: {quoted(value)} is an unexpanded variable (run envsubst first)"
    return (
        f"{place:.200}: {quoted(value)} is not the value of a label (at most 63 letters, digits, "
        "-, _ and ., with a letter or digit at either end)"
    )


class Requirement(NamedTuple):
    """A requirement of a term on a label of a node."""

    key: str
    #: In, NotIn, Exists, …; unchecked.
    operator: Json
    values: list[str]


#: Whether a requirement accepts the value of its label, None if a node lacks the label.
Acceptance = Callable[[str | None], bool]


class NodeTerm:
    """A term of the required node affinity."""

    def __init__(self, manifest: JsonObject, path: Path) -> None:
        self._manifest = manifest
        self._path = path

    @cached_field
    def requirements(self) -> tuple[Requirement, ...]:
        """Its requirements on labels, the `matchExpressions`."""
        if "matchExpressions" not in self._manifest:
            return ()
        path = (*self._path, "matchExpressions")
        expressions = read_mappings(self._manifest, ("matchExpressions",), self._path)
        return tuple(
            [
                _requirement(expression, (*path, index))
                for index, expression in enumerate(expressions)
            ]
        )

    @cached_field
    def field_requirements(self) -> tuple[Requirement, ...]:
        """Its requirements on the name of the node, the `matchFields`."""
        path = (*self._path, "matchFields")
        expressions = read_mappings(self._manifest, ("matchFields",), self._path)
        return tuple(
            [
                _requirement(expression, (*path, index))
                for index, expression in enumerate(expressions)
            ]
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
        for expression in read_mappings(self._manifest, ("matchFields",)):
            if expression.get("key") == "metadata.name" and expression.get("operator") == "In":
                yield from read_strings(expression, ("values",))


def _requirement(written: JsonObject, path: Path) -> Requirement:
    key = read_string(written, ("key",), path) or ""
    return Requirement(key, written.get("operator"), read_strings(written, ("values",), path))


def acceptance(requirement: Requirement) -> Acceptance | None:
    """Return the test for a label's value; None if the requirement is invalid.

    Source: k8s.io/apimachinery, pkg/labels/selector.go (NewRequirement, Requirement.Matches).
    """
    _, operator, values = requirement
    expected_values = frozenset(values)
    match operator:
        case "In" if values:
            return expected_values.__contains__
        case "NotIn" if values:
            return lambda value: value not in expected_values
        case "Exists" if not values:
            return lambda value: value is not None
        case "DoesNotExist" if not values:
            return lambda value: value is None
        case "Gt" | "Lt" if len(values) == 1:
            return _comparison(_integer(values[0]), 1 if operator == "Gt" else -1)
        case _:
            return None


def _comparison(bound: int | None, sign: int) -> Acceptance | None:
    """Return the test for an integer above the bound; below it, if `sign` is negative."""
    if bound is None:
        return None

    def is_beyond(value: str | None) -> bool:
        number = None if value is None else _integer(value)
        return number is not None and sign * number > sign * bound

    return is_beyond


#: An integer that Go's strconv.ParseInt reads, of at most 19 digits after leading zeros.
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
_MAX_INTEGER = 2**63 - 1


def _integer(written: str) -> int | None:
    """Return a signed integer of 64 bits; None for any other text."""
    match = _INTEGER.fullmatch(written)
    if match is None:
        return None
    number = int(match[1] + match[2])
    return number if -_MAX_INTEGER - 1 <= number <= _MAX_INTEGER else None


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
