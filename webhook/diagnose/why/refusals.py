"""Why the API server refused a pod of a controller: the messages of its admission.

Sources, in Kubernetes 1.34 and 1.36: staging/src/k8s.io/apiserver (plugin/pkg/admission/webhook,
admission/plugin/resourcequota), plugin/pkg/admission/limitranger, staging/src/k8s.io/pod-security-
admission (admission.go).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from pydantic import Field

from webhook.admission.registration import NO_FABRICS_MESSAGE, WEBHOOK_NAME
from webhook.diagnose.why.messages import cut, pronoun
from webhook.diagnose.why.pod_status import FAILED_CREATE
from webhook.diagnose.why.pod_template import editable_controller
from webhook.diagnose.why.workload_reads import Workload
from webhook.kube.objects import KubernetesObject
from webhook.kube.records import LenientObject, Values
from webhook.model.finding import Code, Finding
from webhook.model.quantity import resource_billionths

QUOTA_EXCEEDED = Code(
    "QuotaExceeded",
    "The controller cannot create a pod: a ResourceQuota of the namespace does not allow it.",
    "Request less, delete pods that use the quota, or ask the cluster administrator to raise the "
    "quota, which `kubectl describe quota` shows. The controller then creates the pod "
    "automatically.",
)
WEBHOOK_SILENT = Code(
    "WebhookSilent",
    "The controller cannot create a pod: the API server got no answer from an admission webhook.",
    "Ask the cluster administrator to check the pods of the webhook that the API server's message "
    "names. Once the webhook answers, the controller creates the pod automatically.",
)
POD_SECURITY_REFUSED = Code(
    "PodSecurityRefused",
    "The controller cannot create a pod: the namespace enforces a Pod Security level that the pod "
    "does not meet.",
    "Run the job in a namespace with the Pod Security level `privileged`: the levels `baseline` "
    "and `restricted` forbid IPC_LOCK, so RDMA might not work in a pod that meets one of them.",
)
LIMIT_RANGE_EXCEEDED = Code(
    "LimitRangeExceeded",
    "The controller cannot create a pod: a LimitRange of the namespace does not allow it.",
    "Correct the requests and limits, or ask the cluster administrator to change the LimitRange, "
    "which `kubectl describe limitrange` shows.",
)
CODES = (QUOTA_EXCEEDED, WEBHOOK_SILENT, POD_SECURITY_REFUSED, LIMIT_RANGE_EXCEEDED)

_QUOTA = re.compile(r"exceeded quota: ([^,\s]{1,253}), (requested: .{1,1000})")
#: `failed calling webhook "NAME": … Post "https://SERVICE.NAMESPACE.svc:443/…`
_WEBHOOK = re.compile(
    r'failed calling webhook "([^"]{1,253})"(?:.{1,300}?//[^./]+\.([^./]+)\.svc)?'
)
_POD_SECURITY = re.compile(r'violates PodSecurity "(\w{1,20}):')
_LIMIT_RANGE = re.compile(r"(?:maximum|minimum) \S+ usage per |limit to request ratio")


class _QuotaStatus(LenientObject):
    hard: Values = Field(default_factory=dict)
    used: Values = Field(default_factory=dict)


class _Quota(KubernetesObject):
    """A ResourceQuota."""

    status: _QuotaStatus = Field(default_factory=_QuotaStatus)


#: What the client of a controller puts before the API server's message.
_PREFIX = "Error creating: "


def message_of_refusal(text: str) -> str:
    """Return the API server's message in an Event or a condition."""
    return text.removeprefix(_PREFIX)


def refusal(workload: Workload, title: str, message: str) -> Finding:
    """Return the finding on a refusal of a pod that an object, `title`, tried to create."""
    controller = workload.controller.title
    lack = "lacks pods" if workload.pods else "has no pods"
    start = f"{controller} {lack}; {pronoun(title, controller)} could not create one"
    if match := _QUOTA.search(message):
        return _quota(workload, start, *match.groups())
    match = _WEBHOOK.search(message)
    if match and NO_FABRICS_MESSAGE not in message:  # in which case it did answer
        remedy = _webhook_remedy(*match.groups(""))
        return WEBHOOK_SILENT.finding("error", f"{start}: {cut(message)}", remedy)
    if match := _POD_SECURITY.search(message):
        return _pod_security(workload, start, match[1], message)
    if _LIMIT_RANGE.search(message):
        return _limit_range(workload, start, message)
    return FAILED_CREATE.finding("error", f"{start}: {cut(message)}", _corrected(workload))


