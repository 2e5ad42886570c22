"""The environment that a container's manifest spells out."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from webhook.model.pod import Path, PodManifest, at, items, sequence, strings, text


def env_of(pod: PodManifest, path: Path) -> dict[str, str | None]:
    """Return the `env` of the container at `path`: name → literal value, in the pod's order.

    None stands for a value that only the kubelet knows: a `valueFrom`, or a value that
    `literal` rejects. As in Kubernetes, an absent or null value is "", and of several
    entries with the same name the last one wins.
    """
    where = (*path, "env")
    listed = items(pod, where)
    found = _plain(listed)
    return _of_any(listed, where) if found is None else found


def _plain(listed: list[dict[str, Any]]) -> dict[str, str | None] | None:
    """Read items if each is a unique name with a literal string, as nearly all pods' are."""
    try:
        found = {item["name"]: item["value"] for item in listed}
        complete = len(listed) == len(found) and sum(map(len, listed)) == 2 * len(found)
        return found if complete and "$" not in "".join((*found, *found.values())) else None
    except (KeyError, TypeError):  # a key is missing, or something is not a string
        return None


def _of_any(listed: list[dict[str, Any]], where: Path) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for index, item in enumerate(listed):
        name, value = (text(item, (key,), (*where, index)) for key in ("name", "value"))
        if name is None:
            continue  # the API server rejects it, with a better message
        known = item.get("valueFrom") is None
        found[name] = literal(value or "") if known else None
    return found


class Environments:
    """The `env` of a pod's containers as the user wrote them, each read once."""

    __slots__ = ("_found", "_has_env_from", "_pod")

    def __init__(self, pod: PodManifest) -> None:
        self._pod = pod
        self._found: dict[Path, dict[str, str | None]] = {}
        self._has_env_from: dict[Path, bool] = {}

    def of(self, path: Path) -> dict[str, str | None]:
        """Return the `env` of the container at `path`; see `env_of`."""
        found = self._found.get(path)
        if found is None:
            found = self._found[path] = env_of(self._pod, path)
        return found

    def has_env_from(self, path: Path) -> bool:
        """Return whether it uses `envFrom`, so that its manifest does not list all names."""
        found = self._has_env_from.get(path)
        if found is None:
            found = self._has_env_from[path] = bool(sequence(self._pod, (*path, "envFrom")))
        return found


def env_names(manifest: dict[str, Any]) -> list[str]:
    """List the names in a container's `env`."""
    names = [item.get("name") for item in items(manifest, ("env",))]
    return [name for name in names if isinstance(name, str)]


def literal(value: str) -> str | None:
    """Return a value as the process sees it, or None if the kubelet would change it.

    The kubelet expands `$(NAME)` and `$$` (third_party/forked/golang/expansion).
    """
    return None if "$(" in value or "$$" in value else value


def entry(name: str, value: str) -> dict[str, str]:
    """Return a variable as an item of `env`."""
    return {"name": name, "value": value}


# The Linux capabilities that a container's securityContext adds and drops.


class Capabilities(NamedTuple):
    """Names of capabilities as Kubernetes writes them: IPC_LOCK, or ALL."""

    added: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()

    def grants(self, name: str) -> bool:
        """Return whether a container has a capability: containerd drops single ones last."""
        return not self.added.isdisjoint((name, "ALL")) and name not in self.dropped


def capabilities_of(container: dict[str, Any], path: Path) -> Capabilities:
    """Read the capabilities of a container, which is at `path`.

    Case does not matter to containerd.
    """
    written = at(container, _WHERE)
    if not written:
        return Capabilities()
    where = (*path, *_WHERE)
    added, dropped = strings(written, ("add",), where), strings(written, ("drop",), where)
    return Capabilities(frozenset(map(str.upper, added)), frozenset(map(str.upper, dropped)))


_WHERE = ("securityContext", "capabilities")


# How people write the name of a container's image.
#
# `rayproject/ray:2.9.0` is short for `docker.io/rayproject/ray:2.9.0`. The first part of a name
# is a registry if it has a dot or a colon, or is `localhost` (distribution/reference,
# splitDockerDomain).

_HUB = "docker.io"
_OFFICIAL = "library/"


def image_of(pod: PodManifest, path: Path) -> str:
    """Return the image of the container at `path`, "" if there is none."""
    found = at(pod, (*path, "image"))
    return found if isinstance(found, str) else ""


