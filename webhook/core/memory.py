"""What a pod's memory limit holds together: its QoS class, readers of the limit, memory volumes."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from webhook.core.draft import Draft
from webhook.core.environment import Environments
from webhook.core.path import Path, dotted
from webhook.core.pod import Container, PodManifest, at, items, mapping
from webhook.core.quantity import equal, is_zero, parse, written
from webhook.errors import ShapeError

_BOTH = ("cpu", "memory")


def is_guaranteed(pod: PodManifest, containers: Iterable[Container]) -> bool:
    """Whether the QoS class is Guaranteed: all limits there and requests equal to them.

    Source: kubernetes pkg/apis/core/v1/helper/qos, ComputePodQOS; with pod-level
    resources only those count.
    """
    level = mapping(pod, ("spec", "resources"))
    if not level:
        return all(_equal(mapping(one.manifest, ("resources",), one.path)) for one in containers)
    asked = {name: _asked(name, level, containers) for name in _BOTH}
    requests = {name: amount for name, amount in asked.items() if amount is not None}
    return _equal({"limits": mapping(level, ("limits",)), "requests": requests})


def pod_request(pod: PodManifest, containers: Iterable[Container]) -> str | None:
    """Return what the API server makes of a missing pod-level memory request; None if it is there.

    That is the sum of the containers' own, where any has one, else the limit.
    Source: kubernetes pkg/apis/core/v1/defaults.go, defaultPodRequests.
    """
    level = mapping(pod, ("spec", "resources"))
    if mapping(level, ("requests",)).get("memory") is not None:
        return None
    return _asked("memory", level, containers) or str(mapping(level, ("limits",)).get("memory"))


def _asked(name: str, level: dict[str, Any], containers: Iterable[Container]) -> Any:
    """Return the pod-level request: its own, else what the containers' come to, else None."""
    own = mapping(level, ("requests",)).get(name)
    if own is not None:
        return own
    total, step = Decimal(0), Decimal(0)
    for one in containers:
        resources = mapping(one.manifest, ("resources",), one.path)
        amount = mapping(resources, ("requests",)).get(name)
        amount = mapping(resources, ("limits",)).get(name) if amount is None else amount
        number = Decimal(0) if amount is None else _number(amount, (*one.path, "resources"), name)
        # Init containers run one after the other, beside the sidecars started before them.
        if one.kind == "init":
            step = max(step, total + number)
        elif one.kind != "ephemeral":
            total += number
    asked = max(total, step)
    return written(asked) if asked else None


def _number(amount: Any, path: Path, name: str) -> Decimal:
    try:
        return parse(amount)
    except ValueError as error:
        msg = f"{dotted((*path, 'requests', name))}: {error}"
        raise ShapeError(msg) from error


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
    """Say what reads limits.memory through the downward API, "" for nothing.

    Without a limit it would read the node's allocatable memory instead.
    """
    return _env_reader(containers, env) or _volume_reader(pod)


def _env_reader(containers: Iterable[Container], env: Environments) -> str:
    for one in containers:
        if None not in env.of(one.path).values():
            continue  # all are literals
        for variable in items(one.manifest, ("env",), one.path):
            if "valueFrom" in variable and _is_limit(variable["valueFrom"]):
                return f"env {variable.get('name')} of container {one.name}"
    return ""


def _volume_reader(pod: PodManifest) -> str:
    for volume in items(pod, ("spec", "volumes")):
        if "downwardAPI" in volume or "projected" in volume:
            for item in _downward_items(volume):
                if "resourceFieldRef" in item and _is_limit(item):
                    return f"volume {volume.get('name')}"
    return ""


def _is_limit(source: Any) -> bool:
    return bool(at(source, ("resourceFieldRef", "resource")) == "limits.memory")


def _downward_items(volume: dict[str, Any]) -> Iterable[Any]:
    if "downwardAPI" in volume:
        yield from items(volume, ("downwardAPI", "items"))
    if "projected" in volume:
        for source in items(volume, ("projected", "sources")):
            if "downwardAPI" in source:
                yield from items(source, ("downwardAPI", "items"))


def unbounded_memory_volume(pod: PodManifest, path: Path) -> str:
    """Name a memory emptyDir without sizeLimit that the container mounts, "" for none.

    Its size is then bounded by the pod's memory limit only, else by the node.
    """
    mounts = items(pod, (*path, "volumeMounts"))
    if not mounts:
        return ""
    mounted = {str(mount.get("name")) for mount in mounts}
    for volume in items(pod, ("spec", "volumes")):
        source = volume.get("emptyDir")
        if source and str(volume.get("name")) in mounted:
            source = mapping(volume, ("emptyDir",))
            if source.get("medium") == "Memory" and source.get("sizeLimit") is None:
                return str(volume.get("name"))
    return ""


def unlimited(containers: Iterable[Container], without: set[Path]) -> list[str]:
    """Name the containers that live under the pod's limit only, but for those at `without`."""
    return [
        one.name
        for one in containers
        if one.kind != "ephemeral"
        and one.path not in without
        and mapping(one.manifest, ("resources", "limits"), one.path).get("memory") is None
    ]


def drop_limit(draft: Draft, path: Path, request: str | None = None) -> str:
    """Remove the limits.memory that stands in the resources at `path`, and return it.

    A missing request becomes `request`, else the limit: without, the scheduler
    would reserve nothing. Raises ShapeError for a limit that is no quantity.
    """
    limit = draft.get((*path, "limits", "memory"))
    if draft.get((*path, "requests", "memory")) is None:
        draft.set((*path, "requests", "memory"), limit if request is None else request)
    draft.remove((*path, "limits", "memory"))
    return str(limit)


def is_limited(draft: Draft, path: Path) -> bool:
    """Whether the container, or the pod's spec, at `path` limits memory: 0 and null do not.

    Raises ShapeError for what is no quantity.
    """
    limit = draft.get((*path, "resources", "limits", "memory"))
    try:
        return limit is not None and not is_zero(limit)
    except ValueError as error:
        msg = f"{dotted((*path, 'resources', 'limits', 'memory'))}: {error}"
        raise ShapeError(msg) from error
