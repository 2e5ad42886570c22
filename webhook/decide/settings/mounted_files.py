"""The files that a container mounts, and the ConfigMaps that have their content.

Sources: the volumes `configMap` and `projected` of the Pod API, with `items` and `subPath`. Of
several sources of a projected volume that have the same file, the last counts (kubernetes,
pkg/volume/projected/projected.go, collectData).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from webhook.model.config_maps import ConfigMaps, DataKey
from webhook.model.json import Json, JsonObject
from webhook.model.pod import Container, Pod, at
from webhook.model.pod.volumes import Volume, clean, directories_above

#: The most items of a volume that are read for a file.
_MAX_ITEMS = 32
#: The longest path, in characters, and the most directories in it, whose file is looked for.
_MAX_LENGTH, _MAX_DEPTH = 1024, 32


class FileText(NamedTuple):
    """The content of a file: None if it is not known, "" if there is no such file."""

    text: str | None
    key: DataKey | None  #: None for another source than a ConfigMap


class MountedFile(NamedTuple):
    """A file of a volume: the keys that may have its content, the first of these that exists."""

    path: str
    #: None stands for another source than a ConfigMap.
    keys: tuple[DataKey | None, ...] = (None,)

    def read(self, config_maps: ConfigMaps) -> FileText:
        """Return its content."""
        for key in self.keys:
            if key is None or key.config_map not in config_maps:
                return FileText(None, key)
            data = config_maps[key.config_map]
            if key.key in data:
                return FileText(data[key.key], key)
        return FileText("", None)


def mounted_file(pod: Pod, container: Container, path: str) -> MountedFile | None:
    """Return the file at a clean path; None if no volume has it, or only the downward API."""
    if len(path) > _MAX_LENGTH or path.count("/") > _MAX_DEPTH:
        return None
    for above in (path, *directories_above(path)):
        mount = container.mount_at(above)
        if mount is not None:
            return file_of_mount(pod, path, mount, path[len(above) :])
    return None


def file_of_mount(pod: Pod, path: str, mount: JsonObject, below: str) -> MountedFile | None:
    """Return the file `below` a mount, "" for the mount itself, as `mounted_file`."""
    volume = pod.volume(str(mount.get("name")))
    if volume is None or "downwardAPI" in volume.manifest:
        return None
    parts = (mount.get("subPath"), below.strip("/"))
    name = clean("/".join(part for part in parts if isinstance(part, str))).strip("/")
    keys = (None,) if mount.get("subPathExpr") else tuple(_keys(volume, name))
    return MountedFile(path, keys) if name and keys else None


def config_map_mounts(pod: Pod, container: Container) -> Iterator[tuple[str, list[str]]]:
    """Yield the mounts of volumes from ConfigMaps: mountPath, and the names of the ConfigMaps."""
    for mount in container.mounts if pod.config_map_volumes else ():
        path, names = mount.get("mountPath"), pod.config_map_volumes.get(str(mount.get("name")))
        if names and isinstance(path, str):
            yield clean(path), names


def _keys(volume: Volume, name: str) -> Iterator[DataKey | None]:
    """Yield the keys that may have the file `name` of a volume, None for what is not known."""
    if "projected" not in volume.manifest:
        yield _key(volume.manifest, name)
        return
    for source in reversed(volume.projected_sources):
        key, items = _key(source, name), at(source, ("secret", "items"))
        if key is not None or ("secret" in source and (not items or name in _paths(items))):
            yield key


def _key(source: Mapping[str, Json], name: str) -> DataKey | None:
    """Return the key of a ConfigMap with the file `name`; None if it is not known."""
    config_map = at(source, ("configMap", "name"))
    items = at(source, ("configMap", "items"))
    key = _paths(items).get(name) if isinstance(items, list) else name
    return DataKey(config_map, key) if isinstance(config_map, str) and key else None


def _paths(items: Json) -> dict[str, str]:
    """Return the paths of a volume's items, each with its key."""
    pairs = [
        (at(item, ("path",)), at(item, ("key",)))
        for item in (items[:_MAX_ITEMS] if isinstance(items, list) else ())
    ]
    return {
        path: key for path, key in reversed(pairs) if isinstance(path, str) and isinstance(key, str)
    }
