"""Find the pods and pod templates of a document by their shape, and report near misses.

A pod template is a mapping whose `spec.containers` is a list, so that it is found in any kind
without a list of kinds: Deployment, CronJob, MPIJob, RayCluster, JobSet, AppWrapper, List and kinds
to come. A mapping with its own kind counts only if that is Pod: in a MiniCluster or ServingRuntime,
the metadata beside `spec.containers` belongs to that object and does not reach a pod.

A Pod whose `containers` is not a list, and a `template` with such a spec, count as well: probably a
dash is missing, and the decision says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from webhook.pod.manifest import PodManifest, at
from webhook.pod.path import Path, dotted
from webhook.yamltext.documents import Document


class Template(NamedTuple):
    """A pod, or a template that pods are made from."""

    path: Path  #: its path in the document: ("spec", "template"), () for a bare Pod
    kind: str  #: the kind of the nearest object around it; "" if there is none
    name: str  #: the name of that object, else its generateName, else ""
    namespace: str | None  #: the namespace of that object, or of one around it; None if unset
    pod: PodManifest  #: the mapping itself, not a copy


class _Owner(NamedTuple):
    """The nearest mapping around with apiVersion and kind."""

    path: Path
    kind: str
    name: str
    namespace: str | None

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind or 'a mapping without a kind'} {name}".rstrip()


class _Place(NamedTuple):
    """A mapping of the document that is not inside a pod."""

    path: Path
    owner: _Owner
    node: dict[str, Any]
    is_pod: bool


_NOBODY = _Owner((), "", "", None)
_NO_PODS_BELOW = ("metadata", "status")
_CONTAINER_FIELDS = frozenset(
    (
        "name", "command", "args", "env", "envFrom", "resources", "ports", "volumeMounts",
        "securityContext", "workingDir", "imagePullPolicy", "startupProbe", "readinessProbe",
        "livenessProbe",
    )
)  # fmt: skip
_KIND_LINE = re.compile(r"^[ \t-]*kind:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)
_MOST_KINDS = 3


def templates_of(value: Any) -> list[Template]:
    """List the pods and pod templates in a JSON value, in the order of the document.

    In an AdmissionReview only `request.object` is searched. A TrainJob has no templates, since its
    containers are partial and are merged into those of its runtime.
    """
    return [
        Template(place.path, place.owner.kind, place.owner.name, place.owner.namespace, place.node)
        for place in _places(value)
        if place.is_pod
    ]


def notes_of(value: Any) -> list[str]:
    """Return a sentence for each part of a JSON value that looks like a pod but is not one."""
    notes: list[str] = []
    containers: dict[tuple[_Owner, str], list[str]] = {}
    for place in _places(value):
        if place.is_pod:
            if at(place.node, _CONTAINERS) is None and isinstance(_spec(place.node), dict):
                notes.append(_without_containers(place))
        elif place.owner.kind == "TrainJob" and place.path == place.owner.path:
            notes.append(_train_job(place))
        elif _is_container(place):
            where = place.path[len(place.owner.path) :]
            containers.setdefault((place.owner, _label(where)), []).append(dotted(where))
        else:
            notes.extend(_embedded(place))
    notes.extend(_outside(owner, found) for (owner, _), found in containers.items())
    return notes


def not_kubernetes(document: Document) -> str | None:
    """Report a document without any Kubernetes object or pod template; return None otherwise."""
    if any(place.is_pod or place.owner is not _NOBODY for place in _places(document.value)):
        return None
    return (
        f"{document.name}: document {document.index + 1}, line {document.line}: no Kubernetes "
        f"object: it has neither apiVersion and kind nor a pod template"
    )


def _places(value: Any) -> Iterator[_Place]:
    """Yield the mappings outside pods, and the pods, in the order of the document."""
    stack: list[tuple[Path, _Owner, Any]] = [((), _NOBODY, value)]
    while stack:
        path, owner, node = stack.pop()
        if isinstance(node, list):
            stack.extend(
                ((*path, index), owner, node[index])
                for index in range(len(node) - 1, -1, -1)
                if isinstance(node[index], (dict, list))
            )
            continue
        if not isinstance(node, dict):
            continue
        is_object = isinstance(node.get("kind"), str) and isinstance(node.get("apiVersion"), str)
        if is_object:
            owner = _owner(path, node, owner)
        is_pod = _is_pod(path, node, is_object=is_object)
        yield _Place(path, owner, node, is_pod)
        if not is_pod:
            stack.extend(_below(path, owner, node, is_object=is_object))


def _owner(path: Path, node: dict[str, Any], around: _Owner) -> _Owner:
    name = _text(node, ("metadata", "name")) or _text(node, ("metadata", "generateName"))
    if node["kind"] == "Pod" and not name and around.name:
        return around  # a template that states its own kind
    field = ("request", "namespace") if node["kind"] == "AdmissionReview" else _NAMESPACE
    return _Owner(path, node["kind"], name or "", _text(node, field) or around.namespace)


_NAMESPACE: Path = ("metadata", "namespace")
_CONTAINERS: Path = ("spec", "containers")


def _text(node: Any, path: Path) -> str | None:
    found = at(node, path)
    return found if isinstance(found, str) else None


def _is_pod(path: Path, node: dict[str, Any], *, is_object: bool) -> bool:
    if is_object:
        # Without both it is a reference to a pod, unless it is the whole document.
        return node["kind"] == "Pod" and ("spec" in node or "metadata" in node or not path)
    spec = node.get("spec")
    if not isinstance(spec, dict) or "containers" not in spec:
        return False
    return isinstance(spec["containers"], list) or path[-1:] == ("template",)


def _spec(pod: PodManifest) -> Any:
    return {} if pod.get("spec") is None else pod["spec"]


def _below(
    path: Path, owner: _Owner, node: dict[str, Any], *, is_object: bool
) -> Iterator[tuple[Path, _Owner, Any]]:
    """Yield the nodes to search below a mapping, in reverse order, for a stack."""
    if is_object and owner.kind == "AdmissionReview":
        step = ("request", "object")
        yield (*path, *step), owner, at(node, step)
    elif not is_object or owner.kind != "TrainJob":
        for key in reversed(node):
            if isinstance(node[key], (dict, list)) and not (is_object and key in _NO_PODS_BELOW):
                yield (*path, key), owner, node[key]


def _is_container(place: _Place) -> bool:
    return (
        place.path[-1:] not in ((), ("spec",))
        and isinstance(place.node.get("image"), str)
        and not _CONTAINER_FIELDS.isdisjoint(place.node)
        and place.owner is not _NOBODY
    )


def _without_containers(place: _Place) -> str:
    where = dotted((*place.path[len(place.owner.path) :], *_CONTAINERS))
    return f"{place.owner}: {where} is missing: the API server refuses a pod without containers"


def _label(where: Path) -> str:
    """Return a label for the kind of place, so that similar places share one sentence."""
    return ".".join([step for step in where if isinstance(step, str)][-2:])


def _outside(owner: _Owner, found: list[str]) -> str:
    more = f", and {len(found) - 1} more like it" if len(found) > 1 else ""
    return (
        f"{owner}: a container outside any pod template at {found[0]}{more}: not edited here, "
        f"the pods made from it are patched at admission"
    )


def _train_job(place: _Place) -> str:
    runtime = _text(place.node, ("spec", "runtimeRef", "name")) or "its runtime"
    return f"{place.owner}: the pods come from runtime {runtime} and are patched at admission"


def _embedded(place: _Place) -> Iterator[str]:
    """Yield a sentence for each manifest with containers that is stored as text (ConfigMaps)."""
    for key, text in place.node.items():
        if isinstance(text, str) and "containers:" in text and "apiVersion:" in text:
            kinds = list(dict.fromkeys(_KIND_LINE.findall(text)))[:_MOST_KINDS]
            if kinds:
                where = dotted((*place.path[len(place.owner.path) :], key))
                yield (
                    f"{place.owner}: {where} holds a manifest as text ({', '.join(kinds)}): not "
                    f"edited here, the pods made from it are patched at admission"
                )
