"""As whom a container runs, as far as its manifest tells."""

from __future__ import annotations

from webhook.core.path import Path
from webhook.core.pod import PodManifest, at


def runs_as_other_user(pod: PodManifest, path: Path) -> bool:
    """Whether the container at `path` surely runs as another user than root.

    The container's securityContext counts before the pod's; a user that only the
    image names is not known here.
    """
    own, shared = (*path, "securityContext"), ("spec", "securityContext")
    if at(pod, own) is None and at(pod, shared) is None:
        return False
    for field in ("runAsUser", "runAsNonRoot"):
        value = at(pod, (*own, field))
        value = at(pod, (*shared, field)) if value is None else value
        if value:
            return True
        if field == "runAsUser" and value == 0:
            return False
    return False
