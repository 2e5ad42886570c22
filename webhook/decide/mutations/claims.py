"""`claims`: claim the fabric's NICs through Dynamic Resource Allocation (mode `dra`).

A container gets a device only by an entry of its `resources.claims`, which names an entry of the
pod's `spec.resourceClaims`; that one names a ResourceClaimTemplate of the pod's namespace, from
which Kubernetes makes a ResourceClaim for this pod. No object is written here. One claim cannot be
aligned with the GPU of a device plugin, so a template is for NICs alone, or brings the GPUs, too.

Source: the API server's validation of pods (validatePodResourceClaim, validateResourceClaimNames):
names are DNS labels and unique, and a container names a claim, or a request of it, once.
"""

from __future__ import annotations

from itertools import count

from webhook.decide.draft import Draft
from webhook.decide.scope import KnowledgeLevel, Mutation, Scope, Target
from webhook.model.claims import (
    CLAIM_PREFIX,
    Claim,
    brings_gpu,
    claims_by_user,
    has_nic_of,
    is_gpu_claim,
)
from webhook.model.decision import Reason
from webhook.model.fabric import DeviceClaim, Fabric

ADDED = Reason("Added", "A claim of the fabric's template was added to the pod and the container.")
PRESENT = Reason("Present", "The container already claims a NIC, or requests an RDMA resource.")
NO_DEVICES = Reason("NoDevices", 'The pod says rdma.lab/devices: "0".', quiet=True)
NOT_CONFIGURED = Reason("NotConfigured", "The fabric has no claims.", quiet=True)
ELSEWHERE = Reason("InjectedElsewhere", "The fabric says injectResources: false.", quiet=True)
NOT_APP = Reason("NotAppContainer", "Init containers and sidecars never get the claim.")
NAME_TAKEN = Reason("ClaimNameTaken", "The pod has another claim with the name of the webhook's.")
GPU_TWICE = Reason(
    "GPUTwice", "The fabric's template brings a GPU, and the container requests one itself."
)
BY_TEMPLATE = Reason(
    "DevicesByTemplate", "The template determines the number of devices, not rdma.lab/devices."
)

_LISTED = ("spec", "resourceClaims")


def mutate(draft: Draft, scope: Scope) -> None:
    """Claim the fabric's NICs for every app container among the targets."""
    fabric = scope.fabric
    assert fabric is not None
    if not fabric.claims:
        draft.skipped("", NOT_CONFIGURED, f"fabric {fabric.name} has no claims")
        return
    claims = claims_by_user(scope.claims)
    entries = _Entries(fabric, scope.original.resource_claims)
    for target in scope.targets:
        own = [*claims.get(target.path, ()), *claims.get((), ())]
        if target.kind != "app":
            draft.skipped(target.name, NOT_APP, "only app containers get the claim")
        elif present := _present(scope, target, own, fabric):
            draft.already(target.name, PRESENT, present)
        elif conflict := _second_gpu(scope, target, own, fabric):
            draft.skipped(target.name, GPU_TWICE, conflict)
        else:
            _equip(draft, scope, target, entries)


def _present(scope: Scope, target: Target, claims: list[Claim], fabric: Fabric) -> str:
    """Say what gives a container a NIC already; "" if nothing does."""
    for claim in claims:
        if claim.is_nic or has_nic_of(claim, fabric, scope.namespace.claims):
            return f"already claims a NIC: {claim.name}"
    return f"already requests {', '.join(target.rdma)}" if target.rdma else ""


def _second_gpu(scope: Scope, target: Target, claims: list[Claim], fabric: Fabric) -> str:
    """Say that a container would get GPUs in two ways; "" if it would not."""
    known = scope.namespace.claims
    bringing = [
        one.template for one in fabric.claims if brings_gpu(one.template, scope.fabrics, known)
    ]
    own = [f"claim {one.name}" for one in claims if is_gpu_claim(one, scope.fabrics)]
    if target.gpus or target.shared_gpu:
        own = ["the container's own"]
    if not bringing or not own:
        return ""
    return f"template {bringing[0]} brings a GPU: remove {own[0]}"


def _equip(draft: Draft, scope: Scope, target: Target, entries: _Entries) -> None:
    devices = scope.requests.devices
    if not entries.fabric.inject_resources:
        draft.skipped(target.name, ELSEWHERE, "another injector adds the claim here")
    elif devices == 0:
        draft.skipped(target.name, NO_DEVICES, 'rdma.lab/devices is "0"')
    elif taken := entries.taken:
        message = f"claim {taken} of the pod has another template: rename it"
        draft.skipped(target.name, NAME_TAKEN, message)
    else:
        _claim(draft, target, entries)
        if devices is not None:
            message = "rdma.lab/devices has no effect: the template says how many devices"
            draft.warned(target.name, BY_TEMPLATE, message)


def _claim(draft: Draft, target: Target, entries: _Entries) -> None:
    told: list[str] = []
    for wanted in entries.fabric.claims:
        name = entries.shared(wanted)
        if not name:
            name = entries.add(wanted)
            draft.append(_LISTED, {"name": name, "resourceClaimTemplateName": wanted.template})
        use = {"name": name, "request": wanted.request} if wanted.request else {"name": name}
        draft.append((*target.path, "resources", "claims"), use)
        told.append(f"{wanted.template} as {name}")
    draft.applied(target.name, ADDED, f"claimed {', '.join(told)}")


class _Entries:
    """The entries of the pod's `spec.resourceClaims`, and the names of those to come."""

    def __init__(self, fabric: Fabric, listed: list[dict[str, object]]) -> None:
        self.fabric = fabric
        self._prefix = f"{CLAIM_PREFIX}{fabric.name}-"
        self._template_of = {
            str(one.get("name")): one.get("resourceClaimTemplateName") for one in listed
        }
        self._first = {template: name for name, template in reversed(self._template_of.items())}
        self._numbers = count()

    @property
    def taken(self) -> str:
        """A claim that is another's and has a name of the webhook's; "" if none has."""
        own = {one.template for one in self.fabric.claims}
        for name, template in self._template_of.items():
            number = name.removeprefix(self._prefix)
            if number != name and number.isdecimal() and template not in own:
                return name
        return ""

    def shared(self, wanted: DeviceClaim) -> str:
        """Return the pod's claim that its containers share; "" if there is none."""
        return self._first.get(wanted.template, "") if wanted.per == "pod" else ""

    def add(self, wanted: DeviceClaim) -> str:
        """Return the name of a new claim."""
        names = (f"{self._prefix}{number}" for number in self._numbers)
        name = next(one for one in names if one not in self._template_of)
        self._template_of[name] = wanted.template
        self._first.setdefault(wanted.template, name)
        return name


MUTATION = Mutation(
    name="claims",
    summary="claims the fabric's NICs, where they come by Dynamic Resource Allocation",
    needs=KnowledgeLevel.FABRIC,
    reasons=(
        ADDED,
        PRESENT,
        NO_DEVICES,
        NOT_CONFIGURED,
        ELSEWHERE,
        NOT_APP,
        NAME_TAKEN,
        GPU_TWICE,
        BY_TEMPLATE,
    ),
    mutate=mutate,
)
