"""The kinds that are watched: where to read each one, and the few fields that are kept.

An object has thousands of characters, most of them managedFields. Only the dozens that a
decision reads are kept, so that ten thousand namespaces take a few megabytes. A change of
anything else, such as the status of a quota, does not count as a change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, TypeVar, overload
from weakref import WeakValueDictionary

from webhook.model.annotations import FABRIC
from webhook.model.claims import RequestedClasses, is_made_for_pod, requested_classes
from webhook.model.facts import PSA_ENFORCE, NamespaceFacts, limit_range_of, namespace_of, quota_of
from webhook.model.nodes import Node, node_of
from webhook.model.objects import ClusterObject

#: An object as the API server writes it.
Item = Mapping[str, object]
_Kept_co = TypeVar("_Kept_co", covariant=True)
_Default = TypeVar("_Default")
_NONE: dict[str, str] = {}
#: What is kept of the metadata of a configuration.
_KEPT = ("name", "uid", "generation")
#: A kind that nobody else reads or changes gets no bookmarks: the API server sends one only if its
#: own cache of the kind has moved on (apiserver, cacher.go; seen on 1.36). So its watches end
#: before they have been silent for so long that the connection counts as lost.
QUIET = (45, 75)


class ResourceField(Enum):
    """The part of the facts that objects of a kind provide; `webhook.kube.informers` joins them."""

    NAMESPACE = "a namespace itself"
    RULE = "what a namespace requires of its pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedResource(Generic[_Kept_co]):
    """A kind of object that is watched."""

    #: The name in the path, in RBAC and in the metrics.
    resource: str
    #: The API group; "" for the core.
    group: str = ""
    version: str = "v1"
    #: The part of the facts; None if the kind provides none.
    part: ResourceField | None = None
    #: Returns what is kept of an object; falsy if decisions do not depend on the object.
    project: Callable[[Item], _Kept_co | None]
    #: The namespace of the objects; "" for those of all namespaces.
    namespace: str = ""
    #: Which objects: a field selector, such as `metadata.name=default`; "" for all.
    selector: str = ""
    #: Objects per page of a list. 500 namespaces are half a megabyte.
    page: int = 500
    #: Seconds between two pages of a list. Parsing a page holds up all other threads.
    pace: float = 0.0
    #: The requested duration of a watch in seconds; random, so that not all end at the same moment.
    #: Source: client-go, tools/cache/reflector.go (minWatchTimeout).
    lasts: tuple[int, int] = (300, 600)
    #: Whether the webhook also works without it: a list that is refused because the kind does not
    #: exist (404) or may not be read (403) counts as an empty one.
    optional: bool = False
    #: Whether, even so, only its absence (404) counts: a 403 is then a mistake to be reported.
    permitted: bool = False

    @property
    def path(self) -> str:
        """The path of the list of all objects."""
        api = f"/apis/{self.group}" if self.group else "/api"
        where = f"namespaces/{self.namespace}/" if self.namespace else ""
        return f"{api}/{self.version}/{where}{self.resource}"

    @property
    def query(self) -> dict[str, str]:
        """The parameters of every list and watch."""
        return {"fieldSelector": self.selector} if self.selector else {}


def _namespace(item: Item) -> NamespaceFacts:
    whole = namespace_of(item)
    return NamespaceFacts(
        name=whole.name,
        labels=_only(PSA_ENFORCE, whole.labels or _NONE),
        annotations=_only(FABRIC, whole.annotations),
    )


def _configuration(item: Item) -> Item:
    """Keep what was configured, and when: a change of `status` changes none of it."""
    metadata = ClusterObject(item).metadata
    kept = {key: metadata[key] for key in _KEPT if key in metadata}
    written = [
        str(one.get("time") or "")
        for one in metadata.get("managedFields") or ()
        if not one.get("subresource")
    ]
    kept["written"] = max(written, default="")
    return {**{key: item[key] for key in item if key != "status"}, "metadata": kept}


def _only(key: str, values: Mapping[str, str]) -> Mapping[str, str]:
    return {key: values[key]} if key in values else _NONE


def _node(item: Item) -> Node:
    whole = node_of(item)
    return replace(whole, labels=SharedLabels.of(whole.labels))


def _claim(item: Item) -> tuple[RequestedClasses, ...]:
    """Keep nothing of a claim that was made for one pod: nobody else names it."""
    return () if is_made_for_pod(item) else (requested_classes(item),)


NAMESPACES = WatchedResource(
    resource="namespaces", part=ResourceField.NAMESPACE, project=_namespace
)
LIMIT_RANGES = WatchedResource(
    resource="limitranges", part=ResourceField.RULE, project=limit_range_of
)
QUOTAS = WatchedResource(resource="resourcequotas", part=ResourceField.RULE, project=quota_of)
#: The one object that configures the webhook. Without its definition there is no object.
CONFIGURATIONS = WatchedResource(
    resource="fabricconfigurations",
    group="rdma.lab",
    version="v1alpha1",
    selector="metadata.name=default",
    project=_configuration,
    lasts=QUIET,
    optional=True,
    permitted=True,
)

#: Watched only where a fabric has mode dra, hence not among `KINDS`.
CLAIM_TEMPLATES: WatchedResource[tuple[RequestedClasses, ...]] = WatchedResource(
    resource="resourceclaimtemplates",
    group="resource.k8s.io",
    project=lambda item: (requested_classes(item),),  # a template may request nothing
    lasts=QUIET,
    optional=True,
)
#: Watched with the templates. There may be several for each pod, but those are not kept; a page of
#: 100 has 0.2 MB, as that of nodes.
CLAIMS = replace(CLAIM_TEMPLATES, resource="resourceclaims", project=_claim, page=100, pace=0.05)

#: The kinds that the facts are always made of.
KINDS = (NAMESPACES, LIMIT_RANGES, QUOTAS)
#: Not part of the facts that decisions wait for: they are evidence, and may be forbidden.
NODES = WatchedResource(resource="nodes", project=_node, page=10, pace=0.05, optional=True)


# The labels of thousands of nodes in little memory.
#
# A node with GPUs has fifty to a hundred labels, most of them from node feature discovery and
# equal on many nodes. As dicts, those of 10,000 nodes would take up to 100 MB. Here the names are
# kept once for all nodes that have the same, and equal values once for all.


class LabelNames:
    """The names of labels, each with the place of its value; shared by nodes with the same."""

    __slots__ = ("__weakref__", "places")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.places = {sys.intern(name): place for place, name in enumerate(names)}


#: Those in use, by their names in order.
_SHARED: WeakValueDictionary[tuple[str, ...], LabelNames] = WeakValueDictionary()


class SharedLabels(Mapping[str, str]):  # noqa: PLW1641 -- not hashable, as a dict
    """The labels of one object, which cannot be changed."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: LabelNames, values: tuple[str, ...]) -> None:
        self._names = names
        self._values = values

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> SharedLabels:
        """Return the same labels; call this in one thread only."""
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
        """Return a label's value; faster than the one of Mapping, which catches an exception."""
        place = self._names.places.get(name)
        return default if place is None else self._values[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.places)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SharedLabels) and self._names is other._names:
            return self._values == other._values
        return super().__eq__(other)
