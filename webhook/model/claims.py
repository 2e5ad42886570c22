"""The DRA claims of a pod: who uses which, and what is known of their devices.

A claim that has the template of a fabric is that fabric's NIC. Otherwise the device class says what
a claim is for; it is in a ResourceClaim or its template, which admission may not know. The names of
the claim, of its request and of its template mostly say it, too. A claim that no container
uses is a network's: a driver moves the NIC into the pod's network namespace (dranet, CNI-DRA),
while a GPU reaches only the containers that name its claim (KEP-4381).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from webhook.model.fabric import Fabric, Fabrics
from webhook.model.objects import ResourceClaim
from webhook.model.pod import Container, Path, Pod, PodManifest, at

# What a namespace's ResourceClaimTemplates and ResourceClaims request, as values.

TEMPLATE_KIND, CLAIM_KIND = "ResourceClaimTemplate", "ResourceClaim"

#: The annotation of a claim that was made from a template.
_OF_TEMPLATE = "resource.kubernetes.io/pod-claim-name"

#: Name of a request → its device classes: several if it lists alternatives.
RequestedClasses = Mapping[str, tuple[str, ...]]
#: Kind and name of an object, and what it requests.
ClaimObject = tuple[str, str, RequestedClasses]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFacts:
    """The templates and claims of one namespace that are known."""

    templates: Mapping[str, RequestedClasses] = field(default_factory=dict)
    claims: Mapping[str, RequestedClasses] = field(default_factory=dict)
    #: Whether a template that is not listed does not exist.
    complete: bool = False

    def with_objects(self, objects: Iterable[ClaimObject]) -> ClaimFacts:
        """Return a copy with more templates and claims, which take the place of others."""
        templates, claims = dict(self.templates), dict(self.claims)
        for kind, name, requested in objects:
            (templates if kind == TEMPLATE_KIND else claims)[name] = requested
        return replace(self, templates=templates, claims=claims)


NO_CLAIM_FACTS = ClaimFacts()


class KnownClaims(NamedTuple):
    """What is known of the templates and claims of all namespaces."""

    #: By namespace, for those that have any.
    by_namespace: Mapping[str, ClaimFacts]
    #: What is known of a namespace that has none.
    elsewhere: ClaimFacts
    #: Whether a ResourceClaim that is created now will be known in a moment.
    arriving: bool

    def of(self, namespace: str) -> ClaimFacts:
        """Return what is known of a namespace."""
        return self.by_namespace.get(namespace, self.elsewhere)


def is_made_for_pod(item: Mapping[str, object]) -> bool:
    """Return whether a ResourceClaim was made for one pod or PodGroup, so that no pod names it.

    That of a template has an annotation, and may belong to a PodGroup; that of extended resources
    belongs to its pod. Source: kubernetes, pkg/controller/resourceclaim/controller.go, and
    pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
    """
    claim = ResourceClaim(item)
    return claim.annotations.get(_OF_TEMPLATE) is not None or "Pod" in claim.owner_kinds


def requested_classes(item: Mapping[str, object]) -> RequestedClasses:
    """Return what a ResourceClaim or ResourceClaimTemplate requests."""
    return {one.name or "": one.device_classes for one in ResourceClaim(item).requests}


#: What the names of our claims begin with; the fabric's name and a number follow.
CLAIM_PREFIX = "rdma-lab-"
#: The most claims of a fabric: with 100 containers, the numbers have up to three digits.
MOST_CLAIMS = 10
#: The longest name of a fabric whose claims have DNS labels as names, as they must.
MOST_NAME = 63 - len(CLAIM_PREFIX) - len("-999")

_TEMPLATE, _EXISTING = "resourceClaimTemplateName", "resourceClaimName"
#: The lengths of a DNS label and of a DNS subdomain, which the API server allows for these names.
#: What is longer is refused later, so its end need not be searched.
_LABEL, _SUBDOMAIN = 63, 253
#: The most entries of `spec.resourceClaims` that are looked up before the decision.
_MOST_LISTED = 32
#: Words that are parts of no other word, and short ones that must stand alone: `nic` as in `nic-0`.
_NIC = re.compile(
    r"rdma|roce|sriov|infiniband|connectx|mlnx|mlx5|dranet"
    r"|(?<![a-z])(?:nic|hca|efa|ib|vf|rail)s?(?![a-z])"
)
_GPU = re.compile(r"gpu|(?<![a-z])mig(?![a-z])")
_DOMAIN_WORDS = ("compute-domain", "computedomain", "imex")


class Claim(NamedTuple):
    """A claim of the pod, and a container that uses it."""

    name: str  #: as in `spec.resourceClaims`
    words: str  #: all names that say what it is for, in lower case, one per line
    user: Container | None  #: None for a claim that no container uses
    template: str = ""  #: of a claim that is made for the pod
    classes: tuple[str, ...] = ()  #: the device classes that are known to be requested

    @property
    def is_domain(self) -> bool:
        """Return whether it is a channel of a ComputeDomain, which is no device of its own."""
        return any(word in self.words for word in _DOMAIN_WORDS)

    @property
    def is_nic(self) -> bool:
        """Return whether it is a NIC: by its names, or because no container uses it."""
        if self.is_domain:
            return False
        return _NIC.search(self.words) is not None or (self.user is None and not self.is_gpu)

    @property
    def is_gpu(self) -> bool:
        """Return whether its names say that it is a GPU; it may be a NIC beside it, too."""
        return not self.is_domain and _GPU.search(self.words) is not None


def claims_of(pod: Pod, known: ClaimFacts = NO_CLAIM_FACTS) -> tuple[Claim, ...]:
    """List the claims of a pod, once for each container that uses one; most pods have none."""
    if not pod.spec.get("resourceClaims"):
        return ()
    listed = {str(one.get("name", "")): one for one in pod.resource_claims}
    found: list[Claim] = []
    for container in pod.containers:
        for one in container.claims:
            name = str(one.get("name", ""))
            if name in listed:
                found.append(_claim(listed[name], one, container, known))
    used = {claim.name for claim in found}
    found += [_claim(one, {}, None, known) for name, one in listed.items() if name not in used]
    return tuple(found)


def claims_by_user(claims: Iterable[Claim]) -> dict[Path, list[Claim]]:
    """Return the claims of each container by its path, and under () those that none uses."""
    found: dict[Path, list[Claim]] = {}
    for one in claims:
        found.setdefault(one.user.path if one.user else (), []).append(one)
    return found


def fabrics_of(claim: Claim, fabrics: Fabrics) -> frozenset[str]:
    """Return the names of the fabrics that have the claim's template, or else its device class."""
    homes = fabrics.by_template.get(claim.template)
    return homes or frozenset[str]().union(
        *(fabrics.by_class[one] for one in claim.classes if one in fabrics.by_class)
    )


