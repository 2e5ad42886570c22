"""Why a controller has no pods: from its own fields, its conditions, and its Events.

Sources, in Kubernetes 1.34 and 1.36: pkg/controller/replicaset and deployment (the condition
ReplicaFailure), pkg/controller/job (the conditions Suspended, Complete, Failed), and
staging/src/k8s.io/apiserver, admission/plugin/resourcequota (the message on an exceeded quota).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.diagnose.why.answer import NOT_READ
from webhook.diagnose.why.collector import unread_sentence
from webhook.diagnose.why.container_status import cut
from webhook.diagnose.why.explanation import Chapter, Explanation
from webhook.diagnose.why.pod_status import FAILED_CREATE
from webhook.diagnose.why.workload_reads import Workload
from webhook.kube.objects import Conditions, KubernetesObject
from webhook.kube.records import LenientObject, Number
from webhook.model.finding import Code, Finding

NO_PODS = Code(
    "NoPods",
    "The controller has no pods, and nothing that can be read shows the reason.",
    "Read its conditions and Events with kubectl describe, and check that the program that creates "
    "its pods is running.",
)
QUOTA_EXCEEDED = Code(
    "QuotaExceeded",
    "The controller cannot create a pod: a ResourceQuota of the namespace does not allow it.",
    "Ask the cluster administrator to raise the quota, request less, or delete pods that use it: "
    "kubectl describe quota. The controller then creates the pod by itself.",
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
CODES = (NO_PODS, QUOTA_EXCEEDED, SUSPENDED, SCALED_TO_ZERO, ENDED)

_QUOTA = re.compile(r"exceeded quota: ([^,\s]{1,253}), (requested: .{1,1000})")
_FAILED_CREATE = "FailedCreate"


class _Spec(LenientObject):
    suspend: object = None
    replicas: object = None


class _Status(Conditions):
    desired_number_scheduled: Number = -1


class _Controller(KubernetesObject):
    """The fields of controllers that decide whether they create pods."""

    spec: _Spec = _Spec()
    status: _Status = _Status()


def explain_without_pods(workload: Workload) -> Explanation:
    """Explain why a controller has no pods; there is no RDMA, whatever the reason."""
    findings = [*_findings(workload)]
    unread = tuple(NOT_READ.finding("info", unread_sentence(part)) for part in workload.unread)
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
    reasons = [*_refusals(workload), *_own_reasons(workload)]
    yield from reasons
    if not reasons:
        yield NO_PODS.finding("error", f"{title} has no pods, and reports no reason.")


def _refusals(workload: Workload) -> Iterator[Finding]:
    """Yield why the API server refused the pods: from conditions, or the newest Event of each."""
    messages: dict[str, str] = {}
    for event in workload.events:
        if event.reason == _FAILED_CREATE:
            messages[event.about.title] = event.text
    for controller in (workload.controller, *workload.between):
        failure = _Controller.read(controller.manifest).status.condition("ReplicaFailure")
        if failure.status == "True" and failure.message:
            messages.setdefault(controller.title, failure.message)
    # A Deployment repeats the message of its ReplicaSet.
    by_message = {message: title for title, message in messages.items()}
    yield from (_refusal(workload, by_message[message], message) for message in by_message)


def _refusal(workload: Workload, title: str, message: str) -> Finding:
    start = f"{workload.controller.title} has no pods: {title} could not create one"
    quota = _QUOTA.search(message)
    if quota is None:
        return FAILED_CREATE.finding("error", f"{start}: {cut(message)}")
    name, amounts = quota.groups()
    text = f"{start}, since the ResourceQuota {name} is used up: {cut(amounts)}."
    remedy = (
        f"Ask the cluster administrator to raise the quota {name}, request less, or delete pods "
        f"that use it: kubectl describe quota {name} -n {workload.namespace}. The controller then "
        "creates the pod by itself."
    )
    return QUOTA_EXCEEDED.finding("error", text, remedy)


def _own_reasons(workload: Workload) -> Iterator[Finding]:
    """Yield what the controller, or an object between, says about itself."""
    start = f"{workload.controller.title} has no pods"
    for controller in (workload.controller, *workload.between[:1]):
        record, title = _Controller.read(controller.manifest), controller.title
        if record.spec.suspend is True:
            text = f"{start}, since {title} is suspended (spec.suspend: true)."
            yield SUSPENDED.finding("error", text)
        if record.spec.replicas == 0 and controller is workload.controller:
            yield SCALED_TO_ZERO.finding("error", f"{start}, since it asks for none (replicas: 0).")
        if record.status.desired_number_scheduled == 0:  # only a DaemonSet has it
            text = f"{start}, since no node matches its nodeSelector and affinity."
            remedy = "Compare them with the labels of the nodes: kubectl get nodes --show-labels."
            yield SCALED_TO_ZERO.finding("error", text, remedy)
        for condition in ("Complete", "Failed"):
            state = record.status.condition(condition)
            if state.status == "True":
                details = f": {cut(state.message)}" if state.message else ""
                yield ENDED.finding("error", f"{start}: {title} is {condition}{details}.")
