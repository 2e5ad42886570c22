"""Limits on the size of a pod, checked before anything else.

A decision reads every list once or a few times, so its cost grows with the number of entries,
not with the length of their texts. A pod at these limits is decided within 50 ms; real
pods have about ten containers and about a hundred entries. Kubernetes has no limits on these
numbers. It limits names, but only after admission, and messages repeat the names of containers and
claims.
"""

from __future__ import annotations

from collections.abc import Mapping

from webhook.errors import ShapeError
from webhook.model.annotations import (
    CONTAINERS_ANNOTATION,
    ENABLE_ANNOTATION,
    NETWORKS_ANNOTATION,
    SKIP_ANNOTATION,
    STATUS_ANNOTATION,
)
from webhook.model.decision import Denial, Reason
from webhook.model.names import MAX_LABEL_LENGTH
from webhook.model.pod import CONTAINER_FIELDS, Path, Pod, dotted
from webhook.model.pod.container import count_entries
from webhook.model.pod.node_selection import count_affinity_entries

#: The maximum number of containers in a pod, of all kinds together.
MAX_CONTAINERS = 100
#: The maximum number of entries in all lists and maps that a decision reads. Items that volumes
#: project are counted separately, up to the same limit.
MAX_ENTRIES = 5_000

POD_TOO_LARGE = Reason(
    "PodTooLarge",
    "The pod has more containers or list entries than the webhook reads.",
    remedy=(
        "Split the pod, or shorten its lists: a pod may have at most 100 containers, and at "
        "most 5,000 entries in all its lists together."
    ),
    rdma="no",
)
_REMEDY = f"split the pod, or remove the annotation {ENABLE_ANNOTATION}"

#: Annotations that hold lists.
_LIST_ANNOTATIONS = frozenset({NETWORKS_ANNOTATION, CONTAINERS_ANNOTATION, SKIP_ANNOTATION})
#: The fields of a spec that have no counter of their own.
_FIELDS_COUNTED_BY_LENGTH = ("nodeSelector", "tolerations", "volumes", "resourceClaims")


#: The most entries that an earlier call may have added to a pod: 25 for each container.
_ADDED_ENTRIES = 25 * MAX_CONTAINERS


def check_size(pod: Pod) -> None:
    """Deny a pod that exceeds these limits.

    Raise Denial, or ShapeError for a name that is too long, or if a container's fields have a type
    that cannot be counted.
    """
    spec, annotations = pod.spec, pod.annotations
    entries = len(annotations) + _count_in_containers(pod)
    for field in _FIELDS_COUNTED_BY_LENGTH:
        if field in spec:
            entries += _size(spec[field])
    # Nearly all pods have no further lists and are within the limit: only others are counted again.
    if entries > MAX_ENTRIES or "affinity" in spec or not _LIST_ANNOTATIONS.isdisjoint(annotations):
        _check_each(pod)
    if "resourceClaims" in spec:
        for index, claim in enumerate(pod.resource_claims):
            _check_name(claim, ("spec", "resourceClaims", index))


def _count_in_containers(pod: Pod) -> int:
    """Return the number of entries in all containers, which must not be too many themselves."""
    containers, entries = 0, 0
    for field in CONTAINER_FIELDS:
        if field in pod.spec:
            items = pod.container_items(field)
            containers += len(items)
            if containers > MAX_CONTAINERS:
                raise _too_many_containers(containers)
            for index, container in enumerate(items):
                path = ("spec", field, index)
                _check_name(container, path)
                entries += count_entries(container, path)
    return entries


def _check_name(named: Mapping[str, object], path: Path) -> None:
    name = named.get("name")
    if name.__class__ is str and len(name) > MAX_LABEL_LENGTH:
        place = dotted((*path, "name"))
        raise ShapeError(
            f"{place} must have at most {MAX_LABEL_LENGTH} characters, but has {len(name)}"
        )


def _too_many_containers(count: int) -> Denial:
    msg = f"the pod has {count} containers, but at most {MAX_CONTAINERS} are read; {_REMEDY}"
    return Denial(POD_TOO_LARGE, msg)


def _check_each(pod: Pod) -> None:
    spec, annotations = pod.spec, pod.annotations
    sizes = {
        f"spec.{field}[{index}]": count_entries(container, ("spec", field, index))
        for field in CONTAINER_FIELDS
        for index, container in enumerate(pod.container_items(field))
    }
    sizes["annotations"] = len(annotations)
    for key in _LIST_ANNOTATIONS.intersection(annotations):
        written = annotations[key]
        sizes[f"annotation {key}"] = written.count(",") if isinstance(written, str) else 0
    sizes |= {field: _size(spec.get(field)) for field in _FIELDS_COUNTED_BY_LENGTH}
    sizes["affinity"] = count_affinity_entries(pod.manifest, MAX_ENTRIES)
    added = _ADDED_ENTRIES if STATUS_ANNOTATION in annotations else 0
    if sum(sizes.values()) > MAX_ENTRIES + added:
        raise too_many(sizes)


def too_many(sizes: Mapping[str, int]) -> Denial:
    """Return a Denial for too many entries, which names the list with the most entries."""
    largest = max(sizes, key=sizes.__getitem__)
    msg = (
        f"the pod's lists have more than {MAX_ENTRIES} entries, {sizes[largest]} of them in "
        f"{largest}; {_REMEDY}"
    )
    return Denial(POD_TOO_LARGE, msg)


def _size(field: object) -> int:
    return len(field) if isinstance(field, (list, dict)) else 0
