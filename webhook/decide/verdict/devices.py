"""The device: whether a target gets an RDMA device, and whether its claims' templates exist."""

from __future__ import annotations

from webhook.decide.analysis import Target
from webhook.decide.examine.foreign_nic import requests_foreign_nic
from webhook.decide.examine.unlisted_device import UNLISTED_RDMA_REMEDY
from webhook.decide.mutations.claims import MUTATION as CLAIMS
from webhook.decide.mutations.rdma_resources import MUTATION as RDMA_RESOURCES
from webhook.decide.verdict.patched_pod import PatchedPod, PatchedTarget
from webhook.model.claims import has_nic_of
from webhook.model.decision import Outcome, Reason, Verdict
from webhook.model.fabric import ClaimTemplateReference, Fabric
from webhook.model.quantity import is_zero
from webhook.model.resources import is_rdma

DEVICE_MISSING = Reason(
    "DeviceMissing",
    "A container that needs RDMA gets no RDMA device.",
    remedy=(
        "If rdma.lab/skip lists rdma-resources or claims, remove that entry. Otherwise, request "
        "the fabric's RDMA resource, or a claim from its ResourceClaimTemplate, in an app "
        "container (spec.containers)."
    ),
    rdma="no",
)
HOST_PATH = Reason(
    "DeviceByHostPath",
    "A container sees /dev/infiniband through a hostPath, but cannot open the devices there.",
    remedy=(
        "Remove the hostPath volume of /dev/infiniband. If rdma.lab/skip lists rdma-resources or "
        "claims, remove that entry. The webhook then requests the fabric's device instead."
    ),
    rdma="no",
)
DEVICES_ZERO = Reason(
    "DevicesElsewhere",
    'The pod sets rdma.lab/devices: "0", and whether it gets a device in another way is unknown.',
    remedy=(
        'Remove the annotation rdma.lab/devices: "0", unless the pod gets a device in another way.'
    ),
    rdma="unsure",
)
RESOURCE_UNKNOWN = Reason(
    "ResourceUnknown",
    "A container's RDMA resource belongs to no fabric, or to a fabric other than the pod's.",
    remedy=(
        "If the name of the RDMA resource is wrong, correct it. Otherwise, remove the resource, "
        "and set rdma.lab/fabric to the name of the fabric, and rdma.lab/containers to the names "
        "of the containers that need RDMA."
    ),
    rdma="unsure",
)
DEVICE_REASONS = (DEVICE_MISSING, HOST_PATH, DEVICES_ZERO, RESOURCE_UNKNOWN)


#: The modes in which a pod cannot use a device of the node, even if it sees the device.
_EXCLUSIVE_MODES = ("sr-iov", "dra")


