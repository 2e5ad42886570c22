"""Paths into a plain dict, and readers by path; they report where its shape is wrong.

Absent and null are the same to Kubernetes, so every reader treats them alike.
A caller that passes only a part of the pod gives that part's path in `under`, for the message.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from webhook.errors import ShapeError

PodManifest = dict[str, Any]
#: The path of a value inside a document: keys and indexes.
Path = tuple[str | int, ...]

_NO_MAPPING: dict[str, Any] = {}
_NO_SEQUENCE: list[Any] = []


def at(node: Any, path: Path) -> Any:
    """Return the value at `path` below `node`, or None if any step on the way is absent."""
    for step in path:
        if isinstance(node, dict):  # the common case; so is a missing key, hence no exception
            node = node.get(step)
        elif isinstance(node, list) and isinstance(step, int) and step < len(node):
            node = node[step]
        else:
            return None
    return node


def mapping(node: Any, path: Path, under: Path = ()) -> dict[str, Any]:
    """Return the mapping at `path`, empty if absent; raise ShapeError for anything else."""
    found = at(node, path)
    if isinstance(found, dict):
        return found
    if found is None:
        return _NO_MAPPING
    raise _shape((*under, *path), found, "a mapping")


def sequence(node: Any, path: Path, under: Path = ()) -> list[Any]:
    """Return the list at `path`, empty if absent; raise ShapeError for anything else."""
    found = at(node, path)
    if isinstance(found, list):
        return found
    if found is None:
        return _NO_SEQUENCE
    raise _shape((*under, *path), found, "a list")


def items(node: Any, path: Path, under: Path = ()) -> list[dict[str, Any]]:
    """Return the list of mappings at `path`, empty if absent."""
    found = at(node, path)
    if found is None:
        return _NO_SEQUENCE
    if not isinstance(found, list):
        raise _shape((*under, *path), found, "a list")
    for item in found:
        if not isinstance(item, dict):
            raise _shape((*under, *path, _place(found, dict)), item, "a mapping")
    return found


def strings(node: Any, path: Path, under: Path = ()) -> list[str]:
    """Return the list of strings at `path`, empty if absent."""
    found = at(node, path)
    if found is None:
        return _NO_SEQUENCE
    if not isinstance(found, list):
        raise _shape((*under, *path), found, "a list")
    for item in found:
        if not isinstance(item, str):
            raise _shape((*under, *path, _place(found, str)), item, "a string")
    return found


def _place(found: list[Any], kind: type) -> int:
    """Return the index of the first item that is not of type `kind`."""
    return next(index for index, item in enumerate(found) if not isinstance(item, kind))


def text(node: Any, path: Path, under: Path = ()) -> str | None:
    """Return the string at `path`, or None if absent."""
    found = at(node, path)
    if found is None or isinstance(found, str):
        return found
    raise _shape((*under, *path), found, "a string")


def flag(node: Any, path: Path, under: Path = ()) -> bool:
    """Return the boolean at `path`, or False if absent."""
    found = at(node, path)
    if found is None or isinstance(found, bool):
        return bool(found)
    raise _shape((*under, *path), found, "true or false")


def describe(value: object) -> str:
    """Describe a value in a few words, short enough for a message."""
    kinds = {dict: "a mapping", list: "a list", str: "a string", bool: "a boolean"}
    try:
        shown = repr(value)
    except ValueError:  # Python refuses to convert an integer of more than 4300 digits
        shown = "too many digits to be shown"
    shown = shown if len(shown) <= _LONGEST_WORD else shown[: _LONGEST_WORD - 1] + "…"
    return f"{kinds.get(value.__class__, 'a number')} ({shown})"


_LONGEST_WORD = 60


def _shape(path: Path, value: object, wanted: str) -> ShapeError:
    return ShapeError(f"{dotted(path) or 'the pod'} must be {wanted}, but is {describe(value)}")


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
