"""Readers of a pod, which stays the plain dict that arrived; they report where its shape is wrong.

Absent and null are the same to Kubernetes, so every reader treats them alike.
A caller that passes only a part of the pod gives that part's path in `under`, for the message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from webhook.errors import ShapeError

# What in a pod's manifest concerns its network, besides interfaces and devices.

#: On a pod, a label or the older annotation; `false` keeps the namespace's injection away.
_INJECT = "sidecar.istio.io/inject"
#: Labels of a namespace by which Istio injects its sidecar into all pods.
_NAMESPACE = {"istio-injection": "enabled"}
_PROXY = "istio-proxy"
#: Policies by which names of Services resolve in the host's network, or as the user spells out.
_RESOLVING = ("ClusterFirstWithHostNet", "None")


def istio_sidecar(
    pod: PodManifest, containers: tuple[Container, ...], namespace: Mapping[str, str]
) -> str:
    """Name the evidence that Istio puts its proxy into a pod; return "" if there is none.

    `namespace` are the namespace's labels. The proxy takes over all TCP connections of the pod,
    also those between ranks. Source: Istio, pkg/kube/inject/inject.go, injectRequired.
    """
    if any(one.name == _PROXY for one in containers):
        return f"container {_PROXY}"
    for field in ("labels", "annotations"):
        value = mapping(pod, ("metadata", field)).get(_INJECT)
        if value is not None:
            return f"{field[:-1]} {_INJECT}" if value == "true" else ""
    for label, value in _NAMESPACE.items():
        if namespace.get(label) == value:
            return f"namespace label {label}"
    return ""


def lacks_cluster_dns(pod: PodManifest) -> bool:
    """Return whether the pod is in the host's network, and names of Services do not resolve there.

    With hostNetwork, the kubelet reads `ClusterFirst`, the default, as `Default`, the node's DNS.
    """
    spec = mapping(pod, ("spec",))
    return spec.get("hostNetwork") is True and spec.get("dnsPolicy") not in _RESOLVING


# The objects that own a pod, by which people look for what is wrong with it.

_HASH = ("metadata", "labels", "pod-template-hash")
_JOBSET = ("metadata", "labels", "jobset.sigs.k8s.io/jobset-name")

#: Owners above each other: a pod of a CronJob has two, one of a TrainJob three.
MOST_OWNERS = 5


class OwnerReference(NamedTuple):
    """An object in the pod's namespace."""

    api_version: str
    kind: str
    name: str
    #: "" if it is known by its name only.
    uid: str = ""


def owners_of(pod: PodManifest) -> tuple[OwnerReference, ...]:
    """List the pod's controller, and the controller of that one where the pod names it.

    Nothing is read from the cluster. A ReplicaSet of a Deployment has the Deployment's name with
    the pod's label `pod-template-hash` appended (kubernetes, pkg/controller/deployment/sync.go),
    and the pods of a JobSet name it in a label (jobset, api/jobset/v1alpha2). A malformed
    reference, which the API server rejects, counts as none.
    """
    controller = _controller(pod)
    if controller is None:
        return ()
    above = _above(pod, controller)
    return (controller, above) if above else (controller,)


def controller_reference(item: Any) -> dict[str, Any] | None:
    """Return the reference to an object's controller, as it is written; None without one."""
    references = at(item, ("metadata", "ownerReferences"))
    for one in references if isinstance(references, list) else ():
        if isinstance(one, dict) and one.get("controller") is True:
            return one
    return None


def _controller(pod: PodManifest) -> OwnerReference | None:
    one = controller_reference(pod)
    found = [at(one, (key,)) for key in ("apiVersion", "kind", "name", "uid")]
    return OwnerReference(*found) if all(isinstance(word, str) for word in found) else None


def _above(pod: PodManifest, controller: OwnerReference) -> OwnerReference | None:
    digest, jobset = at(pod, _HASH), at(pod, _JOBSET)
    if controller.kind == "ReplicaSet" and isinstance(digest, str):
        name = controller.name.removesuffix(f"-{digest}")
        return OwnerReference("apps/v1", "Deployment", name) if name != controller.name else None
    if controller.kind == "Job" and isinstance(jobset, str):
        return OwnerReference("jobset.x-k8s.io/v1alpha2", "JobSet", jobset)
    return None


# The path of a value inside a document: a tuple of keys and indexes, with two written forms.

