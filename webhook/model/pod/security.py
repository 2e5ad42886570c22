"""The securityContext: Linux capabilities, and the user that a container runs as."""

from __future__ import annotations

from typing import Literal, NamedTuple

from webhook.model.json import JsonObject
from webhook.model.pod.reading import Path, at, read_strings


class Capabilities(NamedTuple):
    """Names of capabilities as Kubernetes writes them: IPC_LOCK, or ALL."""

    added: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()

    def grants(self, name: str) -> bool:
        """Return whether a container has a capability; containerd drops single ones last."""
        return not self.added.isdisjoint((name, "ALL")) and name not in self.dropped


_CAPABILITIES = ("securityContext", "capabilities")
NO_CAPABILITIES = Capabilities()


def capabilities_of(container: JsonObject, path: Path) -> Capabilities:
    """Read the capabilities of a container, which is at `path`.

    Case does not matter to containerd.
    """
    written = at(container, _CAPABILITIES) if "securityContext" in container else None
    if not written:
        return NO_CAPABILITIES
    capabilities_path = (*path, *_CAPABILITIES)
    added, dropped = (
        read_strings(written, ("add",), capabilities_path),
        read_strings(written, ("drop",), capabilities_path),
    )
    return Capabilities(frozenset(map(str.upper, added)), frozenset(map(str.upper, dropped)))


#: "image": the image, or the node's runtime, determines whether it is root.
User = Literal["root", "other", "image"]


def user_of(spec: JsonObject, container: JsonObject) -> User:
    """Return the user that a container runs as in a pod with this spec.

    The container's securityContext takes precedence over the pod's. `runAsNonRoot: false` permits
    root, but does not choose it.
    """
    context, pod_context = _context(container), _context(spec)
    if not context and not pod_context:
        return "image"
    for field in ("runAsUser", "runAsNonRoot"):
        value = context.get(field)
        value = pod_context.get(field) if value is None else value
        if value:
            return "other"
        if field == "runAsUser" and value == 0:
            return "root"
    return "image"


def _context(manifest: JsonObject) -> JsonObject:
    context = manifest.get("securityContext")
    return context if isinstance(context, dict) else {}
