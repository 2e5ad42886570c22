"""Carry /etc/nccl.conf in the pod: its text in an annotation, shown by a downwardAPI volume.

This way no namespace needs a ConfigMap from us.
"""

from __future__ import annotations

from typing import Any

from webhook.decide.draft import Draft
from webhook.model.annotations import NCCL_CONF
from webhook.model.path import Path
from webhook.model.pod import PodManifest, at
from webhook.model.volumes import VOLUMES, mount_at, mount_over, volume_named

KEY = "nccl.conf"
FILE = f"/etc/{KEY}"
VOLUME_NAME = "rdma-lab-nccl-conf"
ANNOTATION = ("metadata", "annotations", NCCL_CONF)

_FIELD = {"fieldPath": f"metadata.annotations['{NCCL_CONF}']"}
_VOLUME = {"name": VOLUME_NAME, "downwardAPI": {"items": [{"path": KEY, "fieldRef": _FIELD}]}}
#: With a subPath, so that the rest of /etc stays the image's.
_MOUNT = {"name": VOLUME_NAME, "mountPath": FILE, "subPath": KEY, "readOnly": True}


def is_name_taken(pod: PodManifest) -> bool:
    """Return whether the pod has a volume with our name that does not show the annotation."""
    volume = volume_named(pod, VOLUME_NAME)
    if volume is None:
        return False
    shown = at(volume, ("downwardAPI", "items"))
    return not (isinstance(shown, list) and any(map(_is_ours, shown)))


def _is_ours(item: Any) -> bool:
    found = at(item, ("path",)), at(item, ("fieldRef", "fieldPath"))
    return found == (KEY, _FIELD["fieldPath"])


def own_mount(pod: PodManifest, path: Path) -> str | None:
    """Return where the user mounts the file itself or a directory above it; None if nowhere."""
    above, mount = mount_over(pod, path, FILE), mount_at(pod, path, FILE)
    if above is None and mount is not None and mount.get("name") != VOLUME_NAME:
        return FILE
    return above


def carry(draft: Draft, conf: str) -> bool:
    """Add the annotation and the volume where missing; return whether either was missing."""
    carried = True
    if draft.get(ANNOTATION) is None:
        draft.set(ANNOTATION, conf)
        carried = False
    if volume_named(draft.pod, VOLUME_NAME) is None:
        draft.append(VOLUMES, _VOLUME)
        carried = False
    return not carried


def mount(draft: Draft, path: Path) -> bool:
    """Mount the file into the container at `path`; return False if it was mounted already."""
    found: Any = mount_at(draft.pod, path, FILE)
    if found is None:
        draft.append((*path, "volumeMounts"), _MOUNT)
    return found is None
