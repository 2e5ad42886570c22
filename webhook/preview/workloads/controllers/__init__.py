"""The additions of controllers to the pods of their templates, a file for each project.

A pod is decided on when its controller creates it, with the controller's labels, variables and
commands. So a preview of a template adds them first. Each file's docstring names its source;
`CONTROLLERS` is the table of the controllers, with the kinds that they create pods for.
"""

from __future__ import annotations

from webhook.errors import ShapeError
from webhook.preview.workloads.controllers.et_operator import ET_OPERATOR
from webhook.preview.workloads.controllers.kuberay import KUBERAY
from webhook.preview.workloads.controllers.kubernetes import JOBSET, KUBERNETES, LEADERWORKERSET
from webhook.preview.workloads.controllers.mpi_operator import (
    MPI_OPERATOR,
    MPI_OPERATOR_V1ALPHA1,
    MPI_OPERATOR_V1ALPHA2,
)
from webhook.preview.workloads.controllers.training_operator import TRAINING_OPERATOR
from webhook.preview.workloads.controllers.workload import Controller, ControllerPod, read_workload
from webhook.preview.workloads.templates import Template

CONTROLLERS: tuple[Controller, ...] = (
    KUBERNETES,
    MPI_OPERATOR,
    MPI_OPERATOR_V1ALPHA1,
    MPI_OPERATOR_V1ALPHA2,
    TRAINING_OPERATOR,
    KUBERAY,
    LEADERWORKERSET,
    JOBSET,
    ET_OPERATOR,
)
_BY_KIND = {kind: controller for controller in CONTROLLERS for kind in controller.kinds}


def controller_of(template: Template) -> Controller | None:
    """Return the controller that creates the template's pods; None for a kind not in the table."""
    if template.enclosing is None:
        return None
    return _BY_KIND.get(f"{template.enclosing.api_version} {template.enclosing.kind}")


def controller_pods(template: Template) -> tuple[ControllerPod, ...]:
    """Return the pods that the template's controller creates, one for each role.

    The only pod is the template itself for a kind that is not in the table, for a part of an object
    without additions, and for a malformed template, which the API server refuses.
    """
    controller, enclosing = controller_of(template), template.enclosing
    if controller is None or enclosing is None or not isinstance(template.pod, dict):
        return (ControllerPod(template.pod),)
    template_path = template.path[len(enclosing.path) :]
    try:
        return controller.make_pods(
            read_workload(enclosing.kind, enclosing.value, template_path, template.pod)
        )
    except ShapeError:
        return (ControllerPod(template.pod),)
