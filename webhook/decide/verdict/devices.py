"""The device: whether a target gets an RDMA device of its fabric."""

from __future__ import annotations

from webhook.decide.mutations.claims import MUTATION as CLAIMS
from webhook.decide.mutations.rdma_resources import MUTATION as RDMA_RESOURCES
from webhook.decide.scope import Target
from webhook.decide.verdict.judged_pod import JudgedPod, JudgedTarget
from webhook.model.annotations import FABRIC
from webhook.model.claims import has_nic_of
from webhook.model.decision import Outcome, Reason, Verdict
from webhook.model.fabric import DeviceClaim, Fabric
from webhook.model.quantity import is_zero
from webhook.model.resources import is_rdma

DEVICE_MISSING = Reason(
    "DeviceMissing", "A container that needs RDMA gets no RDMA device.", rdma="no"
)
HOST_PATH = Reason(
    "DeviceByHostPath",
    "A hostPath shows /dev/infiniband to a container that may not open it: request the device"
    " plugin's resource.",
    rdma="no",
)
DEVICES_ELSEWHERE = Reason(
    "DevicesElsewhere",
    'rdma.lab/devices is "0": whether the pod gets a device in another way is not known.',
    rdma="unsure",
)
RESOURCE_UNKNOWN = Reason(
    "ResourceUnknown",
    "A container's RDMA resource belongs to no fabric, or to another one.",
    rdma="unsure",
)
DEVICE_REASONS = (DEVICE_MISSING, HOST_PATH, DEVICES_ELSEWHERE, RESOURCE_UNKNOWN)


#: The modes in which a device of the node is not the pod's, however many devices it sees.
_OWN = ("sr-iov", "dra")


def judge_device(seen: JudgedPod, one: JudgedTarget) -> Verdict | None:
    """Return what is wrong with a target's device, None if nothing is."""
    own, fabric = _requested(seen, one), seen.fabric
    if fabric is None:
        return _without_fabric(seen, one, own)
    known = {resource.name for resource in fabric.resources}
    if any(name in known for name in own):
        return None
    if own:
        told = f"{one.target.name} requests {own[0]}"
        message = f"{told}, not a resource of fabric {fabric.name}: remove it"
        return Verdict.of(RESOURCE_UNKNOWN, message)
    if fabric.claims and claims_nic(seen, one, fabric):
        return None
    if not fabric.inject_resources or (one.container.privileged and fabric.mode not in _OWN):
        return None
    return _missing(seen, one, fabric)


def _requested(seen: JudgedPod, one: JudgedTarget) -> list[str]:
    """List the RDMA resources above zero that a target has after the patch."""
    fabrics = seen.scope.fabrics
    return sorted(
        name
        for name, amount in one.container.amounts.items()
        if "/" in name and is_rdma(name, fabrics) and not is_zero(amount)
    )


def _without_fabric(seen: JudgedPod, one: JudgedTarget, own: list[str]) -> Verdict:
    why = seen.standing.why
    assert why is not None  # a pod with targets but without a fabric is always told why
    if own and not seen.standing.foreign:
        told = f"{one.target.name} requests {own[0]}"
        message = f"{told}, which no fabric has: remove it, or set {FABRIC}"
        return Verdict.of(RESOURCE_UNKNOWN, message)
    return Verdict.of(why, seen.standing.message)


def _missing(seen: JudgedPod, one: JudgedTarget, fabric: Fabric) -> Verdict:
    """Say why a target has no device."""
    target = one.target
    by = CLAIMS.name if fabric.claims else RDMA_RESOURCES.name
    if seen.scope.requests.devices == 0:
        return Verdict.of(DEVICES_ELSEWHERE, DEVICES_ELSEWHERE.sentence)
    shown = seen.around.infiniband_volumes
    volume = next(one.container.mounted(shown), None)
    if volume is not None:
        message = (
            f"{target.name} has {shown[volume]} by hostPath alone: request the fabric's resource"
        )
        return Verdict.of(HOST_PATH, message)
    if target.kind != "app":
        why = "only app containers do"
    elif by in seen.scope.requests.skip:
        why = f"rdma.lab/skip names {by}"
    elif target.rdma:
        why = f"it requests {target.rdma[0]}: 0"
    elif fabric.claims:
        why = next(told.message for told in seen.outcomes if _explains(told, target))
    else:
        why = f"fabric {fabric.name} has no resources, and the container is not privileged"
    return Verdict.of(DEVICE_MISSING, f"{target.name} gets no RDMA device: {why}")


def _explains(one: Outcome, target: Target) -> bool:
    return one.mutation == CLAIMS.name and one.container == target.name


# The claim: whether the fabric's ResourceClaimTemplate, by which a target gets its NIC, exists.
#
# A pod that names a template its namespace lacks stays Pending until somebody creates it. Nothing
# is created at admission.

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


def claims_nic(seen: JudgedPod, one: JudgedTarget, fabric: Fabric) -> bool:
    """Return whether a target gets a NIC of the fabric by a claim."""
    known = seen.scope.namespace.claims
    return any(has_nic_of(claim, fabric, known) for claim in one.claims)


def judge_device_claim(seen: JudgedPod, one: JudgedTarget) -> Verdict | None:
    """Return what is wrong with the templates of a target's claims, None if nothing is."""
    if seen.fabric is None or not one.claims:
        return None
    used = {claim.template for claim in one.claims}
    found = [_of_template(seen, wanted) for wanted in seen.fabric.claims if wanted.template in used]
    wrong = [verdict for verdict in found if verdict is not None]
    return min(wrong, key=lambda verdict: verdict.rdma, default=None)  # "no" before "unsure"


def _of_template(seen: JudgedPod, wanted: DeviceClaim) -> Verdict | None:
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
