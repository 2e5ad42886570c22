"""Choose the fabric of a pod, and name the evidence for it.

Each piece of evidence narrows the candidates, strongest first: the pod's annotation, an RDMA
resource or a claim of a fabric's template, the GPU resource or its device class, nodeSelector,
required node affinity, the node inventory. The first that leaves exactly one candidate wins. The
rest is still examined, to find contradictions: two pieces that contradict each other are a Denial
that names both. The namespace's annotation and the default only choose among the remaining
candidates.

The nodes and the namespace may change between two calls for the same pod, or another replica may
know less about them. So they are not consulted again if an earlier call has chosen one of the
candidates that the pod itself leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from webhook.decide.analysis import DecisionInput
from webhook.decide.examine.gpu_conflict import GPU_NOT_ON_FABRIC, GpuConflict, gpu_conflict
from webhook.decide.examine.node_selection import (
    FabricConstraint,
    from_affinity,
    from_fabric_index,
    from_selector,
)
from webhook.decide.examine.unlisted_device import choice_of, unlisted_device
from webhook.model.annotations import (
    FABRIC_ANNOTATION,
    STATUS_ANNOTATION,
    UserAnnotations,
)
from webhook.model.claims import Claim
from webhook.model.decision import Denial, Reason
from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.pod import Pod
from webhook.model.quantity import is_zero
from webhook.model.resources import ContainerDevices

FABRIC_UNKNOWN = Reason(
    "FabricUnknown",
    "Neither the pod nor its namespace determines the fabric.",
    remedy=(
        "If no fabric lists the pod's GPU resource, request a GPU resource that a fabric lists, or "
        "ask the cluster administrator to add this resource to gpuResources of the fabric whose "
        "nodes offer it. Otherwise, set the annotation rdma.lab/fabric to the name of a fabric: on "
        "the pod or, as the default for pods, on its namespace."
    ),
    rdma="no",
)
FABRIC_AMBIGUOUS = Reason(
    "FabricAmbiguous",
    "The pod matches several fabrics; set rdma.lab/fabric.",
    remedy=(
        "Set rdma.lab/fabric to the fabric that the pod should use, or select that fabric's nodes "
        "in the nodeSelector by a label or GPU product that the configuration lists, in "
        "`nodeLabels` or `gpuProducts`, for that fabric only."
    ),
    rdma="no",
)
FABRIC_CONFLICT = Reason(
    "FabricConflict",
    "Two settings of the pod imply different fabrics.",
    remedy=(
        "Remove one of the two contradictory settings that the denial names, such as an "
        "annotation, an RDMA resource, a GPU resource or a nodeSelector."
    ),
    rdma="no",
)

#: The evidence of a second call, if the pod itself has none.
EARLIER = f"annotation {STATUS_ANNOTATION} of an earlier call"


class Resolution(NamedTuple):
    """A pod's fabric and the evidence for it; or, without a fabric, the reason and a message."""

    fabric: Fabric | None = None
    evidence: str = ""
    reason: Reason | None = None
    message: str = ""
    #: Whether several fabrics match; a site may configure that such a pod is denied.
    ambiguous: bool = False


class _Search:
    """The remaining candidates, and the evidence so far."""

    def __init__(self, configuration: CompiledConfiguration) -> None:
        self.candidates = frozenset(configuration.fabrics)
        #: The evidence for certain fabrics; other evidence only excludes some.
        self.positive_evidence: list[_Evidence] = []
        self.winner: _Evidence | None = None

    def narrow(self, evidence: list[_Evidence]) -> Resolution | None:
        """Narrow the candidates; if none remains, return a Resolution without a fabric."""
        for piece in evidence:
            remaining = piece.constraint.filter(self.candidates)
            if not remaining:
                if self.positive_evidence and piece.constraint.allowed:
                    raise _conflict(self.positive_evidence, piece)
                if self.positive_evidence and self.positive_evidence[0].explicit:
                    continue
                remedy = f"correct the pod's node selection, or set {FABRIC_ANNOTATION}"
                return _unknown(f"no fabric matches {piece.source}; {remedy}")
            self.candidates = remaining
            if piece.constraint.allowed:
                self.positive_evidence.append(piece)
            if self.winner is None and self.positive_evidence and len(remaining) == 1:
                self.winner = piece
        return None


