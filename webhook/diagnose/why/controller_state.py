"""What a controller itself says about its missing pods: held, scaled to zero, waiting, or ended.

Sources, in Kubernetes 1.34 and 1.36: pkg/controller/job (the conditions Suspended, Complete and
Failed; its growing pauses), pkg/controller/daemon (which nodes it counts).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from webhook.diagnose.why.container_kills import DEADLINE, DEADLINE_REMEDY
from webhook.diagnose.why.controller_record import (
    ENDS,
    ControllerRecord,
    ControllerSpec,
    ControllerStatus,
)
from webhook.diagnose.why.messages import cut, pronoun
from webhook.diagnose.why.replacement import start_job
from webhook.diagnose.why.workload_reads import Workload
from webhook.kube.objects import KubernetesObject
from webhook.model.finding import Code, Finding

PAUSED = Code(
    "Paused",
    "The Deployment is paused, so it creates no pods.",
    "To resume it, run `kubectl rollout resume deployment NAME`.",
)
NOT_DUE = Code(
    "NotDue",
    "The CronJob has no pods: no run is due, or its Jobs have been deleted.",
    "To start a Job now, run `kubectl create job --from=cronjob/NAME JOB`.",
)
WAITS_TO_RETRY = Code(
    "WaitsToRetry",
    "A pod of the Job has failed or been deleted, and the Job is waiting before it creates the "
    "next one.",
    "Wait: a Job tries again after 10 seconds, then 20, 40 and so on, up to 10 minutes.",
)
SUSPENDED = Code(
    "Suspended",
    "The controller is suspended, so it creates no pods.",
    "If a queueing system such as Kueue suspended the controller, wait until that system admits "
    "the controller (for Kueue: `kubectl get workloads`). Otherwise, set spec.suspend to false.",
)
SCALED_TO_ZERO = Code(
    "ScaledToZero",
    "The controller asks for no pods.",
    "Raise the controller's `replicas` (for a Job, its `parallelism`). For a DaemonSet, correct "
    "the nodeSelector, affinity or tolerations in the pod template.",
)
ENDED = Code(
    "Ended",
    "The controller has ended, and its pods have been deleted.",
    "Read the controller's conditions with `kubectl describe` to see how it ended. If it should "
    "run again, delete it, and create it again.",
)
MANAGED_ELSEWHERE = Code(
    "ManagedElsewhere",
    "The field spec.managedBy of the Job names another controller, so the Job controller creates "
    "no pods.",
    "Check that the controller that spec.managedBy names is installed and running: it must create "
    "the pods, possibly in another cluster. If it is not installed, create the Job again without "
    "spec.managedBy.",
)
CODES = (
    PAUSED,
    NOT_DUE,
    WAITS_TO_RETRY,
    SUSPENDED,
    SCALED_TO_ZERO,
    ENDED,
    MANAGED_ELSEWHERE,
)

#: The value of spec.managedBy for the Job controller of Kubernetes, which is the default.
_JOB_CONTROLLER = "kubernetes.io/job-controller"
#: The same for Kueue's MultiKueue (kubernetes-sigs/kueue, apis/kueue/v1beta1).
_MULTIKUEUE = "kueue.x-k8s.io/multikueue"


def own_reasons(workload: Workload) -> Iterator[Finding]:
    """Yield what the controller, or its newest intermediate, says about itself."""
    title = workload.controller.title
    start = f"{title} has no pods"
    for controller in (workload.controller, *workload.intermediates[:1]):
        record = ControllerRecord.read(controller.manifest)
        subject = pronoun(controller.title, title)
        yield from _held(workload, controller, record.spec)
        yield from _managed_elsewhere(workload, controller, record.spec)
        # A ReplicaSet of an older template has no pods by design.
        if controller is workload.controller or controller.kind == "Job":
            yield from _wants_no_pods(f"{start}, since {subject}", record.spec)
        yield from _selects_no_node(start, record.status)
        yield from _waits_to_retry(start, subject, record)
        yield from _ended(f"{start}, since {subject}", record.status)


def _wants_no_pods(start: str, spec: ControllerSpec) -> Iterator[Finding]:
    field = spec.zero_field
    if field:
        text = f"{start} asks for none ({field}: 0)."
        yield SCALED_TO_ZERO.finding("error", text, f"Raise its {field}.")


def _selects_no_node(start: str, status: ControllerStatus) -> Iterator[Finding]:
    """Yield a finding on a DaemonSet, the only kind with the field, that no node is for."""
    if status.desired_number_scheduled == 0:
        text = (
            f"{start}, since no node matches its nodeSelector and affinity, or each matching node "
            "has a taint that its pod template does not tolerate."
        )
        remedy = (
            "Compare the pod template with the labels of the nodes (kubectl get nodes "
            "--show-labels) and with their taints (kubectl describe nodes)."
        )
        yield SCALED_TO_ZERO.finding("error", text, remedy)


def _waits_to_retry(start: str, subject: str, controller: ControllerRecord) -> Iterator[Finding]:
    """Yield that the controller waits after a failure."""
    if controller.status.failed and not controller.status.has_ended:
        pod = "its last pod" if subject == "it" else f"the last pod of {subject}"
        text = (
            f"{start} now, since {pod} failed or was deleted, and the {controller.kind} is waiting "
            "before it creates the next one."
        )
        yield WAITS_TO_RETRY.finding("error", text)


def _ended(start: str, status: ControllerStatus) -> Iterator[Finding]:
    """Yield that the controller has ended; `start` ends with the subject of the sentence."""
    for condition in ENDS:
        state = status.condition(condition)
        if state.status == "True":
            details = f": {cut(state.message)}" if state.message else ""
            remedy = (
                f"{DEADLINE_REMEDY} Then create the controller again."
                if state.reason == DEADLINE
                else ""
            )
            text = f"{start} is {condition}{details}."
            yield ENDED.finding("error", text, remedy or ENDED.remedy)


def _managed_elsewhere(
    workload: Workload, controller: KubernetesObject, spec: ControllerSpec
) -> Iterator[Finding]:
    """Yield that another controller has to create the pods of a Job."""
    manager, title = spec.managed_by, workload.controller.title
    if controller.kind == "Job" and manager not in ("", _JOB_CONTROLLER):
        text = (
            f"{title} has no pods, since {pronoun(controller.title, title)} is left to another "
            f"controller (spec.managedBy: {cut(manager)})."
        )
        yield MANAGED_ELSEWHERE.finding("error", text, _managed_remedy(workload, manager))


def _managed_remedy(workload: Workload, manager: str) -> str:
    if manager != _MULTIKUEUE:
        return MANAGED_ELSEWHERE.remedy
    return (
        "MultiKueue creates the pods in another cluster; ask `rdma-webhook why` there. The "
        "Workload of the Job names the cluster: `kubectl get workloads -n "
        f"{shlex.quote(workload.namespace)} -o yaml`. If the Job should run in this cluster, "
        "create the Job again without spec.managedBy."
    )


def _held(
    workload: Workload, controller: KubernetesObject, spec: ControllerSpec
) -> Iterator[Finding]:
    """Yield that somebody suspended a controller, or paused it."""
    title = workload.controller.title
    start = f"{title} has no pods, since {pronoun(controller.title, title)}"
    if spec.suspend:
        text = f"{start} is suspended (spec.suspend: true)."
        yield SUSPENDED.finding("error", text)
    if spec.paused:
        text = f"{start} is paused (spec.paused: true)."
        deployment = f"deployment/{controller.metadata.name}"
        arguments = shlex.join([deployment, "-n", workload.namespace])
        remedy = f"To resume it, run `kubectl rollout resume {arguments}`."
        yield PAUSED.finding("error", text, remedy)


def not_due_findings(workload: Workload) -> Iterator[Finding]:
    """Yield a finding on a CronJob that has no Job."""
    controller = workload.controller
    if controller.kind == "CronJob" and not workload.intermediates:
        schedule = ControllerRecord.read(controller.manifest).spec.schedule
        text = f"{controller.title} has no pods: it has no Job, and its schedule is {schedule!r}."
        command = start_job(controller, f"{controller.metadata.name}-now", workload.namespace)
        remedy = f"Wait until a run is due. To start a Job now, run `{command}`."
        yield NOT_DUE.finding("error", text, remedy)
