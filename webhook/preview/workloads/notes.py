"""Sentences on the parts of a document that pods are made from, but that are no pod template.

The metadata of such pods is elsewhere, or is made by a controller, so whether they opt in is not in
the document. KServe, for one, copies no annotation of ours from an LLMInferenceService to its pods
(v0.16, pkg/controller/v1alpha1/llmisvc/workload_single_node.go, propagateDeploymentMetadata).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from webhook.model.annotations import ENABLE
from webhook.model.path import Path, dotted
from webhook.model.pod import at
from webhook.preview.workloads.templates import NOBODY, Owner, Place, places_of, text_at

_IF_ASKED = f'patched at admission if they have the annotation {ENABLE}: "true"'
_NOT_EDITED = f"not edited here; the pods are {_IF_ASKED}"
_CONTAINER_FIELDS = frozenset(
    (
        "name", "command", "args", "env", "envFrom", "resources", "ports", "volumeMounts",
        "securityContext", "workingDir", "imagePullPolicy", "startupProbe", "readinessProbe",
        "livenessProbe",
    )
)  # fmt: skip
_CONTAINERS: Path = ("spec", "containers")
_DOCUMENT = re.compile(r"^---", re.MULTILINE)
_KIND_LINE = re.compile(r"^[ \t-]*kind:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)
#: The most kinds that one sentence names, and the most places.
_MOST_KINDS, _MOST_PLACES = 3, 3


def notes_of(value: Any) -> list[str]:
    """Return a sentence for each part of a JSON value that looks like a pod but is not one."""
    notes: list[str] = []
    containers: dict[Owner, dict[str, list[Path]]] = {}
    for place in places_of(value):
        where = place.path[len(place.owner.path) :]
        if place.is_bare:
            continue
        if place.is_pod:
            if at(place.node, _CONTAINERS) is None and isinstance(_spec(place.node), dict):
                notes.append(_without_containers(place))
        elif place.owner.kind == "TrainJob" and not where:
            notes.append(_train_job(place))
        elif _is_container(place):
            containers.setdefault(place.owner, {}).setdefault(_label(where), []).append(where)
        else:
            notes.extend(_embedded(place))
    notes.extend(_outside(owner, list(found.values())) for owner, found in containers.items())
    return notes


def _is_container(place: Place) -> bool:
    """Return whether a mapping is a container, though not of a pod.

    It has an image and another field of containers; or it has a name and is in a list
    `containers`, since some kinds leave the image to another object.
    """
    if place.owner is NOBODY or place.path[-1:] in ((), ("spec",)):
        return False
    if place.path[-2:-1] == ("containers",) and isinstance(place.node.get("name"), str):
        return True
    return isinstance(place.node.get("image"), str) and not _CONTAINER_FIELDS.isdisjoint(place.node)


def _spec(pod: dict[str, Any]) -> Any:
    return {} if pod.get("spec") is None else pod["spec"]


def _without_containers(place: Place) -> str:
    where = dotted((*place.path[len(place.owner.path) :], *_CONTAINERS))
    return f"{place.owner}: {where} is missing: the API server rejects a pod without containers"


def _label(where: Path) -> str:
    """Return a label for the kind of place, so that similar places share one name."""
    return ".".join([step for step in where if isinstance(step, str)][-2:])


def _outside(owner: Owner, alike: list[list[Path]]) -> str:
    """Name the first container of each kind of place, and count all others.

    The places are part of the subject, so that the rest is said once for many objects.
    """
    first = [dotted(found[0]) for found in alike[:_MOST_PLACES]]
    rest = sum(map(len, alike)) - len(first)
    more = f" and {rest} more" if rest else ""
    return f"{owner} ({', '.join(first)}{more}): containers outside any pod template: {_NOT_EDITED}"


def _train_job(place: Place) -> str:
    name = text_at(place.node, ("spec", "runtimeRef", "name"))
    runtime = f"runtime {name}" if name else "its runtime"
    return f"{place.owner}: the pods are made from {runtime}, and {_IF_ASKED}"


def _embedded(place: Place) -> Iterator[str]:
    """Yield a sentence for each manifest with containers that is stored as text (ConfigMaps)."""
    for key, text in place.node.items():
        if isinstance(text, str) and "containers:" in text and "apiVersion:" in text:
            kinds = _kinds_with_containers(text)
            if kinds:
                where = dotted((*place.path[len(place.owner.path) :], key))
                more = f" and {len(kinds) - _MOST_KINDS} more" if len(kinds) > _MOST_KINDS else ""
                named = ", ".join(kinds[:_MOST_KINDS]) + more
                yield f"{place.owner} ({where}): a manifest stored as text ({named}): {_NOT_EDITED}"


def _kinds_with_containers(text: str) -> list[str]:
    """List the kinds of the objects in a text that have containers, each once."""
    found = [
        _KIND_LINE.search(document)
        for document in _DOCUMENT.split(text)
        if "containers:" in document
    ]
    return list(dict.fromkeys(match[1] for match in found if match))
