"""Limit the size of a pod, before anything else reads it, where Kubernetes sets no limit.

A decision reads every list once or a few times, so its cost grows with the number of entries,
not with the length of the texts in them. A pod at these limits is decided within 50 ms; real
pods have about ten containers and about a hundred entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.model.annotations import CONTAINERS, ENABLE, NETWORKS, SKIP
from webhook.model.decision import Denial, Reason
from webhook.model.pod import (
    CONTAINER_FIELDS,
    NODE_TERMS,
    Path,
    Pod,
    at,
    items,
    mapping,
    sequence,
)

#: The most containers of a pod, of all kinds together.
MOST_CONTAINERS = 100
#: The most entries of all lists and maps that are read, together. The items that volumes project
#: are counted separately, up to the same limit.
MOST_ENTRIES = 5_000

POD_TOO_LARGE = Reason(
    "PodTooLarge", "The pod has more containers or list entries than the webhook reads.", rdma="no"
)
_REMEDY = f"split it, or leave out the annotation {ENABLE}"

#: Annotations that hold lists.
_LISTED = frozenset({NETWORKS, CONTAINERS, SKIP})
_PLAIN = ("nodeSelector", "volumes", "resourceClaims")


def check_limits(pod: Pod) -> None:
    """Deny a pod that exceeds these limits.

    Raise Denial, or ShapeError if a container's fields have a type that cannot be counted.
    """
    spec, annotations = pod.spec, pod.annotations
    containers, entries = 0, len(annotations)
    for field in CONTAINER_FIELDS:
        if field in spec:
            listed = items(spec, (field,), ("spec",))
            containers += len(listed)
            if containers > MOST_CONTAINERS:
                raise _too_many_containers(containers)
            for index, one in enumerate(listed):
                entries += _in_container(one, ("spec", field, index))
    for field in _PLAIN:
        if field in spec:
            entries += _size(spec[field])
    # Nearly all pods have no further lists and are within the limit: only others are counted again.
    if entries > MOST_ENTRIES or "affinity" in spec or not _LISTED.isdisjoint(annotations):
        _check_each(spec, annotations)


def _too_many_containers(count: int) -> Denial:
    msg = f"the pod has {count} containers, and at most {MOST_CONTAINERS} are read: {_REMEDY}"
    return Denial(POD_TOO_LARGE, msg)


def _check_each(spec: dict[str, Any], annotations: Mapping[str, Any]) -> None:
    sizes = {
        f"spec.{field}[{index}]": _in_container(one, ("spec", field, index))
        for field in CONTAINER_FIELDS
        for index, one in enumerate(spec.get(field) or ())
    }
    sizes["annotations"] = len(annotations)
    for key in _LISTED.intersection(annotations):
        written = annotations[key]
        sizes[f"annotation {key}"] = written.count(",") if isinstance(written, str) else 0
    sizes |= {field: _size(spec.get(field)) for field in _PLAIN}
    sizes["affinity"] = _in_affinity(spec)
    if sum(sizes.values()) > MOST_ENTRIES:
        raise too_many(sizes)


def too_many(sizes: Mapping[str, int]) -> Denial:
    """Return a Denial for too many entries that names the place with the most of them."""
    most = max(sizes, key=sizes.__getitem__)
    msg = (
        f"the pod has more than {MOST_ENTRIES} entries in the lists that are read,"
        f" {sizes[most]} of them in {most}: {_REMEDY}"
    )
    return Denial(POD_TOO_LARGE, msg)


def _in_container(one: dict[str, Any], path: Path) -> int:
    get = one.get
    try:
        count = len(get("env") or ()) + len(get("volumeMounts") or ())
        count += len(get("command") or ()) + len(get("args") or ())
        resources = get("resources") or {}
        count += len(resources.get("limits") or ()) + len(resources.get("requests") or ())
        count += len(resources.get("claims") or ())
        if "securityContext" in one:
            capabilities = (one["securityContext"] or {}).get("capabilities") or {}
            count += len(capabilities.get("add") or ()) + len(capabilities.get("drop") or ())
    except (AttributeError, TypeError):  # one is not a list or map; these readers say which
        lists = sum(len(sequence(one, where, path)) for where in _LISTS)
        return lists + sum(len(mapping(one, where, path)) for where in _MAPS)
    return count


_LISTS: tuple[Path, ...] = (
    *(("env",), ("volumeMounts",), ("command",), ("args",), ("resources", "claims")),
    *(("securityContext", "capabilities", "add"), ("securityContext", "capabilities", "drop")),
)
_MAPS: tuple[Path, ...] = (
    *(("resources",), ("resources", "limits"), ("resources", "requests")),
    *(("securityContext",), ("securityContext", "capabilities")),
)


def _size(found: Any) -> int:
    return len(found) if isinstance(found, (list, dict)) else 0


def _in_affinity(spec: dict[str, Any]) -> int:
    """Count the entries of the required node affinity, but stop above the limit."""
    terms = at(spec, NODE_TERMS[1:])
    size = _size(terms)
    for term in terms if 0 < size <= MOST_ENTRIES else ():
        for field in ("matchExpressions", "matchFields"):
            expressions = at(term, (field,))
            size += _size(expressions)
            if size > MOST_ENTRIES:
                return size
            if _size(expressions):
                size += sum(_size(at(one, ("values",))) for one in expressions)
    return size
