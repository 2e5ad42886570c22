"""The user that a container runs as, as far as its manifest says."""

from __future__ import annotations

from typing import Any, Literal

from webhook.model.pod import PodManifest

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
