"""Where a cluster has the fabrics: in an object, or in a ConfigMap of the first version.

The first version's Deployment mounted two with the same key, the site's over an empty one of the
manifests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from webhook.config.load import Loaded, parse_fabrics, parse_object
from webhook.config.object_form import CONVERT, NAME, OBJECT
from webhook.kube.kinds import CONFIGURATIONS
from webhook.pod.manifest import at

CONFIG_MAPS = ("rdma-webhook-fabrics", "rdma-webhook-fabrics-default")
KEY = "fabrics.yaml"
PATH = f"{CONFIGURATIONS.path}/{NAME}"


class FabricsPlace(NamedTuple):
    """An object that may have the fabrics."""

    path: str
    #: What messages call it.
    name: str
    #: The right to read it, as in `kubectl auth can-i get`.
    resource: str


#: Reads the object of a place; None if it is not there.
ReadPlace = Callable[[FabricsPlace], dict[str, Any] | None]


class ClusterFabrics(NamedTuple):
    """The fabrics, and the object that they were read from."""

    loaded: Loaded
    source: str
    #: How to put them where this version reads them; "" if they are there.
    outdated: str = ""


def cluster_fabrics(read: ReadPlace, namespace: str) -> ClusterFabrics | None:
    """Return the fabrics of the webhook in a namespace; None if nothing has any.

    Raises InvalidConfiguration if what has them cannot be used, and what `read` raises.
    """
    item = read(FabricsPlace(PATH, OBJECT, "fabricconfigurations"))
    if item is not None:
        return ClusterFabrics(parse_object(item, OBJECT), OBJECT)
    for name in CONFIG_MAPS:
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        found = read(FabricsPlace(path, f"configmap {namespace}/{name}", "configmaps"))
        text = at(found, ("data", KEY))
        if isinstance(text, str):
            source = f"ConfigMap {namespace}/{name}"
            loaded = parse_fabrics(text, f'{source} data["{KEY}"]')
            return ClusterFabrics(loaded, source, _moving(namespace, name))
    return None


def _moving(namespace: str, name: str) -> str:
    return (
        f"this version of the webhook reads {OBJECT} instead: kubectl -n {namespace} get configmap "
        f"{name} -o yaml | {CONVERT} - | kubectl apply -f -"
    )
