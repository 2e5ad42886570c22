"""Facts about the cluster: a pod's namespace and the nodes.

They are built from real Kubernetes objects (`Facts.from_objects`), which come from a watch or
from a file that `kubectl get ns,limitrange,quota,node -A -o yaml` printed.
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
from webhook.model.config_maps import ConfigMaps, config_map_data
from webhook.model.fabric import CompiledConfiguration
from webhook.model.nodes import FabricIndex, Node, build_fabric_index, node_of
from webhook.model.objects import ClusterObject, LimitRange, ResourceQuota

OPT_IN_LABEL = "rdma.lab/enable"
PSA_ENFORCE = "pod-security.kubernetes.io/enforce"
_NONE: Mapping[str, str] = {}
_NO_CONFIG_MAPS: ConfigMaps = {}
_NO_NODES: Mapping[str, Node] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceFacts:
    """The known facts about one namespace."""

    name: str = ""
    #: False if there is a source of facts that does not have this namespace (yet).
    is_loaded: bool = True
    #: None if unknown.
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] = field(default_factory=lambda: _NONE)
    #: Why a pod without a memory limit would be rejected here, e.g.
    #: "LimitRange lab-limits sets max.memory"; "" if it would not.
    memory_limit_rejection: str = ""
    #: Its ResourceClaimTemplates and ResourceClaims.
    claim_facts: ClaimFacts = NO_CLAIM_FACTS
    #: The known ones of its ConfigMaps: only previews know any.
    config_maps: ConfigMaps = field(default_factory=lambda: _NO_CONFIG_MAPS)

    @property
    def is_labeled(self) -> bool | None:
        """Whether the namespace has the label that opts in; None if its labels are unknown."""
        return None if self.labels is None else self.labels.get(OPT_IN_LABEL) == "true"

    @property
    def enforced_pod_security(self) -> str:
        """The level that the namespace enforces, if it is `baseline` or `restricted`, else ""."""
        level = (self.labels or _NONE).get(PSA_ENFORCE, "")
        return level if level in ("baseline", "restricted") else ""

    def with_memory_limit_rejections(self, rejections: Iterable[str]) -> NamespaceFacts:
        """Return a copy with the rejections by LimitRanges and quotas.

        `rejections` may contain "". The alphabetically first rejection is used, so that all
        replicas report the same one.
        """
        return replace(self, memory_limit_rejection=min(filter(None, rejections), default=""))

    def with_config_maps(self, config_maps: ConfigMaps) -> NamespaceFacts:
        """Return a copy that also knows these ConfigMaps."""
        return replace(self, config_maps={**self.config_maps, **config_maps})


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The known facts about a cluster."""

    namespaces: Mapping[str, NamespaceFacts] = field(default_factory=dict)
    nodes: Mapping[str, Node] = field(default_factory=dict)
    #: Whether a namespace that is not listed is unknown; otherwise it restricts nothing.
    unlisted_is_unknown: bool = False
    #: The facts about the templates of a namespace that is not listed.
    other_claims: ClaimFacts = NO_CLAIM_FACTS

    def namespace(self, name: str) -> NamespaceFacts:
        """Return the facts about a namespace, in O(1)."""
        return self.namespaces.get(name) or NamespaceFacts(
            name=name, is_loaded=not self.unlisted_is_unknown, claim_facts=self.other_claims
        )

    @staticmethod
    def from_objects(objects: Iterable[Mapping[str, object]]) -> Facts:
        """Build facts from the objects of a cluster, which are complete for each kind they contain.

        ResourceClaimTemplates are optional: without any, they are unknown.
        """
        by_kind = _by_kind(objects)
        namespaces = by_kind.namespaces
        for name, rejections in by_kind.memory_limit_rejections.items():
            if name in namespaces:
                namespaces[name] = namespaces[name].with_memory_limit_rejections(rejections)
        has_templates = any(
            kind == TEMPLATE_KIND
            for claim_objects in by_kind.claims.values()
            for kind, *_ in claim_objects
        )
        unlisted = ClaimFacts(has_all_templates=has_templates)
        for name in by_kind.claims.keys() | namespaces.keys() if by_kind.claims else ():
            facts = namespaces.get(name) or NamespaceFacts(name=name, is_loaded=False)
            claims = unlisted.with_objects(by_kind.claims.get(name, ()))
            namespaces[name] = replace(facts, claim_facts=claims)
        return Facts(
            namespaces=namespaces,
            nodes=by_kind.nodes,
            unlisted_is_unknown=True,
            other_claims=unlisted,
        )

    def with_objects(self, objects: Iterable[Mapping[str, object]], namespace: str) -> Facts:
        """Return a copy with more objects; objects without a namespace belong to `namespace`.

        A Namespace, Node, ResourceClaimTemplate or ResourceClaim replaces any with the same name.
        LimitRanges, quotas and ConfigMaps are added to the known ones.
        """
        by_kind = _by_kind(objects)
        namespaces = dict(self.namespaces)
        for name, facts in by_kind.namespaces.items():
            before = self.namespace(name)
            restricted = facts.with_memory_limit_rejections([before.memory_limit_rejection])
            namespaces[name] = replace(
                restricted, claim_facts=before.claim_facts, config_maps=before.config_maps
            )
        for name, rejections in by_kind.memory_limit_rejections.items():
            object_namespace = name or namespace
            current = namespaces.get(object_namespace) or self.namespace(object_namespace)
            namespaces[object_namespace] = current.with_memory_limit_rejections(
                [current.memory_limit_rejection, *rejections]
            )
        for name, claim_objects in by_kind.claims.items():
            object_namespace = name or namespace
            current = namespaces.get(object_namespace) or self.namespace(object_namespace)
            namespaces[object_namespace] = replace(
                current, claim_facts=current.claim_facts.with_objects(claim_objects)
            )
        for name, config_maps in by_kind.config_maps.items():
            object_namespace = name or namespace
            current = namespaces.get(object_namespace) or self.namespace(object_namespace)
            namespaces[object_namespace] = current.with_config_maps(config_maps)
        return replace(self, namespaces=namespaces, nodes={**self.nodes, **by_kind.nodes})

    def with_fallback(
        self,
        objects: Iterable[Mapping[str, object]],
        namespaces_with_complete_templates: Iterable[str] = (),
        nodes: Mapping[str, Node] = _NO_NODES,
    ) -> Facts:
        """Return a copy that adds a cluster's namespaces and nodes, unless they are known here.

        A namespace that is in neither is then assumed to restrict nothing.
        `namespaces_with_complete_templates`: those whose ResourceClaimTemplates are all among the
        objects.
        """
        added = Facts().with_objects(objects, "")
        fallback = added.with_complete_templates(namespaces_with_complete_templates)
        namespaces = {**fallback.namespaces, **self.namespaces}
        for name, facts in self.namespaces.items():
            config_maps = fallback.namespace(name).config_maps
            namespaces[name] = replace(facts, config_maps={**config_maps, **facts.config_maps})
        nodes = {**nodes, **self.nodes}
        return replace(self, namespaces=namespaces, nodes=nodes, unlisted_is_unknown=False)

    def with_complete_templates(self, namespaces: Iterable[str]) -> Facts:
        """Return a copy where these namespaces have no other ResourceClaimTemplates."""
        facts_by_namespace = {name: self.namespace(name) for name in namespaces}
        complete = {
            name: replace(facts, claim_facts=replace(facts.claim_facts, has_all_templates=True))
            for name, facts in facts_by_namespace.items()
        }
        return replace(self, namespaces={**self.namespaces, **complete})

    def fabric_index(self, configuration: CompiledConfiguration) -> FabricIndex:
        """Map nodes and GPUs to fabrics; call this once per change of either, never per pod."""
        return build_fabric_index(self.nodes, configuration)


