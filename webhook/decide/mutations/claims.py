"""`claims`: claim the fabric's NICs through Dynamic Resource Allocation (mode `dra`).

A container gets a device only through an entry of its `resources.claims`, which names an entry of
the pod's `spec.resourceClaims`. The latter names a ResourceClaimTemplate of the pod's namespace,
and Kubernetes makes a ResourceClaim for this pod from it. No object is written here. A claim cannot
be aligned with the GPU of a device plugin, so a template is for NICs alone, or brings GPUs as well.

Source: the API server's validation of pods (validatePodResourceClaim, validateResourceClaimNames):
names are DNS labels and unique, and a container names a claim, or a request of it, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import count
from typing import NamedTuple

from webhook.decide.analysis import Mutation, PodAnalysis, RdmaAccess, Target
from webhook.decide.draft import Draft
from webhook.model.claims import (
    CLAIM_PREFIX,
    Claim,
    brings_gpu,
    claims_by_container,
    has_nic_of,
    is_gpu_claim,
)
from webhook.model.decision import Reason
from webhook.model.fabric import ClaimTemplateReference, Fabric
from webhook.model.pod import read_string

ADDED = Reason(
    "Added",
    "A claim from the fabric's ResourceClaimTemplate was added to the pod and the container.",
    remedy="",
)
PRESENT = Reason(
    "Present", "The container already claims a NIC, or requests an RDMA resource.", remedy=""
)
NO_DEVICES = Reason(
    "NoDevices",
    'The pod sets rdma.lab/devices: "0", so no RDMA resource or claim was added.',
    remedy="",
    reportable=False,
)
NOT_CONFIGURED = Reason("NotConfigured", "The fabric has no `claims`.", remedy="", reportable=False)
OTHER_INJECTOR = Reason(
    "InjectedElsewhere",
    "The fabric sets `injectResources: false`, so no RDMA resource or claim was added.",
    remedy="",
    reportable=False,
)
NOT_APP = Reason(
    "NotAppContainer",
    "The container is an init container or a sidecar; these never get the claim.",
    remedy="If the container needs RDMA, move its work to an app container.",
)
NAME_TAKEN = Reason(
    "ClaimNameTaken",
    "The pod's own claim has a name that the webhook uses for its claims, so no claim was added.",
    remedy=(
        "Rename the pod's own claim: names that begin with rdma-lab- are reserved for the webhook."
    ),
)
GPU_TWICE = Reason(
    "GPUTwice",
    "The fabric's ResourceClaimTemplate includes a GPU, and the container itself requests a GPU, "
    "so no claim was added.",
    remedy=(
        "Remove the GPU resource, or the claim for a GPU, from the container: the fabric's "
        "ResourceClaimTemplate includes the GPU with its NIC."
    ),
)
BY_TEMPLATE = Reason(
    "DevicesByTemplate",
    "The fabric's ResourceClaimTemplate, not rdma.lab/devices, determines the number of devices.",
    remedy="Remove the annotation rdma.lab/devices from the pod.",
)

_RESOURCE_CLAIMS, _TEMPLATE = ("spec", "resourceClaims"), ("resourceClaimTemplateName",)


def mutate(draft: Draft, analysis: PodAnalysis) -> None:
    """Claim the fabric's NICs for every app container among the targets."""
    fabric = analysis.fabric
    assert fabric is not None
    if not fabric.claim_templates:
        draft.skipped("", NOT_CONFIGURED, f"fabric {fabric.name} has no claims")
        return
    claims = claims_by_container(analysis.claims)
    pods_devices = _ClaimedDevices.of(claims.get((), ()), analysis)
    pod_claims = _PodClaims(fabric, analysis.original.resource_claims)
    for target in analysis.targets:
        devices = _ClaimedDevices.of(claims.get(target.path, ()), analysis)
        if target.kind != "app":
            draft.skipped(target.name, NOT_APP, "only app containers get the claim")
        elif present := _present(target, devices.nic or pods_devices.nic):
            draft.already(target.name, PRESENT, present)
        elif conflict := _second_gpu(analysis, target, devices.gpu or pods_devices.gpu):
            draft.skipped(target.name, GPU_TWICE, conflict)
        else:
            _equip(draft, analysis, target, pod_claims)


class _ClaimedDevices(NamedTuple):
    """The names of the first claims for a NIC and for a GPU among some claims; "" for none."""

    nic: str
    gpu: str

    @classmethod
    def of(cls, claims: Sequence[Claim], analysis: PodAnalysis) -> _ClaimedDevices:
        """Look at each claim once; there may be thousands that no container uses."""
        fabric, facts = analysis.fabric, analysis.namespace.claim_facts
        assert fabric is not None
        nics = (claim.name for claim in claims if claim.is_nic or has_nic_of(claim, fabric, facts))
        gpus = (claim.name for claim in claims if is_gpu_claim(claim, analysis.configuration))
        return cls(next(nics, ""), next(gpus, ""))


