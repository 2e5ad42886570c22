"""The objects of a cluster that decisions depend on, besides pods: each field is read once.

A ShapeError from here names a field that no API server would have written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.model.json import JsonObject
from webhook.model.pod.reading import Field, Path, as_items, as_mapping, as_text, at


class ClusterObject:
    """An object of any kind; `manifest` is as the API server writes it."""

    def __init__(self, manifest: Mapping[str, object]) -> None:
        self.manifest = manifest

    #: The place of the manifest in itself.
    path: Path = ()
    metadata = Field(as_mapping, "metadata")
    #: Its labels and annotations, whose values may be of any type.
    labels = Field(as_mapping, "metadata", "labels")
    annotations = Field(as_mapping, "metadata", "annotations")

    @property
    def owner_kinds(self) -> list[object]:
        """The kinds of its owners; any shape that has none will do."""
        owners = at(self.manifest, ("metadata", "ownerReferences"))
        listed = owners if isinstance(owners, list) else ()
        return [one.get("kind") for one in listed if isinstance(one, dict)]

    @property
    def key(self) -> tuple[str, str]:
        """Its namespace ("" if it has none) and its name."""
        return str(self.metadata.get("namespace", "")), self.name

    @property
    def name(self) -> str:
        """Its name, "" if it has none."""
        return str(self.metadata.get("name", ""))


class ClusterNode(ClusterObject):
    """A Node."""

    #: What it offers to pods, and what it has: resource → quantity, as it is written.
    allocatable = Field(as_mapping, "status", "allocatable")
    capacity = Field(as_mapping, "status", "capacity")


class LimitRange(ClusterObject):
    """A LimitRange."""

    _limits = Field(as_items, "spec", "limits")

    def memory_bounds(self) -> Iterator[str]:
        """Yield the fields by which it rejects containers or pods without a memory limit."""
        for limit in self._limits:
            if limit.get("type") in ("Container", "Pod"):
                for field in ("max", "maxLimitRequestRatio"):
                    if "memory" in as_mapping(limit.get(field), (field,)):
                        yield field


class ResourceQuota(ClusterObject):
    """A ResourceQuota; `hard` is what it counts: resource → quantity."""

    hard = Field(as_mapping, "spec", "hard")


_REQUESTS: tuple[str, ...] = ("spec", "devices", "requests")


class ResourceClaim(ClusterObject):
    """A ResourceClaim, or a ResourceClaimTemplate, whose spec holds that of the claims.

    Source: resource.k8s.io/v1.
    """

    _spec = Field(as_mapping, "spec")
    _own = Field(as_items, *_REQUESTS)
    _of_claims = Field(as_items, "spec", *_REQUESTS)

    @property
    def requests(self) -> Iterator[DeviceRequest]:
        """The devices that it requests."""
        of_claims = "spec" in self._spec
        path = ("spec", *_REQUESTS) if of_claims else _REQUESTS
        listed = self._of_claims if of_claims else self._own
        return (DeviceRequest(one, (*path, place)) for place, one in enumerate(listed))


class DeviceRequest:
    """One request of a claim, at `path` in it."""

    def __init__(self, manifest: JsonObject, path: Path) -> None:
        self.manifest = manifest
        self.path = path

    #: None if it has no name.
    name = Field(as_text, "name")
    _exactly = Field(as_mapping, "exactly")
    _first_available = Field(as_items, "firstAvailable")

    @property
    def device_classes(self) -> tuple[str, ...]:
        """Its device class, or those of its alternatives; v1beta1 has it in the request itself."""
        places = (self._exactly, self.manifest, *self._first_available)
        field = "deviceClassName"
        names = (as_text(one.get(field), (field,), self.path) for one in places)
        return tuple(name for name in names if name is not None)
