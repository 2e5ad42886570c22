"""The pods and pod templates of a document, recognized by their shape.

A pod template is a mapping whose `spec.containers` is a list. So templates are found in any kind
without a list of kinds: Deployment, CronJob, MPIJob, RayCluster, JobSet, AppWrapper, List and
future ones. A mapping with its own kind counts only if it is a Pod: in a MiniCluster or
ServingRuntime, the metadata next to `spec` belongs to that object and does not reach a pod.

A pod spec without metadata counts under the operators' usual keys: `template`, `worker` (KServe's
LLMInferenceService), `podSpec` (Grove's PodCliqueSet). It needs named containers, but no images.
The controller makes the pods' metadata, and so decides whether they opt in.

A Pod whose `containers` is not a list, and a `template` with such a spec, count as well: probably a
dash is missing, and the decision's message mentions it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from webhook.kube.objects import KubernetesObject
from webhook.kube.records import LenientObject, Text, text_of
from webhook.model.names import enumerated
from webhook.model.pod import Path, PodManifest
from webhook.preview.workloads.metadata_sources import annotations_for, metadata_source_of
from webhook.preview.workloads.objects import ObjectMetadata, below
from webhook.text.yaml.documents import Document


class Template(NamedTuple):
    """A pod, or a template that pods are made from."""

    path: Path  #: its path in the document: ("spec", "template"), () for a Pod
    kind: str  #: the kind of the enclosing object; "" without one
    name: str  #: its name, else its generateName, else ""
    namespace: str | None  #: its namespace, or that of an object around it; None if unset
    pod: PodManifest  #: the mapping itself, not a copy; a pod spec is wrapped as `spec`
    enclosing: EnclosingObject | None = None  #: the nearest object around it; None without one
    spec_only: bool = False  #: whether it is a pod spec without metadata
    #: The path in the document of the annotations that the operator copies to the pods, if the
    #: operator makes the pods' metadata and copies any.
    annotations_path: Path | None = None
    #: Whether it was made from a container, or from a part that resembles a pod spec.
    derived: bool = False


class EnclosingObject(NamedTuple):
    """The nearest surrounding mapping with apiVersion and kind."""

    path: Path
    api_version: str
    kind: str
    name: str  #: its name, else its generateName, else ""
    namespace: str | None  #: its namespace, or that of an object around it
    value: dict[str, object]  #: the object itself

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind or 'a mapping without a kind'} {name}".rstrip()

    @property
    def controller(self) -> str:
        """The object that controls it, such as "Deployment train" for a ReplicaSet; else ""."""
        reference = KubernetesObject.read(self.value).metadata.controller
        return f"{reference.kind} {reference.name}" if reference else ""


class LocatedMapping(NamedTuple):
    """A mapping in the document outside any pod, or the pod itself."""

    path: Path
    enclosing: EnclosingObject
    node: dict[str, object]
    is_pod: bool
    is_spec_only: bool = False  #: a pod spec without metadata


class _AdmissionReview(LenientObject):
    namespace: Text = below("request", "namespace", default="")
    reviewed: object = below("request", "object", default=None)


NO_OBJECT = EnclosingObject((), "", "", "", None, {})
_NO_PODS_BELOW = ("metadata", "status")
_SPEC_KEYS = frozenset(("podSpec", "template", "worker"))


def templates_of(value: object) -> list[Template]:
    """List the pods and pod templates in a JSON value, in the order of the document.

    In an AdmissionReview only `request.object` is searched. A TrainJob has no templates, since its
    containers are partial and are merged into the runtime's.
    """
    return [_template(mapping) for mapping in mappings_of(value) if mapping.is_pod]


def _template(mapping: LocatedMapping) -> Template:
    metadata_source = metadata_source_of(mapping.enclosing.api_version, mapping.enclosing.kind)
    if mapping.is_spec_only:
        return spec_template(mapping, mapping.path, mapping.node)
    spec = mapping.node.get("spec")
    if (
        metadata_source is not None
        and isinstance(spec, dict)
        and not _has_own_metadata(mapping.path)
    ):
        return spec_template(mapping, (*mapping.path, "spec"), spec)
    enclosing = mapping.enclosing
    return Template(
        mapping.path,
        enclosing.kind,
        enclosing.name,
        enclosing.namespace,
        mapping.node,
        None if enclosing is NO_OBJECT else enclosing,
    )


def _has_own_metadata(path: Path) -> bool:
    """Return whether a template is a PodTemplateSpec, by its name: its metadata is the pods'."""
    return not path or str(path[-1]).lower().endswith("template")


