"""How much of a pod is read: what Kubernetes does not bound is bounded here, before anything else.

A decision reads every list once or a few times, so its cost grows with the entries of the
lists, and not with the length of the texts in them. A pod of these sizes is decided within
50 ms; real ones have some ten containers and some hundred entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.core.annotations import CONTAINERS, ENABLE, SKIP
from webhook.core.multus import ANNOTATION as NETWORKS
from webhook.core.nodes import TERMS
from webhook.core.path import Path
from webhook.core.pod import CONTAINER_FIELDS, PodManifest, at, items, mapping, sequence
from webhook.errors import Denial

#: Containers of a pod, of all kinds together.
MOST_CONTAINERS = 100
#: Entries of all lists and maps of a pod that are read, together.
MOST_ENTRIES = 5_000

TOO_LARGE = "PodTooLarge"
_REMEDY = f"split it, or leave out the annotation {ENABLE}"


def check(pod: PodManifest, annotations: Mapping[str, Any]) -> None:
    """Refuse a pod of more than these sizes.

    Raises Denial, and ShapeError for containers of which nothing can be counted.
    """
    spec = mapping(pod, ("spec",))
    fields = [field for field in CONTAINER_FIELDS if field in spec]
    count = sum([len(sequence(spec, (field,), ("spec",))) for field in fields])
    if count > MOST_CONTAINERS:
        msg = f"the pod has {count} containers, and at most {MOST_CONTAINERS} are read: {_REMEDY}"
        raise Denial(TOO_LARGE, msg)
    entries = _Entries()
    entries.add("annotations", len(annotations))
    _in_annotations(entries, annotations)
    for field in fields:
        for index, one in enumerate(items(spec, (field,), ("spec",))):
            entries.add(f"spec.{field}[{index}]", _in_container(one, ("spec", field, index)))
    _in_spec(entries, spec)


class _Entries:
    """How many there are so far, and where."""

    __slots__ = ("_by_place", "_total")

    def __init__(self) -> None:
        self._by_place: list[tuple[int, str]] = []
        self._total = 0

    def add(self, place: str, count: int) -> None:
        """Count entries; raises Denial as soon as there are too many."""
        self._by_place.append((count, place))
        self._total += count
        if self._total > MOST_ENTRIES:
            most, where = max(self._by_place)
            msg = (
                f"the pod has more than {MOST_ENTRIES} entries in the lists that are read,"
                f" {most} of them in {where}: {_REMEDY}"
            )
            raise Denial(TOO_LARGE, msg)

    def of(self, place: str, found: Any) -> Any:
        """Count the entries of a list or map, and return it; what is neither is empty."""
        if found.__class__ is not list and found.__class__ is not dict:
            return ()
        self.add(place, len(found))
        return found


def _in_annotations(entries: _Entries, annotations: Mapping[str, Any]) -> None:
    for key in (NETWORKS, CONTAINERS, SKIP):  # which hold lists
        if key in annotations and annotations[key].__class__ is str:
            entries.add(f"annotation {key}", annotations[key].count(","))


def _in_container(one: dict[str, Any], path: Path) -> int:
    try:
        count = len(one.get("env") or ()) + len(one.get("volumeMounts") or ())
        count += len(one.get("command") or ()) + len(one.get("args") or ())
        resources = one.get("resources") or {}
        count += len(resources.get("limits") or ()) + len(resources.get("requests") or ())
        count += len(resources.get("claims") or ())
        capabilities = (one.get("securityContext") or {}).get("capabilities") or {}
        return count + len(capabilities.get("add") or ()) + len(capabilities.get("drop") or ())
    except (AttributeError, TypeError):  # one of them is no list or map, which is said by this:
        lists = sum(len(sequence(one, where, path)) for where in _LISTS)
        return lists + sum(len(mapping(one, where, path)) for where in _MAPS)


_LISTS: tuple[Path, ...] = (
    *(("env",), ("volumeMounts",), ("command",), ("args",), ("resources", "claims")),
    *(("securityContext", "capabilities", "add"), ("securityContext", "capabilities", "drop")),
)
_MAPS: tuple[Path, ...] = (
    *(("resources",), ("resources", "limits"), ("resources", "requests")),
    *(("securityContext",), ("securityContext", "capabilities")),
)


def _in_spec(entries: _Entries, spec: dict[str, Any]) -> None:
    for field in ("nodeSelector", "resourceClaims"):
        if field in spec:
            entries.of(field, spec[field])
    if "affinity" in spec:
        for term in entries.of("affinity", at(spec, TERMS[1:])):
            _in_term(entries, term)
    for volume in entries.of("volumes", spec.get("volumes")):
        if volume.__class__ is dict and ("projected" in volume or "downwardAPI" in volume):
            _in_volume(entries, volume)


def _in_term(entries: _Entries, term: Any) -> None:
    for field in ("matchExpressions", "matchFields"):
        for expression in entries.of("affinity", at(term, (field,))):
            entries.of("affinity", at(expression, ("values",)))


def _in_volume(entries: _Entries, volume: dict[str, Any]) -> None:
    sources = entries.of("volumes", at(volume, ("projected", "sources")))
    for source in (volume, *sources):
        if source.__class__ is dict and "downwardAPI" in source:
            entries.of("volumes", at(source, ("downwardAPI", "items")))
