"""Read a cluster's nodes, and the objects of its device plugins, from the API server."""

from __future__ import annotations

from collections.abc import Iterator

from webhook.discover.cluster_view import Item
from webhook.errors import ClusterError
from webhook.kube.requests import Reads, RefusedError

#: The list of a kind, the kind of its items, and whether it may be absent or forbidden.
_LISTS = (
    ("/api/v1/nodes", "Node", True),
    ("/apis/mellanox.com/v1alpha1/nicclusterpolicies", "NicClusterPolicy", False),
    ("/api/v1/configmaps", "ConfigMap", False),
    ("/apis/resource.k8s.io/v1/resourceslices", "ResourceSlice", False),
)
_PAGE = "500"


def read_cluster(reads: Reads) -> list[Item]:
    """Return the objects; raise ClusterError if the nodes cannot be read."""
    found: list[Item] = []
    for path, kind, needed in _LISTS:
        try:
            found += _all(reads, path, kind)
        except RefusedError as error:
            if needed:
                raise ClusterError(f"cannot list {path}: {error}") from error
    return found


def _all(reads: Reads, path: str, kind: str) -> Iterator[Item]:
    """Yield a list page by page; the items of a typed list have no kind."""
    query = {"limit": _PAGE}
    while True:
        page = reads.get(path, query)
        for item in page.get("items") or ():
            yield {"kind": kind, **item}
        after = (page.get("metadata") or {}).get("continue")
        if not after:
            return
        query = {"limit": _PAGE, "continue": after}