def _quota(workload: Workload, start: str, name: str, amounts: str) -> Finding:
    text = f"{start}, since the ResourceQuota {name} is used up: {cut(amounts)}."
    return QUOTA_EXCEEDED.finding("error", text, _quota_remedy(workload, name))


def _quota_remedy(workload: Workload, name: str) -> str:
    arguments = shlex.join([name, "-n", workload.namespace])
    return (
        "Request less, delete pods that use the quota, or ask the cluster administrator to raise "
        f"the quota, which `kubectl describe quota {arguments}` shows. The controller then creates "
        "the pod automatically."
    )


def used_up_quotas(workload: Workload) -> Iterator[Finding]:
    """Yield the ResourceQuotas with nothing left, where no message says why there are no pods."""
    for quota in workload.quotas:
        status = _Quota.read(quota.manifest).status
        amounts = [
            f"{name}: {status.used.get(name)} of {limit}"
            for name, limit in sorted(status.hard.items())
            if _is_used_up(status.used.get(name), limit)
        ]
        if amounts:
            name, start = quota.metadata.name, f"{workload.controller.title} has no pods"
            text = (
                f"{start}, perhaps because the ResourceQuota {name} is used up: "
                f"{cut(', '.join(amounts))}."
            )
            yield QUOTA_EXCEEDED.finding("error", text, _quota_remedy(workload, name))


def _is_used_up(used: object, limit: object) -> bool:
    if not isinstance(used, str) or not isinstance(limit, str):
        return False
    try:
        return resource_billionths(used) >= resource_billionths(limit)
    except ValueError:
        return False


def _webhook_remedy(name: str, namespace: str) -> str:
    subject = "rdma-webhook" if name == WEBHOOK_NAME else f"the webhook {name}"
    command = ""
    if namespace:
        command = f": `kubectl get services,endpointslices,pods -n {shlex.quote(namespace)}`"
    removed = "" if name == WEBHOOK_NAME else _REMOVED_PRODUCT
    return (
        f"The API server must call {subject}, and got no answer. Ask the cluster administrator to "
        f"check its Service and pods{command}.{removed} Once the webhook answers, the "
        "controller creates the pod automatically."
    )


_REMOVED_PRODUCT = (
    " If that program was removed from the cluster, delete its webhook configuration, too: "
    "`kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations`."
)


def _pod_security(workload: Workload, start: str, level: str, message: str) -> Finding:
    text = f"{start}, since the namespace enforces the Pod Security level {level}: {cut(message)}"
    remedy = (
        "Run the job in a namespace with the Pod Security level privileged, or ask the cluster "
        "administrator to run `kubectl label --overwrite namespace "
        f"{shlex.quote(workload.namespace)} pod-security.kubernetes.io/enforce=privileged`. A pod "
        f"that meets the level {level} has no IPC_LOCK, so RDMA might not work in it."
    )
    return POD_SECURITY_REFUSED.finding("error", text, remedy)


def _limit_range(workload: Workload, start: str, message: str) -> Finding:
    text = f"{start}, since a LimitRange of the namespace does not allow it: {cut(message)}"
    remedy = (
        f"See `kubectl describe limitrange -n {shlex.quote(workload.namespace)}`; ask the cluster "
        "administrator to change the LimitRange, or request what the LimitRange allows. "
        f"{_retried(workload)}"
    )
    return LIMIT_RANGE_EXCEEDED.finding("error", text, remedy)


def _corrected(workload: Workload) -> str:
    correct = "Correct the problem that the message reports."
    if workload.controller.kind == "DaemonSet":  # which puts the node into each pod itself
        correct = (
            f"{correct} If that is the node, select others with nodeSelector or node affinity in "
            "the pod template: a DaemonSet creates a pod for each node that its template selects."
        )
    return f"{correct} {_retried(workload)}"


def _retried(workload: Workload) -> str:
    """Return how a correction reaches the next pod."""
    editable = editable_controller(workload.controller)
    if editable.kind == "Job":
        return (
            f"If that is in the pod template, delete Job {editable.name} and create it again: a "
            "Job's template cannot be changed. Otherwise, the Job creates the pod automatically."
        )
    return f"{editable.kind} {editable.name} then creates the pod automatically."
