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
from webhook.diagnose.why.evidence import ClaimFailure, PodEvidence
from webhook.diagnose.why.explanation import Sentence
from webhook.kube.objects import Pod

#: The reason of the controller's Event about a pod whose claim it could not create.
NOT_CREATED = "FailedResourceClaimCreation"
_LONGEST = 300
#: `PodResourceClaim NAME: resource claim template "T": …"T" not found`
_OF_TEMPLATE = re.compile(
    r'^PodResourceClaim (\S{1,63}): resource claim template "([^"]{1,253})": '
)
_RETRY_NOTE = (
    "Kubernetes tries again in ever longer intervals, of up to 17 minutes: it is quicker to create "
    "the pod again."
)


class _Cause(NamedTuple):
    """A message of the scheduler about claims, and its meaning."""

    pattern: re.Pattern[str]  #: its groups fill {0}, {1} of the text
    code: str
    text: str
    remedy: str


_CAUSES = (
    _Cause(
        re.compile(r"request (\S{1,130}): device class (\S{1,253}) does not exist"),
        "DeviceClassMissing",
        "its claim's request {0} names the DeviceClass {1}, which does not exist",
        "List them: kubectl get deviceclasses. Correct deviceClassName in the claim, or in its "
        "template, or ask whoever runs the cluster whether the DRA driver is installed.",
    ),
    _Cause(
        re.compile("cannot allocate all claims"),
        "ClaimsNotAllocated",
        "no node has free devices for all of its claims{claims}",
        "Wait until another job ends, or claim fewer devices. If no pod with such a claim has ever "
        "started, compare its requests with what the DRA drivers offer (kubectl get resourceslices "
        "-o yaml): the DeviceClass and the selectors, the number for one node, and the attribute "
        "that matchAttribute wants to be the same.",
    ),
    _Cause(
        re.compile("resourceclaim not available on the node"),
        "ClaimElsewhere",
        "one of its claims{claims} already has devices of other nodes",
        "See which nodes: kubectl get resourceclaim -o yaml. Let the pod run there, or give it its "
        "own claim, by resourceClaimTemplateName.",
    ),
    _Cause(
        # The scheduler lets any number of pods share a claim; the API server does not.
        re.compile(r"status\.reservedFor: Too many"),
        "ClaimInUse",
        "one of its claims{claims} is used by as many pods as may share a claim",
        "Wait until one of them ends, or give the pod its own claim, by resourceClaimTemplateName.",
    ),
)


def claim_findings(evidence: PodEvidence, message: str) -> Iterator[Sentence]:
    """Yield the reasons why claims keep a pod pending; `message` is the scheduler's, or ""."""
    pod = evidence.pod
    if not pod.waits_for_node:
        return
    failed = [*_not_created(evidence)]
    yield from failed
    if not failed and not message and (templates := _not_yet_used(pod)):
        yield _not_yet(templates)
    yield from map(_missing, evidence.claim_failures)
    for cause in _CAUSES:
        if match := cause.pattern.search(message):
            names = _unique(claim.name for claim in pod.spec.resource_claims)
            means = cause.text.format(*match.groups(), claims=_listed(names))
            text = f"The pod is pending: {means}. The scheduler says: {message}"
            yield Sentence(cause.code, "problem", text, cause.remedy)


def _missing(claim: ClaimFailure) -> Sentence:
    predicate = "is being deleted" if claim.is_ending else "does not exist"
    text = (
        f"The pod is pending: its ResourceClaim {claim.name} {predicate}. Meanwhile, the scheduler "
        "leaves the pod aside without a word."
    )
    when = "Once it is gone, create it again" if claim.is_ending else "Create it"
    remedy = (
        f"{when}, and the pod starts by itself; or create the pod again with another "
        "resourceClaimName in its resourceClaims."
    )
    return Sentence("ClaimMissing", "problem", text, remedy)


def _not_created(evidence: PodEvidence) -> Iterator[Sentence]:
    """Yield each claim that Kubernetes could not create, from the newest Event about it."""
    newest: dict[str, str] = {}
    for event in evidence.events or ():
        if event.reason == NOT_CREATED and event.about.kind == "Pod":
            claim = event.text.partition(": ")[0]
            newest[claim] = " ".join(event.text.split())[:_LONGEST]
    yield from map(_failure, newest.values())


def _failure(message: str) -> Sentence:
    template = _OF_TEMPLATE.match(message)
    if template and message.endswith("not found"):
        claim, name = template.groups()
        text = (
            f"The pod is pending: its claim {claim} is of ResourceClaimTemplate {name}, which the "
            f"namespace does not have. Kubernetes says: {message}"
        )
        return Sentence(TEMPLATE_MISSING.code, "problem", text, TEMPLATE_MISSING.remedy)
    text = f"The pod is pending: Kubernetes could not create one of its claims. It says: {message}"
    return Sentence(
        "ClaimNotCreated", "problem", text, f"Correct what the message names. {_RETRY_NOTE}"
    )


def _not_yet_used(pod: Pod) -> list[str]:
    """Return the templates from which Kubernetes has not created the pod's claims yet."""
    created = {claim.name for claim in pod.status.resource_claim_statuses}
    return _unique(
        claim.resource_claim_template_name
        for claim in pod.spec.resource_claims
        if claim.name not in created
    )


def _not_yet(templates: list[str]) -> Sentence:
    """Return the finding for a claim that does not exist yet, and has no Event."""
    text = "The pod is pending: Kubernetes has not made all of its claims yet."
    remedy = (
        f"See whether the namespace has its ResourceClaimTemplate{_listed(templates)}: kubectl get "
        f"resourceclaimtemplates. If it has not, create it. {_RETRY_NOTE}"
    )
    return Sentence("ClaimNotCreated", "problem", text, remedy)


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, names)))


def _listed(names: list[str]) -> str:
    return f" ({', '.join(names[:5])})" if names else ""