def _present(target: Target, nic_claim: str) -> str:
    """Return a message on the NIC that a container already gets; "" if it gets none."""
    if nic_claim:
        return f"already claims a NIC ({nic_claim})"
    return f"already requests {', '.join(target.rdma)}" if target.rdma else ""


def _second_gpu(analysis: PodAnalysis, target: Target, gpu_claim: str) -> str:
    """Return a message if a container would get GPUs in two ways; else ""."""
    assert analysis.fabric is not None
    facts = analysis.namespace.claim_facts
    bringing = [
        reference.template
        for reference in analysis.fabric.claim_templates
        if brings_gpu(reference.template, analysis.configuration, facts)
    ]
    has_gpu = target.gpus or target.partial_gpu
    source = "the container's own GPU" if has_gpu else gpu_claim and f"claim {gpu_claim}"
    if not bringing or not source:
        return ""
    return f"remove {source}, since template {bringing[0]} includes a GPU"


def _equip(draft: Draft, analysis: PodAnalysis, target: Target, pod_claims: _PodClaims) -> None:
    devices = analysis.annotations.devices
    if not pod_claims.fabric.inject_resources:
        draft.skipped(target.name, OTHER_INJECTOR, "another injector adds the claim")
    elif devices == 0:
        draft.skipped(target.name, NO_DEVICES, 'rdma.lab/devices is "0"')
    elif conflict := pod_claims.conflict:
        message = f"rename the pod's own claim {conflict}, since the webhook uses that name"
        draft.skipped(target.name, NAME_TAKEN, message)
    else:
        _claim(draft, target, pod_claims)
        if devices is not None:
            message = (
                "rdma.lab/devices has no effect, since the template determines the number of "
                "devices"
            )
            draft.warned(target.name, BY_TEMPLATE, message)


def _claim(draft: Draft, target: Target, pod_claims: _PodClaims) -> None:
    claimed: list[str] = []
    for reference in pod_claims.fabric.claim_templates:
        template, request = reference.template, reference.request
        name = pod_claims.shared_name(reference)
        if not name:
            name = pod_claims.add(reference)
            draft.append(_RESOURCE_CLAIMS, {"name": name, "resourceClaimTemplateName": template})
        use = {"name": name, "request": request} if request else {"name": name}
        draft.append((*target.path, "resources", "claims"), use)
        claimed.append(f"{template} as {name}")
    draft.applied(target.name, ADDED, f"claimed {', '.join(claimed)}")


class _PodClaims:
    """The entries of the pod's `spec.resourceClaims`, present and future, with their names."""

    def __init__(self, fabric: Fabric, pod_claims: list[dict[str, object]]) -> None:
        self.fabric = fabric
        self._prefix = f"{CLAIM_PREFIX}{fabric.name}-"
        self._template_of = {
            str(claim.get("name")): read_string(claim, _TEMPLATE, (*_RESOURCE_CLAIMS, index))
            for index, claim in enumerate(pod_claims)
        }
        self._first = {template: name for name, template in reversed(self._template_of.items())}
        self._numbers = count()

    @cached_property  # it does not depend on the claims that `add` adds
    def conflict(self) -> str:
        """A user's claim with one of the webhook's names, or ""."""
        templates = {reference.template for reference in self.fabric.claim_templates}
        for name, template in self._template_of.items():
            number = name.removeprefix(self._prefix)
            if number != name and number.isdecimal() and template not in templates:
                return name
        return ""

    def shared_name(self, reference: ClaimTemplateReference) -> str:
        """Return the name of the claim that the pod's containers share, or ""."""
        return self._first.get(reference.template, "") if reference.per == "pod" else ""

    def add(self, reference: ClaimTemplateReference) -> str:
        """Add a claim of a template and return its name."""
        names = (f"{self._prefix}{number}" for number in self._numbers)
        name = next(candidate for candidate in names if candidate not in self._template_of)
        self._template_of[name] = reference.template
        self._first.setdefault(reference.template, name)
        return name


MUTATION = Mutation(
    name="claims",
    summary="claims the fabric's NICs where Dynamic Resource Allocation provides them",
    needs=RdmaAccess.FABRIC,
    reasons=(
        ADDED,
        PRESENT,
        NO_DEVICES,
        NOT_CONFIGURED,
        OTHER_INJECTOR,
        NOT_APP,
        NAME_TAKEN,
        GPU_TWICE,
        BY_TEMPLATE,
    ),
    mutate=mutate,
)
