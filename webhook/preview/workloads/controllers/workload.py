"""The form of a row in the table of controllers, and how a row adds to a pod.

A `Draft` adds here as it does for mutations: it copies what it changes, so the template that came
in stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from webhook.decide.draft import Draft
from webhook.model.pod import Path, PodManifest, at

#: The container that operators take for the one that does the work: the first.
FIRST: Path = ("spec", "containers", 0)
CONTAINERS: Path = ("spec", "containers")
INIT_CONTAINERS: Path = ("spec", "initContainers")
VOLUMES: Path = ("spec", "volumes")


class Workload(NamedTuple):
    """A pod template with the object around it, as the object's controller sees them."""

    value: dict[str, Any]  #: the object
    where: Path  #: the template's path in the object: ("spec", "template")
    pod: PodManifest  #: the template

    @property
    def name(self) -> str:
        """The object's name, "" if the API server is to generate it."""
        return word(self.value, ("metadata", "name"))

    @property
    def namespace(self) -> str:
        """The object's namespace as it is written, else `default`."""
        return word(self.value, ("metadata", "namespace")) or "default"


class Live(NamedTuple):
    """A pod as a controller creates it from a template."""

    pod: PodManifest
    role: str = ""  #: which of the pods it is, where one template makes several kinds of them


class Controller(NamedTuple):
    """One controller: for which kinds it creates pods, and what it adds to them."""

    name: str  #: as its project calls it; "" for Kubernetes itself
    kinds: frozenset[str]  #: "kubeflow.org/v2beta1 MPIJob": apiVersion and kind
    adds: str  #: what it adds, in a few words for readers
    #: The pods made from a template; the template itself where the controller adds nothing. May
    #: raise ShapeError for a template that the API server refuses.
    live: Callable[[Workload], tuple[Live, ...]]


def word(node: Any, path: Path, default: str = "") -> str:
    """Return the string or the number at `path` as a string; the default for anything else.

    The default also stands for an empty string and for 0. A number that Kubernetes refuses may have
    more digits than Python converts.
    """
    found = at(node, path)
    if isinstance(found, int) and abs(found) < _INT64:
        return str(found) if found else default
    return found if found and isinstance(found, str) else default


_INT64 = 1 << 63


def add_labels(draft: Draft, labels: Mapping[str, str]) -> None:
    """Set labels of the pod, over those that are there."""
    for key, value in labels.items():
        draft.set(("metadata", "labels", key), value)


def add_annotations(draft: Draft, annotations: Mapping[str, str]) -> None:
    """Set annotations of the pod, over those that are there."""
    for key, value in annotations.items():
        draft.set(("metadata", "annotations", key), value)


def variables(**values: str) -> list[dict[str, Any]]:
    """Write variables with literal values as items of `env`."""
    return [{"name": name, "value": value} for name, value in values.items()]


def of_pod(name: str, field: str) -> dict[str, Any]:
    """Write a variable with the value of a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}


def add_env(draft: Draft, container: Path, items: Iterable[dict[str, Any]]) -> None:
    """Append variables to a container, as Go's `append` does: also where a name is there."""
    draft.append((*container, "env"), *items)


def add_mount(draft: Draft, container: Path, volume: dict[str, Any], where: str) -> None:
    """Add a volume to the pod, and mount it in a container."""
    draft.append(VOLUMES, volume)
    draft.append((*container, "volumeMounts"), {"name": volume["name"], "mountPath": where})


def has_containers(pod: PodManifest) -> bool:
    """Return whether there is a first container to add something to."""
    return isinstance(at(pod, FIRST), dict)
