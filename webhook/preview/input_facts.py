"""The objects of an input that are facts about the cluster that its pods would be created in.

A Namespace, LimitRange, ResourceQuota, Node, ResourceClaimTemplate or ResourceClaim counts for all
pods of the input, wherever it stands, alone or in a List. It takes precedence over what `--facts`
says about the same object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from webhook.admission.registration import WebhookSetup
from webhook.config.files import KINDS
from webhook.errors import ShapeError
from webhook.kube.records import text_of
from webhook.model.facts import Facts, key_of
from webhook.model.nodes import Node
from webhook.preview.workloads.objects import Header
from webhook.text.yaml.documents import Document

_CLUSTER_WIDE = frozenset({"Namespace", "Node"})
_LISTS = frozenset({"List", *(f"{kind}List" for kind in KINDS)})


class LiveFacts(NamedTuple):
    """What was read of a cluster (webhook.preview.live)."""

    #: Namespaces, LimitRanges, ResourceQuotas, and where they matter ResourceClaimTemplates and
    #: ResourceClaims.
    objects: tuple[Mapping[str, object], ...] = ()
    #: Node name → node.
    nodes: Mapping[str, Node] = {}
    #: All webhooks of ours that are registered; None if that is not known.
    webhooks: tuple[WebhookSetup, ...] | None = None
    #: Sentences, also on what could not be read and what is assumed in its place.
    notes: tuple[str, ...] = ()
    #: The namespaces whose ResourceClaimTemplates are all among the objects.
    listed: tuple[str, ...] = ()


def is_fact(value: Mapping[str, object]) -> bool:
    """Return whether a document is such an object itself."""
    return _kind(value) in KINDS


def with_input_facts(
    facts: Facts, documents: Sequence[Document], namespace: str, live: LiveFacts
) -> tuple[Facts, list[str]]:
    """Return the facts with those of the documents, and a note for each object that counts.

    Objects without a namespace are taken to be in `namespace`. An object that no cluster has is
    left out, and its note says why. Of `live`, objects and nodes that the documents have too do not
    count, nor does anything about a namespace or a node that `facts` has.
    """
    found: list[Mapping[str, object]] = []
    notes: list[str] = []
    for document in documents:
        for item in _objects(document.value):
            try:
                Facts().extended([item], namespace)
            except ShapeError as error:
                notes.append(f"{_named(item)}: not used as a fact about the cluster: {error}")
            else:
                found.append(item)
                notes.append(f"{_named(item)}: used as a fact about the cluster")
    if live.objects or live.nodes:
        given = {_identity(item, namespace) for item in found}
        others = (one for one in live.objects if _identity(one, namespace) not in given)
        facts = facts.above(others, live.listed, live.nodes)
    return (facts.extended(found, namespace) if found else facts), notes


def _identity(item: Mapping[str, object], namespace: str) -> tuple[str, str, str]:
    """Return the kind, the namespace and the name of an object."""
    home, name = key_of(item)
    kind = str(item["kind"])
    return kind, "" if kind in _CLUSTER_WIDE else home or namespace, name


def _objects(value: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    if is_fact(value):
        yield value
        return
    items = value.get("items") if _kind(value) in _LISTS else None
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        # The items of a typed list have no kind.
        typed = {"kind": str(value["kind"]).removesuffix("List"), **item}
        if is_fact(typed):
            yield typed


def _kind(value: Mapping[str, object]) -> str:
    """Return the kind of an object; "" if it is no text."""
    return text_of(value.get("kind"))


def _named(item: Mapping[str, object]) -> str:
    return f"{item['kind']} {Header.of(item).place}".rstrip()
