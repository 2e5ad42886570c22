"""A pod's volumes, and what its containers mount where."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from webhook.model.path import Path
from webhook.model.pod import PodManifest, at, items, text

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
