"""Create pods, and read them as the API server would store them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.cluster.cluster import Cluster
from tests.e2e.admission.places import named
from tests.e2e.documents import ENABLE, Document
from tests.e2e.wire import send

GPU = "nvidia.com/v100"


def trainer(limits: Document | None = None, requests: Document | None = None) -> Document:
    """Return a container with a GPU."""
    resources = {"limits": {GPU: "1", **(limits or {})}, "requests": requests or {}}
    return {"name": "trainer", "image": "example.com/trainer", "resources": resources}


def pod(
    place: str,
    container: Document,
    *sidecars: Document,
    annotations: Document | None = None,
    **spec: Any,
) -> Document:
    """Return a pod that has opted in."""
    asks = {ENABLE: "true", **(annotations or {})}
    metadata = {"name": "probe", "namespace": named(place), "annotations": asks}
    containers = {"containers": [container, *sidecars]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**containers, **spec}}


class MemoryAmounts(NamedTuple):
    """A memory request and limit, each None if missing."""

    request: str | None
    limit: str | None


@dataclass(frozen=True)
class Answer:
    """The API server's answer."""

    #: The pod as stored, or as it would be; {} if it was rejected.
    object: Document = field(default_factory=dict)
    #: Why it was rejected; "" if it was not.
    refusal: str = ""
    #: The webhook's warnings.
    warnings: list[str] = field(default_factory=list)

    @property
    def status(self) -> Document:
        """The content of the webhook's status annotation."""
        status: Document = json.loads(self.object["metadata"]["annotations"]["rdma.lab/status"])
        return status

    @property
    def containers(self) -> list[Document]:
        """The containers; fails with the reason if the pod was rejected."""
        assert self.object, self.refusal
        containers: list[Document] = self.object["spec"]["containers"]
        return containers

    @property
    def qos(self) -> str:
        """The quality-of-service class."""
        assert self.object, self.refusal
        return str(self.object["status"]["qosClass"])

    def memory(self, container: int = 0) -> MemoryAmounts:
        """Return the memory of a container."""
        resources = self.containers[container].get("resources", {})
        return _memory(resources)

    @property
    def pod_memory(self) -> MemoryAmounts:
        """The memory of the pod as a whole."""
        assert self.object, self.refusal
        return _memory(self.object["spec"].get("resources", {}))

    def added_capabilities(self, container: int = 0) -> list[str]:
        """Return the capabilities that the container adds."""
        security = self.containers[container].get("securityContext", {})
        added: list[str] = security.get("capabilities", {}).get("add", [])
        return added

    def env(self, container: int = 0) -> Document:
        """Return the container's variables."""
        variables = self.containers[container].get("env", [])
        return {variable["name"]: variable.get("value") for variable in variables}


def _memory(resources: Document) -> MemoryAmounts:
    request, limit = (resources.get(part, {}).get("memory") for part in ("requests", "limits"))
    return MemoryAmounts(request, limit)


def create(cluster: Cluster, document: Document, *, stored: bool = False) -> Answer:
    """Create a pod, or only dry-run it: admission and validation are the same either way."""
    namespace = document["metadata"]["namespace"]
    path = f"/api/v1/namespaces/{namespace}/pods{'' if stored else '?dryRun=All'}"
    return _request(cluster, "POST", path, "application/json", document)


def resize(cluster: Cluster, existing: Document, resources: Document) -> Answer:
    """Change the resources of an existing pod, as `kubectl patch --subresource=resize` does."""
    metadata = existing["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/resize"
    patch = {"spec": {"containers": [{"name": "trainer", "resources": resources}]}}
    return _request(cluster, "PATCH", path, "application/strategic-merge-patch+json", patch)


def _request(cluster: Cluster, method: str, path: str, kind: str, document: Document) -> Answer:
    response = send(cluster, method, path, document, kind)
    head = "rdma.lab: "
    ours = [warning.removeprefix(head) for warning in response.warnings if warning.startswith(head)]
    if response.object["kind"] == "Status":
        return Answer(refusal=response.refusal, warnings=ours)
    return Answer(response.object, warnings=ours)
