"""Read a cluster's nodes, and the objects of its device plugins, from the API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from webhook.diagnose.discover.resource_slices import Item
from webhook.errors import ClusterError
from webhook.kube.api import Reads, RefusedError

#: The list of a kind, and the kind of its items; of these only the nodes must be readable.
_LISTS = (
    ("/api/v1/nodes", "Node"),
    ("/apis/mellanox.com/v1alpha1/nicclusterpolicies", "NicClusterPolicy"),
    ("/api/v1/configmaps", "ConfigMap"),
    ("/apis/resource.k8s.io/v1/resourceslices", "ResourceSlice"),
    ("/apis/resource.k8s.io/v1/deviceclasses", "DeviceClass"),
)
_NEEDED = "nodes"
_PAGE = "500"
_FORBIDDEN, _NO_SUCH_KIND = 403, 404


class LiveCluster(NamedTuple):
    """What was read of a cluster."""

    items: tuple[Item, ...]
    #: A sentence for each list that the API server refused.
    unread: tuple[str, ...]


def read_cluster(reads: Reads) -> LiveCluster:
    """Return the objects; raise ClusterError if the nodes cannot be read."""
    items: list[Item] = []
    unread: list[str] = []
    for path, kind in _LISTS:
        name = path.rpartition("/")[2]
        try:
            items += _all(reads, path, kind)
        except RefusedError as error:
            if name == _NEEDED:
                raise ClusterError(_without_nodes(error)) from error
            if error.code != _NO_SUCH_KIND:
                unread.append(f"cannot list {name}, and goes on without them: {error}")
    return LiveCluster(tuple(items), tuple(unread))


def _without_nodes(error: RefusedError) -> str:
    all_it_needs = (
        ": the right to list nodes is all that --nodes needs" if error.code == _FORBIDDEN else ""
    )
    return f"cannot list nodes: {error}{all_it_needs}"


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
