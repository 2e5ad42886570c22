"""The objects that own a pod, where people look for its problems."""

from __future__ import annotations

from typing import NamedTuple

from webhook.model.json import Json, JsonObject
from webhook.model.pod.reading import PodManifest, at

_HASH = ("metadata", "labels", "pod-template-hash")
_JOBSET = ("metadata", "labels", "jobset.sigs.k8s.io/jobset-name")

#: The longest chain of owners: a CronJob's pod has two, a TrainJob's pod three.
MAX_OWNERS = 5


class OwnerReference(NamedTuple):
    """A reference to an object in the pod's namespace."""

    api_version: str
    kind: str
    name: str
    #: "" if only the name is known.
    uid: str = ""


def owners_of(pod: PodManifest) -> tuple[OwnerReference, ...]:
    """List the pod's controller, and the controller above it if the pod names it.

    Nothing is read from the cluster. A ReplicaSet of a Deployment has the Deployment's name with
    the pod's label `pod-template-hash` appended (kubernetes, pkg/controller/deployment/sync.go),
    and the pods of a JobSet name it in a label (jobset, api/jobset/v1alpha2). A malformed
    reference, which the API server rejects, is ignored.
    """
    controller = _controller(pod)
    if controller is None:
        return ()
    above = _above(pod, controller)
    return (controller, above) if above else (controller,)


def controller_reference(item: Json) -> JsonObject | None:
    """Return the unparsed reference to an object's controller, or None."""
    references = at(item, ("metadata", "ownerReferences"))
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, dict) and reference.get("controller") is True:
            return reference
    return None


def _controller(pod: PodManifest) -> OwnerReference | None:
    reference = controller_reference(pod)
    fields = [at(reference, (key,)) for key in ("apiVersion", "kind", "name", "uid")]
    return OwnerReference(*fields) if all(isinstance(word, str) for word in fields) else None


def _above(pod: PodManifest, controller: OwnerReference) -> OwnerReference | None:
    digest, jobset = at(pod, _HASH), at(pod, _JOBSET)
    if controller.kind == "ReplicaSet" and isinstance(digest, str):
        name = controller.name.removesuffix(f"-{digest}")
        return OwnerReference("apps/v1", "Deployment", name) if name != controller.name else None
    if controller.kind == "Job" and isinstance(jobset, str):
        return OwnerReference("jobset.x-k8s.io/v1alpha2", "JobSet", jobset)
    return None
