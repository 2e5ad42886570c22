"""The namespaces of these tests: the limits, quotas and labels of each.

All are made before the webhook starts, since it reads its facts at start.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.cluster.cluster import Cluster
from tests.e2e.documents import Document, apply

#: The label that selects the namespaces of a registered webhook; no installation uses it.
CALLED_BY = "admission-test/webhook"
PREFIX = "admission-"
_LEVEL = "pod-security.kubernetes.io/enforce"

DEFAULT: Document = {"type": "Container", "default": {"memory": "1Gi"}}
MAXIMUM: Document = {"type": "Container", "max": {"memory": "100Gi"}}
RATIO: Document = {"type": "Container", "maxLimitRequestRatio": {"memory": "2"}}
WHOLE_POD: Document = {"type": "Pod", "max": {"memory": "100Gi"}}
LIMITS: Document = {"limits.memory": "1Ti"}


@dataclass(frozen=True)
class Place:
    """A namespace, and the webhook that is called for it."""

    webhook: str
    level: str = ""
    limit: Document = field(default_factory=dict)
    quota: Document = field(default_factory=dict)

    def objects(self, name: str) -> list[Document]:
        """Return the namespace and the objects in it."""
        labels = {CALLED_BY: self.webhook} | ({_LEVEL: self.level} if self.level else {})
        documents = [_object("v1", "Namespace", {"name": name, "labels": labels}, {})]
        inside = {"name": "lab", "namespace": name}
        if self.limit:
            documents.append(_object("v1", "LimitRange", inside, {"limits": [self.limit]}))
        if self.quota:
            documents.append(_object("v1", "ResourceQuota", inside, {"hard": self.quota}))
        return documents


#: `informed` knows the namespaces, `uninformed` was started without facts, `once` is not called
#: again after other webhooks, `strict` has the configuration's other choices.
PLACES = {
    "plain": Place("informed"),
    "plain-once": Place("once"),
    "plain-strict": Place("strict"),
    "default": Place("informed", limit=DEFAULT),
    "default-once": Place("once", limit=DEFAULT),
    "maximum": Place("informed", limit=MAXIMUM),
    "maximum-uninformed": Place("uninformed", limit=MAXIMUM),
    "ratio": Place("informed", limit=RATIO),
    "ratio-uninformed": Place("uninformed", limit=RATIO),
    "whole-pod": Place("informed", limit=WHOLE_POD),
    "whole-pod-uninformed": Place("uninformed", limit=WHOLE_POD),
    "quota": Place("informed", quota=LIMITS),
    "quota-uninformed": Place("uninformed", quota=LIMITS),
    "devices": Place("informed", quota={"requests.rdma/rdma_v100": "1"}),
    "gated": Place("informed", quota={"requests.rdma/rdma_v100": "1"}),
    "baseline": Place("informed", level="baseline"),
    "restricted": Place("informed", level="restricted"),
    "baseline-uninformed": Place("uninformed", level="baseline"),
    "baseline-strict": Place("strict", level="baseline"),
    "neighbor": Place("informed"),
}


def named(place: str) -> str:
    """Return the namespace's name."""
    return PREFIX + place


def make(cluster: Cluster) -> None:
    """Make all namespaces."""
    documents = (
        document for name, place in PLACES.items() for document in place.objects(named(name))
    )
    apply(cluster, *documents)


def _object(version: str, kind: str, metadata: Document, spec: Document) -> Document:
    document: Document = {"apiVersion": version, "kind": kind, "metadata": metadata}
    return document | ({"spec": spec} if spec else {})
