"""Views of the cluster objects that decisions depend on, besides pods: each field is read once.

A ShapeError names a malformed field, which no API server returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from webhook.model.json import JsonObject
from webhook.model.pod.reading import Field, Path, as_flag, as_mapping, as_mappings, as_string, at


class ClusterObject:
    """An object of any kind; `manifest` is as sent by the API server."""

    def __init__(self, manifest: Mapping[str, object]) -> None:
        self.manifest = manifest

    #: The path of the manifest, which is the root.
    path: Path = ()
    metadata = Field(as_mapping, "metadata")
    #: Its labels and annotations; the values may have any type.
    labels = Field(as_mapping, "metadata", "labels")
    annotations = Field(as_mapping, "metadata", "annotations")

    @property
    def owner_kinds(self) -> list[object]:
        """The kinds of its owners; [] for a malformed list."""
        owners = at(self.manifest, ("metadata", "ownerReferences"))
        listed = owners if isinstance(owners, list) else ()
        return [owner.get("kind") for owner in listed if isinstance(owner, dict)]

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

    #: Its resources for pods, and in total: resource → unparsed quantity.
    allocatable = Field(as_mapping, "status", "allocatable")
    capacity = Field(as_mapping, "status", "capacity")
    #: Whether it is cordoned.
    unschedulable = Field(as_flag, "spec", "unschedulable")
    taints = Field(as_mappings, "spec", "taints")
    _conditions = Field(as_mappings, "status", "conditions")

    @property
    def has_conditions(self) -> bool:
        """Whether its kubelet, or the node controller in its place, has ever reported."""
        return bool(self._conditions)

    @property
    def is_ready(self) -> bool:
        """Whether its kubelet reports that it is ready; False if the kubelet never reported."""
        return any(
            condition.get("type") == "Ready" and condition.get("status") == "True"
            for condition in self._conditions
        )


class LimitRange(ClusterObject):
    """A LimitRange."""

    _limits = Field(as_mappings, "spec", "limits")

    def memory_bounds(self) -> Iterator[str]:
        """Yield the fields that make it reject containers or pods without a memory limit."""
        for limit in self._limits:
            if limit.get("type") in ("Container", "Pod"):
                for field in ("max", "maxLimitRequestRatio"):
                    if "memory" in as_mapping(limit.get(field), (field,)):
                        yield field


class ResourceQuota(ClusterObject):
    """A ResourceQuota; `hard` has the resources that it counts: resource → quantity."""

    hard = Field(as_mapping, "spec", "hard")


_REQUESTS: tuple[str, ...] = ("spec", "devices", "requests")


class ResourceClaim(ClusterObject):
    """A ResourceClaim, or a ResourceClaimTemplate, whose spec contains the spec of the claims.

    Source: resource.k8s.io/v1.
    """

    _spec = Field(as_mapping, "spec")
    _claim_requests = Field(as_mappings, *_REQUESTS)
    _template_requests = Field(as_mappings, "spec", *_REQUESTS)

    @property
    def requests(self) -> Iterator[DeviceRequest]:
        """Its requests for devices."""
        is_template = "spec" in self._spec
        path = ("spec", *_REQUESTS) if is_template else _REQUESTS
        requests = self._template_requests if is_template else self._claim_requests
        return (DeviceRequest(request, (*path, index)) for index, request in enumerate(requests))


class DeviceRequest:
    """A request in a claim, at `path`."""

    def __init__(self, manifest: JsonObject, path: Path) -> None:
        self.manifest = manifest
        self.path = path

    #: None if it has no name.
    name = Field(as_string, "name")
    _exactly = Field(as_mapping, "exactly")
    _first_available = Field(as_mappings, "firstAvailable")

    @property
    def device_classes(self) -> tuple[str, ...]:
        """Its device class, or its alternatives' classes; v1beta1 has it in the request itself."""
        sections = (self._exactly, self.manifest, *self._first_available)
        field = "deviceClassName"
        names = (as_string(section.get(field), (field,), self.path) for section in sections)
        return tuple(name for name in names if name is not None)
