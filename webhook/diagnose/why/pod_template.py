"""The template that a pod was created from, as the place to edit, and how an edit takes effect."""

from __future__ import annotations

from typing import NamedTuple

from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.replacement import effect_of_change, replacement_obstacle
from webhook.kube.objects import KubernetesObject
from webhook.preview.workloads.templates import templates_of

#: A controller writes its template into objects of these kinds, and undoes changes there.
_KINDS_WITH_COPIES = ("ReplicaSet", "Job")
_OF_A_POD = ", and create the pod again."


class _Editable(NamedTuple):
    """The object whose template people edit."""

    kind: str
    name: str


def editable_controller(controller: KubernetesObject) -> _Editable:
    """Return a controller, or the controller that writes its template."""
    above = controller.metadata.controller if controller.kind in _KINDS_WITH_COPIES else None
    if above is not None:
        return _Editable(above.kind, above.name)
    return _Editable(controller.kind, controller.metadata.name)


def controller_with_template(evidence: PodEvidence) -> KubernetesObject | None:
    """Return the highest controller with a template; None for a pod without one that was read."""
    owners = (owner for owner in reversed(evidence.owners) if templates_of(owner.manifest))
    return next(owners, None)


def _editable(evidence: PodEvidence) -> _Editable | None:
    """Return the controller with the template; None for a pod without one that was read."""
    owner = controller_with_template(evidence)
    return None if owner is None else editable_controller(owner)


def template_title(evidence: PodEvidence) -> str:
    """Return "the pod template of Deployment train", or "the pod" if it has no controller."""
    editable = _editable(evidence)
    if editable is not None:
        return f"the pod template of {editable.kind} {editable.name}"
    controller = evidence.pod.metadata.controller
    if controller is None:
        return "the pod"
    alternative = " or of its Deployment" if controller.kind == "ReplicaSet" else ""
    return f"the pod template of {controller.title}{alternative}"


def with_rollout(change: str, evidence: PodEvidence) -> str:
    """Return a clause on a change of the template as sentences, with how it is rolled out."""
    owner = controller_with_template(evidence)
    if owner is None:
        return f"{change}{_OF_A_POD}"
    if obstacle := replacement_obstacle(owner, evidence):
        return (
            f"{change}. Then, since {obstacle.cause}, {obstacle.step}. {obstacle.effect}".rstrip()
        )
    kind, name = editable_controller(owner)
    return f"{change}{effect_of_change(kind, name, evidence)}"
