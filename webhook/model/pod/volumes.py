"""A pod's volumes and their mount paths."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from webhook.model.json import Json, JsonObject
from webhook.model.pod.reading import Path, at, read_mapping, read_mappings

VOLUMES: Path = ("spec", "volumes")
#: The most sources of a projected volume that are read.
_MAX_SOURCES = 32


class Volume:
    """A volume of a pod; its source is read on demand."""

    __slots__ = ("manifest", "path")

    def __init__(self, manifest: JsonObject, path: Path) -> None:
        self.manifest = manifest
        self.path = path

    @property
    def name(self) -> Json:
        """Its name, unparsed."""
        return self.manifest.get("name")

    @property
    def host_path(self) -> Json:
        """The path of its hostPath on the node, unparsed; None for another source."""
        return at(self.manifest, ("hostPath", "path"))

    @property
    def infiniband_path(self) -> str:
        """Its hostPath, cleaned, if that exposes the node's RDMA devices; "" otherwise."""
        written = self.host_path
        path = clean(written) if isinstance(written, str) else ""
        shows = path in ("/dev", _INFINIBAND) or path.startswith(f"{_INFINIBAND}/")
        return path if shows else ""

    @property
    def is_memory(self) -> bool:
        """Whether it is an emptyDir in memory; False if it is malformed."""
        return bool(at(self.manifest, ("emptyDir", "medium")) == "Memory")

    @property
    def is_unbounded_memory(self) -> bool:
        """Whether it is an emptyDir in memory without sizeLimit."""
        if not self.manifest.get("emptyDir"):
            return False
        source = read_mapping(self.manifest, ("emptyDir",), self.path)
        return source.get("medium") == "Memory" and source.get("sizeLimit") is None

    @property
    def downward_api_files(self) -> list[tuple[Json, Json]]:
        """The files of a downwardAPI volume, and the fields of the pod that they contain."""
        file_items = at(self.manifest, ("downwardAPI", "items"))
        return [
            (at(item, ("path",)), at(item, ("fieldRef", "fieldPath")))
            for item in (file_items if isinstance(file_items, list) else ())
        ]

    @property
    def projected_sources(self) -> list[JsonObject]:
        """The first sources of a projected volume; [] if it is malformed."""
        sources = at(self.manifest, ("projected", "sources"))
        first = sources[:_MAX_SOURCES] if isinstance(sources, list) else ()
        return [source for source in first if isinstance(source, dict)]

    @property
    def config_maps(self) -> list[str]:
        """The names of the ConfigMaps that it has files of.

        Those of the volume that admission adds to each pod are left out: they are certificates.
        """
        sources = (self.manifest, *self.projected_sources)
        names = [at(source, ("configMap", "name")) for source in sources if "configMap" in source]
        return [name for name in names if isinstance(name, str) and name not in _CERTIFICATES]

    def projected_item_lists(self) -> Iterator[list[JsonObject]]:
        """Yield each list of downward API items, and the list of projected sources.

        The caller limits the work by the entries of all of them, so it needs the sources, too.
        """
        if "downwardAPI" in self.manifest:
            yield read_mappings(self.manifest, ("downwardAPI", "items"), self.path)
        if "projected" in self.manifest:
            sources = read_mappings(self.manifest, ("projected", "sources"), self.path)
            yield sources
            for index, source in enumerate(sources):
                if "downwardAPI" in source:
                    path = (*self.path, "projected", "sources", index)
                    yield read_mappings(source, ("downwardAPI", "items"), path)


def referenced_resource(source: Json) -> Json:
    """Return the resource that an item of the downward API, or a `valueFrom`, refers to."""
    return at(source, ("resourceFieldRef", "resource"))


_INFINIBAND = "/dev/infiniband"
#: The ConfigMaps in the volume with the token: of Kubernetes, and of OpenShift.
_CERTIFICATES = frozenset({"kube-root-ca.crt", "openshift-service-ca.crt"})


def clean(mount_path: str) -> str:
    """Return a mountPath as the container runtime resolves it: absolute, no `//`, `.` or `..`.

    The kubelet puts `/` in front of a relative path (pkg/kubelet/kubelet_pods.go,
    makeMounts), and containerd cleans the rest.
    """
    if mount_path.startswith("/") and "//" not in mount_path and "/." not in mount_path:
        return mount_path.rstrip("/") or "/"  # nearly all paths are clean
    return posixpath.normpath("/" + mount_path.lstrip("/"))


def directories_above(path: str) -> Iterator[str]:
    """Yield the directories above a clean path, the nearest first."""
    while path != "/":
        path = posixpath.dirname(path)
        yield path