class _Evidence(NamedTuple):
    source: str
    constraint: FabricConstraint
    #: Whether the user wrote it on purpose: it counts even if later evidence matches no fabric.
    explicit: bool = False


def resolve(
    pod: Pod,
    container_devices: ContainerDevices,
    annotations: UserAnnotations,
    decision_input: DecisionInput,
    earlier: str | None = None,
    *,
    claims: Sequence[Claim] = (),
) -> Resolution:
    """Find the fabric of a pod from all its containers and its nodes.

    `claims`: its DRA claims; `earlier`: the fabric that an earlier call chose under the same
    configuration.
    """
    configuration = decision_input.configuration
    search = _Search(configuration)
    gpus = _listed_gpus(container_devices, configuration)
    devices = _device_evidence(container_devices, claims, gpus, configuration)
    unresolved = search.narrow(_pod_evidence(pod, annotations, devices, configuration))
    if unresolved is not None:
        return unresolved
    if earlier is not None and earlier in search.candidates:
        source = search.winner.source if search.winner else EARLIER
        return Resolution(configuration.fabrics[earlier], source)
    unresolved = search.narrow(_inventory_evidence(pod, gpus, decision_input))
    if unresolved is not None:
        return unresolved
    if search.winner is not None:
        (name,) = search.candidates
        resolution = Resolution(configuration.fabrics[name], search.winner.source)
    else:
        resolution = _by_default(
            search.candidates, search.positive_evidence, decision_input, container_devices
        )
    named = annotations.fabric is not None
    conflict = gpu_conflict(container_devices, resolution.fabric, decision_input, named=named)
    return _with_conflict(resolution, conflict, pod, named=named) if conflict else resolution


def _with_conflict(
    resolution: Resolution, conflict: GpuConflict, pod: Pod, *, named: bool
) -> Resolution:
    """Reject the fabric of an RDMA resource, since its nodes do not offer the pod's GPU.

    A pod is not denied at a second call: an earlier one may have added the resource.
    """
    if conflict.is_permanent and STATUS_ANNOTATION not in pod.annotations:
        raise Denial(FABRIC_CONFLICT, f"{conflict.message}; remove {conflict.removable}")
    if named:
        return resolution
    message = f"{conflict.message}; if some of its nodes do, set {FABRIC_ANNOTATION}"
    return Resolution(reason=GPU_NOT_ON_FABRIC, message=message)


def _pod_evidence(
    pod: Pod,
    annotations: UserAnnotations,
    devices: list[_Evidence],
    configuration: CompiledConfiguration,
) -> list[_Evidence]:
    evidence = [] if annotations.fabric is None else [_annotation_evidence(annotations.fabric)]
    evidence += devices
    evidence += [_Evidence(*constraint) for constraint in from_selector(pod, configuration)]
    affinity = from_affinity(pod, configuration)
    if affinity is not None:
        evidence.append(_Evidence("the required node affinity", affinity))
    return evidence


def _device_evidence(
    container_devices: ContainerDevices,
    claims: Sequence[Claim],
    gpus: Mapping[str, str],
    configuration: CompiledConfiguration,
) -> list[_Evidence]:
    evidence = _resource_evidence(container_devices, configuration)
    if claims:
        evidence += _template_evidence(claims, configuration)
    for gpu, container in gpus.items():
        source = f"{gpu} in container {container}"
        evidence.append(_Evidence(source, FabricConstraint(configuration.by_gpu[gpu])))
    if claims:
        evidence += _device_class_evidence(claims, configuration)
    return evidence


def _inventory_evidence(
    pod: Pod, gpus: Iterable[str], decision_input: DecisionInput
) -> list[_Evidence]:
    if not decision_input.fabric_index.by_node:
        return []
    constraints = from_fabric_index(
        pod, gpus, decision_input.configuration, decision_input.fabric_index
    )
    return [_Evidence(*constraint) for constraint in constraints]


def _listed_gpus(
    container_devices: ContainerDevices, configuration: CompiledConfiguration
) -> dict[str, str]:
    """Map each requested GPU resource that a fabric lists to the first container with it."""
    first_users: dict[str, str] = {}
    for container, requested in container_devices:
        for gpu in requested.gpus:
            if gpu in configuration.by_gpu:
                first_users.setdefault(gpu, container.name)
    return first_users


