"""A pod, each of its fields read once."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.model.json import Json, JsonObject
from webhook.model.pod.container import CONTAINER_FIELDS, Container
from webhook.model.pod.node_selection import HOSTNAME, NODE_TERMS, NodeTerm
from webhook.model.pod.reading import (
    Field,
    Path,
    PodManifest,
    as_flag,
    as_items,
    as_mapping,
    at,
    derived,
    items,
    mapping,
    text,
)
from webhook.model.pod.security import User, user_of
from webhook.model.pod.volumes import VOLUMES, Volume

#: The number of steps to a container: ("spec", "containers", 0).
CONTAINER_DEPTH = 3


class Pod:
    """A pod to be read; its manifest stays the plain dict that arrived.

    A field is read when it is first asked for; a ShapeError then names its place.
    """

    def __init__(self, manifest: PodManifest) -> None:
        self.manifest = manifest
        self._containers: dict[Path, Container] = {}
        # Every reader needs it, so it is read at once where its shape is right.
        spec = manifest.get("spec")
        if spec.__class__ is dict:
            self.spec = spec

    #: The place of the manifest in itself.
    path: Path = ()
    #: Its labels and annotations, whose values may be of any type.
    labels = Field(as_mapping, "metadata", "labels")
    annotations = Field(as_mapping, "metadata", "annotations")
    spec = Field(as_mapping, "spec")
    #: The labels that its node must have.
    node_selector = Field(as_mapping, "spec", "nodeSelector")
    #: The entries of `spec.volumes`.
    volume_items = Field(as_items, "spec", "volumes")
    #: The entries of `spec.resourceClaims`.
    resource_claims = Field(as_items, "spec", "resourceClaims")
    #: The resources of the whole pod, which are not those of its containers.
    resources = Field(as_mapping, "spec", "resources")
    #: What its runtime class adds to its requests: resource → quantity.
    overhead = Field(as_mapping, "spec", "overhead")
    #: Whether it is in the namespaces of its node.
    host_ipc = Field(as_flag, "spec", "hostIPC")
    host_pid = Field(as_flag, "spec", "hostPID")

    def annotation(self, key: str) -> str | None:
        """Return an annotation, None if it is absent; raise ShapeError if it is no string."""
        return text(self.manifest, ("metadata", "annotations", key))

    @property
    def namespace(self) -> str:
        """Its namespace, "" if it names none."""
        written = at(self.manifest, ("metadata", "namespace"))
        return written if isinstance(written, str) else ""

    @derived
    def containers(self) -> tuple[Container, ...]:
        """All containers: init containers and native sidecars, then app, then ephemeral ones."""
        return tuple(
            [
                self._container(("spec", field, index), manifest)
                for field in CONTAINER_FIELDS
                if field in self.spec
                for index, manifest in enumerate(self.container_items(field))
            ]
        )

    def container_items(self, field: str) -> list[JsonObject]:
        """Return the items of one of CONTAINER_FIELDS, as they are written."""
        return as_items(self.spec.get(field), ("spec", field))

    def container(self, path: Path) -> Container:
        """Return the container at `path`."""
        found = self._containers.get(path)
        return found or self._container(path, mapping(self.manifest, path))

    def _container(self, path: Path, manifest: JsonObject) -> Container:
        found = self._containers.get(path)
        if found is None:
            found = self._containers[path] = Container(path, manifest)
        return found

    def user_of(self, container: Container) -> User:
        """Return which user one of its containers runs as."""
        return user_of(self.spec, container.manifest)

    def volumes(self, source: str, other: str = "") -> list[Volume]:
        """List its volumes that have a source such as `hostPath`, or the other one."""
        return [
            Volume(one, (*VOLUMES, place))
            for place, one in enumerate(self.volume_items)
            if source in one or other in one
        ]

    def volume(self, name: str) -> Volume | None:
        """Return its volume with that name."""
        for place, one in enumerate(self.volume_items):
            if one.get("name") == name:
                return Volume(one, (*VOLUMES, place))
        return None

    @derived
    def infiniband_volumes(self) -> dict[str, str]:
        """Its volumes that show RDMA devices of the node: name → the node's path.

        Only a privileged container, or one to which a device plugin gave a device, may open it
        (the cgroup's device controller).
        """
        found: dict[str, str] = {}
        for volume in self.volumes("hostPath"):
            if volume.infiniband_path:
                found[str(volume.name)] = volume.infiniband_path
        return found

    @property
    def requests(self) -> JsonObject:
        """What the whole pod requests: resource → quantity, as it is written."""
        return mapping(self.resources, ("requests",))

    @property
    def limits(self) -> JsonObject:
        """The limits of the whole pod: resource → quantity, as it is written."""
        return mapping(self.resources, ("limits",))

    @property
    def operating_system(self) -> Json:
        """The operating system that it says it is for, as it is written."""
        return at(self.manifest, ("spec", "os", "name"))

    @property
    def runtime_class(self) -> Json:
        """Its `runtimeClassName`, as it is written."""
        return self.spec.get("runtimeClassName")

    @property
    def host_network(self) -> bool:
        """Whether it is in the network of its node."""
        return self.spec.get("hostNetwork") is True

    @property
    def has_user_namespace(self) -> bool:
        """Whether its users are not those of its node."""
        return self.spec.get("hostUsers") is False

    @derived
    def node_terms(self) -> tuple[NodeTerm, ...]:
        """The terms of its required node affinity, of which a node must satisfy one."""
        if "affinity" not in self.spec:
            return ()
        listed = items(self.manifest, NODE_TERMS)
        return tuple([NodeTerm(one, (*NODE_TERMS, place)) for place, one in enumerate(listed)])

    @property
    def node_names(self) -> list[str]:
        """The names of the nodes that it may run on, [] if it names none."""
        name = text(self.manifest, ("spec", "nodeName"))
        name = name or text(self.manifest, ("spec", "nodeSelector", HOSTNAME))
        if name:
            return [name]
        names = [term.node_names for term in self.node_terms]
        return [name for one in names for name in one] if all(names) else []

    def required_labels(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the labels that its node must have, each with the values that would do."""
        for key, value in self.node_selector.items():
            yield key, [str(value)]
        if len(self.node_terms) == 1:
            for one in self.node_terms[0].requirements:
                if one.operator in ("In", "Exists", "Gt", "Lt"):
                    yield one.key, one.values
