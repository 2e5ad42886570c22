"""The watched kinds: the path of each, and the projection of its objects.

An object has thousands of characters, most of them managedFields. A projection has only the
dozens that a decision reads, so that ten thousand namespaces take a few megabytes. A change of
anything else, such as the status of a quota, does not count as a change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, ValuesView
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Generic, TypeVar, overload
from weakref import WeakValueDictionary

from webhook.errors import ShapeError
from webhook.kube.api import path_segment
from webhook.model.annotations import FABRIC_ANNOTATION
from webhook.model.claims import RequestedClasses, is_made_for_pod, requested_classes
from webhook.model.facts import (
    PSA_ENFORCE,
    NamespaceFacts,
    limit_range_rejection,
    namespace_of,
    quota_rejection,
)
from webhook.model.names import MAX_SUBDOMAIN_LENGTH
from webhook.model.node_availability import Availability
from webhook.model.nodes import Node, node_of
from webhook.model.objects import ClusterNode, ClusterObject
from webhook.model.pod import fields_or_empty
from webhook.model.quantity import to_integer

#: An object as sent by the API server.
Item = Mapping[str, object]
_Projection_co = TypeVar("_Projection_co", covariant=True)
_Default = TypeVar("_Default")
_EMPTY: dict[str, str] = {}
#: The projected metadata of a configuration.
_METADATA = ("name", "uid", "generation", "resourceVersion")
#: The duration of watches of a kind that nobody else reads or changes. It gets no bookmarks: the
#: API server sends one only if its own cache of the kind has moved on (apiserver, cacher.go; seen
#: on 1.36). So its watches end before their silence counts as a lost connection.
QUIET_WATCH_SECONDS = (45, 75)


class FactsPart(Enum):
    """The part of the facts that objects of a kind provide; `webhook.kube.informers` joins them."""

    NAMESPACE = "a namespace itself"
    MEMORY_LIMIT = "why a namespace requires a memory limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedResource(Generic[_Projection_co]):
    """A kind of object that is watched."""

    #: The name in paths, RBAC and metrics.
    resource: str
    #: The API group; "" for the core.
    group: str = ""
    version: str = "v1"
    #: The part of the facts that the kind provides; None without one.
    part: FactsPart | None = None
    #: Returns the projection of an object; falsy if decisions do not depend on the object.
    project: Callable[[Item], _Projection_co | None]
    #: The namespace of the objects; "" for all namespaces.
    namespace: str = ""
    #: A field selector for objects, such as `metadata.name=default`; "" for all.
    selector: str = ""
    #: Objects per page of a list. 500 namespaces are half a megabyte.
    page: int = 500
    #: Seconds between two pages of a list: parsing a page delays all other threads.
    page_pause: float = 0.0
    #: The requested duration of a watch in seconds; random, so that they do not all end at once.
    #: Source: client-go, tools/cache/reflector.go (minWatchTimeout).
    watch_seconds: tuple[int, int] = (300, 600)
    #: Whether the webhook also works without it: a list refused because the kind does not exist
    #: (404) or may not be read (403) counts as empty.
    optional: bool = False
    #: Whether a 403 is a mistake to report, so that only absence (404) counts as empty.
    forbidden_is_error: bool = False

    @property
    def path(self) -> str:
        """The path of the list of all objects."""
        api = f"/apis/{self.group}" if self.group else "/api"
        scope = f"namespaces/{path_segment(self.namespace)}/" if self.namespace else ""
        return f"{api}/{self.version}/{scope}{self.resource}"

    @property
    def query(self) -> dict[str, str]:
        """The parameters of every list and watch."""
        return {"fieldSelector": self.selector} if self.selector else {}


def _namespace(manifest: Item) -> NamespaceFacts:
    namespace = namespace_of(manifest)
    return NamespaceFacts(
        name=namespace.name,
        labels=_only(PSA_ENFORCE, namespace.labels or _EMPTY),
        annotations=_only(FABRIC_ANNOTATION, namespace.annotations),
    )


def _configuration(manifest: Item) -> Item:
    """Project the configured fields, the time of their last write, and the status."""
    metadata = ClusterObject(manifest).metadata
    projected = {key: metadata[key] for key in _METADATA if key in metadata}
    written = [
        str(manager.get("time") or "")
        for manager in metadata.get("managedFields") or ()
        if not manager.get("subresource")
    ]
    projected["written"] = max(written, default="")
    status = manifest.get("status")
    return {
        **manifest,
        "metadata": projected,
        "status": status if isinstance(status, dict) else _EMPTY,
    }


def _only(key: str, values: Mapping[str, str]) -> Mapping[str, str]:
    """Return one of the values, cut: known ones are short, but an annotation may have 256 KiB."""
    return {key: str(values[key])[:MAX_SUBDOMAIN_LENGTH]} if key in values else _EMPTY


def countable_node(manifest: Item) -> Node:
    """Return a node without the amounts that cannot be counted.

    Its kubelet decides on them, and the API server accepts 1e30. Raise ShapeError for any other
    field that no API server could have written.
    """
    try:
        return node_of(manifest)
    except ShapeError:
        return node_of(_with_countable_amounts(manifest))


def _node(manifest: Item) -> Node:
    node = countable_node(manifest)
    return replace(
        node,
        labels=SharedLabels.of(node.labels),
        resources=_shared_amounts(tuple(node.resources.items())),
        availability=_shared(node.availability),
    )


def _with_countable_amounts(manifest: Item) -> Item:
    node = ClusterNode(manifest)
    amounts = {
        field: {name: amount for name, amount in offered.items() if _is_countable(amount)}
        for field, offered in (("allocatable", node.allocatable), ("capacity", node.capacity))
    }
    return {**manifest, "status": {**fields_or_empty(manifest.get("status")), **amounts}}


def _is_countable(amount: object) -> bool:
    try:
        to_integer(amount)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def _shared(availability: Availability) -> Availability:
    """Return the same object for equal availabilities: a few are those of thousands of nodes."""
    return availability


@lru_cache(maxsize=1024)
def _shared_amounts(amounts: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    """Return the same mapping for equal amounts, which all nodes of a model have."""
    return dict(amounts)


def _claim(manifest: Item) -> tuple[RequestedClasses, ...]:
    """Drop a claim that was made for one pod: no other pod names it."""
    return () if is_made_for_pod(manifest) else (requested_classes(manifest),)


NAMESPACES = WatchedResource(resource="namespaces", part=FactsPart.NAMESPACE, project=_namespace)
# In thousands of namespaces, these have the same name, and so give the same rejection.
LIMIT_RANGES = WatchedResource(
    resource="limitranges",
    part=FactsPart.MEMORY_LIMIT,
    project=lambda item: sys.intern(limit_range_rejection(item)),
)
QUOTAS = WatchedResource(
    resource="resourcequotas",
    part=FactsPart.MEMORY_LIMIT,
    project=lambda item: sys.intern(quota_rejection(item)),
)
CONFIGURATION_NAME = "default"
#: The one object that configures the webhook. Without its definition there is no object.
CONFIGURATIONS = WatchedResource(
    resource="fabricconfigurations",
    group="rdma.lab",
    version="v1alpha1",
    selector=f"metadata.name={CONFIGURATION_NAME}",
    project=_configuration,
    watch_seconds=QUIET_WATCH_SECONDS,
    optional=True,
    forbidden_is_error=True,
)
CONFIGURATION_PATH = f"{CONFIGURATIONS.path}/{CONFIGURATION_NAME}"

#: Watched only while a fabric has mode dra, hence not among `KINDS`.
CLAIM_TEMPLATES: WatchedResource[tuple[RequestedClasses, ...]] = WatchedResource(
    resource="resourceclaimtemplates",
    group="resource.k8s.io",
    project=lambda item: (requested_classes(item),),  # a template may request nothing
    watch_seconds=QUIET_WATCH_SECONDS,
    optional=True,
)
#: Watched with the templates. There may be several for each pod, but those are dropped; a page of
#: 100 has 0.2 MB, like a page of nodes.
CLAIMS = replace(
    CLAIM_TEMPLATES, resource="resourceclaims", project=_claim, page=100, page_pause=0.05
)

#: The kinds in all facts.
KINDS = (NAMESPACES, LIMIT_RANGES, QUOTAS)
#: Evidence, and perhaps forbidden: decisions do not wait for the nodes.
NODES = WatchedResource(resource="nodes", project=_node, page=10, page_pause=0.05, optional=True)


# The labels of thousands of nodes in little memory.
#
# A node with GPUs has fifty to a hundred labels, most of them from node feature discovery and
# equal on many nodes. As dicts, the labels of 10,000 nodes would take up to 100 MB. Here nodes with
# the same label names share them, and equal values are stored once.


class LabelNames:
    """The names of labels with the places of their values, shared by nodes with the same names."""

    __slots__ = ("__weakref__", "places")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.places = {sys.intern(name): place for place, name in enumerate(names)}


#: The LabelNames in use, by their names in order.
_SHARED: WeakValueDictionary[tuple[str, ...], LabelNames] = WeakValueDictionary()


class _Values(ValuesView[str]):
    """The values of shared labels, in the order of the names."""

    _mapping: SharedLabels

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping._values)  # noqa: SLF001 -- of the same file


class SharedLabels(Mapping[str, str]):  # noqa: PLW1641 -- not hashable, as a dict
    """The immutable labels of one object."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: LabelNames, values: tuple[str, ...]) -> None:
        self._names = names
        self._values = values

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> SharedLabels:
        """Share the names and values of labels; call this in one thread only."""
        keys = tuple(labels)
        names = _SHARED.get(keys)
        if names is None:
            names = _SHARED[keys] = LabelNames(keys)
        return cls(names, tuple(map(sys.intern, labels.values())))

    def __getitem__(self, name: str) -> str:
        return self._values[self._names.places[name]]

    @overload
    def get(self, name: str) -> str | None: ...
    @overload
    def get(self, name: str, default: _Default) -> str | _Default: ...
    def get(self, name: str, default: object = None) -> object:
        """Return a label's value; faster than Mapping's method, which catches an exception."""
        place = self._names.places.get(name)
        return default if place is None else self._values[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.places)

    def values(self) -> ValuesView[str]:
        """Return all values; iterating over them is faster than with Mapping's method."""
        return _Values(self)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SharedLabels) and self._names is other._names:
            return self._values == other._values
        return super().__eq__(other)
