"""The DRA claims of a pod: their containers and their devices.

A claim with the template of a fabric is that fabric's NIC. Otherwise the device class shows the
purpose of a claim; it is in a ResourceClaim or its template, which may be unknown at admission. The
names of the claim, its request and its template usually show the purpose, too. A claim that no
container uses belongs to a network: a driver moves the NIC into the pod's network namespace
(dranet, CNI-DRA), while a GPU reaches only the containers that name its claim (KEP-4381).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from webhook.model.fabric import CompiledConfiguration, Fabric
from webhook.model.names import MAX_LABEL_LENGTH, MAX_SUBDOMAIN_LENGTH
from webhook.model.objects import ResourceClaim
from webhook.model.pod import Container, Path, Pod, PodManifest, at

# The requests of a namespace's ResourceClaimTemplates and ResourceClaims.

TEMPLATE_KIND, CLAIM_KIND = "ResourceClaimTemplate", "ResourceClaim"

#: The annotation of a claim that was made from a template.
_OF_TEMPLATE = "resource.kubernetes.io/pod-claim-name"

#: Words that occur in no other word, and short ones that must be whole words: `nic` as in `nic-0`.
_NIC = re.compile(
    r"rdma|roce|sriov|infiniband|connectx|mlnx|mlx5|dranet"
    r"|(?<![a-z])(?:nic|hca|efa|ib|vf|rail)s?(?![a-z])"
)
_GPU = re.compile(r"gpu|(?<![a-z])mig(?![a-z])")
_DOMAIN_WORDS = ("compute-domain", "computedomain", "imex")


class DeviceClasses(tuple[str, ...]):  # noqa: SLOT001 -- it keeps what the names show
    """The device classes of a request, and what their names show.

    A user may request hundreds of classes with long names, and pods may use the claim in hundreds
    of places, so the names are searched once, and not for each pod or each use.
    """

    @classmethod
    def of(cls, names: Iterable[str]) -> DeviceClasses:
        """Return names as device classes, the same object if they are."""
        return names if isinstance(names, cls) else cls(names)

    @cached_property
    def words(self) -> str:
        """A name that shows a NIC, one that shows a GPU, and so on, in lower case, one per line."""
        names = [name[:MAX_SUBDOMAIN_LENGTH].lower() for name in self]
        shown = [
            next((name for name in names if shows(name)), "")
            for shows in (_NIC.search, _GPU.search, _shows_domain)
        ]
        return "\n".join(filter(None, shown))

    @cached_property
    def other_than_gpus(self) -> frozenset[str]:
        """The classes whose names show no GPU."""
        return frozenset(name for name in self if not _GPU.search(name))

    @cached_property
    def names(self) -> frozenset[str]:
        """The classes as a set."""
        return frozenset(self)

    def listed_in(self, configuration: CompiledConfiguration) -> list[str]:
        """Return the classes that fabrics list for their devices; a site lists few."""
        listed = [name for name in configuration.by_class if name in self.names]
        return sorted(listed, key=self.index)


class RequestedClasses(dict[str, DeviceClasses]):
    """Name of a request → its device classes: several if it lists alternatives."""

    @classmethod
    def of(cls, requested: Mapping[str, tuple[str, ...]]) -> RequestedClasses:
        """Return a mapping as requested classes, the same object if it is."""
        if isinstance(requested, cls):
            return requested
        return cls({name: DeviceClasses.of(classes) for name, classes in requested.items()})

    def search_names(self) -> None:
        """Search the names now, so that no decision has to."""
        for classes in (*self.values(), self.together):
            _ = classes.words

    @cached_property
    def together(self) -> DeviceClasses:
        """The classes of all requests."""
        return DeviceClasses(name for classes in self.values() for name in classes)

    def chosen(self, request: str) -> DeviceClasses:
        """Return the classes of a request, or of all requests for ""."""
        return self.get(request, _NO_CLASSES) if request else self.together


_NO_CLASSES = DeviceClasses()
_NO_REQUESTS = RequestedClasses()


def _shows_domain(words: str) -> bool:
    return any(word in words for word in _DOMAIN_WORDS)


#: Kind and name of an object, and its requests.
ClaimObject = tuple[str, str, Mapping[str, tuple[str, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFacts:
    """The known templates and claims of one namespace."""

    templates: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    claims: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    #: Whether the namespace has no other templates.
    has_all_templates: bool = False

    def requests_of(self, template: str, claim: str = "") -> RequestedClasses:
        """Return the requests of a template, or else of a claim; none if both are unknown."""
        requested = self.templates.get(template) or self.claims.get(claim) or _NO_REQUESTS
        return RequestedClasses.of(requested)

    def with_objects(self, objects: Iterable[ClaimObject]) -> ClaimFacts:
        """Return a copy with more templates and claims, which replace any with the same name."""
        templates, claims = dict(self.templates), dict(self.claims)
        for kind, name, requested in objects:
            (templates if kind == TEMPLATE_KIND else claims)[name] = requested
        return replace(self, templates=templates, claims=claims)


NO_CLAIM_FACTS = ClaimFacts()


class KnownClaims(NamedTuple):
    """The known templates and claims of all namespaces."""

    #: The facts of the namespaces that have any.
    by_namespace: Mapping[str, ClaimFacts]
    #: The facts of all other namespaces.
    other_namespaces: ClaimFacts
    #: Whether a ResourceClaim that is created now will be known shortly.
    are_watched: bool

    def of(self, namespace: str) -> ClaimFacts:
        """Return the facts of a namespace."""
        return self.by_namespace.get(namespace, self.other_namespaces)


def is_made_for_pod(item: Mapping[str, object]) -> bool:
    """Return whether a ResourceClaim was made for one pod or PodGroup, so that no pod names it.

    A template's claim has an annotation, and may belong to a PodGroup; a claim for extended
    resources belongs to its pod. Source: kubernetes, pkg/controller/resourceclaim/controller.go and
    pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
    """
    claim = ResourceClaim(item)
    return claim.annotations.get(_OF_TEMPLATE) is not None or "Pod" in claim.owner_kinds


def requested_classes(item: Mapping[str, object]) -> RequestedClasses:
    """Return the requests of a ResourceClaim or ResourceClaimTemplate."""
    requested = RequestedClasses.of(
        {request.name or "": request.device_classes for request in ResourceClaim(item).requests}
    )
    requested.search_names()
    return requested


#: The beginning of our claims' names; the fabric's name and a number follow.
CLAIM_PREFIX = "rdma-lab-"
#: The maximum number of claims of a fabric: with 100 containers, the numbers have up to three
#: digits.
MAX_CLAIMS = 10
#: The maximum length of a fabric's name, since the names of its claims must be DNS labels.
MAX_FABRIC_NAME_LENGTH = 63 - len(CLAIM_PREFIX) - len("-999")

_TEMPLATE, _EXISTING = "resourceClaimTemplateName", "resourceClaimName"
#: The maximum number of `spec.resourceClaims` that are looked up before the decision.
_MAX_LISTED = 32


class Claim(NamedTuple):
    """A claim of the pod, with a container that uses it."""

    name: str  #: as in `spec.resourceClaims`
    words: str  #: names that may show its purpose, in lower case, one per line
    container: Container | None  #: None for a claim that no container uses
    template: str = ""  #: of a claim that is made for the pod
    classes: DeviceClasses = _NO_CLASSES  #: the device classes of its requests, if known

    @property
    def is_compute_domain(self) -> bool:
        """Whether it is a channel of a ComputeDomain, which is not a device."""
        return _shows_domain(self.words)

    @property
    def is_nic(self) -> bool:
        """Whether it is a NIC: by its names, or because no container uses it."""
        if self.is_compute_domain:
            return False
        return _NIC.search(self.words) is not None or (self.container is None and not self.is_gpu)

    @property
    def is_gpu(self) -> bool:
        """Whether its names show a GPU; it may also be a NIC."""
        return not self.is_compute_domain and _GPU.search(self.words) is not None


def claims_of(pod: Pod, facts: ClaimFacts = NO_CLAIM_FACTS) -> tuple[Claim, ...]:
    """List the claims of a pod, once for each container that uses one; most pods have none."""
    if not pod.spec.get("resourceClaims"):
        return ()
    pod_claims_by_name = {
        str(pod_claim.get("name", "")): pod_claim for pod_claim in pod.resource_claims
    }
    claims: list[Claim] = []
    for container in pod.containers:
        # The API server rejects repetitions later.
        uses = dict.fromkeys(
            (str(use.get("name", "")), str(use.get("request") or "")) for use in container.claims
        )
        claims += [
            _claim(pod_claims_by_name[name], request, container, facts)
            for name, request in uses
            if name in pod_claims_by_name
        ]
    used = {claim.name for claim in claims}
    claims += [
        _claim(pod_claim, "", None, facts)
        for name, pod_claim in pod_claims_by_name.items()
        if name not in used
    ]
    return tuple(claims)


def claims_by_container(claims: Iterable[Claim]) -> dict[Path, list[Claim]]:
    """Return the claims of each container by its path, and the unused claims under ()."""
    by_container: dict[Path, list[Claim]] = {}
    for claim in claims:
        by_container.setdefault(claim.container.path if claim.container else (), []).append(claim)
    return by_container


def fabrics_of(claim: Claim, configuration: CompiledConfiguration) -> frozenset[str]:
    """Return the names of the fabrics that have the claim's template, or else its device class."""
    fabric_names = configuration.by_claim_template.get(claim.template)
    return fabric_names or frozenset[str]().union(
        *(configuration.by_class[name] for name in claim.classes.listed_in(configuration))
    )


