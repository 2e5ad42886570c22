"""The template that a pod was created from, as the place to edit."""

from __future__ import annotations

from webhook.diagnose.why.evidence import PodEvidence
from webhook.preview.workloads.templates import templates_of

#: A controller writes its template into objects of these kinds, and undoes changes there.
_KINDS_WITH_COPIES = ("ReplicaSet", "Job")


def template_title(evidence: PodEvidence) -> str:
    """Return "the pod template of Deployment train", or "the pod" if it has no controller."""
    for owner in reversed(evidence.owners):
        if templates_of(owner.manifest):
            controller = owner.metadata.controller if owner.kind in _KINDS_WITH_COPIES else None
            return f"the pod template of {(controller or owner).title}"
    controller = evidence.pod.metadata.controller
    if controller is None:
        return "the pod"
    alternative = " or of its Deployment" if controller.kind == "ReplicaSet" else ""
    return f"the pod template of {controller.title}{alternative}"