def has_nic_of(claim: Claim, fabric: Fabric, known: ClaimFacts) -> bool:
    """Return whether a claim gives the container, or the pod, a NIC of this fabric.

    It has the fabric's template, or a device class that the fabric says is a NIC, or one that the
    fabric's template requests for its NICs; `known` are the namespace's templates.
    """
    if any(one.template == claim.template for one in fabric.claims):
        return True
    if not claim.classes:
        return False
    own = fabric.device_classes
    if any(is_nic_class(one) for one in own.intersection(claim.classes)):
        return True
    return any(one in claim.classes and one not in own for one in _nic_classes(fabric, known))


def _nic_classes(fabric: Fabric, known: ClaimFacts) -> Iterator[str]:
    """Yield the device classes of the NICs that a fabric's templates request."""
    for wanted in fabric.claims:
        requested = known.templates.get(wanted.template, {})
        chosen = (requested.get(wanted.request, ()),) if wanted.request else requested.values()
        for classes in chosen:
            yield from (one for one in classes if not _GPU.search(one))


def is_nic_class(name: str) -> bool:
    """Return whether the name of a device class says that it is a NIC."""
    return _NIC.search(name) is not None and _GPU.search(name) is None


def is_gpu_claim(claim: Claim, fabrics: Fabrics) -> bool:
    """Return whether a claim is a GPU: by its names, or by a device class of a fabric."""
    return claim.is_gpu or any(
        one in fabrics.by_class and not is_nic_class(one) for one in claim.classes
    )


def brings_gpu(template: str, fabrics: Fabrics, known: ClaimFacts) -> bool:
    """Return whether a template is known to request a GPU, perhaps beside a NIC."""
    requested = known.templates.get(template, {})
    return any(
        _GPU.search(one) or (one in fabrics.by_class and not is_nic_class(one))
        for classes in requested.values()
        for one in classes
    )


def may_claim_gpu(pod: Pod, fabrics: Fabrics) -> bool:
    """Return whether a pod has a claim that is not known to be a fabric's NIC."""
    return any(str(one.get(_TEMPLATE)) not in fabrics.by_template for one in pod.resource_claims)


def unknown_claims(pod: PodManifest, known: ClaimFacts) -> list[str]:
    """Return the names of ResourceClaims of which nothing is known, as far as a pod may have them.

    Any pod will do: what has another shape names none.
    """
    listed = at(pod, ("spec", "resourceClaims"))
    if not isinstance(listed, list):
        return []
    names = (at(one, (_EXISTING,)) for one in listed[:_MOST_LISTED])
    unknown = (one for one in names if isinstance(one, str) and one not in known.claims)
    return list(dict.fromkeys(unknown))


def _claim(
    listed: dict[str, object], used: dict[str, object], user: Container | None, known: ClaimFacts
) -> Claim:
    """Join an entry of `spec.resourceClaims`, and one of a container's `resources.claims`."""
    template, existing = (str(listed.get(key, "")) for key in (_TEMPLATE, _EXISTING))
    requested = known.templates.get(template) or known.claims.get(existing) or {}
    request = str(used.get("request") or "")
    chosen = (requested.get(request, ()),) if request else requested.values()
    classes = tuple([one for classes in chosen for one in classes])
    name = str(listed.get("name", ""))
    # The name that the webhook gives to a claim says nothing of the device.
    names = [] if name.startswith(CLAIM_PREFIX) else [name]
    labels = [one[:_LABEL] for one in (*names, request)]
    subdomains = [one[:_SUBDOMAIN] for one in (template, existing, *classes)]
    words = "\n".join([*labels, *subdomains]).lower()
    return Claim(name, words, user, template, classes)
