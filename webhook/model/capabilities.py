"""The Linux capabilities that a container's securityContext adds and drops."""

from __future__ import annotations

from typing import Any, NamedTuple

from webhook.model.path import Path
from webhook.model.pod import at, strings


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
