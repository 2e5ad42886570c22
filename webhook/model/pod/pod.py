"""A view of a pod, which reads each field once."""

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
    as_mapping,
    as_mappings,
    at,
    cached_field,
    read_mapping,
    read_mappings,
    read_string,
)
from webhook.model.pod.security import User, user_of
from webhook.model.pod.volumes import VOLUMES, Volume

#: The number of steps to a container: ("spec", "containers", 0).
CONTAINER_DEPTH = 3


class Pod:
    """A view of a pod; its manifest is the original dict.

    A field is read on first access; a ShapeError then names its place.
    """

    def __init__(self, manifest: PodManifest) -> None:
        self.manifest = manifest
        self._containers: dict[Path, Container] = {}
        # Every reader needs it, so it is read at once if its shape is right.
        spec = manifest.get("spec")
        if spec.__class__ is dict:
            self.spec = spec

    #: The path of the manifest, which is the root.
    path: Path = ()
    #: Its labels and annotations; the values may have any type.
    labels = Field(as_mapping, "metadata", "labels")
    annotations = Field(as_mapping, "metadata", "annotations")
    spec = Field(as_mapping, "spec")
    #: The labels that its node must have.
    node_selector = Field(as_mapping, "spec", "nodeSelector")
    #: The entries of `spec.tolerations`, which permit nodes with taints.
    tolerations = Field(as_mappings, "spec", "tolerations")
    #: The entries of `spec.volumes`.
    volume_items = Field(as_mappings, "spec", "volumes")
    #: The entries of `spec.resourceClaims`.
    resource_claims = Field(as_mappings, "spec", "resourceClaims")
    #: The resources of the whole pod, separate from its containers' resources.
    resources = Field(as_mapping, "spec", "resources")
    #: The overhead of its runtime class, on top of its requests: resource → quantity.
    overhead = Field(as_mapping, "spec", "overhead")
    #: Whether it uses the IPC and PID namespaces of its node.
    host_ipc = Field(as_flag, "spec", "hostIPC")
    host_pid = Field(as_flag, "spec", "hostPID")

    def annotation(self, key: str) -> str | None:
        """Return an annotation, None if it is absent; raise ShapeError if it is not a string."""
        return read_string(self.manifest, ("metadata", "annotations", key))

    @property
    def namespace(self) -> str:
        """Its namespace, or ""."""
        written = at(self.manifest, ("metadata", "namespace"))
        return written if isinstance(written, str) else ""

    @cached_field
    def containers(self) -> tuple[Container, ...]:
        """All containers: init containers and native sidecars, then app, then ephemeral."""
        return tuple(
            [
                self._container(("spec", field, index), manifest)
                for field in CONTAINER_FIELDS
                if field in self.spec
                for index, manifest in enumerate(self.container_items(field))
            ]
        )

    def container_items(self, field: str) -> list[JsonObject]:
        """Return the unparsed items of one of CONTAINER_FIELDS."""
        return as_mappings(self.spec.get(field), ("spec", field))

    def container(self, path: Path) -> Container:
        """Return the container at `path`."""
        cached = self._containers.get(path)
        return cached or self._container(path, read_mapping(self.manifest, path))

    def _container(self, path: Path, manifest: JsonObject) -> Container:
        container = self._containers.get(path)
        if container is None:
            container = self._containers[path] = Container(
                path, manifest, self.manifest.get("metadata")
            )
        return container

    def user_of(self, container: Container) -> User:
        """Return the user that one of its containers runs as."""
        return user_of(self.spec, container.manifest)

    def volumes(self, source: str, other: str = "") -> list[Volume]:
        """List its volumes with the given source, such as `hostPath`, or with the other source."""
        return [
            Volume(manifest, (*VOLUMES, index))
            for index, manifest in enumerate(self.volume_items)
            if source in manifest or other in manifest
        ]

    def volume(self, name: str) -> Volume | None:
        """Return its volume with that name, or None."""
        for index, manifest in enumerate(self.volume_items):
            if manifest.get("name") == name:
                return Volume(manifest, (*VOLUMES, index))
        return None

    @cached_field
    def infiniband_volumes(self) -> dict[str, str]:
        """Its volumes that contain RDMA devices of the node: name → path on the node.

        Only a privileged container, or one with a device from a device plugin, may open them
        (the cgroup's device controller).
        """
        paths: dict[str, str] = {}
        for volume in self.volumes("hostPath"):
            if volume.infiniband_path:
                paths[str(volume.name)] = volume.infiniband_path
        return paths

    @cached_field
    def config_map_volumes(self) -> dict[str, list[str]]:
        """Its volumes that have files of ConfigMaps: name → names of the ConfigMaps."""
        volumes = self.volumes("configMap", "projected")
        config_maps = {str(volume.name): volume.config_maps for volume in volumes}
        return {name: names for name, names in config_maps.items() if names}

    @property
    def requests(self) -> JsonObject:
        """The requests of the whole pod: resource → unparsed quantity."""
        return read_mapping(self.resources, ("requests",))

    @property
    def limits(self) -> JsonObject:
        """The limits of the whole pod: resource → unparsed quantity."""
        return read_mapping(self.resources, ("limits",))

    @property
    def operating_system(self) -> Json:
        """Its operating system, unparsed."""
        return at(self.manifest, ("spec", "os", "name"))

    @property
    def runtime_class(self) -> Json:
        """Its `runtimeClassName`, unparsed."""
        return self.spec.get("runtimeClassName")

    @property
    def host_network(self) -> bool:
        """Whether it uses the network of its node."""
        return self.spec.get("hostNetwork") is True

    @property
    def has_user_namespace(self) -> bool:
        """Whether its users differ from the users of its node."""
        return self.spec.get("hostUsers") is False

    @cached_field
    def node_terms(self) -> tuple[NodeTerm, ...]:
        """The terms of its required node affinity; a node must satisfy one of them."""
        if "affinity" not in self.spec:
            return ()
        terms = read_mappings(self.manifest, NODE_TERMS)
        return tuple([NodeTerm(term, (*NODE_TERMS, index)) for index, term in enumerate(terms)])

    @property
    def node_name(self) -> str:
        """The name of the node that it is bound to, past the scheduler; "" if it is not bound."""
        return read_string(self.manifest, ("spec", "nodeName")) or ""

    @cached_field
    def has_node_terms(self) -> bool:
        """Whether it has a required node affinity, which without terms no node satisfies."""
        return "affinity" in self.spec and at(self.manifest, NODE_TERMS[:-1]) is not None

    @property
    def node_names(self) -> list[str]:
        """The names of the nodes that it may run on, [] if it names none."""
        name = self.node_name or read_string(self.manifest, ("spec", "nodeSelector", HOSTNAME))
        if name:
            return [name]
        names = [term.node_names for term in self.node_terms]
        return [node for nodes in names for node in nodes] if all(names) else []

    def required_labels(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the labels that its node must have, each with the accepted values."""
        for key, value in self.node_selector.items():
            yield key, [str(value)]
        if len(self.node_terms) == 1:
            for requirement in self.node_terms[0].requirements:
                if requirement.operator in ("In", "Exists", "Gt", "Lt"):
                    yield requirement.key, requirement.values
