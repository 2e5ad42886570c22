"""The files that a container mounts and from which NCCL and Open MPI take their settings.

    NCCL       $NCCL_CONF_FILE, or without that ~/.nccl.conf; then /etc/nccl.conf
    RCCL       the same variable, or without that ~/.rccl.conf; then /etc/rccl.conf
    Open MPI   ~/.openmpi/mca-params.conf; then etc/openmpi-mca-params.conf of its installation,
               which Debian's has in /etc/openmpi

NCCL's have lines NAME=VALUE, Open MPI's `parameter = value`; comments begin with `#`. A setting
applies only if neither a variable nor a file before it has the same. Only ConfigMaps can be read,
and only a preview may have them. What the image has at these paths is unknown, and so not
considered.

Sources: nccl and rccl, src/misc/param.cc; docs of Open MPI 5.0, "Setting MCA parameter values", and
opal/util/keyval_lex.l; packages of Debian 12 (openmpi-common).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from webhook.decide.launchers.openmpi import MCA_PREFIX
from webhook.decide.settings.mounted_files import MountedFile, file_of_mount, mounted_file
from webhook.decide.settings.setting import CommandSettings, Setting
from webhook.decide.shell.argv import basename
from webhook.errors import ShapeError
from webhook.model.config_maps import ConfigMaps
from webhook.model.pod import Container, Pod, PodManifest
from webhook.model.pod.volumes import clean

_VARIABLE = "NCCL_CONF_FILE"
_OF_ROOT = ("/root/.nccl.conf", "/root/.rccl.conf")
_OF_SYSTEM = ("/etc/nccl.conf", "/etc/rccl.conf")
#: Open MPI's files, the user's first, each with the ends of the directories in which
#: Open MPI looks for it.
_OPENMPI_FILES = {
    "mca-params.conf": ("/.openmpi",),
    "openmpi-mca-params.conf": ("/etc/openmpi", "/openmpi/etc", "/ompi/etc"),
}


def nccl_files(pod: Pod, container: Container) -> Iterator[MountedFile]:
    """Yield NCCL's files in its order.

    A volume of the downward API has the pod's own annotations, such as ours, and is left out.
    """
    chosen = container.env.get(_VARIABLE, "")
    if chosen != "":
        yield _chosen(pod, container, chosen)
    if not container.mounts_with("ccl.conf"):
        return
    for path in (*_OF_ROOT, *_OF_SYSTEM) if chosen == "" else _OF_SYSTEM:
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


def openmpi_files(pod: Pod, container: Container) -> Iterator[MountedFile]:
    """Yield Open MPI's files in its order, each from a mount of its own or of its directory."""
    mounts = container.mounts_with("mpi")
    for name, directories in _OPENMPI_FILES.items() if mounts else ():
        for mount in mounts:
            path = clean(str(mount.get("mountPath")))
            file = None
            if basename(path) == name:  # without subPath, a directory is there
                file = file_of_mount(pod, path, mount, "")
            elif path.endswith(directories):
                file = file_of_mount(pod, f"{path}/{name}", mount, name)
            if file is not None:
                yield file


def config_maps_with_library_files(manifest: PodManifest) -> Iterator[str]:
    """Yield the names of the ConfigMaps that have such files; none for a malformed pod."""
    try:
        pod = Pod(manifest)
        for container in pod.containers:
            for file in (*nccl_files(pod, container), *openmpi_files(pod, container)):
                yield from (key.config_map for key in file.keys if key is not None)
    except ShapeError:
        return


def with_library_files(
    settings: CommandSettings, pod: Pod, container: Container, config_maps: ConfigMaps
) -> CommandSettings:
    """Return a container's settings with those in its files: each applies where none is before."""
    certain = dict(settings.certain)
    for setting in _settings(pod, container, config_maps):
        name = setting.name
        if name not in certain or certain[name].removed:
            certain[name] = setting
    return settings if certain == settings.certain else settings._replace(certain=certain)


def unseen_file(files: Iterable[MountedFile], config_maps: ConfigMaps) -> MountedFile | None:
    """Return the first file whose content is not known, or None."""
    return next((file for file in files if file.read(config_maps).text is None), None)


def _settings(pod: Pod, container: Container, config_maps: ConfigMaps) -> Iterator[Setting]:
    for files, prefix in (
        (nccl_files(pod, container), ""),
        (openmpi_files(pod, container), MCA_PREFIX),
    ):
        for file in files:
            text, key = file.read(config_maps)
            source = f"{file.path}, {key.title}" if key else file.path
            for name, value in (_parameters if prefix else _variables)(text or ""):
                yield Setting(f"{prefix}{name}", value, source, yields_to_env=True, key=key)


def _variables(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.startswith("NCCL_"):
            yield name, value


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    """Yield Open MPI's parameters; the last of several counts, so it comes first.

    Quotes and a `#` after the value are part of it (run with 4.1.4).
    """
    for line in reversed(text.splitlines()):
        name, equals, value = line.partition("=")
        if equals and "#" not in name:
            yield name.strip(), value.strip()
