"""Create pods, and read what the API server made of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.cluster import Cluster
from tests.e2e.admission.places import named
from tests.e2e.asking import ENABLE, Document
from tests.e2e.wire import send

GPU = "nvidia.com/v100"


def trainer(limits: Document | None = None, requests: Document | None = None) -> Document:
    """Return a container with a GPU."""
    resources = {"limits": {GPU: "1", **(limits or {})}, "requests": requests or {}}
    return {"name": "trainer", "image": "example.com/trainer", "resources": resources}


def pod(
    place: str,
    container: Document,
    *more: Document,
    annotations: Document | None = None,
    **spec: Any,
) -> Document:
    """Return a pod that has opted in."""
    asks = {ENABLE: "true", **(annotations or {})}
    metadata = {"name": "probe", "namespace": named(place), "annotations": asks}
    containers = {"containers": [container, *more]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**containers, **spec}}


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

    def memory(self, container: int = 0) -> tuple[str | None, str | None]:
        """Return the memory request and limit of a container, None for one that is missing."""
        resources = self.containers[container].get("resources", {})
        return _memory(resources)

    @property
    def pod_memory(self) -> tuple[str | None, str | None]:
        """The memory request and limit of the pod as a whole."""
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
        return {one["name"]: one.get("value") for one in variables}


def _memory(resources: Document) -> tuple[str | None, str | None]:
    request, limit = (resources.get(part, {}).get("memory") for part in ("requests", "limits"))
    return request, limit


def create(cluster: Cluster, document: Document, *, stored: bool = False) -> Answer:
    """Create a pod, or only dry-run it: admission and validation are the same either way."""
    namespace = document["metadata"]["namespace"]
    path = f"/api/v1/namespaces/{namespace}/pods{'' if stored else '?dryRun=All'}"
    return _request(cluster, "POST", path, "application/json", document)


def resize(cluster: Cluster, existing: Document, resources: Document) -> Answer:
    """Change the resources of an existing pod, as `kubectl patch --subresource=resize` does."""
    where = existing["metadata"]
    path = f"/api/v1/namespaces/{where['namespace']}/pods/{where['name']}/resize"
    patch = {"spec": {"containers": [{"name": "trainer", "resources": resources}]}}
    return _request(cluster, "PATCH", path, "application/strategic-merge-patch+json", patch)


def _request(cluster: Cluster, method: str, path: str, kind: str, document: Document) -> Answer:
    said = send(cluster, method, path, document, kind)
    head = "rdma.lab: "
    ours = [one.removeprefix(head) for one in said.warnings if one.startswith(head)]
    if said.object["kind"] == "Status":
        return Answer(refusal=said.refusal, warnings=ours)
    return Answer(said.object, warnings=ours)