def spellings_of(image: str) -> tuple[str, ...]:
    """Return an image with and without its registry, each with and without its tag.

    A digest is left out, except from the image as it is written.
    """
    tagged = image.partition("@")[0]
    registry, slash, name = tagged.partition("/")
    if not (slash and ("." in registry or ":" in registry or registry == "localhost")):
        registry, name = _HUB, tagged
    if registry == _HUB:
        name = name.removeprefix(_OFFICIAL)
    untagged = name.partition(":")[0]
    short = (untagged, name)
    return tuple(dict.fromkeys((image, *short, *(f"{registry}/{one}" for one in short))))


# The user that a container runs as, as far as its manifest says.

#: "image": only the image, or the node's runtime, knows whether it is root.
User = Literal["root", "other", "image"]


def user_of(pod: PodManifest, container: dict[str, Any]) -> User:
    """Return which user a container of a pod runs as.

    The container's securityContext takes precedence over the pod's. `runAsNonRoot: false` permits
    root, but does not choose it.
    """
    own, shared = _context(container), _context(pod["spec"])
    if not own and not shared:
        return "image"
    for field in ("runAsUser", "runAsNonRoot"):
        value = own.get(field)
        value = shared.get(field) if value is None else value
        if value:
            return "other"
        if field == "runAsUser" and value == 0:
            return "root"
    return "image"


def _context(of: dict[str, Any]) -> dict[str, Any]:
    found = of.get("securityContext")
    return found if isinstance(found, dict) else {}


# A pod's volumes, and what its containers mount where.

VOLUMES: Path = ("spec", "volumes")


def mount_at(pod: PodManifest, path: Path, where: str) -> dict[str, Any] | None:
    """Return the mount of the container at `path` that is exactly at `where`, a clean path."""
    last = where.rpartition("/")[2]
    for mount_path, mount in _mounts(pod, path):
        if last in mount_path and clean(mount_path) == where:
            return mount
    return None


def mount_over(pod: PodManifest, path: Path, where: str) -> str | None:
    """Return the mount point above `where`, such as `/etc`, that hides the image's directory."""
    above = set(_directories_above(where))
    for mount_path, _ in _mounts(pod, path):
        if clean(mount_path) in above:
            return clean(mount_path)
    return None


def _directories_above(where: str) -> Iterator[str]:
    while where != "/":
        where = posixpath.dirname(where)
        yield where


def volume_named(pod: PodManifest, name: str) -> dict[str, Any] | None:
    """Return the pod's volume with that name."""
    for volume in items(pod, VOLUMES):
        if volume.get("name") == name:
            return volume
    return None


def infiniband_volumes(pod: PodManifest) -> dict[str, str]:
    """Return the pod's volumes that show RDMA devices of the node: name → the node's path.

    Only a privileged container, or one to which a device plugin gave a device, may open it (the
    cgroup's device controller).
    """
    shown: dict[str, str] = {}
    for volume in items(pod, VOLUMES):
        if "hostPath" in volume:
            where = at(volume, ("hostPath", "path"))
            if isinstance(where, str) and _shows_infiniband(clean(where)):
                shown[str(volume.get("name"))] = clean(where)
    return shown


def mounted_path(pod: PodManifest, path: Path, shown: Mapping[str, str]) -> str:
    """Return the node's path of the first of some volumes that a container mounts; "" if none."""
    names = (str(mount.get("name")) for mount in items(pod, (*path, "volumeMounts")))
    return next((shown[name] for name in names if name in shown), "")


def _shows_infiniband(where: str) -> bool:
    return where in ("/dev", _INFINIBAND) or where.startswith(f"{_INFINIBAND}/")


_INFINIBAND = "/dev/infiniband"


def clean(mount_path: str) -> str:
    """Return a mountPath as the container runtime resolves it: absolute, no `//`, `.` or `..`.

    The kubelet puts `/` in front of a relative path (pkg/kubelet/kubelet_pods.go,
    makeMounts), and containerd cleans the rest.
    """
    if mount_path.startswith("/") and "//" not in mount_path and "/." not in mount_path:
        return mount_path.rstrip("/") or "/"  # nearly all paths are clean
    return posixpath.normpath("/" + mount_path.lstrip("/"))


def _mounts(pod: PodManifest, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    where = (*path, "volumeMounts")
    for index, mount in enumerate(items(pod, where)):
        mount_path: Any = mount.get("mountPath")
        if not isinstance(mount_path, str):
            mount_path = text(pod, (*where, index, "mountPath"))
        if mount_path:
            yield mount_path, mount