def judge_device(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the problem with a target's device, or None."""
    requested, fabric = _requested_resources(pod, patched), pod.used_fabric
    if fabric is None:
        return _verdict_without_fabric(pod, patched, requested)
    fabric_resources = {resource.name for resource in fabric.resources}
    if any(name in fabric_resources for name in requested):
        return None
    if requested:
        request = f"container {patched.target.name} requests {requested[0]}"
        message = f"{request}, which fabric {fabric.name} does not have; remove that resource"
        return Verdict.of(RESOURCE_UNKNOWN, message)
    if claims_nic(pod, patched, fabric):
        return None
    if not fabric.inject_resources or (
        patched.container.privileged and fabric.mode not in _EXCLUSIVE_MODES
    ):
        return None
    return _missing_device_verdict(pod, patched, fabric)


def _requested_resources(pod: PatchedPod, patched: PatchedTarget) -> list[str]:
    """List the RDMA resources with a quantity above zero that a target has after the patch."""
    configuration = pod.analysis.configuration
    return sorted(
        name
        for name, quantity in patched.container.quantities.items()
        if "/" in name and is_rdma(name, configuration) and not is_zero(quantity)
    )


def _verdict_without_fabric(
    pod: PatchedPod, patched: PatchedTarget, requested: list[str]
) -> Verdict:
    reason = pod.applicability.reason
    assert reason is not None  # a pod with targets but without a fabric always has a reason
    # A resource of several fabrics is known: it only leaves open which of them is the pod's.
    listed = pod.analysis.configuration.by_rdma_resource
    unlisted = [name for name in requested if name not in listed]
    if unlisted and not pod.applicability.uses_foreign_nic:
        request = f"container {patched.target.name} requests {unlisted[0]}"
        message = f"{request}, which no fabric lists; {UNLISTED_RDMA_REMEDY}"
        return Verdict.of(RESOURCE_UNKNOWN, message)
    return Verdict.of(reason, pod.applicability.message)


def _missing_device_verdict(
    pod: PatchedPod, patched: PatchedTarget, fabric: Fabric
) -> Verdict | None:
    """Return the verdict on a target without a device of the fabric.

    None if the user declares that the NIC that the pod requests is the fabric's: `ForeignNIC` asks
    for this declaration.
    """
    target = patched.target
    mutation = CLAIMS.name if fabric.claim_templates else RDMA_RESOURCES.name
    if pod.analysis.annotations.devices == 0:
        elsewhere = Verdict.of(DEVICES_ZERO, DEVICES_ZERO.clause)
        return None if requests_foreign_nic(pod.analysis) else elsewhere
    paths = pod.hazards.infiniband_volumes
    volume = next(patched.container.mounted_volumes(paths), None)
    if volume is not None:
        message = (
            f"container {target.name} has {paths[volume]:.60} only by hostPath; request the "
            "fabric's resource"
        )
        return Verdict.of(HOST_PATH, message)
    if target.kind != "app":
        clause = ", since only app containers get one; run it as an app container"
    elif mutation in pod.analysis.annotations.skip:
        clause = f", since rdma.lab/skip lists {mutation}"
    elif target.rdma:
        clause = f", since it requests {target.rdma[0]} with quantity 0"
    elif fabric.claim_templates:
        outcome = next(outcome for outcome in pod.outcomes if _explains(outcome, target))
        clause = f"; {outcome.message}"
    else:
        clause = f", since it is not privileged, and fabric {fabric.name} has no resources"
    return Verdict.of(DEVICE_MISSING, f"container {target.name} gets no RDMA device{clause}")


def _explains(outcome: Outcome, target: Target) -> bool:
    return outcome.mutation == CLAIMS.name and outcome.container == target.name


# The claim: whether the fabric's ResourceClaimTemplate, the source of a target's NIC, exists.
#
# A pod that names a template that its namespace lacks stays Pending until someone creates it.
# Admission creates nothing.

TEMPLATE_MISSING = Reason(
    "ClaimTemplateMissing",
    "The namespace lacks the fabric's ResourceClaimTemplate, so the pod stays Pending.",
    remedy=(
        "Create the ResourceClaimTemplate in the pod's namespace, or ask the cluster "
        "administrator for it. The pod then starts on its own, but Kubernetes retries at growing "
        "intervals of up to 17 minutes: it is quicker to create the pod again."
    ),
    rdma="no",
)
REQUEST_MISSING = Reason(
    "ClaimRequestMissing",
    "The fabric's ResourceClaimTemplate has no request with the configured name.",
    remedy=(
        "Ask the cluster administrator to use the same request name in the namespace's "
        "ResourceClaimTemplate and in `claims` of the configuration. Then create the pod again."
    ),
    rdma="no",
)
TEMPLATE_UNKNOWN = Reason(
    "ClaimTemplateUnknown",
    "Whether the namespace has the fabric's ResourceClaimTemplate is unknown.",
    remedy=(
        "Check whether the template exists (`kubectl get resourceclaimtemplates`), and create it "
        "if it does not. For a preview, use --live, or add the template to the file that you pass "
        "to --facts."
    ),
    rdma="unsure",
)
CLAIM_REASONS = (TEMPLATE_MISSING, REQUEST_MISSING, TEMPLATE_UNKNOWN)


def claims_nic(pod: PatchedPod, patched: PatchedTarget, fabric: Fabric) -> bool:
    """Return whether a target gets a NIC of the fabric through a claim."""
    facts = pod.analysis.namespace.claim_facts
    return pod.unused_claims.has_nic or any(
        has_nic_of(claim, fabric, facts) for claim in patched.claims
    )


def judge_device_claim(pod: PatchedPod, patched: PatchedTarget) -> Verdict | None:
    """Return the problem with the templates of a target's claims, or None."""
    if pod.used_fabric is None:
        return None
    used = {claim.template for claim in patched.claims}
    verdicts = [
        _template_verdict(pod, claim)
        for claim in pod.used_fabric.claim_templates
        if claim.template in used or claim.template in pod.unused_claims.templates
    ]
    problems = [verdict for verdict in verdicts if verdict is not None]
    return min(problems, key=lambda verdict: verdict.rdma, default=None)  # "no" before "unsure"


def _template_verdict(pod: PatchedPod, claim: ClaimTemplateReference) -> Verdict | None:
    template, request = claim.template, claim.request
    namespace, facts = pod.analysis.namespace.name, pod.analysis.namespace.claim_facts
    subject = f"namespace {namespace}" if namespace else "the namespace"
    requests = facts.templates.get(template)
    if requests is not None and request in (None, *requests):
        return None
    if requests is not None:
        have = ", ".join(requests) or "none"
        message = (
            f"ResourceClaimTemplate {template} has no request named {request}; its requests are: "
            f"{have}"
        )
        return Verdict.of(REQUEST_MISSING, message)
    if facts.has_all_templates:
        message = f"{subject} has no ResourceClaimTemplate {template}, for which the pod waits"
        return Verdict.of(TEMPLATE_MISSING, f"{message}; create the template")
    message = f"whether {subject} has ResourceClaimTemplate {template} is unknown"
    return Verdict.of(TEMPLATE_UNKNOWN, message)
