"""The objects of an input that are facts about the cluster of its pods.

A Namespace, LimitRange, ResourceQuota, Node, ResourceClaimTemplate or ResourceClaim counts for all
pods of the input, anywhere in it, alone or in a List; a ConfigMap, if a pod gets variables or a
script from it.
It takes precedence over the same object in `--facts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.admission.registration import Registration
from webhook.config.files import FACT_KINDS
from webhook.decide.settings.config_map_names import config_map_names
from webhook.errors import ShapeError
from webhook.kube.records import text_of
from webhook.model.facts import Facts, key_of
from webhook.model.nodes import Node
from webhook.preview.workloads.derived import derived_templates
from webhook.preview.workloads.objects import ObjectMetadata
from webhook.preview.workloads.templates import Template, templates_of
from webhook.text.yaml.documents import Document

_CLUSTER_WIDE = frozenset({"Namespace", "Node"})
_CONFIG_MAP = "ConfigMap"
_LISTS = frozenset({"List", *(f"{kind}List" for kind in (*FACT_KINDS, _CONFIG_MAP))})
#: A namespace and the name of a ConfigMap in it.
ConfigMapKey = tuple[str, str]


class LiveFacts(NamedTuple):
    """The facts read from a cluster (webhook.preview.live)."""

    #: Namespaces, LimitRanges, ResourceQuotas, and if needed ResourceClaimTemplates,
    #: ResourceClaims and ConfigMaps.
    objects: tuple[Mapping[str, object], ...] = ()
    #: Node name → node.
    nodes: Mapping[str, Node] = {}
    #: The registrations of our webhook; None if they are unknown.
    registrations: tuple[Registration, ...] | None = None
    #: Notes, for example on what could not be read and what is assumed instead.
    notes: tuple[str, ...] = ()
    #: The namespaces whose ResourceClaimTemplates are all among the objects.
    namespaces_with_complete_templates: tuple[str, ...] = ()


def is_fact(manifest: Mapping[str, object]) -> bool:
    """Return whether a document is itself a fact about the cluster."""
    return _kind(manifest) in FACT_KINDS


def with_input_facts(
    facts: Facts, documents: Sequence[Document], namespace: str, live: LiveFacts
) -> tuple[Facts, list[str]]:
    """Add the facts in the documents, and return a note for each object, used or not.

    Objects without a namespace are taken to be in `namespace`. An object that no cluster accepts
    is omitted; its note has the reason. The documents override objects and nodes in `live`, and
    `facts` overrides everything in `live` about its namespaces and nodes.
    """
    input_objects: list[Mapping[str, object]] = []
    notes: list[str] = []
    for item in _facts_in(documents, namespace):
        try:
            Facts().with_objects([item], namespace)
        except ShapeError as error:
            notes.append(f"{_title(item)}: not taken into account, since {error}")
        else:
            input_objects.append(item)
            notes.append(f"{_title(item)}: taken into account")
    if live.objects or live.nodes:
        input_identities = {_identity(item, namespace) for item in input_objects}
        live_objects = (
            manifest
            for manifest in live.objects
            if _identity(manifest, namespace) not in input_identities
        )
        facts = facts.with_fallback(
            live_objects, live.namespaces_with_complete_templates, live.nodes
        )
    return (facts.with_objects(input_objects, namespace) if input_objects else facts), notes


def config_map_keys(templates: Iterable[Template], default_namespace: str) -> set[ConfigMapKey]:
    """Return the ConfigMaps on which decisions on these pods depend.

    Pods without a namespace are in `default_namespace`.
    """
    return {
        (template.namespace or default_namespace, name)
        for template in templates
        for name in config_map_names(template.pod)
    }


def is_used(manifest: Mapping[str, object], facts: Facts, namespace: str) -> bool:
    """Return whether a document is a fact, or a ConfigMap that is among the facts."""
    if _kind(manifest) != _CONFIG_MAP:
        return is_fact(manifest)
    key = _config_map_key(manifest, namespace)
    return key is not None and key[1] in facts.namespace(key[0]).config_maps


def _config_map_key(manifest: Mapping[str, object], namespace: str) -> ConfigMapKey | None:
    """Return the namespace and the name of a ConfigMap; None if its metadata is malformed."""
    try:
        _, object_namespace, name = _identity(manifest, namespace)
    except ShapeError:
        return None
    return object_namespace, name


def _identity(manifest: Mapping[str, object], namespace: str) -> tuple[str, str, str]:
    """Return the kind, the namespace and the name of an object."""
    object_namespace, name = key_of(manifest)
    kind = str(manifest["kind"])
    return kind, "" if kind in _CLUSTER_WIDE else object_namespace or namespace, name


def _facts_in(documents: Sequence[Document], namespace: str) -> list[Mapping[str, object]]:
    """List the facts in the documents, without ConfigMaps on which no decision depends."""
    items = [item for document in documents for item in _objects(document.value)]
    if not any(_kind(item) == _CONFIG_MAP for item in items):
        return items
    templates = (
        template
        for document in documents
        for template in (*templates_of(document.value), *derived_templates(document.value))
    )
    used = config_map_keys(templates, namespace)
    return [
        item
        for item in items
        if _kind(item) != _CONFIG_MAP or _config_map_key(item, namespace) in used
    ]


def _objects(manifest: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    if _may_be_fact(manifest):
        yield manifest
        return
    items = manifest.get("items") if _kind(manifest) in _LISTS else None
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        # The items of a typed list have no kind.
        typed = {"kind": str(manifest["kind"]).removesuffix("List"), **item}
        if _may_be_fact(typed):
            yield typed


def _may_be_fact(manifest: Mapping[str, object]) -> bool:
    return is_fact(manifest) or _kind(manifest) == _CONFIG_MAP


def _kind(manifest: Mapping[str, object]) -> str:
    """Return the kind of an object; "" if it is not a string."""
    return text_of(manifest.get("kind"))


def _title(manifest: Mapping[str, object]) -> str:
    return f"{manifest['kind']} {ObjectMetadata.of(manifest).full_name}".rstrip()
