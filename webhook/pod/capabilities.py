"""The Linux capabilities that a container's securityContext adds and drops."""

from __future__ import annotations

from typing import NamedTuple

from webhook.pod.manifest import PodManifest, strings
from webhook.pod.path import Path


class Capabilities(NamedTuple):
    """Names of capabilities as Kubernetes writes them: IPC_LOCK, or ALL."""

    added: frozenset[str]
    dropped: frozenset[str]

    def grants(self, name: str) -> bool:
        """Return whether a container has a capability: containerd drops single ones last."""
        return not self.added.isdisjoint((name, "ALL")) and name not in self.dropped


def capabilities_of(pod: PodManifest, path: Path) -> Capabilities:
    """Read the capabilities of the container at `path`; case does not matter to containerd."""
    where = (*path, "securityContext", "capabilities")
    added, dropped = strings(pod, (*where, "add")), strings(pod, (*where, "drop"))
    return Capabilities(frozenset(map(str.upper, added)), frozenset(map(str.upper, dropped)))
