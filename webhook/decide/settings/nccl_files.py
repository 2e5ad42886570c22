"""The files with NCCL's variables that a container mounts.

NCCL reads $NCCL_CONF_FILE, or without that ~/.nccl.conf, and then /etc/nccl.conf: lines NAME=VALUE,
comments with `#` in the first column. It sets only variables that are not set (nccl,
src/misc/param.cc). Only ConfigMaps can be read, and only a preview may have them. What the image
has at these paths is unknown, and so not considered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from webhook.decide.settings.setting import CommandSettings, Setting
from webhook.errors import ShapeError
from webhook.model.config_maps import ConfigMaps
from webhook.model.pod import Container, Pod, PodManifest, at
from webhook.model.pod.volumes import clean

_VARIABLE = "NCCL_CONF_FILE"
_OF_ROOT, _OF_SYSTEM = "/root/.nccl.conf", "/etc/nccl.conf"
#: The most items of a ConfigMap's volume that are read for each container.
_MAX_ITEMS = 32


class NcclFile(NamedTuple):
    """A file that NCCL reads, and whose content the image does not have."""

    path: str
    config_map: str = ""  #: "" for another source
    key: str = ""


def nccl_files(pod: Pod, container: Container) -> Iterator[NcclFile]:
    """Yield the files in NCCL's order.

    A volume of the downward API has the pod's own annotations, such as ours, and is left out.
    """
    chosen = container.env.get(_VARIABLE, "")
    if chosen != "":
        yield _chosen(pod, container, chosen)
    for path in (_OF_ROOT, _OF_SYSTEM) if chosen == "" else (_OF_SYSTEM,):
        mount = container.mount_at(path)
        name = mount.get("subPath") if mount else None
        if mount and isinstance(name, str):  # without a subPath, a directory is there
            yield from _mounted(pod, path, mount, name)


def _chosen(pod: Pod, container: Container, written: str | None) -> NcclFile:
    """Return the file of NCCL_CONF_FILE: mounted itself, or in a mounted directory."""
    path = clean(written or "")
    for above in (path, path.rpartition("/")[0]) if written else ():
        mount = container.mount_at(above)
        if mount is not None:
            parts = (mount.get("subPath"), path[len(above) :].strip("/"))
            name = "/".join(part for part in parts if isinstance(part, str) and part)
            return next(_mounted(pod, path, mount, name), NcclFile(path))
    return NcclFile(path if written else f"${_VARIABLE}")


def _mounted(pod: Pod, path: str, mount: Mapping[str, object], name: str) -> Iterator[NcclFile]:
    """Yield the file `name` of a mounted volume; nothing for the downward API."""
    volume = pod.volume(str(mount.get("name")))
    if volume is not None and "downwardAPI" not in volume.manifest:
        config_map = at(volume.manifest, ("configMap", "name"))
        key = _key(at(volume.manifest, ("configMap", "items")), name)
        yield NcclFile(path, config_map if isinstance(config_map, str) and key else "", key)


def _key(items: object, name: str) -> str:
    """Return the key whose value a file of a ConfigMap has; "" if it is not known."""
    if not isinstance(items, list):
        return name
    keys = (at(item, ("key",)) for item in items[:_MAX_ITEMS] if at(item, ("path",)) == name)
    key = next(keys, "")
    return key if isinstance(key, str) else ""


def config_maps_with_nccl_files(manifest: PodManifest) -> Iterator[str]:
    """Yield the names of the ConfigMaps that have such files; none for a malformed pod."""
    try:
        pod = Pod(manifest)
        for container in pod.containers:
            yield from (file.config_map for file in nccl_files(pod, container))
    except ShapeError:
        return


def with_nccl_files(
    settings: CommandSettings, pod: Pod, container: Container, config_maps: ConfigMaps
) -> CommandSettings:
    """Return a container's settings with those in its files: each applies where none is before."""
    certain = dict(settings.certain)
    for file in nccl_files(pod, container):
        for name, value in _variables(config_maps.get(file.config_map, {}).get(file.key, "")):
            if name not in certain or certain[name].removed:
                certain[name] = Setting(name, value, file.path, default=True)
    return settings if certain == settings.certain else settings._replace(certain=certain)


def unseen_nccl_file(pod: Pod, container: Container, config_maps: ConfigMaps) -> str:
    """Return the path of a file whose content is not known, or ""."""
    unseen = (file for file in nccl_files(pod, container) if file.config_map not in config_maps)
    return next((file.path for file in unseen), "")


def _variables(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.startswith("NCCL_"):
            yield name, value
