"""The claim: whether the fabric's ResourceClaimTemplate, by which a target gets its NIC, exists.

A pod that names a template its namespace lacks stays Pending until somebody creates it. Nothing is
created at admission.
"""

from __future__ import annotations

from webhook.decide.verdict.judged_pod import Seen, SeenTarget
from webhook.model.claims import has_nic_of
from webhook.model.decision import Reason, Verdict
from webhook.model.fabric import DeviceClaim, Fabric

TEMPLATE_MISSING = Reason(
    "ClaimTemplateMissing",
    "The namespace lacks the fabric's ResourceClaimTemplate, so the pod stays Pending.",
    rdma="no",
)
REQUEST_MISSING = Reason(
    "ClaimRequestMissing",
    "The fabric's ResourceClaimTemplate has no request with the name that the fabric says.",
    rdma="no",
)
TEMPLATE_UNKNOWN = Reason(
    "ClaimTemplateUnknown",
    "Nothing says whether the namespace has the fabric's ResourceClaimTemplate.",
    rdma="unsure",
)
CLAIM_REASONS = (TEMPLATE_MISSING, REQUEST_MISSING, TEMPLATE_UNKNOWN)


def claims_nic(seen: Seen, one: SeenTarget, fabric: Fabric) -> bool:
    """Return whether a target gets a NIC of the fabric by a claim."""
    known = seen.scope.namespace.claims
    return any(has_nic_of(claim, fabric, known) for claim in one.claims)


def judge_device_claim(seen: Seen, one: SeenTarget) -> Verdict | None:
    """Return what is wrong with the templates of a target's claims, None if nothing is."""
    if seen.fabric is None or not one.claims:
        return None
    used = {claim.template for claim in one.claims}
    found = [_of_template(seen, wanted) for wanted in seen.fabric.claims if wanted.template in used]
    wrong = [verdict for verdict in found if verdict is not None]
    return min(wrong, key=lambda verdict: verdict.rdma, default=None)  # "no" before "unsure"


def _of_template(seen: Seen, wanted: DeviceClaim) -> Verdict | None:
    template, request = wanted.template, wanted.request
    space, known = seen.scope.namespace.name, seen.scope.namespace.claims
    where = f"namespace {space}" if space else "the namespace"
    requests = known.templates.get(template)
    if requests is not None and request in (None, *requests):
        return None
    if requests is not None:
        message = f"ResourceClaimTemplate {template} has no request {request}, only"
        have = ", ".join(requests) or "none"
        return Verdict.of(REQUEST_MISSING, f"{message} {have}")
    if known.complete:
        message = f"{where} has no ResourceClaimTemplate {template}: create it"
        return Verdict.of(TEMPLATE_MISSING, f"{message}; the pod waits for it")
    message = f"whether {where} has ResourceClaimTemplate {template} is not known"
    return Verdict.of(TEMPLATE_UNKNOWN, message)
