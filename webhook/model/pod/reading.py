"""Readers of a plain dict, by path and as fields of a view; errors name the malformed place.

Absent and null are the same to Kubernetes, so every reader treats them alike.
A caller that passes only a part of the pod also passes its path, `under`, for the message.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Generic, TypeVar

from webhook.errors import ShapeError
from webhook.model.json import Json, JsonObject
from webhook.model.quoting import describe

PodManifest = JsonObject
#: The path of a value inside a document: keys and indexes.
Path = tuple[str | int, ...]

_NO_MAPPING: JsonObject = {}
_NO_SEQUENCE: list[Json] = []


def fields_or_empty(value: object) -> dict[str, object]:
    """Return a mapping unchanged, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def at(node: Json, path: Path) -> Json:
    """Return the value at `path` below `node`, or None if any step on the way is absent."""
    for step in path:
        if isinstance(node, dict):  # the common case; so is a missing key, hence no exception
            node = node.get(step)
        elif isinstance(node, list) and isinstance(step, int) and step < len(node):
            node = node[step]
        else:
            return None
    return node


# Each checker takes a value and its place: `path` below the part of the pod at `under`.


def as_mapping(value: Json, path: Path, under: Path = ()) -> JsonObject:
    """Return a mapping, empty if absent; raise ShapeError for anything else."""
    if isinstance(value, dict):
        return value
    if value is None:
        return _NO_MAPPING
    raise _shape((*under, *path), value, "a mapping")


def as_sequence(value: Json, path: Path, under: Path = ()) -> list[Json]:
    """Return a list, empty if absent; raise ShapeError for anything else."""
    if isinstance(value, list):
        return value
    if value is None:
        return _NO_SEQUENCE
    raise _shape((*under, *path), value, "a list")


def as_mappings(value: Json, path: Path, under: Path = ()) -> list[JsonObject]:
    """Return a list of mappings, empty if absent."""
    if value is None:
        return _NO_SEQUENCE
    if not isinstance(value, list):
        raise _shape((*under, *path), value, "a list")
    for item in value:
        if not isinstance(item, dict):
            raise _shape((*under, *path, _first_invalid(value, dict)), item, "a mapping")
    return value


def as_strings(value: Json, path: Path, under: Path = ()) -> list[str]:
    """Return a list of strings, empty if absent."""
    if value is None:
        return _NO_SEQUENCE
    if not isinstance(value, list):
        raise _shape((*under, *path), value, "a list")
    for item in value:
        if not isinstance(item, str):
            raise _shape((*under, *path, _first_invalid(value, str)), item, "a string")
    return value


def _first_invalid(written: list[Json], kind: type) -> int:
    """Return the index of the first item that is not of type `kind`."""
    return next(index for index, item in enumerate(written) if not isinstance(item, kind))


def as_string(value: Json, path: Path, under: Path = ()) -> str | None:
    """Return a string, or None if absent."""
    if value is None or isinstance(value, str):
        return value
    raise _shape((*under, *path), value, "a string")


def as_flag(value: Json, path: Path, under: Path = ()) -> bool:
    """Return a boolean, False if absent."""
    if value is None or isinstance(value, bool):
        return bool(value)
    raise _shape((*under, *path), value, "true or false")


# The readers by path check what is at `path` below `node`.


def read_mapping(node: Json, path: Path, under: Path = ()) -> JsonObject:
    """Return the mapping at `path`, empty if absent; raise ShapeError for anything else."""
    return as_mapping(at(node, path), path, under)


def read_sequence(node: Json, path: Path, under: Path = ()) -> list[Json]:
    """Return the list at `path`, empty if absent; raise ShapeError for anything else."""
    return as_sequence(at(node, path), path, under)


def read_mappings(node: Json, path: Path, under: Path = ()) -> list[JsonObject]:
    """Return the list of mappings at `path`, empty if absent."""
    return as_mappings(at(node, path), path, under)


def read_strings(node: Json, path: Path, under: Path = ()) -> list[str]:
    """Return the list of strings at `path`, empty if absent."""
    return as_strings(at(node, path), path, under)


def read_string(node: Json, path: Path, under: Path = ()) -> str | None:
    """Return the string at `path`, or None if absent."""
    return as_string(at(node, path), path, under)


def read_flag(node: Json, path: Path, under: Path = ()) -> bool:
    """Return the boolean at `path`, or False if absent."""
    return as_flag(at(node, path), path, under)


def _shape(path: Path, value: object, expected: str) -> ShapeError:
    return ShapeError(f"{dotted(path) or 'the pod'} must be {expected}, but is {describe(value)}")


# The two written forms of a path.

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def dotted(path: Path) -> str:
    """Format a path for people: `spec.containers[0].resources.limits["nvidia.com/gpu"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


@lru_cache(maxsize=4096)  # the same few paths occur in every pod
def pointer(path: Path) -> str:
    """Format a path as an RFC 6901 pointer: `/spec/containers/0/limits/nvidia.com~1gpu`."""
    text = ""
    for step in path:
        if isinstance(step, str) and ("~" in step or "/" in step):
            text += "/" + step.replace("~", "~0").replace("/", "~1")
        else:
            text += f"/{step}"
    return text


def pointer_steps(text: str) -> list[str]:
    """Return the steps of an RFC 6901 pointer; those into lists are digits, or "-" for the end."""
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


# The fields of a view: each is read on first access, and then stored.
#
# A view has a `manifest`, the plain dict, and a `path`, its place in the object.

Value = TypeVar("Value")


class Field(Generic[Value]):
    """A field with the value at `steps` below the view, checked."""

    __slots__ = ("_absent", "_below", "_check", "_first", "_name", "_right", "_steps")

    def __init__(self, check: Callable[[Json, Path, Path], Value], *steps: str) -> None:
        self._check = check
        self._steps = steps
        self._first, *self._below = steps
        self._absent = check(None, steps, ())
        #: A value of this type is valid; the check handles any other.
        self._right = self._absent.__class__ if self._absent.__class__ in (dict, bool) else None

    def __set_name__(self, _: type, name: str) -> None:
        """Note the name of the field."""
        self._name = name

    def __get__(self, view: Json, _: type) -> Value:
        """Read the field, and store the value in the instance, where it hides this descriptor."""
        written = view.manifest.get(self._first)
        if self._below:
            for step in self._below:
                written = written.get(step) if isinstance(written, dict) else None
        if written.__class__ is self._right:
            value = written
        elif written is None:
            value = self._absent
        else:
            value = self._check(written, self._steps, view.path)
        setattr(view, self._name, value)
        return value


class cached_field(Generic[Value]):  # noqa: N801 -- a decorator, as functools.cached_property is
    """A field that a method computes from other fields, unless a value was assigned before.

    It is functools.cached_property without the lock that that has until Python 3.12.
    """

    __slots__ = ("_compute", "_name")

    def __init__(self, compute: Callable[[Json], Value]) -> None:
        self._compute = compute
        self._name = compute.__name__

    def __get__(self, view: object, _: type) -> Value:
        """Compute the value, and store it in the instance, where it hides this descriptor."""
        value = self._compute(view)
        setattr(view, self._name, value)
        return value