def _annotation_evidence(name: str) -> _Evidence:
    source = f"annotation {FABRIC_ANNOTATION}={name}"
    return _Evidence(source, FabricConstraint(allowed=frozenset({name})), explicit=True)


def _resource_evidence(
    container_devices: ContainerDevices, configuration: CompiledConfiguration
) -> list[_Evidence]:
    evidence: list[_Evidence] = []
    for container, requested in container_devices:
        for name, amount in requested.rdma:
            owners = configuration.by_rdma_resource.get(name)
            if owners and not is_zero(amount):
                source = f"{name} in container {container.name}"
                evidence.append(_Evidence(source, FabricConstraint(allowed=owners), explicit=True))
    return evidence


def _template_evidence(
    claims: Iterable[Claim], configuration: CompiledConfiguration
) -> list[_Evidence]:
    """Return evidence for the fabrics whose templates the pod claims, by the first such claim.

    The claims may be the user's, or an earlier call may have added them.
    """
    first_claims: dict[str, Claim] = {}
    for claim in claims:
        if claim.template in configuration.by_claim_template:
            first_claims.setdefault(claim.template, claim)
    return [
        _Evidence(
            _claim_text(claim),
            FabricConstraint(configuration.by_claim_template[template]),
            explicit=True,
        )
        for template, claim in first_claims.items()
    ]


def _device_class_evidence(
    claims: Iterable[Claim], configuration: CompiledConfiguration
) -> list[_Evidence]:
    """Return evidence for the fabrics of the device classes in claims of other templates.

    It names the first claim with each class: a pod may use one in thousands of places.
    """
    first_claims: dict[str, Claim] = {}
    for claim in claims:
        if claim.template not in configuration.by_claim_template:
            for device_class in claim.classes.listed_in(configuration):
                first_claims.setdefault(device_class, claim)
    return [
        _Evidence(
            f"{device_class} of {_claim_text(claim)}",
            FabricConstraint(configuration.by_class[device_class]),
        )
        for device_class, claim in first_claims.items()
    ]


def _claim_text(claim: Claim) -> str:
    place = f" in container {claim.container.name}" if claim.container else ""
    return f"resource claim {claim.name}{place}"


def _by_default(
    candidates: frozenset[str],
    positive_evidence: list[_Evidence],
    decision_input: DecisionInput,
    container_devices: ContainerDevices,
) -> Resolution:
    configuration = decision_input.configuration
    namespace = decision_input.namespace
    choices = (
        (
            namespace.annotations.get(FABRIC_ANNOTATION) if namespace.is_loaded else None,
            f"annotation {FABRIC_ANNOTATION} of the namespace",
        ),
        (configuration.defaults.fabric, "defaults.fabric of the configuration"),
    )
    for name, source in choices:
        if isinstance(name, str) and name in candidates:
            return Resolution(configuration.fabrics[name], source)
    if not configuration.fabrics:
        return _unknown("no fabric is configured")
    if not positive_evidence:
        message = f"the pod's fabric cannot be determined; {choice_of([*configuration.fabrics])}"
        return _unknown(unlisted_device(container_devices, decision_input) or message)
    several = " and ".join(sorted(candidates))
    message = f"{positive_evidence[0].source} matches {several}; set {FABRIC_ANNOTATION}"
    return Resolution(reason=FABRIC_AMBIGUOUS, message=message, ambiguous=True)


def _unknown(message: str) -> Resolution:
    return Resolution(reason=FABRIC_UNKNOWN, message=message)


def _conflict(positive_evidence: list[_Evidence], last: _Evidence) -> Denial:
    """Return a Denial that names the last evidence and the first evidence that it contradicts."""
    allowed = last.constraint.allowed
    first = next(
        (piece for piece in positive_evidence if piece.constraint.allowed.isdisjoint(allowed)),
        positive_evidence[0],
    )
    fabric, other = (" or ".join(sorted(evidence.constraint.allowed)) for evidence in (first, last))
    msg = f"{first.source} implies fabric {fabric}, but {last.source} implies fabric {other}"
    return Denial(FABRIC_CONFLICT, f"{msg}; remove one of these two settings")