Path = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def dotted(path: Path) -> str:
    """Format a path for people: `spec.containers[0].resources.limits["nvidia.com/gpu"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


@lru_cache(maxsize=4096)  # the same few paths occur in every pod
def pointer(path: Path) -> str:
    """Format a path as an RFC 6901 pointer: `/spec/containers/0/limits/nvidia.com~1gpu`."""
    text = ""
    for step in path:
        if isinstance(step, str) and ("~" in step or "/" in step):
            text += "/" + step.replace("~", "~0").replace("/", "~1")
        else:
            text += f"/{step}"
    return text


PodManifest = dict[str, Any]
Kind = Literal["app", "init", "sidecar", "ephemeral"]

_REQUIRED = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
#: The terms of the required node affinity; a node must satisfy at least one of them.
NODE_TERMS: Path = (*_REQUIRED, "nodeSelectorTerms")

_NO_MAPPING: dict[str, Any] = {}
_NO_SEQUENCE: list[Any] = []


class Container(NamedTuple):
    """One container of a pod, of any kind, and its place in the pod."""

    kind: Kind
    name: str
    path: Path  #: ("spec", "containers", 0)
    manifest: dict[str, Any]  #: as read; out of date as soon as a draft edits the container


def at(node: Any, path: Path) -> Any:
    """Return the value at `path` below `node`, or None if any step on the way is absent."""
    for step in path:
        if isinstance(node, dict):  # the common case; so is a missing key, hence no exception
            node = node.get(step)
        elif isinstance(node, list) and isinstance(step, int) and step < len(node):
            node = node[step]
        else:
            return None
    return node


def mapping(node: Any, path: Path, under: Path = ()) -> dict[str, Any]:
    """Return the mapping at `path`, empty if absent; raise ShapeError for anything else."""
    found = at(node, path)
    if isinstance(found, dict):
        return found
    if found is None:
        return _NO_MAPPING
    raise _shape((*under, *path), found, "a mapping")


def sequence(node: Any, path: Path, under: Path = ()) -> list[Any]:
    """Return the list at `path`, empty if absent; raise ShapeError for anything else."""
    found = at(node, path)
    if isinstance(found, list):
        return found
    if found is None:
        return _NO_SEQUENCE
    raise _shape((*under, *path), found, "a list")


def items(node: Any, path: Path, under: Path = ()) -> list[dict[str, Any]]:
    """Return the list of mappings at `path`, empty if absent."""
    found = at(node, path)
    if found is None:
        return _NO_SEQUENCE
    if not isinstance(found, list):
        raise _shape((*under, *path), found, "a list")
    for item in found:
        if not isinstance(item, dict):
            raise _shape((*under, *path, _place(found, dict)), item, "a mapping")
    return found


def strings(node: Any, path: Path, under: Path = ()) -> list[str]:
    """Return the list of strings at `path`, empty if absent."""
    found = at(node, path)
    if found is None:
        return _NO_SEQUENCE
    if not isinstance(found, list):
        raise _shape((*under, *path), found, "a list")
    for item in found:
        if not isinstance(item, str):
            raise _shape((*under, *path, _place(found, str)), item, "a string")
    return found


def _place(found: list[Any], kind: type) -> int:
    """Return the index of the first item that is not of type `kind`."""
    return next(index for index, item in enumerate(found) if not isinstance(item, kind))


def text(node: Any, path: Path, under: Path = ()) -> str | None:
    """Return the string at `path`, or None if absent."""
    found = at(node, path)
    if found is None or isinstance(found, str):
        return found
    raise _shape((*under, *path), found, "a string")


def flag(node: Any, path: Path, under: Path = ()) -> bool:
    """Return the boolean at `path`, or False if absent."""
    found = at(node, path)
    if found is None or isinstance(found, bool):
        return bool(found)
    raise _shape((*under, *path), found, "true or false")


def containers_of(pod: PodManifest) -> list[Container]:
    """List all containers: init containers and native sidecars, then app, then ephemeral ones."""
    found: list[Container] = []
    spec = mapping(pod, ("spec",))
    for field, kind in _KINDS:
        if field not in spec:
            continue
        path = ("spec", field)
        for index, manifest in enumerate(items(pod, path)):
            where = (*path, index)
            actual: Kind = kind
            if kind == "init" and manifest.get("restartPolicy") == "Always":
                actual = "sidecar"
            name = text(manifest, ("name",), where) or f"{field}[{index}]"
            found.append(Container(actual, name, where, manifest))
    return found


_KINDS: tuple[tuple[str, Kind], ...] = (
    ("initContainers", "init"),
    ("containers", "app"),
    ("ephemeralContainers", "ephemeral"),
)
#: The fields of a pod's spec that list containers.
CONTAINER_FIELDS = tuple(field for field, _ in _KINDS)


def describe(value: object) -> str:
    """Describe a value in a few words, short enough for a message."""
    kinds = {dict: "a mapping", list: "a list", str: "a string", bool: "a boolean"}
    try:
        shown = repr(value)
    except ValueError:  # Python refuses to convert an integer of more than 4300 digits
        shown = "too many digits to be shown"
    shown = shown if len(shown) <= _LONGEST_WORD else shown[: _LONGEST_WORD - 1] + "…"
    return f"{kinds.get(value.__class__, 'a number')} ({shown})"


_LONGEST_WORD = 60


def _shape(path: Path, value: object, wanted: str) -> ShapeError:
    return ShapeError(f"{dotted(path) or 'the pod'} must be {wanted}, but is {describe(value)}")


# The container runtime that a pod asks for by `runtimeClassName`, as far as its name says.
#
# A RuntimeClass names a handler of the node; its own name is the site's choice, but the
# installers of gVisor and Kata Containers, and the clouds, use names that say what it is.

#: `gvisor` (GKE Sandbox, gvisor.dev), `runsc`, and either with a suffix.
_GVISOR = re.compile(r"(gvisor|runsc)([.-].*)?")
#: `kata`, `kata-qemu-nvidia-gpu`, … (kata-deploy); `kata-vm-isolation`, `kata-cc-isolation` (AKS).
_KATA = re.compile(r"kata([.-].*)?")
_LONGEST_NAME = 253  # a DNS subdomain


def is_gvisor(name: Any) -> bool:
    """Return whether a pod with this runtimeClassName runs in gVisor, which has no RDMA devices."""
    return _matches(_GVISOR, name)


def is_kata(name: Any) -> bool:
    """Return whether a pod with this runtimeClassName runs in a Kata virtual machine.

    RDMA works there only with a NIC that is passed through (VFIO), which no pod field shows.
    """
    return _matches(_KATA, name)


def _matches(names: re.Pattern[str], name: Any) -> bool:
    return (
        isinstance(name, str) and len(name) <= _LONGEST_NAME and names.fullmatch(name) is not None
    )
