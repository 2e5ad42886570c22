"""Reasons why DRA claims keep a pod pending, from messages of the scheduler and the controller.

Sources, in Kubernetes 1.34 and 1.36: pkg/controller/resourceclaim/controller.go (syncPod: the Event
FailedResourceClaimCreation; handleClaim), pkg/scheduler/framework/plugins/dynamicresources (its
PreEnqueue, PreFilter, Filter and PreBind), pkg/scheduler/util/assumecache, and
k8s.io/dynamic-resource-allocation, resourceclaim (ErrClaimNotFound). The scheduler puts the number
of nodes before a reason. While PreEnqueue holds a pod back, the scheduler reports nothing: the pod
has neither a condition nor an Event from it. So the claims themselves are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webhook.decide.verdict.devices import TEMPLATE_MISSING
from webhook.diagnose.why.evidence import MissingClaim, PodEvidence
from webhook.diagnose.why.messages import cut
from webhook.kube.objects import PodRecord
from webhook.model.finding import Code, Finding

#: The reason of the controller's Event about a pod whose claim it could not create.
CLAIM_NOT_CREATED_EVENT = "FailedResourceClaimCreation"
_MAX_MESSAGE = 300
#: `PodResourceClaim NAME: resource claim template "T": …"T" not found`
_OF_TEMPLATE = re.compile(
    r'^PodResourceClaim (\S{1,63}): resource claim template "([^"]{1,253})": '
)
_RETRY_NOTE = (
    "Then create the pod again rather than wait: Kubernetes retries only at growing intervals of "
    "up to 17 minutes."
)

CLAIM_MISSING = Code(
    "ClaimMissing",
    "The pod is pending: a ResourceClaim that it names does not exist, or is being deleted. "
    "The scheduler does not report the problem.",
    "Create the claim; if it is being deleted, first wait until it is gone. If the pod names the "
    "wrong claim, create the pod again with the right resourceClaimName.",
)
CLAIM_NOT_CREATED = Code(
    "ClaimNotCreated",
    "The pod is pending: Kubernetes has not created all of the pod's ResourceClaims yet, or could "
    "not create one of them.",
    f"If the Event FailedResourceClaimCreation gives a cause, correct it. {_RETRY_NOTE}",
)
DEVICE_CLASS_MISSING = Code(
    "DeviceClassMissing",
    "The pod is pending: a claim refers to a DeviceClass that does not exist.",
    "List the DeviceClasses: `kubectl get deviceclasses`. If the right one is listed, create the "
    "claim or its template again with that DeviceClass, then create the pod again. If not, ask "
    "the cluster administrator whether the DRA driver is installed.",
)
CLAIMS_NOT_ALLOCATED = Code(
    "ClaimsNotAllocated",
    "The pod is pending: no node has enough free devices that match the pod's claims.",
    "Wait until another job ends, or claim fewer devices. If no pod with such a claim has ever "
    "started, compare the claim's requests with what the DRA drivers offer (kubectl get "
    "resourceslices -o yaml): the DeviceClass, the selectors, the number of devices on a node, "
    "and the attribute that matchAttribute names.",
)
CLAIM_ELSEWHERE = Code(
    "ClaimElsewhere",
    "The pod is pending: one of its claims is already allocated on nodes that cannot run the pod.",
    "Find these nodes: `kubectl get resourceclaim -o yaml`. Correct what keeps the pod off these "
    "nodes, such as its nodeSelector, or give the pod a claim of its own, with "
    "resourceClaimTemplateName.",
)
CLAIM_IN_USE = Code(
    "ClaimInUse",
    "The pod is pending: one of its claims is already in use by the maximum number of pods.",
    "Wait until one of these pods ends, or give the pod a claim of its own, with "
    "resourceClaimTemplateName.",
)
CODES = (
    CLAIM_MISSING,
    CLAIM_NOT_CREATED,
    DEVICE_CLASS_MISSING,
    CLAIMS_NOT_ALLOCATED,
    CLAIM_ELSEWHERE,
    CLAIM_IN_USE,
)


class _Pattern(NamedTuple):
    """A message of the scheduler about claims, and its meaning."""

    regex: re.Pattern[str]
    code: Code
    #: A clause about the pod. The groups of `regex` fill {0} and {1}; {claims} becomes the names of
    #: the pod's claims in parentheses.
    clause: str


_PATTERNS = (
    _Pattern(
        re.compile(r"request (\S{1,130}): device class (\S{1,253}) does not exist"),
        DEVICE_CLASS_MISSING,
        "the request {0} in its claim refers to the DeviceClass {1}, which does not exist",
    ),
    _Pattern(
        re.compile("cannot allocate all claims"),
        CLAIMS_NOT_ALLOCATED,
        "no node has enough free devices that match the pod's claims{claims}",
    ),
    _Pattern(
        re.compile("resourceclaim not available on the node"),
        CLAIM_ELSEWHERE,
        "one of its claims{claims} is already allocated on nodes that cannot run the pod",
    ),
    _Pattern(
        # The scheduler lets any number of pods share a claim; the API server does not.
        re.compile(r"status\.reservedFor: Too many"),
        CLAIM_IN_USE,
        "one of its claims{claims} is already in use by the maximum number of pods",
    ),
)


def claim_findings(evidence: PodEvidence, message: str) -> Iterator[Finding]:
    """Yield the reasons why claims keep a pod pending; `message` is the scheduler's, or ""."""
    pod = evidence.pod
    if not pod.waits_for_node:
        return
    failed = [*_failed_creations(evidence)]
    yield from failed
    if not failed and not message and (templates := _unused_templates(pod)):
        yield _pending_creation(templates)
    yield from map(_missing_claim, evidence.missing_claims)
    for pattern in _PATTERNS:
        if match := pattern.regex.search(message):
            names = _distinct(claim.name for claim in pod.spec.resource_claims)
            clause = pattern.clause.format(*match.groups(), claims=_in_parentheses(names))
            text = f"The pod is pending: {clause}. The scheduler reports: {cut(message)}"
            yield pattern.code.finding("error", text)


