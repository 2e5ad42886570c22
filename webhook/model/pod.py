"""Readers of a pod, which stays the plain dict that arrived; they report where its shape is wrong.

Absent and null are the same to Kubernetes, so every reader treats them alike.
A caller that passes only a part of the pod gives that part's path in `under`, for the message.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from webhook.errors import ShapeError
from webhook.model.path import Path, dotted

PodManifest = dict[str, Any]
Kind = Literal["app", "init", "sidecar", "ephemeral"]

_REQUIRED = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
#: The terms of the required node affinity; a node must satisfy at least one of them.
NODE_TERMS: Path = (*_REQUIRED, "nodeSelectorTerms")

_NO_MAPPING: dict[str, Any] = {}
_NO_SEQUENCE: list[Any] = []


class Container(NamedTuple):
    """One container of a pod, of any kind, and its place in the pod."""

    kind: Kind
    name: str
    path: Path  #: ("spec", "containers", 0)
    manifest: dict[str, Any]  #: as read; out of date as soon as a draft edits the container


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


def containers_of(pod: PodManifest) -> list[Container]:
    """List all containers: init containers and native sidecars, then app, then ephemeral ones."""
    found: list[Container] = []
    spec = mapping(pod, ("spec",))
    for field, kind in _KINDS:
        if field not in spec:
            continue
        path = ("spec", field)
        for index, manifest in enumerate(items(pod, path)):
            where = (*path, index)
            actual: Kind = kind
            if kind == "init" and manifest.get("restartPolicy") == "Always":
                actual = "sidecar"
            name = text(manifest, ("name",), where) or f"{field}[{index}]"
            found.append(Container(actual, name, where, manifest))
    return found


_KINDS: tuple[tuple[str, Kind], ...] = (
    ("initContainers", "init"),
    ("containers", "app"),
    ("ephemeralContainers", "ephemeral"),
)
#: The fields of a pod's spec that list containers.
CONTAINER_FIELDS = tuple(field for field, _ in _KINDS)


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
