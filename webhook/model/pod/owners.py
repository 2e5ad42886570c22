"""The objects that own a pod, by which people look for what is wrong with it."""

from __future__ import annotations

from typing import NamedTuple

from webhook.model.json import Json, JsonObject
from webhook.model.pod.reading import PodManifest, at

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


def controller_reference(item: Json) -> JsonObject | None:
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
