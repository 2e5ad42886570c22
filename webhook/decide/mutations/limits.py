"""What depends on a pod's memory limit: its QoS class, readers of the limit, memory volumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from webhook.decide.draft import Draft
from webhook.decide.limits import MOST_ENTRIES, too_many
from webhook.errors import ShapeError
from webhook.model.container import Environments
from webhook.model.path import Path, dotted
from webhook.model.pod import Container, PodManifest, at, items, mapping
from webhook.model.quantity import amount, equal, is_zero, written
from webhook.model.volumes import VOLUMES

_BOTH = ("cpu", "memory")
#: Resources of the whole pod, which the scheduler counts instead of those of the containers.
POD_LEVEL: Path = ("spec", "resources")


def is_guaranteed(pod: PodManifest, containers: Iterable[Container]) -> bool:
    """Return whether the QoS class is Guaranteed: all limits are set, and requests equal them.

    Source: kubernetes pkg/apis/core/v1/helper/qos, ComputePodQOS. If the pod has pod-level
    resources, only those count.
    """
    level = mapping(pod, ("spec", "resources"))
    if not level:
        return all(_equal(mapping(one.manifest, ("resources",), one.path)) for one in containers)
    own = mapping(level, ("requests",))
    asked = {
        name: summed_request(name, containers) if own.get(name) is None else own[name]
        for name in _BOTH
    }
    requests = {name: amount for name, amount in asked.items() if amount is not None}
    return _equal({"limits": mapping(level, ("limits",)), "requests": requests})


def summed_request(name: str, containers: Iterable[Container]) -> str | None:
    """Return the sum of the containers' requests; None if it is zero.

    The API server makes it the pod's request for CPU or memory, if the pod has none.
    Source: kubernetes pkg/apis/core/v1/defaults.go, defaultPodRequests.
    """
    total = step = 0
    for one in containers:
        number = _requested(one, name)
        # Init containers run one after another, together with the sidecars started before them.
        if one.kind == "init":
            step = max(step, total + number)
        elif one.kind != "ephemeral":
            total += number
    asked = max(total, step)
    return written(asked) if asked else None


def _requested(one: Container, name: str) -> int:
    """Return a container's request, in billionths; without one its limit, else 0."""
    resources = mapping(one.manifest, ("resources",), one.path)
    for section in ("requests", "limits"):
        asked = mapping(resources, (section,), (*one.path, "resources")).get(name)
        if asked is not None:
            return _amount(asked, (*one.path, "resources", section, name))
    return 0


def _amount(value: Any, path: Path) -> int:
    try:
        return amount(value)
    except ValueError as error:
        raise ShapeError(f"{dotted(path)}: {error}") from error


def _equal(resources: dict[str, Any]) -> bool:
    limits, requests = mapping(resources, ("limits",)), mapping(resources, ("requests",))
    try:
        for name in _BOTH:
            limit = limits.get(name)
            if is_zero(limit) or not equal(requests.get(name, limit), limit):
                return False
    except ValueError:
        return False
    return True


def reads_limit(pod: PodManifest, containers: Iterable[Container], env: Environments) -> str:
    """Name what reads limits.memory through the downward API; return "" if nothing does.

    Without a limit, it would read the node's allocatable memory instead.
    """
    return _env_reader(containers, env) or _volume_reader(pod)


def _env_reader(containers: Iterable[Container], env: Environments) -> str:
    for one in containers:
        if None not in env.of(one.path).values():
            continue  # all values are literals
        for variable in items(one.manifest, ("env",)):
            if "valueFrom" in variable and _is_limit(variable["valueFrom"]):
                return f"env {variable.get('name')} of container {one.name}"
    return ""


def _volume_reader(pod: PodManifest) -> str:
    read = 0
    for volume in items(pod, VOLUMES):
        if "downwardAPI" in volume or "projected" in volume:
            for listed in _downward_items(volume):
                read += len(listed)
                if read > MOST_ENTRIES:
                    raise too_many({"what volumes project": read})
                for item in listed:
                    if "resourceFieldRef" in item and _is_limit(item):
                        return f"volume {volume.get('name')}"
    return ""


def _is_limit(source: Any) -> bool:
    return bool(at(source, ("resourceFieldRef", "resource")) == "limits.memory")


def _downward_items(volume: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Yield a volume's lists of downward API items, and its list of sources, which also counts."""
    if "downwardAPI" in volume:
        yield items(volume, ("downwardAPI", "items"))
    if "projected" in volume:
        sources = items(volume, ("projected", "sources"))
        yield sources
        for source in sources:
            if "downwardAPI" in source:
                yield items(source, ("downwardAPI", "items"))


def unbounded_memory_volumes(pod: PodManifest) -> dict[str, int]:
    """Return the names of the memory emptyDirs without sizeLimit, each with its index.

    Only the pod's memory limit bounds their size; without it, the node's memory does.
    """
    found: dict[str, int] = {}
    for index, volume in enumerate(items(pod, VOLUMES)):
        if volume.get("emptyDir"):
            source = mapping(volume, ("emptyDir",), (*VOLUMES, index))
            if source.get("medium") == "Memory" and source.get("sizeLimit") is None:
                found.setdefault(str(volume.get("name")), index)
    return found


def first_mounted(pod: PodManifest, path: Path, volumes: dict[str, int]) -> str:
    """Name the first of the volumes that the container mounts; return "" if it mounts none."""
    if not volumes:
        return ""
    names = (str(mount.get("name")) for mount in items(pod, (*path, "volumeMounts")))
    return min((name for name in names if name in volumes), key=volumes.__getitem__, default="")


def unlimited(containers: Iterable[Container], without: set[Path]) -> list[str]:
    """Name the containers that only the pod's limit applies to, except those at `without`."""
    return [
        one.name
        for one in containers
        if one.kind != "ephemeral"
        and one.path not in without
        and mapping(one.manifest, ("resources", "limits"), one.path).get("memory") is None
    ]


def drop_limit(draft: Draft, path: Path, request: str | None = None) -> str:
    """Remove the existing limits.memory from the resources at `path`, and say what remains.

    A missing request becomes `request`, or else the limit, as in Kubernetes: without a request, the
    scheduler would reserve nothing. Raise ShapeError if a parent is not a mapping.
    """
    resources = draft.get(path)
    limit, remaining = at(resources, ("limits", "memory")), at(resources, ("requests", "memory"))
    kept = remaining is not None
    if not kept:
        remaining = limit if request is None else request
        draft.set((*path, "requests", "memory"), remaining)
    draft.remove((*path, "limits", "memory"))
    pods = path == POD_LEVEL
    whose, its = ("the pod's ", "its ") if pods else ("", "")
    counted = pods or not _limits_or_requests_memory(draft.get(POD_LEVEL))
    rest = "" if counted else "; the scheduler counts the pod's"
    verb = "stays" if kept else "is now"
    return f"removed {whose}limits.memory {limit}; {its}requests.memory {verb} {remaining}{rest}"


def _limits_or_requests_memory(level: Any) -> bool:
    return level is not None and any(
        at(level, (section, "memory")) is not None for section in ("limits", "requests")
    )


def is_limited(draft: Draft, path: Path) -> bool:
    """Return whether the container, or the pod's spec, at `path` limits memory; 0 and null do not.

    Raise ShapeError if the limit is not a quantity.
    """
    where = (*path, "resources", "limits", "memory")
    limit = draft.get(where)
    return limit is not None and _amount(limit, where) > 0
