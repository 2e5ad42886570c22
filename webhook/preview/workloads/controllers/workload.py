"""The form of a row in the table of controllers, what a row reads, and how it adds to a pod.

A `Draft` adds here as it does for mutations: it copies what it changes, so the template that came
in stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from webhook.decide.draft import Draft
from webhook.kube.records import Record
from webhook.model.pod import Path, PodManifest, at, items, strings
from webhook.preview.workloads.objects import Header, nodes_on, word

_Item = dict[str, object]

#: The container that operators take for the one that does the work: the first.
FIRST: Path = ("spec", "containers", 0)
CONTAINERS: Path = ("spec", "containers")
INIT_CONTAINERS: Path = ("spec", "initContainers")
VOLUMES: Path = ("spec", "volumes")


class Workload(NamedTuple):
    """A pod template with the object around it, as the object's controller sees them."""

    kind: str
    name: str  #: "" if the API server is to generate it
    namespace: str  #: as it is written, else `default`
    annotations: Mapping[str, object]  #: of the object
    where: Path  #: the template's path in the object: ("spec", "template")
    around: tuple[object, ...]  #: what is on that path: the object, its spec, …
    pod: PodManifest  #: the template
    first: TemplateContainer | None  #: the container that does the work


def read_workload(kind: str, value: _Item, where: Path, pod: PodManifest) -> Workload:
    """Read an object, and its template at `where`."""
    header, container = Header.of(value), at(pod, FIRST)
    return Workload(
        kind,
        word(header.name),
        word(header.namespace, "default"),
        header.annotations,
        where,
        tuple(nodes_on(value, where)[:-1]),
        pod,
        TemplateContainer(FIRST, container) if isinstance(container, dict) else None,
    )


class Resources(Record):
    """The resources of a container; each field may have any shape."""

    limits: object = None
    requests: object = None


class TemplateContainer(NamedTuple):
    """A container of a template; a list that the API server refuses raises ShapeError if read."""

    path: Path
    manifest: _Item

    @property
    def env_names(self) -> list[object]:
        """The names of its variables."""
        return [variable.get("name") for variable in self.env]

    @property
    def env(self) -> list[_Item]:
        """Its variables."""
        return items(self.manifest, ("env",))

    @property
    def mount_paths(self) -> list[object]:
        """The paths at which it mounts volumes."""
        return [mount.get("mountPath") for mount in items(self.manifest, ("volumeMounts",))]

    @property
    def words(self) -> list[str]:
        """The words of its command and of its arguments."""
        return [word for key in ("command", "args") for word in strings(self.manifest, (key,))]

    @property
    def has_command(self) -> bool:
        """Whether it has a command of its own."""
        return bool(self.manifest.get("command"))

    @property
    def resources(self) -> Resources:
        """Its limits and requests."""
        return Resources.model_validate(self.manifest.get("resources"))


def containers_in(pod: PodManifest, field: Path) -> list[TemplateContainer]:
    """List the containers in a field of a pod; raise ShapeError if it is not a list of mappings."""
    manifests = items(pod, field)
    return [TemplateContainer((*field, index), item) for index, item in enumerate(manifests)]


class ExpectedPod(NamedTuple):
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
    expected_pods: Callable[[Workload], tuple[ExpectedPod, ...]]


def add_labels(draft: Draft, labels: Mapping[str, str]) -> None:
    """Set labels of the pod, over those that are there."""
    for key, value in labels.items():
        draft.set(("metadata", "labels", key), value)


def add_annotations(draft: Draft, annotations: Mapping[str, str]) -> None:
    """Set annotations of the pod, over those that are there."""
    for key, value in annotations.items():
        draft.set(("metadata", "annotations", key), value)


def variables(**values: str) -> list[_Item]:
    """Write variables with literal values as items of `env`."""
    return [{"name": name, "value": value} for name, value in values.items()]


def of_pod(name: str, field: str) -> _Item:
    """Write a variable with the value of a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}


def add_env(draft: Draft, container: Path, added: Iterable[Mapping[str, object]]) -> None:
    """Append variables to a container, as Go's `append` does: also where a name is there."""
    draft.append((*container, "env"), *added)


def add_mount(draft: Draft, container: Path, volume: Mapping[str, object], where: str) -> None:
    """Add a volume to the pod, and mount it in a container."""
    draft.append(VOLUMES, volume)
    draft.append((*container, "volumeMounts"), {"name": volume["name"], "mountPath": where})
