"""Where a cluster has the fabrics: in a ConfigMap that the webhook's Deployment mounts.

The Deployment mounts two with the same key, the site's over an empty one of the manifests
(manifests/base/deployment.yaml).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from webhook.config.load import Loaded, parse_fabrics
from webhook.pod.manifest import at

CONFIG_MAPS = ("rdma-webhook-fabrics", "rdma-webhook-fabrics-default")
KEY = "fabrics.yaml"
#: Reads the ConfigMap of a name; None if it is not there.
ReadConfigMap = Callable[[str], dict[str, Any] | None]


class ClusterFabrics(NamedTuple):
    """The fabrics, and the object that they were read from."""

    loaded: Loaded
    source: str


def cluster_fabrics(read: ReadConfigMap, namespace: str) -> ClusterFabrics | None:
    """Return the fabrics of the webhook in a namespace; None if no ConfigMap has any.

    Raises InvalidConfiguration if the ConfigMap cannot be used, and what `read` raises.
    """
    for name in CONFIG_MAPS:
        text = at(read(name), ("data", KEY))
        if isinstance(text, str):
            source = f"ConfigMap {namespace}/{name}"
            return ClusterFabrics(parse_fabrics(text, f'{source} data["{KEY}"]'), source)
    return None
