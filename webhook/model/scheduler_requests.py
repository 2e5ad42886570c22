"""What the scheduler reserves on a node for a pod, of extended resources such as GPUs and NICs.

App containers and sidecars run side by side, and an init container beside the sidecars before it.
Source: k8s.io/component-helpers/resource, PodRequests; requests for a whole pod (`spec.resources`)
cover cpu, memory and huge pages only (IsSupportedPodLevelResource).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from webhook.errors import ShapeError
from webhook.model.path import Path, dotted
from webhook.model.pod import PodManifest, containers_of, mapping
from webhook.model.quantity import whole

#: A resource → how many, a whole number.
Amounts = dict[str, int]


def scheduler_requests(pod: PodManifest) -> Amounts:
    """Return what is reserved for a pod: extended resource → how many; ShapeError as a reader."""
    lasting: Amounts = {}
    most: Amounts = {}
    for one in containers_of(pod):  # init containers and sidecars come first, in their order
        own = _requests(one.manifest, one.path) if one.kind != "ephemeral" else {}
        if one.kind == "init":
            for name, many in own.items():
                most[name] = max(most.get(name, 0), many + lasting.get(name, 0))
        else:
            _add(lasting, own)
    for name, many in lasting.items():
        most[name] = max(most.get(name, 0), many)
    _add(most, _whole(mapping(pod, ("spec", "overhead")), ("spec", "overhead")))
    return most


def _requests(container: Mapping[str, Any], path: Path) -> Amounts:
    """Return a container's requests, which are its limits where it names no request."""
    if "resources" not in container:
        return {}
    limits, requests = (
        _whole(mapping(container, ("resources", section), path), (*path, "resources", section))
        for section in ("limits", "requests")
    )
    return {**limits, **requests}


def _whole(amounts: Mapping[str, Any], path: Path) -> Amounts:
    found: Amounts = {}
    for name, written in amounts.items():
        if "/" in name:
            try:
                found[name] = whole(written)
            except ValueError as error:
                raise ShapeError(f"{dotted((*path, name))}: {error}") from None
    return found


def _add(total: Amounts, more: Amounts) -> None:
    for name, many in more.items():
        total[name] = total.get(name, 0) + many
