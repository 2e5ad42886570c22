"""As whom a container runs, as far as its manifest tells."""

from __future__ import annotations

from typing import Any

from webhook.pod.manifest import PodManifest, at
from webhook.pod.path import Path


def runs_as_other_user(pod: PodManifest, path: Path) -> bool:
    """Whether the container at `path` surely runs as another user than root.

    The container's securityContext counts before the pod's; a user that only the
    image names is not known here.
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
    return found if found.__class__ is dict else {}
