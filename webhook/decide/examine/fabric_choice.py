"""Choose the fabric of a pod, and name the evidence for it.

Each piece of evidence narrows the candidates, strongest first: the pod's annotation, an RDMA
resource or a claim of a fabric's template, the GPU resource or its device class, nodeSelector,
required node affinity, the node inventory. The first that leaves exactly one candidate wins. The
rest is still examined, to find contradictions: two pieces that contradict each other are a Denial
that names both. The namespace's annotation and the default only choose among the candidates that
are left.

The nodes and the namespace may change between two calls for the same pod, or another replica may
know less of them. So they are not asked again if an earlier call has chosen one of the candidates
that the pod itself leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from webhook.decide.examine.node_selection import (
    FabricConstraint,
    from_affinity,
    from_inventory,
    from_selector,
)
from webhook.decide.scope import Context
from webhook.model.annotations import FABRIC, INVALID_ANNOTATION, STATUS, Requests
from webhook.model.claims import Claim
from webhook.model.decision import Denial, Reason
from webhook.model.fabric import Fabric, Fabrics
from webhook.model.pod import Container, Pod
from webhook.model.quantity import is_zero
from webhook.model.resources import Usage

FABRIC_UNKNOWN = Reason(
    "FabricUnknown",
    "Nothing in the pod or its namespace says which fabric the pod is on.",
    rdma="no",
)
FABRIC_AMBIGUOUS = Reason(
    "FabricAmbiguous",
    "The pod matches several fabrics: set rdma.lab/fabric.",
    rdma="no",
)
FABRIC_CONFLICT = Reason(
    "FabricConflict", "Two parts of the pod name different fabrics.", rdma="no"
)

#: The evidence of a second call, if it needs any.
EARLIER = f"annotation {STATUS} of an earlier call"


class Resolution(NamedTuple):
    """The fabric and the evidence for it; or why there is none, and a sentence that says so."""

    fabric: Fabric | None = None
    evidence: str = ""
    why: Reason | None = None
    message: str = ""
    #: Whether several fabrics fit; a site may configure that such a pod is denied.
    ambiguous: bool = False


class _Search:
    """The candidates that are left, and the evidence so far."""

    def __init__(self, fabrics: Fabrics) -> None:
        self.candidates = frozenset(fabrics.fabrics)
        self.naming: list[_Evidence] = []
        self.winner: _Evidence | None = None

    def narrow(self, found: list[_Evidence]) -> Resolution | None:
        """Narrow the candidates; return why there is no fabric if none is left."""
        for evidence in found:
            left = evidence.narrowing.of(self.candidates)
            if not left:
                if self.naming and evidence.narrowing.named:
                    raise _conflict(self.naming, evidence)
                if self.naming and self.naming[0].explicit:
                    continue
                return _unknown(f"no fabric matches {evidence.says}")
            self.candidates = left
            if evidence.narrowing.named:
                self.naming.append(evidence)
            if self.winner is None and self.naming and len(left) == 1:
                self.winner = evidence
        return None


class _Evidence(NamedTuple):
    says: str
    narrowing: FabricConstraint
    #: The user wrote it on purpose: it stands even if later evidence fits no fabric.
    explicit: bool = False


def resolve(
    pod: Pod,
    pairs: list[tuple[Container, Usage]],
    requests: Requests,
    context: Context,
    earlier: str | None = None,
    *,
    claims: Sequence[Claim] = (),
) -> Resolution:
    """Find the fabric of a pod; `pairs` are its containers and what each requests.

    `claims`: its DRA claims; `earlier`: the fabric that an earlier call chose under the same
    configuration.
    """
    fabrics = context.fabrics
    search = _Search(fabrics)
    gpus = _claimed_gpus(pairs, fabrics)
    devices = _of_devices(pairs, claims, gpus, fabrics)
    nothing = search.narrow(_of_pod(pod, requests, devices, fabrics))
    if nothing is not None:
        return nothing
    if earlier is not None and earlier in search.candidates:
        says = search.winner.says if search.winner else EARLIER
        return Resolution(fabrics.fabrics[earlier], says)
    nothing = search.narrow(_of_inventory(pod, gpus, context))
    if nothing is not None:
        return nothing
    if search.winner is not None:
        (name,) = search.candidates
        return Resolution(fabrics.fabrics[name], search.winner.says)
    return _by_default(search.candidates, search.naming, context, pairs)


def check_name(requests: Requests, fabrics: Fabrics) -> None:
    """Deny a pod whose annotation names an unknown fabric, even if it does not need one."""
    if requests.fabric is not None and requests.fabric not in fabrics.fabrics:
        have = ", ".join(fabrics.fabrics) or "none"
        msg = f"annotation {FABRIC} names {requests.fabric!r:.80}, but the fabrics are: {have}"
        raise Denial(INVALID_ANNOTATION, msg)


def _of_pod(
    pod: Pod, requests: Requests, devices: list[_Evidence], fabrics: Fabrics
) -> list[_Evidence]:
    found = [] if requests.fabric is None else [_annotated(requests.fabric)]
    found += devices
    found += [_Evidence(*one) for one in from_selector(pod, fabrics)]
    affinity = from_affinity(pod, fabrics)
    if affinity is not None:
        found.append(_Evidence("the required node affinity", affinity))
    return found


def _of_devices(
    pairs: list[tuple[Container, Usage]],
    claims: Sequence[Claim],
    gpus: Mapping[str, str],
    fabrics: Fabrics,
) -> list[_Evidence]:
    found = _resources(pairs, fabrics)
    if claims:
        found += _templates(claims, fabrics)
    for gpu, container in gpus.items():
        says = f"{gpu} in container {container}"
        found.append(_Evidence(says, FabricConstraint(fabrics.by_gpu[gpu])))
    if claims:
        found += _device_classes(claims, fabrics)
    return found


def _of_inventory(pod: Pod, gpus: Iterable[str], context: Context) -> list[_Evidence]:
    if not context.inventory.by_node:
        return []
    known = from_inventory(pod, gpus, context.fabrics, context.inventory)
    return [_Evidence(*one) for one in known]


def _claimed_gpus(pairs: list[tuple[Container, Usage]], fabrics: Fabrics) -> dict[str, str]:
    """Return the GPU resources that a fabric claims, each with the first container that has it."""
    found: dict[str, str] = {}
    for container, usage in pairs:
        for gpu in usage.gpus:
            if gpu in fabrics.by_gpu:
                found.setdefault(gpu, container.name)
    return found


def _annotated(name: str) -> _Evidence:
    says = f"annotation {FABRIC}={name}"
    return _Evidence(says, FabricConstraint(named=frozenset({name})), explicit=True)


def _resources(pairs: list[tuple[Container, Usage]], fabrics: Fabrics) -> list[_Evidence]:
    found: list[_Evidence] = []
    for container, usage in pairs:
        for name, amount in usage.rdma:
            having = fabrics.by_resource.get(name)
            if having and not is_zero(amount):
                says = f"{name} in container {container.name}"
                found.append(_Evidence(says, FabricConstraint(named=having), explicit=True))
    return found


def _templates(claims: Iterable[Claim], fabrics: Fabrics) -> list[_Evidence]:
    """Return the fabrics whose templates the pod has claims of, whoever wrote them."""
    return [
        _Evidence(
            _of_claim(claim), FabricConstraint(fabrics.by_template[claim.template]), explicit=True
        )
        for claim in claims
        if claim.template in fabrics.by_template
    ]


def _device_classes(claims: Iterable[Claim], fabrics: Fabrics) -> list[_Evidence]:
    """Return the fabrics of the device classes that are known to be claimed otherwise."""
    return [
        _Evidence(f"{one} of {_of_claim(claim)}", FabricConstraint(fabrics.by_class[one]))
        for claim in claims
        if claim.template not in fabrics.by_template
        for one in claim.classes
        if one in fabrics.by_class
    ]


def _of_claim(claim: Claim) -> str:
    where = f" in container {claim.user.name}" if claim.user else ""
    return f"resource claim {claim.name}{where}"


def _unclaimed(pairs: list[tuple[Container, Usage]]) -> str:
    """Name a GPU, or else an RDMA resource, of a pod in which nothing names a fabric; "" if none.

    So no fabric claims it.
    """
    for container, usage in pairs:
        names = [*usage.gpus, *(name for name, amount in usage.rdma if not is_zero(amount))]
        if names:
            return f"no fabric claims {names[0]} in container {container.name}"
    return ""


def _by_default(
    candidates: frozenset[str],
    naming: list[_Evidence],
    context: Context,
    pairs: list[tuple[Container, Usage]],
) -> Resolution:
    fabrics = context.fabrics
    space = context.namespace
    choices = (
        (
            space.annotations.get(FABRIC) if space.known else None,
            f"annotation {FABRIC} of the namespace",
        ),
        (fabrics.defaults.fabric, "defaults.fabric of the configuration"),
    )
    for name, says in choices:
        if isinstance(name, str) and name in candidates:
            return Resolution(fabrics.fabrics[name], says)
    if not fabrics.fabrics:
        return _unknown("no fabric is configured")
    if not naming:
        names = ", ".join(fabrics.fabrics)
        what = _unclaimed(pairs) or "nothing says which fabric the pod is on"
        return _unknown(f"{what}: set {FABRIC} ({names})")
    several = " and ".join(sorted(candidates))
    message = f"{naming[0].says} matches {several}: set {FABRIC}"
    return Resolution(why=FABRIC_AMBIGUOUS, message=message, ambiguous=True)


def _unknown(message: str) -> Resolution:
    return Resolution(why=FABRIC_UNKNOWN, message=message)


def _conflict(naming: list[_Evidence], last: _Evidence) -> Denial:
    """Return a Denial that names the last evidence and the first one that it contradicts."""
    named = last.narrowing.named
    first = next((one for one in naming if one.narrowing.named.isdisjoint(named)), naming[0])
    one, other = (" or ".join(sorted(evidence.narrowing.named)) for evidence in (first, last))
    msg = f"{first.says} means fabric {one}, but {last.says} means fabric {other}"
    return Denial(FABRIC_CONFLICT, msg)