def has_nic_of(claim: Claim, fabric: Fabric, facts: ClaimFacts) -> bool:
    """Return whether a claim gives the container, or the pod, a NIC of this fabric.

    It has the fabric's template, or a device class that the fabric lists for its NICs, or one that
    the fabric's template requests for its NICs; `facts` has the namespace's templates.
    """
    if any(reference.template == claim.template for reference in fabric.claim_templates):
        return True
    if not claim.classes:
        return False
    fabric_classes = fabric.device_classes
    if any(is_nic_class(name) for name in fabric_classes & claim.classes.names):
        return True
    return any(
        not (nic_classes & claim.classes.names) <= fabric_classes
        for nic_classes in _nic_classes(fabric, facts)
    )


def _nic_classes(fabric: Fabric, facts: ClaimFacts) -> Iterator[frozenset[str]]:
    """Yield the device classes of the NICs that each of a fabric's templates requests."""
    for reference in fabric.claim_templates:
        classes = facts.requests_of(reference.template).chosen(reference.request or "")
        yield classes.other_than_gpus


def is_nic_class(name: str) -> bool:
    """Return whether the name of a device class shows a NIC."""
    return _NIC.search(name) is not None and _GPU.search(name) is None


def shows_gpu_and_nic(name: str) -> bool:
    """Return whether the name of a resource shows a GPU together with a NIC."""
    return _NIC.search(name) is not None and _GPU.search(name) is not None


