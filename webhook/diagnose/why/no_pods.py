"""Why a controller has no pods: from its own fields, its conditions, and its Events.

Sources, in Kubernetes 1.34 and 1.36: pkg/controller/replicaset and deployment (the condition
ReplicaFailure), pkg/controller/job (the conditions Suspended, Complete, Failed; its
growing pauses).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from webhook.diagnose.why.answer import NOT_READ
from webhook.diagnose.why.collector import unread_sentence
from webhook.diagnose.why.container_status import cut
from webhook.diagnose.why.explanation import Chapter, Explanation
from webhook.diagnose.why.pod_status import finalizers_clause
from webhook.diagnose.why.refusals import message_of_refusal, refusal, used_up_quotas
from webhook.diagnose.why.workload_reads import Workload
from webhook.kube.objects import Conditions, KubernetesObject
from webhook.kube.records import LenientObject, Number, Text
from webhook.model.finding import Code, Finding

NO_PODS = Code(
    "NoPods",
    "The controller has no pods, and nothing that can be read shows the reason.",
    "Read its conditions and Events with kubectl describe, and check that the program that creates "
    "its pods is running.",
)
PAUSED = Code(
    "Paused",
    "The Deployment is paused, so it creates no pods.",
    "To resume it: kubectl rollout resume deployment NAME.",
)
NOT_DUE = Code(
    "NotDue",
    "No run of the CronJob is due, or its Jobs have been deleted.",
    "To start a Job now: kubectl create job --from=cronjob/NAME JOB.",
)
WAITS_TO_RETRY = Code(
    "WaitsToRetry",
    "A pod of the Job has failed or been deleted, and the Job waits before it creates the next "
    "one.",
    "Wait: a Job tries again after 10 seconds, then 20, 40 and so on, up to six minutes.",
)
SUSPENDED = Code(
    "Suspended",
    "The controller is suspended, so it creates no pods.",
    "If a queue such as Kueue suspended it, wait until it is admitted (kubectl get workloads). "
    "Otherwise set spec.suspend to false.",
)
SCALED_TO_ZERO = Code(
    "ScaledToZero", "The controller asks for no pods.", "Raise its number of replicas."
)
ENDED = Code(
    "Ended",
    "The controller has ended, and its pods have been deleted.",
    "Create it again. Its conditions (kubectl describe) show how it ended.",
)
MANAGED_ELSEWHERE = Code(
    "ManagedElsewhere",
    "The field spec.managedBy of the Job names another controller, so the Job controller creates "
    "no pods.",
    "Check that the controller in spec.managedBy is installed and runs: it must create the pods, "
    "be it in another cluster. Without it, create the Job again without spec.managedBy.",
)
BEING_DELETED = Code(
    "BeingDeleted",
    "The controller or its namespace is being deleted, so it creates no pods.",
    "Wait until it is gone, and create it again, or create it in another namespace.",
)
WAITS_FOR_READY = Code(
    "WaitsForReady",
    "The StatefulSet lacks pods: with podManagementPolicy OrderedReady, it creates a pod only when "
    "those before it are ready.",
    "Find out why the pod is not ready. If it waits for the others, as the ranks of a job do, set "
    "podManagementPolicy: Parallel, which needs the StatefulSet to be created again.",
)
CODES = (
    NO_PODS,
    PAUSED,
    NOT_DUE,
    WAITS_TO_RETRY,
    SUSPENDED,
    SCALED_TO_ZERO,
    ENDED,
    MANAGED_ELSEWHERE,
    BEING_DELETED,
    WAITS_FOR_READY,
)

#: The conditions of a Job that has ended.
_ENDS = ("Complete", "Failed")
#: The kinds with the condition ReplicaFailure.
_WITH_CONDITION = ("ReplicaSet", "ReplicationController")
_FAILED_CREATE = "FailedCreate"
#: The value of spec.managedBy for the Job controller of Kubernetes, which is the default.
_JOB_CONTROLLER = "kubernetes.io/job-controller"
#: The same for Kueue's MultiKueue (kubernetes-sigs/kueue, apis/kueue/v1beta1).
_MULTIKUEUE = "kueue.x-k8s.io/multikueue"
#: The conditions of a namespace that name what keeps it.
_REMAINING = ("NamespaceContentRemaining", "NamespaceFinalizersRemaining")


class _Spec(LenientObject):
    suspend: object = None
    paused: object = None
    schedule: Text = ""
    replicas: object = None
    parallelism: object = None
    managed_by: Text = ""
    pod_management_policy: Text = ""


class _Status(Conditions):
    desired_number_scheduled: Number = -1
    current_number_scheduled: Number = 0
    replicas: Number = 0
    active: Number = 0
    failed: Number = 0


class _Controller(KubernetesObject):
    """The fields of controllers that decide whether they create pods."""

    spec: _Spec = _Spec()
    status: _Status = _Status()


def explain_without_pods(workload: Workload) -> Explanation:
    """Explain why a controller has no pods; there is no RDMA, whatever the reason."""
    unread = tuple(NOT_READ.finding("info", unread_sentence(part)) for part in workload.unread)
    return _explanation(workload, [*_findings(workload)], unread)


def explain_missing_pods(workload: Workload) -> Explanation | None:
    """Explain why a controller with pods cannot create the others; None if nothing shows that."""
    findings = [*_refusals(workload), *_waits_for_ready(workload)]
    return _explanation(workload, findings) if findings else None


def _explanation(
    workload: Workload, findings: list[Finding], unread: tuple[Finding, ...] = ()
) -> Explanation:
    """Return the explanation of pods that do not exist; the first finding is the answer."""
    chapters = (Chapter("podStatus", tuple(findings[1:])), Chapter("unread", unread))
    return Explanation(
        namespace=workload.namespace,
        pod="",
        owners=(workload.controller.title,),
        rdma="no",
        libraries=(),
        answer=findings[0],
        chapters=tuple(chapter for chapter in chapters if chapter.findings),
    )


def _findings(workload: Workload) -> Iterator[Finding]:
    """Yield the reasons, the answer first."""
    title = workload.controller.title
    reasons = [*_deletions(workload), *_refusals(workload), *_own_reasons(workload)]
    reasons = reasons or [*_not_due(workload), *used_up_quotas(workload)]
    yield from reasons
    if not reasons:
        yield NO_PODS.finding("error", f"{title} has no pods, and reports no reason.")


def _refusals(workload: Workload) -> Iterator[Finding]:
    """Yield why the API server refused the pods: from the newest Event of each, or conditions.

    If there are pods, an Event counts only if it is newer than they are. It may still be over for
    a ReplicaSet, whose condition then is the present state, and for a controller with all its pods,
    be it none.
    """
    messages: dict[str, str] = {}
    complete = {
        controller.title
        for controller in (workload.controller, *workload.between)
        if _is_complete(controller) and (workload.newest or _wants_none(controller))
    }
    for event in workload.events:
        is_over = event.about.title in complete or (
            workload.newest
            and (event.time <= workload.newest or event.about.kind in _WITH_CONDITION)
        )
        if event.reason == _FAILED_CREATE and not is_over:
            messages[event.about.title] = event.text
    for controller in (*workload.between, workload.controller):
        failure = _Controller.read(controller.manifest).status.condition("ReplicaFailure")
        # A Deployment repeats the message of its ReplicaSet, about a pod of another name.
        is_repeated = controller is workload.controller and messages
        if failure.status == "True" and failure.message and not is_repeated:
            messages.setdefault(controller.title, failure.message)
    by_message = {message_of_refusal(message): title for title, message in messages.items()}
    yield from (refusal(workload, by_message[message], message) for message in by_message)


def _wants_none(controller: KubernetesObject) -> bool:
    record = _Controller.read(controller.manifest)
    return record.spec.replicas == 0 or record.status.desired_number_scheduled == 0


def _is_complete(controller: KubernetesObject) -> bool:
    """Return whether a controller reports as many pods as it asks for, or that it has ended."""
    record = _Controller.read(controller.manifest)
    spec, status = record.spec, record.status
    match controller.kind:
        case "StatefulSet":
            return status.replicas == spec.replicas
        case "DaemonSet":
            return status.current_number_scheduled == status.desired_number_scheduled
        case "Job":
            return status.active == spec.parallelism or _has_ended(status)
        case _:
            return False


def _waits_for_ready(workload: Workload) -> Iterator[Finding]:
    """Yield that a StatefulSet waits for a pod before it creates the next one."""
    record = _Controller.read(workload.controller.manifest)
    replicas, count = record.spec.replicas, record.status.replicas
    is_ordered = record.spec.pod_management_policy in ("", "OrderedReady")
    if record.kind != "StatefulSet" or not is_ordered or not isinstance(replicas, int):
        return
    if count < replicas and workload.unready:
        text = (
            f"{record.title} lacks pods: it has {count} of {replicas}, and creates the next one "
            f"only when pod {workload.unready[0]} is ready (podManagementPolicy: OrderedReady)."
        )
        arguments = shlex.join([record.metadata.name, "-n", workload.namespace])
        remedy = (
            "Unless the pod has just started, find out why it is not ready. If it waits for the "
            "others, as the ranks of a job do, set spec.podManagementPolicy: Parallel in the "
            "manifest. That field cannot be changed, so create the StatefulSet again: kubectl "
            f"delete statefulset {arguments}, and apply the manifest."
        )
        yield WAITS_FOR_READY.finding("error", text, remedy)


def _deletions(workload: Workload) -> Iterator[Finding]:
    """Yield that the namespace or the controller is being deleted, and what keeps it."""
    title, namespace = workload.controller.title, workload.namespace_object
    if namespace is not None and namespace.metadata.is_deleted:
        text = f"{title} has no pods, since namespace {workload.namespace} is being deleted"
        messages = [
            cut(condition.message).rstrip(".")
            for condition in _Controller.read(namespace.manifest).status.conditions
            if condition.type in _REMAINING and condition.status == "True"
        ]
        remedy = (
            "Create the workload in another namespace, or in this one when it is gone and has been "
            "created again. To see what keeps it: kubectl describe namespace "
            f"{shlex.quote(workload.namespace)}."
        )
        yield BEING_DELETED.finding("error", f"{'. '.join([text, *messages])}.", remedy)
    for controller in (workload.controller, *workload.between[:1]):
        if controller.metadata.is_deleted:
            state = f"{controller.title} is being deleted{finalizers_clause(controller)}"
            yield BEING_DELETED.finding("error", f"{title} has no pods, since {state}.")


def _own_reasons(workload: Workload) -> Iterator[Finding]:
    """Yield what the controller, or an object between, says about itself."""
    start = f"{workload.controller.title} has no pods"
    for controller in (workload.controller, *workload.between[:1]):
        record, title = _Controller.read(controller.manifest), controller.title
        yield from _held(workload, controller, record.spec)
        manager = record.spec.managed_by
        if controller.kind == "Job" and manager not in ("", _JOB_CONTROLLER):
            text = (
                f"{start}, since {title} is left to another controller (spec.managedBy: "
                f"{cut(manager)})."
            )
            yield MANAGED_ELSEWHERE.finding("error", text, _managed_remedy(workload, manager))
        if record.spec.replicas == 0 and controller is workload.controller:
            yield SCALED_TO_ZERO.finding("error", f"{start}, since it asks for none (replicas: 0).")
        if record.status.desired_number_scheduled == 0:  # only a DaemonSet has it
            text = (
                f"{start}, since no node matches its nodeSelector and affinity, or each that does "
                "has a taint that its pod template does not tolerate."
            )
            remedy = (
                "Compare the pod template with the labels of the nodes (kubectl get nodes "
                "--show-labels) and with their taints (kubectl describe nodes)."
            )
            yield SCALED_TO_ZERO.finding("error", text, remedy)
        if record.status.failed and not _has_ended(record.status):
            text = f"{start} now: the last pod of {title} failed or was deleted, and {title} waits."
            yield WAITS_TO_RETRY.finding("error", text)
        for condition in _ENDS:
            state = record.status.condition(condition)
            if state.status == "True":
                details = f": {cut(state.message)}" if state.message else ""
                yield ENDED.finding("error", f"{start}: {title} is {condition}{details}.")


def _managed_remedy(workload: Workload, manager: str) -> str:
    if manager != _MULTIKUEUE:
        return MANAGED_ELSEWHERE.remedy
    return (
        "MultiKueue creates the pods in another cluster: ask rdma-webhook why there. The Workload "
        f"of the Job names the cluster: kubectl get workloads -n {shlex.quote(workload.namespace)} "
        "-o yaml. If the Job should run in this cluster, create it again without spec.managedBy."
    )


def _held(workload: Workload, controller: KubernetesObject, spec: _Spec) -> Iterator[Finding]:
    """Yield that somebody suspended a controller, or paused it."""
    start, title = f"{workload.controller.title} has no pods", controller.title
    if spec.suspend is True:
        text = f"{start}, since {title} is suspended (spec.suspend: true)."
        yield SUSPENDED.finding("error", text)
    if spec.paused is True:
        text = f"{start}, since {title} is paused (spec.paused: true)."
        deployment = f"deployment/{controller.metadata.name}"
        arguments = shlex.join([deployment, "-n", workload.namespace])
        remedy = f"To resume it: kubectl rollout resume {arguments}."
        yield PAUSED.finding("error", text, remedy)


def _not_due(workload: Workload) -> Iterator[Finding]:
    """Yield a finding on a CronJob that has no Job."""
    controller = workload.controller
    if controller.kind == "CronJob" and not workload.between:
        schedule = _Controller.read(controller.manifest).spec.schedule
        text = f"{controller.title} has no pods: it has no Job, and its schedule is {schedule!r}."
        name = controller.metadata.name
        arguments = shlex.join([f"--from=cronjob/{name}", f"{name}-now", "-n", workload.namespace])
        remedy = f"Wait until a run is due. To start a Job now: kubectl create job {arguments}."
        yield NOT_DUE.finding("error", text, remedy)


def _has_ended(status: _Status) -> bool:
    return any(status.condition(end).status == "True" for end in _ENDS)