def _missing_claim(claim: MissingClaim) -> Finding:
    predicate = "is being deleted" if claim.is_ending else "does not exist"
    text = (
        f"The pod is pending: its ResourceClaim {claim.name} {predicate}. The scheduler does not "
        "report the problem."
    )
    action = "Once the claim is gone, create it again" if claim.is_ending else "Create the claim"
    remedy = (
        f"{action}; the pod then starts automatically. If the claim's name is wrong, create the "
        "pod again with the right resourceClaimName in its resourceClaims."
    )
    return CLAIM_MISSING.finding("error", text, remedy)


def _failed_creations(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield each claim that Kubernetes could not create, from the newest Event about it."""
    newest: dict[str, str] = {}
    for event in evidence.events or ():
        if event.reason == CLAIM_NOT_CREATED_EVENT and event.about.kind == "Pod":
            claim = event.text.partition(": ")[0]
            newest[claim] = " ".join(event.text.split())[:_MAX_MESSAGE]
    yield from map(_failed_creation, newest.values())


def _failed_creation(message: str) -> Finding:
    template = _OF_TEMPLATE.match(message)
    if template and message.endswith("not found"):
        claim, name = template.groups()
        text = (
            f"The pod is pending: its claim {claim} refers to the ResourceClaimTemplate {name}, "
            f"which the namespace does not have. Kubernetes reports: {message}"
        )
        return Finding("error", TEMPLATE_MISSING.code, text, TEMPLATE_MISSING.remedy)
    text = f"The pod is pending, since Kubernetes could not create one of its claims: {message}"
    return CLAIM_NOT_CREATED.finding("error", text)


def _unused_templates(pod: PodRecord) -> list[str]:
    """Return the templates from which Kubernetes has not created the pod's claims yet."""
    created = {claim.name for claim in pod.status.resource_claim_statuses}
    return _distinct(
        claim.resource_claim_template_name
        for claim in pod.spec.resource_claims
        if claim.name not in created
    )


def _pending_creation(templates: list[str]) -> Finding:
    """Return the finding for a claim that does not exist yet, and has no Event."""
    text = "The pod is pending: Kubernetes has not created all of its claims yet."
    remedy = (
        f"Check that the namespace has the ResourceClaimTemplate{_in_parentheses(templates)}: "
        f"`kubectl get resourceclaimtemplates`. If it is missing, create it. {_RETRY_NOTE}"
    )
    return CLAIM_NOT_CREATED.finding("error", text, remedy)


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, names)))


def _in_parentheses(names: list[str]) -> str:
    return f" ({', '.join(names[:5])})" if names else ""
