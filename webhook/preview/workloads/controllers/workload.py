"""The rows of the table of controllers, their input, and functions that add to a pod.

As in mutations, a `Draft` copies the parts that it changes, so the template stays unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from webhook.decide.draft import Draft
from webhook.kube.records import LenientObject
from webhook.model.pod import Path, PodManifest, at, fields_or_empty, read_mappings, read_strings
from webhook.preview.workloads.objects import ObjectMetadata, scalar_text, values_along

_Mapping = dict[str, object]

#: The main container in the operators' view: the first.
MAIN_CONTAINER: Path = ("spec", "containers", 0)
CONTAINERS: Path = ("spec", "containers")
INIT_CONTAINERS: Path = ("spec", "initContainers")
VOLUMES: Path = ("spec", "volumes")


class Workload(NamedTuple):
    """A pod template with its object, as the object's controller sees them."""

    kind: str
    name: str  #: "" if the API server generates it
    namespace: str  #: the object's namespace, else `default`
    annotations: Mapping[str, object]  #: the object's annotations
    template_path: Path  #: the template's path in the object: ("spec", "template")
    #: The values along that path: the object, its spec, and so on, without the template.
    values_above_template: tuple[object, ...]
    pod: PodManifest  #: the template
    main_container: TemplateContainer | None  #: the main container


def read_workload(kind: str, value: _Mapping, template_path: Path, pod: PodManifest) -> Workload:
    """Read an object, and its template at `template_path`."""
    metadata, container = ObjectMetadata.of(value), at(pod, MAIN_CONTAINER)
    return Workload(
        kind,
        scalar_text(metadata.name),
        scalar_text(metadata.namespace, "default"),
        metadata.annotations,
        template_path,
        tuple(values_along(value, template_path)[:-1]),
        pod,
        TemplateContainer(MAIN_CONTAINER, container) if isinstance(container, dict) else None,
    )


class Resources(LenientObject):
    """The resources of a container; each field may have any shape."""

    limits: object = None
    requests: object = None


class TemplateContainer(NamedTuple):
    """A container of a template; reading a list that the API server refuses raises ShapeError."""

    path: Path
    manifest: _Mapping

    @property
    def env_names(self) -> list[object]:
        """The names of its variables."""
        return [variable.get("name") for variable in self.env]

    @property
    def env(self) -> list[_Mapping]:
        """Its variables."""
        return read_mappings(self.manifest, ("env",))

    @property
    def mount_paths(self) -> list[object]:
        """The paths at which it mounts volumes."""
        return [mount.get("mountPath") for mount in read_mappings(self.manifest, ("volumeMounts",))]

    @property
    def arguments(self) -> list[str]:
        """Its command, with its arguments."""
        return [part for key in ("command", "args") for part in read_strings(self.manifest, (key,))]

    @property
    def has_command(self) -> bool:
        """Whether the template sets its command."""
        return bool(self.manifest.get("command"))

    @property
    def resource_sections(self) -> list[str]:
        """The fields of its resources that have a value."""
        resources = fields_or_empty(self.manifest.get("resources"))
        return [field for field, amounts in resources.items() if amounts is not None]

    @property
    def resources(self) -> Resources:
        """Its limits and requests."""
        return Resources.model_validate(self.manifest.get("resources"))


def containers_in(pod: PodManifest, field: Path) -> list[TemplateContainer]:
    """List the containers in a field of a pod; raise ShapeError if it is not a list of mappings."""
    manifests = read_mappings(pod, field)
    return [
        TemplateContainer((*field, index), container) for index, container in enumerate(manifests)
    ]


class ControllerPod(NamedTuple):
    """A pod that a controller creates from a template."""

    pod: PodManifest
    role: str = ""  #: the kind of pod, if the template makes several kinds


class Controller(NamedTuple):
    """A controller, the kinds that it creates pods for, and its additions to them."""

    name: str  #: the project's name for it; "" for Kubernetes itself
    kinds: frozenset[str]  #: "kubeflow.org/v2beta1 MPIJob": apiVersion and kind
    adds: str  #: a short description of its additions, for the documentation
    #: Make the pods of a template; without additions, the only pod is the template itself. It may
    #: raise ShapeError for a template that the API server refuses.
    make_pods: Callable[[Workload], tuple[ControllerPod, ...]]


def add_labels(draft: Draft, labels: Mapping[str, str]) -> None:
    """Set labels of the pod, and overwrite existing ones."""
    for key, value in labels.items():
        draft.set(("metadata", "labels", key), value)


def add_annotations(draft: Draft, annotations: Mapping[str, str]) -> None:
    """Set annotations of the pod, and overwrite existing ones."""
    for key, value in annotations.items():
        draft.set(("metadata", "annotations", key), value)


def variables(**values: str) -> list[_Mapping]:
    """Return variables with literal values as items of `env`."""
    return [{"name": name, "value": value} for name, value in values.items()]


def pod_field_variable(name: str, field: str) -> _Mapping:
    """Return an item of `env` whose value is a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}


def add_env(draft: Draft, container: Path, added: Iterable[Mapping[str, object]]) -> None:
    """Append variables to a container like Go's `append`, even if a name exists already."""
    draft.append((*container, "env"), *added)


def add_mount(draft: Draft, container: Path, volume: Mapping[str, object], mount_path: str) -> None:
    """Add a volume to the pod, and mount it in a container."""
    draft.append(VOLUMES, volume)
    draft.append((*container, "volumeMounts"), {"name": volume["name"], "mountPath": mount_path})
