"""Facts about the cluster as values: what is known about a pod's namespace and about the nodes.

They are built from real Kubernetes objects (`Facts.from_objects`), which come from a watch or
from a file that `kubectl get ns,limitrange,quota,node -o yaml` printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from webhook.model.claims import (
    NO_CLAIM_FACTS,
    TEMPLATE_KIND,
    ClaimFacts,
    ClaimObject,
    requested_classes,
)
from webhook.model.fabric import Fabrics
from webhook.model.nodes import Node, NodeInventory, inventory_of, node_of
from webhook.model.objects import ClusterObject, LimitRange, ResourceQuota

LABEL = "rdma.lab/enable"
PSA_ENFORCE = "pod-security.kubernetes.io/enforce"
_NONE: Mapping[str, str] = {}
_NO_NODES: Mapping[str, Node] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceFacts:
    """What is known about one namespace."""

    name: str = ""
    #: False if there is a source of facts, but it does not know this namespace (yet).
    known: bool = True
    #: None if unknown.
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: Why a pod without a memory limit would be rejected here, e.g.
    #: "LimitRange lab-limits sets max.memory"; "" if it would not.
    memory_limit_required: str = ""
    #: Its ResourceClaimTemplates and ResourceClaims.
    claims: ClaimFacts = NO_CLAIM_FACTS

    @property
    def enforced_pod_security(self) -> str:
        """The level that the namespace enforces, if it is `baseline` or `restricted`, else ""."""
        level = (self.labels or _NONE).get(PSA_ENFORCE, "")
        return level if level in ("baseline", "restricted") else ""

    def under(self, reasons: Iterable[str]) -> NamespaceFacts:
        """Return a copy with a reason, from LimitRanges and quotas, why a memory limit is required.

        `reasons` may contain "". Of several reasons the alphabetically first is taken, so that all
        replicas give the same one.
        """
        return replace(self, memory_limit_required=min(filter(None, reasons), default=""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that is known about a cluster; if `complete`, a namespace not listed is unknown."""

    namespaces: Mapping[str, NamespaceFacts] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)
    complete: bool = False
    #: What is known of the templates of a namespace that is not listed.
    other_claims: ClaimFacts = NO_CLAIM_FACTS

    def namespace(self, name: str) -> NamespaceFacts:
        """Return what is known about a namespace, in O(1)."""
        return self.namespaces.get(name) or NamespaceFacts(
            name=name, known=not self.complete, claims=self.other_claims
        )

    @staticmethod
    def from_objects(objects: Iterable[Mapping[str, object]]) -> Facts:
        """Build facts from the objects of a cluster: all of those kinds of which there are any.

        ResourceClaimTemplates are optional: without any, nothing is known of them.
        """
        found = _sorted(objects)
        namespaces = found.namespaces
        for name, reasons in found.rules.items():
            if name in namespaces:
                namespaces[name] = namespaces[name].under(reasons)
        listed = any(kind == TEMPLATE_KIND for own in found.claims.values() for kind, *_ in own)
        others = ClaimFacts(complete=listed)
        for name in found.claims.keys() | namespaces.keys() if found.claims else ():
            facts = namespaces.get(name) or NamespaceFacts(name=name, known=False)
            claims = others.with_objects(found.claims.get(name, ()))
            namespaces[name] = replace(facts, claims=claims)
        return Facts(namespaces=namespaces, nodes=found.nodes, complete=True, other_claims=others)

    def extended(self, objects: Iterable[Mapping[str, object]], namespace: str) -> Facts:
        """Return a copy with more objects; those without a namespace belong to `namespace`.

        A Namespace, Node, ResourceClaimTemplate or ResourceClaim takes the place of the one with
        its name. LimitRanges and quotas come on top of those that are known.
        """
        found = _sorted(objects)
        namespaces = dict(self.namespaces)
        for name, facts in found.namespaces.items():
            before = self.namespace(name)
            known = facts.under([before.memory_limit_required])
            namespaces[name] = replace(known, claims=before.claims)
        for name, reasons in found.rules.items():
            home = name or namespace
            known = namespaces.get(home) or self.namespace(home)
            namespaces[home] = known.under([known.memory_limit_required, *reasons])
        for name, own in found.claims.items():
            home = name or namespace
            known = namespaces.get(home) or self.namespace(home)
            namespaces[home] = replace(known, claims=known.claims.with_objects(own))
        return replace(self, namespaces=namespaces, nodes={**self.nodes, **found.nodes})

    def above(
        self,
        objects: Iterable[Mapping[str, object]],
        listed: Iterable[str] = (),
        nodes: Mapping[str, Node] = _NO_NODES,
    ) -> Facts:
        """Return a copy with what a cluster says of namespaces and nodes that are not known here.

        A namespace that is in neither is then assumed to restrict nothing. `listed`: namespaces
        whose ResourceClaimTemplates are all among the objects.
        """
        beneath = Facts().extended(objects, "").listing(listed)
        namespaces = {**beneath.namespaces, **self.namespaces}
        nodes = {**nodes, **self.nodes}
        return replace(self, namespaces=namespaces, nodes=nodes, complete=False)

    def listing(self, namespaces: Iterable[str]) -> Facts:
        """Return a copy in which no other ResourceClaimTemplates exist in these namespaces."""
        known = {name: self.namespace(name) for name in namespaces}
        whole = {
            name: replace(facts, claims=replace(facts.claims, complete=True))
            for name, facts in known.items()
        }
        return replace(self, namespaces={**self.namespaces, **whole})

    def inventory(self, fabrics: Fabrics) -> NodeInventory:
        """Map nodes and GPUs to fabrics; call this once per change of either, never per pod."""
        return inventory_of(self.nodes, fabrics)


