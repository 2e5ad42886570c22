"""The objects of an input that are facts about the cluster of its pods.

A Namespace, LimitRange, ResourceQuota, Node, ResourceClaimTemplate or ResourceClaim counts for all
pods of the input, anywhere in it, alone or in a List. It takes precedence over the same object in
`--facts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.admission.registration import Registration
from webhook.config.files import FACT_KINDS
from webhook.errors import ShapeError
from webhook.kube.records import text_of
from webhook.model.facts import Facts, key_of
from webhook.model.nodes import Node
from webhook.preview.workloads.objects import Header
from webhook.text.yaml.documents import Document

_CLUSTER_WIDE = frozenset({"Namespace", "Node"})
_LISTS = frozenset({"List", *(f"{kind}List" for kind in FACT_KINDS)})


class LiveFacts(NamedTuple):
    """The facts read from a cluster (webhook.preview.live)."""

    #: Namespaces, LimitRanges, ResourceQuotas, and if needed ResourceClaimTemplates and
    #: ResourceClaims.
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
    for document in documents:
        for item in _objects(document.value):
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


def _identity(manifest: Mapping[str, object], namespace: str) -> tuple[str, str, str]:
    """Return the kind, the namespace and the name of an object."""
    object_namespace, name = key_of(manifest)
    kind = str(manifest["kind"])
    return kind, "" if kind in _CLUSTER_WIDE else object_namespace or namespace, name


def _objects(manifest: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    if is_fact(manifest):
        yield manifest
        return
    items = manifest.get("items") if _kind(manifest) in _LISTS else None
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        # The items of a typed list have no kind.
        typed = {"kind": str(manifest["kind"]).removesuffix("List"), **item}
        if is_fact(typed):
            yield typed


def _kind(manifest: Mapping[str, object]) -> str:
    """Return the kind of an object; "" if it is not a string."""
    return text_of(manifest.get("kind"))


def _title(manifest: Mapping[str, object]) -> str:
    return f"{manifest['kind']} {Header.of(manifest).full_name}".rstrip()