def is_gpu_claim(claim: Claim, configuration: CompiledConfiguration) -> bool:
    """Return whether a claim is a GPU: by its names, or by a device class of a fabric."""
    return claim.is_gpu or not all(map(is_nic_class, claim.classes.listed_in(configuration)))


def brings_gpu(template: str, configuration: CompiledConfiguration, facts: ClaimFacts) -> bool:
    """Return whether a template is known to request a GPU, perhaps together with a NIC."""
    classes = facts.requests_of(template).together
    return len(classes.other_than_gpus) < len(classes.names) or not all(
        map(is_nic_class, classes.listed_in(configuration))
    )


def may_claim_gpu(pod: Pod, configuration: CompiledConfiguration) -> bool:
    """Return whether a pod has a claim that is not known to be a fabric's NIC."""
    return any(
        str(pod_claim.get(_TEMPLATE)) not in configuration.by_claim_template
        for pod_claim in pod.resource_claims
    )


def unknown_claims(pod: PodManifest, facts: ClaimFacts) -> list[str]:
    """Return the names of the unknown ResourceClaims that a pod may have.

    Accept any pod: a malformed entry has no name.
    """
    pod_claims = at(pod, ("spec", "resourceClaims"))
    if not isinstance(pod_claims, list):
        return []
    names = (at(claim, (_EXISTING,)) for claim in pod_claims[:_MAX_LISTED])
    unknown = (name for name in names if isinstance(name, str) and name not in facts.claims)
    return list(dict.fromkeys(unknown))


def _claim(
    pod_claim: dict[str, object],
    request: str,
    container: Container | None,
    facts: ClaimFacts,
) -> Claim:
    """Return an entry of `spec.resourceClaims` as a container uses it; "" for all its requests."""
    template, existing = (str(pod_claim.get(key, "")) for key in (_TEMPLATE, _EXISTING))
    classes = facts.requests_of(template, existing).chosen(request)
    name = str(pod_claim.get("name", ""))
    # A name that the webhook gave to a claim does not describe the device.
    names = [] if name.startswith(CLAIM_PREFIX) else [name]
    # The API server rejects longer names later, so their ends need not be searched.
    labels = [label[:MAX_LABEL_LENGTH] for label in (*names, request)]
    subdomains = [subdomain[:MAX_SUBDOMAIN_LENGTH] for subdomain in (template, existing)]
    words = "\n".join([*labels, *subdomains, classes.words]).lower()
    return Claim(name, words, container, template, classes)