class _Sorted(NamedTuple):
    """What objects say; rules and claims by namespace, "" if it is unset."""

    namespaces: dict[str, NamespaceFacts]
    rules: dict[str, list[str]]
    nodes: dict[str, Node]
    claims: dict[str, list[ClaimObject]]


def _sorted(objects: Iterable[Mapping[str, object]]) -> _Sorted:
    found = _Sorted({}, {}, {}, {})
    namespaces, rules, nodes, claims = found
    for item in objects:
        space, name = key_of(item)
        match item.get("kind"):
            case "Namespace":
                namespaces[name] = namespace_of(item)
            case "Node":
                nodes[name] = node_of(item)
            case "LimitRange":
                rules.setdefault(space, []).append(limit_range_of(item))
            case "ResourceQuota":
                rules.setdefault(space, []).append(quota_of(item))
            case "ResourceClaimTemplate" | "ResourceClaim" as kind:
                claims.setdefault(space, []).append((kind, name, requested_classes(item)))
            case _:
                pass
    return found


def key_of(item: Mapping[str, object]) -> tuple[str, str]:
    """Return an object's namespace ("" if it has none) and name."""
    return ClusterObject(item).key


def namespace_of(item: Mapping[str, object]) -> NamespaceFacts:
    """Return the facts of a Namespace object."""
    namespace = ClusterObject(item)
    return NamespaceFacts(
        name=namespace.name, labels=namespace.labels, annotations=namespace.annotations
    )


def limit_range_of(item: Mapping[str, object]) -> str:
    """Say why a LimitRange rejects pods without a memory limit; return "" if it does not."""
    limits = LimitRange(item)
    field = next(limits.memory_bounds(), None)
    return f"LimitRange {limits.name} sets {field}.memory" if field else ""


def quota_of(item: Mapping[str, object]) -> str:
    """Say why a ResourceQuota rejects pods without a memory limit; return "" if it does not."""
    quota = ResourceQuota(item)
    return (
        f"ResourceQuota {quota.name} counts limits.memory" if "limits.memory" in quota.hard else ""
    )
