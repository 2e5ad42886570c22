"""The files with NCCL's variables that a container mounts.

NCCL reads $NCCL_CONF_FILE, or without that ~/.nccl.conf, and then /etc/nccl.conf: lines NAME=VALUE,
comments with `#` in the first column. It sets only variables that are not set (nccl,
src/misc/param.cc). Only ConfigMaps can be read, and only a preview may have them. What the image
has at these paths is unknown, and so not considered.
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.decide.settings.mounted_files import MountedFile, file_of_mount, mounted_file
from webhook.decide.settings.setting import CommandSettings, Setting
from webhook.errors import ShapeError
from webhook.model.config_maps import ConfigMaps
from webhook.model.pod import Container, Pod, PodManifest
from webhook.model.pod.volumes import clean

_VARIABLE = "NCCL_CONF_FILE"
_OF_ROOT, _OF_SYSTEM = "/root/.nccl.conf", "/etc/nccl.conf"


def nccl_files(pod: Pod, container: Container) -> Iterator[MountedFile]:
    """Yield the files in NCCL's order.

    A volume of the downward API has the pod's own annotations, such as ours, and is left out.
    """
    chosen = container.env.get(_VARIABLE, "")
    if chosen != "":
        yield _chosen(pod, container, chosen)
    for path in (_OF_ROOT, _OF_SYSTEM) if chosen == "" else (_OF_SYSTEM,):
        mount = container.mount_at(path)
        if mount and isinstance(mount.get("subPath"), str):  # without, a directory is there
            file = file_of_mount(pod, path, mount, "")
            if file is not None:
                yield file


def _chosen(pod: Pod, container: Container, written: str | None) -> MountedFile:
    """Return the file of NCCL_CONF_FILE, in a volume or the image."""
    if not written:
        return MountedFile(f"${_VARIABLE}")
    path = clean(written)
    return mounted_file(pod, container, path) or MountedFile(path)


def config_maps_with_nccl_files(manifest: PodManifest) -> Iterator[str]:
    """Yield the names of the ConfigMaps that have such files; none for a malformed pod."""
    try:
        pod = Pod(manifest)
        for container in pod.containers:
            for file in nccl_files(pod, container):
                yield from (key.config_map for key in file.keys if key is not None)
    except ShapeError:
        return


def with_nccl_files(
    settings: CommandSettings, pod: Pod, container: Container, config_maps: ConfigMaps
) -> CommandSettings:
    """Return a container's settings with those in its files: each applies where none is before."""
    certain = dict(settings.certain)
    for file in nccl_files(pod, container):
        text, key = file.read(config_maps)
        source = f"{file.path}, {key.title}" if key else file.path
        for name, value in _variables(text or ""):
            if name not in certain or certain[name].removed:
                certain[name] = Setting(name, value, source, default=True, key=key)
    return settings if certain == settings.certain else settings._replace(certain=certain)


def unseen_nccl_file(pod: Pod, container: Container, config_maps: ConfigMaps) -> MountedFile | None:
    """Return the first file whose content is not known, or None."""
    files = nccl_files(pod, container)
    return next((file for file in files if file.read(config_maps).text is None), None)


def _variables(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.startswith("NCCL_"):
            yield name, value
