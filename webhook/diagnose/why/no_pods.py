"""Why a controller has no pods: from its own fields, its conditions, and its Events.

Sources, in Kubernetes 1.34 and 1.36: pkg/controller/replicaset and deployment (the condition
ReplicaFailure).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from webhook.diagnose.why.answer import NOT_READ
from webhook.diagnose.why.collector import unread_sentence
from webhook.diagnose.why.controller_record import ControllerRecord
from webhook.diagnose.why.controller_state import not_due_findings, own_reasons
from webhook.diagnose.why.explanation import Chapter, Explanation
from webhook.diagnose.why.messages import cut, pronoun
from webhook.diagnose.why.pod_status import finalizers_clause
from webhook.diagnose.why.refusals import message_of_refusal, refusal, used_up_quotas
from webhook.diagnose.why.workload_reads import Workload
from webhook.kube.objects import KubernetesObject
from webhook.model.finding import Code, Finding

NO_PODS = Code(
    "NoPods",
    "The controller has no pods, and `rdma-webhook why` did not find the reason.",
    "Read the controller's conditions and Events with `kubectl describe`, and check that the "
    "program that creates its pods is running.",
)
BEING_DELETED = Code(
    "BeingDeleted",
    "The controller, an object that it created for its pods (such as the Job of a CronJob), or "
    "the namespace is being deleted, so there are no pods.",
    "Wait until the deletion is complete, then create the controller again (first the namespace, "
    "if that was deleted). If you cannot wait, create the controller in another namespace. If "
    "only an object that the controller created is being deleted, such as the Job of a CronJob, "
    "you need only wait: the controller creates the next one itself.",
)
WAITS_FOR_READY = Code(
    "WaitsForReady",
    "The StatefulSet lacks pods: with podManagementPolicy OrderedReady, it creates a pod only "
    "when all earlier pods are ready.",
    "Find out why the pod that the StatefulSet waits for is not ready. If that pod waits for the "
    "other pods, as the ranks of a job do, run `kubectl delete statefulset NAME "
    "--cascade=orphan`, which keeps the pods, and create the StatefulSet again with "
    "podManagementPolicy: Parallel.",
)
CODES = (
    NO_PODS,
    BEING_DELETED,
    WAITS_FOR_READY,
)

#: The kinds with the condition ReplicaFailure.
_WITH_CONDITION = ("ReplicaSet", "ReplicationController")
_FAILED_CREATE = "FailedCreate"
#: The conditions of a namespace that name what keeps it.
_REMAINING = ("NamespaceContentRemaining", "NamespaceFinalizersRemaining")


def explain_without_pods(workload: Workload) -> Explanation:
    """Explain why a controller has no pods; there is no RDMA, whatever the reason."""
    not_read_findings = tuple(
        NOT_READ.finding("info", unread_sentence(part)) for part in workload.read_failures
    )
    return _explanation(workload, [*_findings(workload)], not_read_findings)


def explain_missing_pods(workload: Workload) -> Explanation | None:
    """Explain why a controller with pods cannot create the others; None if nothing shows that."""
    findings = [*_refusals(workload), *_waits_for_ready(workload)]
    return _explanation(workload, findings) if findings else None


def _explanation(
    workload: Workload, findings: list[Finding], not_read_findings: tuple[Finding, ...] = ()
) -> Explanation:
    """Return the explanation of pods that do not exist; the first finding is the answer."""
    chapters = (Chapter("podStatus", tuple(findings[1:])), Chapter("unread", not_read_findings))
    return Explanation(
        namespace=workload.namespace,
        pod="",
        owners=(workload.controller.title,),
        rdma="unsure" if findings[0].level == "unsure" else "no",
        libraries=(),
        answer=findings[0],
        chapters=tuple(chapter for chapter in chapters if chapter.findings),
    )


def _findings(workload: Workload) -> Iterator[Finding]:
    """Yield the reasons, the answer first."""
    title = workload.controller.title
    reasons = [*_deletions(workload), *_refusals(workload), *own_reasons(workload)]
    reasons = reasons or [*not_due_findings(workload), *used_up_quotas(workload)]
    yield from reasons
    if not reasons:
        yield NO_PODS.finding("error", f"{title} has no pods, and reports no reason.")


def _refusals(workload: Workload) -> Iterator[Finding]:
    """Yield why the API server refused the pods: from the newest Event of each, or conditions.

    An Event is over if its controller now wants no pods. If there are pods, it counts only if it is
    newer than they are. It may still be over for a ReplicaSet, whose condition then is the present
    state, and for a controller with all its pods.
    """
    messages: dict[str, str] = {}
    controllers = (*workload.intermediates, workload.controller)
    records = [ControllerRecord.read(controller.manifest) for controller in controllers]
    over = {
        record.title
        for record in records
        if record.wants_none or (workload.newest and record.is_complete)
    }
    for event in workload.events:
        is_over = event.about.title in over or (
            workload.newest
            and (event.time <= workload.newest or event.about.kind in _WITH_CONDITION)
        )
        if event.reason == _FAILED_CREATE and not is_over:
            messages[event.about.title] = event.text
    for controller in records:
        failure = controller.status.condition("ReplicaFailure")
        # A Deployment repeats the message of its ReplicaSet, about a pod of another name.
        is_repeated = controller is records[-1] and messages
        if failure.status == "True" and failure.message and not is_repeated:
            messages.setdefault(controller.title, failure.message)
    by_message = {message_of_refusal(message): title for title, message in messages.items()}
    yield from (refusal(workload, by_message[message], message) for message in by_message)


def _waits_for_ready(workload: Workload) -> Iterator[Finding]:
    """Yield that a StatefulSet waits for a pod before it creates the next one."""
    record = ControllerRecord.read(workload.controller.manifest)
    replicas, count = record.spec.replicas, record.status.replicas
    is_ordered = record.spec.pod_management_policy in ("", "OrderedReady")
    if record.kind != "StatefulSet" or not is_ordered or not isinstance(replicas, int):
        return
    if count < replicas and workload.unready:
        text = (
            f"{record.title} lacks pods: it has {count} of {replicas}, and creates the next one "
            f"only when pod {workload.unready[0]} is ready (podManagementPolicy: OrderedReady)."
        )
        remedy = (
            "Unless the pod has just started, find out why it is not ready. If it waits for the "
            f"others, as the ranks of a job do, {_parallel(record, workload.namespace)}"
        )
        yield WAITS_FOR_READY.finding("unsure", text, remedy)


def _parallel(stateful_set: ControllerRecord, namespace: str) -> str:
    """Return how to start all pods of a StatefulSet at once, as the end of a sentence."""
    above = stateful_set.metadata.controller
    if above is not None:
        return f"see whether {above.title}, which owns the StatefulSet, can start them together."
    name = stateful_set.metadata.name
    arguments = shlex.join([name, "-n", namespace, "--cascade=orphan"])
    return (
        "set spec.podManagementPolicy: Parallel in the manifest. An existing StatefulSet does not "
        "accept that change, so delete the StatefulSet but keep its pods (kubectl delete "
        f"statefulset {arguments}), and apply the manifest."
    )


def _deletions(workload: Workload) -> Iterator[Finding]:
    """Yield that the namespace or the controller is being deleted, and what keeps it."""
    title, namespace = workload.controller.title, workload.namespace_object
    if namespace is not None and namespace.metadata.is_deleted:
        text = f"{title} has no pods, since namespace {workload.namespace} is being deleted"
        messages = [
            cut(condition.message).rstrip(".")
            for condition in ControllerRecord.read(namespace.manifest).status.conditions
            if condition.type in _REMAINING and condition.status == "True"
        ]
        remedy = (
            "Create the workload in another namespace, or in this one when it is gone and has been "
            "created again. To see what keeps it, run `kubectl describe namespace "
            f"{shlex.quote(workload.namespace)}`."
        )
        yield BEING_DELETED.finding("error", f"{'. '.join([text, *messages])}.", remedy)
    for controller in (workload.controller, *workload.intermediates[:1]):
        if controller.metadata.is_deleted:
            subject = pronoun(controller.title, title)
            state = f"{subject} is being deleted{finalizers_clause(controller)}"
            is_child = controller is not workload.controller
            remedy = _next_child(title, controller) if is_child else BEING_DELETED.remedy
            yield BEING_DELETED.finding("error", f"{title} has no pods, since {state}.", remedy)


def _next_child(title: str, child: KubernetesObject) -> str:
    """Return what to do about an object that a controller will create again."""
    due = " when it is due" if title.startswith("CronJob ") else ""
    remedy = f"Wait until it is gone: {title} then creates the next {child.kind}{due}."
    if finalizers_clause(child):
        remedy = f"{remedy} If it stays, find out what should remove the finalizers, and does not."
    return remedy
