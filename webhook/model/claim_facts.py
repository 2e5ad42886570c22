"""What a namespace's ResourceClaimTemplates and ResourceClaims request, as values.

Source: resource.k8s.io/v1, DeviceRequest; v1beta1 has the device class in the request itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from webhook.model.path import Path
from webhook.model.pod import at, items, mapping, text

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


def is_made_for_pod(item: Mapping[str, Any]) -> bool:
    """Return whether a ResourceClaim was made for one pod or PodGroup, so that no pod names it.

    That of a template has an annotation, and may belong to a PodGroup; that of extended resources
    belongs to its pod. Source: kubernetes, pkg/controller/resourceclaim/controller.go, and
    pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
    """
    if at(item, ("metadata", "annotations", _OF_TEMPLATE)) is not None:
        return True
    owners = at(item, ("metadata", "ownerReferences"))
    return isinstance(owners, list) and any(at(one, ("kind",)) == "Pod" for one in owners)


def requested_classes(item: Mapping[str, Any]) -> RequestedClasses:
    """Return what a ResourceClaim or ResourceClaimTemplate requests."""
    path: Path = ("spec", "devices", "requests")
    if "spec" in mapping(item, ("spec",)):
        path = ("spec", *path)
    return {
        text(one, ("name",), (*path, place)) or "": tuple(_classes(one, (*path, place)))
        for place, one in enumerate(items(item, path))
    }


def _classes(request: Mapping[str, Any], path: Path) -> Iterator[str]:
    exactly = mapping(request, ("exactly",), path)
    for one in (exactly, request, *items(request, ("firstAvailable",), path)):
        name = text(one, ("deviceClassName",), path)
        if name is not None:
            yield name