class _ByKind(NamedTuple):
    """Objects by kind; the others by namespace, "" if it is unset."""

    namespaces: dict[str, NamespaceFacts]
    memory_limit_rejections: dict[str, list[str]]
    nodes: dict[str, Node]
    claims: dict[str, list[ClaimObject]]
    config_maps: dict[str, dict[str, Mapping[str, str | None]]]


def _by_kind(objects: Iterable[Mapping[str, object]]) -> _ByKind:
    by_kind = _ByKind({}, {}, {}, {}, {})
    namespaces, memory_limit_rejections, nodes, claims, config_maps = by_kind
    for item in objects:
        space, name = key_of(item)
        match item.get("kind"):
            case "Namespace":
                namespaces[name] = namespace_of(item)
            case "Node":
                nodes[name] = node_of(item)
            case "LimitRange":
                memory_limit_rejections.setdefault(space, []).append(limit_range_rejection(item))
            case "ResourceQuota":
                memory_limit_rejections.setdefault(space, []).append(quota_rejection(item))
            case "ResourceClaimTemplate" | "ResourceClaim" as kind:
                claims.setdefault(space, []).append((kind, name, requested_classes(item)))
            case "ConfigMap":
                config_maps.setdefault(space, {})[name] = config_map_data(item)
            case _:
                pass
    return by_kind


def key_of(item: Mapping[str, object]) -> tuple[str, str]:
    """Return an object's namespace ("" if it has none) and name."""
    return ClusterObject(item).key


def namespace_of(item: Mapping[str, object]) -> NamespaceFacts:
    """Return the facts of a Namespace object."""
    namespace = ClusterObject(item)
    return NamespaceFacts(
        name=namespace.name, labels=namespace.labels, annotations=namespace.annotations
    )


def limit_range_rejection(item: Mapping[str, object]) -> str:
    """Return why a LimitRange rejects pods without a memory limit, or "" if it does not."""
    limits = LimitRange(item)
    field = next(limits.memory_bounds(), None)
    return f"LimitRange {limits.name} sets {field}.memory" if field else ""


def quota_rejection(item: Mapping[str, object]) -> str:
    """Return why a ResourceQuota rejects pods without a memory limit, or "" if it does not."""
    quota = ResourceQuota(item)
    return (
        f"ResourceQuota {quota.name} counts limits.memory" if "limits.memory" in quota.hard else ""
    )