def spec_template(
    mapping: LocatedMapping, path: Path, spec: dict[str, object], *, derived: bool = False
) -> Template:
    """Return the template for a pod spec at `path`, with the annotations that reach its pods."""
    enclosing, annotations = mapping.enclosing, None
    metadata_source = metadata_source_of(enclosing.api_version, enclosing.kind)
    if metadata_source is not None:
        annotations = annotations_for(metadata_source, enclosing.value, path[len(enclosing.path) :])
    metadata = {"metadata": {"annotations": annotations.values}} if annotations else {}
    return Template(
        path,
        enclosing.kind,
        enclosing.name,
        enclosing.namespace,
        {**metadata, "spec": spec},
        None if enclosing is NO_OBJECT else enclosing,
        spec_only=True,
        annotations_path=(*enclosing.path, *annotations.path) if annotations else None,
        derived=derived,
    )


def not_kubernetes_reason(document: Document) -> str | None:
    """Return a message for a document without Kubernetes objects and pod templates; else None."""
    if any(
        mapping.is_pod or mapping.enclosing is not NO_OBJECT
        for mapping in mappings_of(document.value)
    ):
        return None
    return (
        f"{document.name}: document {document.index + 1}, line {document.line}: this is not a "
        f"Kubernetes object, since it lacks {_missing_fields(document.value)}, and contains "
        "no pod template"
    )


def _missing_fields(value: Mapping[str, object]) -> str:
    """Name which of an object's two fields a value lacks: "apiVersion and kind"."""
    missing = [name for name in ("apiVersion", "kind") if not isinstance(value.get(name), str)]
    return enumerated(missing)


def mappings_of(value: object) -> Iterator[LocatedMapping]:
    """Yield the mappings outside pods, and the pods themselves, in the order of the document."""
    stack: list[tuple[Path, EnclosingObject, object]] = [((), NO_OBJECT, value)]
    while stack:
        path, enclosing, node = stack.pop()
        if isinstance(node, list):
            stack.extend(
                ((*path, index), enclosing, node[index])
                for index in range(len(node) - 1, -1, -1)
                if isinstance(node[index], (dict, list))
            )
            continue
        if not isinstance(node, dict):
            continue
        is_object = isinstance(node.get("kind"), str) and isinstance(node.get("apiVersion"), str)
        if is_object:
            enclosing = _enclosing_object(path, node, enclosing)
        is_spec_only = not is_object and _is_pod_spec(path, node)
        is_pod = is_spec_only or _is_pod(path, node, is_object=is_object)
        yield LocatedMapping(path, enclosing, node, is_pod, is_spec_only)
        if not is_pod:
            stack.extend(_nodes_below(path, enclosing, node, is_object=is_object))


def _enclosing_object(
    path: Path, node: dict[str, object], outer: EnclosingObject
) -> EnclosingObject:
    kind, metadata = text_of(node["kind"]), ObjectMetadata.of(node)
    name = text_of(metadata.name) or text_of(metadata.generate_name)
    if kind == "Pod" and not name and outer.name:
        return outer  # a template with its own kind
    is_review = kind == "AdmissionReview"
    namespace = (
        _AdmissionReview.model_validate(node).namespace
        if is_review
        else text_of(metadata.namespace)
    )
    return EnclosingObject(
        path, text_of(node["apiVersion"]), kind, name, namespace or outer.namespace, node
    )


def _is_pod(path: Path, node: dict[str, object], *, is_object: bool) -> bool:
    if is_object:
        # Without both it is a reference to a pod, unless it is the document itself.
        return node["kind"] == "Pod" and ("spec" in node or "metadata" in node or not path)
    spec = node.get("spec")
    if not isinstance(spec, dict) or "containers" not in spec:
        return False
    return isinstance(spec["containers"], list) or path[-1:] == ("template",)


def _is_pod_spec(path: Path, node: dict[str, object]) -> bool:
    containers = node.get("containers")
    return (
        path[-1:] != ()
        and path[-1] in _SPEC_KEYS
        and isinstance(containers, list)
        and bool(containers)
        and all(
            isinstance(container, dict) and isinstance(container.get("name"), str)
            for container in containers
        )
    )


def _nodes_below(
    path: Path, enclosing: EnclosingObject, node: dict[str, object], *, is_object: bool
) -> Iterator[tuple[Path, EnclosingObject, object]]:
    """Yield the nodes to search below a mapping, in reverse order, for a stack."""
    if is_object and enclosing.kind == "AdmissionReview":
        yield (
            (*path, "request", "object"),
            enclosing,
            _AdmissionReview.model_validate(node).reviewed,
        )
    elif not is_object or enclosing.kind != "TrainJob":
        for key in reversed(node):
            if isinstance(node[key], (dict, list)) and not (is_object and key in _NO_PODS_BELOW):
                yield (*path, key), enclosing, node[key]
