"""The user that a container runs as, as far as its manifest says."""

from __future__ import annotations

from typing import Any

from webhook.pod.manifest import PodManifest, at
from webhook.pod.path import Path


def runs_as_other_user(pod: PodManifest, path: Path) -> bool:
    """Return whether the container at `path` certainly runs as a user other than root.

    The container's securityContext takes precedence over the pod's. A user that only the
    image names is unknown here.
    """
    own = _context(pod, path)
    shared = _context(pod, ("spec",))
    for field in ("runAsUser", "runAsNonRoot"):
        value = own.get(field)
        value = shared.get(field) if value is None else value
        if value:
            return True
        if field == "runAsUser" and value == 0:
            return False
    return False


def _context(pod: PodManifest, path: Path) -> dict[str, Any]:
    found = at(pod, (*path, "securityContext"))
    return found if isinstance(found, dict) else {}
