"""Whether the API server has the webhook patch a pod that opts in, and no other pod.

The pods are dry runs: the API server does everything but store them, and calls the webhook, whose
answer has no side effects on a dry run.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

from webhook.admission.registration import NO_FABRICS_MESSAGE, WEBHOOK_NAME
from webhook.decide.status import read_own_status
from webhook.diagnose.install.facts import CHECKED, NOT_CHECKED, InstallFacts, TriedPod, TriedPods
from webhook.diagnose.install.records import NamespaceRecord, TriedPodRecord
from webhook.kube.api import message_of
from webhook.kube.objects import Manifest
from webhook.model.annotations import ENABLE_ANNOTATION, FABRIC_ANNOTATION, STATUS_ANNOTATION
from webhook.model.facts import OPT_IN_LABEL
from webhook.model.finding import Code, Finding

#: Small enough for any quota.
_RESOURCES = {"cpu": "10m", "memory": "16Mi"}
_POD_NAME = "rdma-webhook-check"

NAMESPACE_NOT_LABELED = Code(
    "NamespaceNotLabeled",
    f'The namespace for the dry runs lacks the label {OPT_IN_LABEL}: "true", so its pods cannot '
    "opt in.",
    f"Run `kubectl label --overwrite namespace NAMESPACE {OPT_IN_LABEL}=true`.",
)
NAMESPACE_MISSING = Code(
    "NamespaceMissing",
    "The namespace for the dry runs does not exist.",
    "Pass an existing namespace to --try.",
)
POD_PATCHED = Code(
    "PodPatched", "The API server called the webhook in a dry run, and the webhook changed the pod."
)
POD_NOT_PATCHED = Code(
    "PodNotPatched",
    "The API server accepted a pod that opted in, but did not call the webhook, or ignored the "
    "failure of the call (failurePolicy Ignore).",
    "Correct the problems that check-install reports about the webhook configuration and the "
    "certificates. If it reports none, create a pod that opts in, and run `rdma-webhook why` on "
    "it.",
)
POD_REJECTED = Code(
    "PodRejected",
    "The API server rejected a pod that opted in: it could not call the webhook, or the webhook "
    "denied the pod.",
    "If the webhook denied the pod, correct the problem that the message reports. If the API "
    "server could not call the webhook, correct the problems that check-install reports about the "
    "Deployment, the Service and the certificates.",
)
POD_CHANGED_UNASKED = Code(
    "PodChangedUnasked",
    "The webhook changed a pod that was created without the annotation rdma.lab/enable, so "
    "something else had added the annotation before the webhook was called.",
    f"Find what adds the annotation {ENABLE_ANNOTATION} to pods in the namespace, such as another "
    "mutating webhook. No action is needed if that is intended.",
)
CODES = (
    NAMESPACE_NOT_LABELED,
    NAMESPACE_MISSING,
    POD_PATCHED,
    POD_NOT_PATCHED,
    POD_REJECTED,
    POD_CHANGED_UNASKED,
)


def tried_pod(fabric: str, *, opts_in: bool) -> Manifest:
    """Return the pod of a dry run; it chooses a fabric, so that its only container is equipped."""
    chosen = {FABRIC_ANNOTATION: fabric} if fabric else {}
    resources = {"requests": _RESOURCES, "limits": _RESOURCES}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": _POD_NAME,
            "annotations": {ENABLE_ANNOTATION: "true", **chosen} if opts_in else {},
        },
        "spec": {
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "containers": [
                {"name": "check", "image": "rdma-webhook.invalid/none", "resources": resources}
            ],
        },
    }


def is_labeled(namespace: Manifest) -> bool:
    """Return whether the API server calls the webhook for pods of a namespace."""
    labels = NamespaceRecord.model_validate(namespace).metadata.labels
    return labels.get(OPT_IN_LABEL) == "true"


def tried_pod_findings(facts: InstallFacts) -> Iterator[Finding]:
    """Yield findings on the dry runs; nothing if there were none."""
    tried = facts.tried
    if tried is None:
        return
    namespace = tried.namespace
    if namespace.is_missing:
        yield NAMESPACE_MISSING.finding("error", f"{namespace.title} does not exist")
        return
    if namespace.obstacle:
        yield namespace.unread_finding()
    elif not is_labeled(namespace.manifest or {}):
        text = f'{namespace.title} lacks the label {OPT_IN_LABEL}: "true"'
        remedy = NAMESPACE_NOT_LABELED.remedy.replace("NAMESPACE", tried.name)
        yield NAMESPACE_NOT_LABELED.finding("error", text, remedy)
    if tried.opted_in is not None:
        yield _opted_in_finding(tried, tried.opted_in)
    if tried.other is not None:
        yield _other_finding(tried, tried.other)


def _opted_in_finding(tried: TriedPods, pod: TriedPod) -> Finding:
    message = message_of(pod.answer)
    if pod.status != HTTPStatus.CREATED:
        if WEBHOOK_NAME not in message:
            return _rejection(tried, pod)
        remedy = "" if NO_FABRICS_MESSAGE in message else None  # the message has the command
        return POD_REJECTED.finding("error", f"a pod that opts in was rejected: {message}", remedy)
    status = read_own_status(_annotations(pod))
    if not status:
        text = f"a pod that opts in has no {STATUS_ANNOTATION} after a dry run in {tried.name}"
        return POD_NOT_PATCHED.finding("error", text)
    text = (
        f"a pod that opts in is patched in namespace {tried.name}: fabric {status.get('fabric')}, "
        f"RDMA {status.get('rdma')} ({status.get('because')})"
    )
    return POD_PATCHED.finding("ok", text)


def _other_finding(tried: TriedPods, pod: TriedPod) -> Finding:
    if pod.status != HTTPStatus.CREATED:
        return _rejection(tried, pod)
    if STATUS_ANNOTATION in _annotations(pod):
        text = f"a pod that does not opt in was changed in a dry run in {tried.name}"
        return POD_CHANGED_UNASKED.finding("error", text)
    text = f"a pod that does not opt in is not changed in namespace {tried.name}"
    return CHECKED.finding("ok", text)


def _rejection(tried: TriedPods, pod: TriedPod) -> Finding:
    """Return that something other than the webhook rejects pods in the namespace."""
    reason = message_of(pod.answer)
    text = f"the dry run in {tried.name}: not checked, since pods are rejected: {reason}"
    remedy = f"Ask for the right to create pods in {tried.name}, or name another namespace."
    return NOT_CHECKED.finding("unsure", text, remedy)


def _annotations(pod: TriedPod) -> dict[str, object]:
    return TriedPodRecord.model_validate(pod.answer).metadata.annotations
