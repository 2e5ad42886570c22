"""Devices of two made-up DRA drivers on fake nodes, and a namespace whose pods claim them.

The devices are ResourceSlices as a driver would publish them. No driver runs, so no container
starts: the tests see only the scheduler's allocations, and its reasons for none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.kwok import FAKE
from tests.e2e.admission.places import CALLED_BY
from tests.e2e.admission.pods import Answer, create
from tests.e2e.documents import Document, apply, ask, make_namespaces
from tests.e2e.wire import send
from tests.waiting import until

SPACE, LABEL = "admission-dra", "dra"
_CLAIMS = "apis/resource.k8s.io/v1"
#: Neither the alphabet nor the number leads to the right pairs of a GPU and a NIC.
ROOTS = {
    "gpu-0": "pci0000:17",
    "gpu-1": "pci0000:b0",
    "nic-0": "pci0000:b0",
    "nic-1": "pci0000:17",
    "nic-2": "pci0000:17",
    "nic-3": "pci0000:ff",
}
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
#: A NIC of this class may be requested as an extended resource, too (KEP-5004).
RESOURCE = "dra.test/rdma-nic"
FABRICS = {
    "apiVersion": "rdma.lab/v1alpha1",
    "kind": "FabricConfiguration",
    "spec": {
        "fabrics": [
            {
                "name": "nics",
                "match": {
                    "gpuResources": ["dra.test/plugin-gpu"],
                    "deviceClasses": ["rdma.dra.test"],
                },
                "mode": "dra",
                "claims": [{"template": "rdma-nics", "request": "nic"}],
            },
            {
                "name": "pairs",
                "match": {"gpuResources": [], "deviceClasses": ["gpu.dra.test"]},
                "mode": "dra",
                "claims": [{"template": "gpu-with-nic", "per": "pod"}],
            },
            {
                "name": "by-resource",
                "match": {"gpuResources": []},
                "mode": "host-device",
                "resources": [{"name": RESOURCE}],
                "networks": ["lab/rdma"],
            },
        ]
    },
}
#: RESOURCE_CLAIM_RESERVED_FOR_MAX_SIZE of k8s.io/api/resource/v1.
_MAX_USERS = 256
_NUMBERS = count()


@dataclass(frozen=True)
class Place:
    """A namespace; a webhook with these fabrics is called for its pods."""

    cluster: Cluster
    nodes: list[str]

    def create(
        self,
        *,
        fabric: str = "",
        limits: Document | None = None,
        claim: str = "",
        node: str = "",
        stored: bool = True,
    ) -> Answer:
        """Create a pod that tolerates fake nodes; `claim`: a ResourceClaim for its container.

        `node`: the only node on which it may run.
        """
        annotations = {"rdma.lab/enable": "true", **({"rdma.lab/fabric": fabric} if fabric else {})}
        container = {
            "name": "trainer",
            "image": "example.com/none",
            "resources": {"limits": limits, **({"claims": [{"name": "own"}]} if claim else {})},
        }
        listed = [{"name": "own", "resourceClaimName": claim}] if claim else []
        name = f"trainer-{next(_NUMBERS)}"
        return create(
            self.cluster,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": SPACE, "annotations": annotations},
                "spec": {
                    "containers": [container],
                    "tolerations": [{"key": FAKE, "operator": "Exists"}],
                    "resourceClaims": listed,
                    "nodeSelector": {"kubernetes.io/hostname": node} if node else {},
                },
            },
            stored=stored,
        )

    def read(self, resource: str, name: str, group: str = "api/v1") -> Document:
        """Return an object of the namespace."""
        path = f"/{group}/namespaces/{SPACE}/{resource}/{name}"
        return send(self.cluster, "GET", path).object

    def bound(self, answer: Answer) -> Document:
        """Return a pod once it is bound to a node."""
        name = answer.object["metadata"]["name"]
        until(lambda: "nodeName" in self.read("pods", name)["spec"])
        return self.read("pods", name)

    def devices(self, claim: str) -> dict[str, str]:
        """Return the devices that were allocated to a claim, by request."""
        document = self.read("resourceclaims", claim, _CLAIMS)
        results = document["status"]["allocation"]["devices"]["results"]
        return {allocated["request"]: allocated["device"] for allocated in results}

    def reserve(self, claim: str) -> None:
        """Fill a claim's list of users up to the number that Kubernetes allows."""
        until(lambda: self._is_reserved(claim))

    def _is_reserved(self, claim: str) -> bool:
        document = self.read("resourceclaims", claim, _CLAIMS)
        users = document["status"]["reservedFor"]
        numbers = range(_MAX_USERS - len(users))
        # Kubernetes removes pods that do not exist, and leaves other users alone.
        users += [
            {"resource": "others", "name": f"other-{number}", "uid": f"{number}"}
            for number in numbers
        ]
        path = f"/{_CLAIMS}/namespaces/{SPACE}/resourceclaims/{claim}/status"
        response = send(self.cluster, "PUT", path, document)
        # 409: the scheduler or a controller has just changed it.
        assert response.code in {200, 409}, response.object
        return response.code == 200

    def claim(self, name: str, *requests: tuple[str, str]) -> None:
        """Create a ResourceClaim whose requests have these names and device classes."""
        apply(self.cluster, _claim(name, requests))

    def deep_claim(self, name: str, levels: int) -> None:
        """Create a ResourceClaim with parameters for a driver that have so many levels."""
        claim = _claim_with_parameters(name, "PARAMETERS")
        text = json.dumps(claim).replace('"PARAMETERS"', "[" * levels + "]" * levels)
        self.cluster.kubectl("create", "--filename=-", input=text)

    def odd_claim(self, name: str, parameter: str) -> None:
        """Create a ResourceClaim with any text for a driver; kubectl would correct it."""
        path = f"/{_CLAIMS}/namespaces/{SPACE}/resourceclaims"
        response = send(self.cluster, "POST", path, _claim_with_parameters(name, parameter))
        assert response.code == 201, response.object

    def forbid_claims(self) -> None:
        """Set a quota of no ResourceClaim."""
        spec = {"hard": {"count/resourceclaims.resource.k8s.io": "0"}}
        metadata = {"name": "no-claims", "namespace": SPACE}
        apply(
            self.cluster,
            {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec},
        )
        until(
            lambda: (
                "exceeded quota"
                in ask(self.cluster, _claim("asks", [("nic", "rdma.dra.test")])).refusal
            )
        )

    def template(self, name: str, *requests: tuple[str, str], aligned: bool = False) -> None:
        """Create a template whose requests have these names and device classes."""
        listed = _requests(requests)
        constraint = {"requests": [request for request, _ in requests], "matchAttribute": PCIE_ROOT}
        devices = {"requests": listed, **({"constraints": [constraint]} if aligned else {})}
        metadata = {"name": name, "namespace": SPACE}
        apply(self.cluster, _object("ResourceClaimTemplate", metadata, spec={"devices": devices}))


def _claim(name: str, requests: Iterable[tuple[str, str]]) -> Document:
    devices = {"requests": _requests(requests)}
    metadata = {"name": name, "namespace": SPACE}
    return _object("ResourceClaim", metadata, devices=devices)


def _claim_with_parameters(name: str, parameter: str) -> Document:
    claim = _claim(name, [("nic", "rdma.dra.test")])
    opaque = {"driver": "rdma.dra.test", "parameters": {"a": parameter}}
    claim["spec"]["devices"]["config"] = [{"opaque": opaque}]
    return claim


def _requests(requests: Iterable[tuple[str, str]]) -> list[Document]:
    return [
        {"name": name, "exactly": {"deviceClassName": device_class}}
        for name, device_class in requests
    ]


def _object(kind: str, metadata: Document, **fields: Any) -> Document:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": fields}


def publish(cluster: Cluster, nodes: list[str]) -> None:
    """Create the namespace, the classes, and the slices of these nodes."""
    apply(cluster, *_devices(nodes))
    metadata = {"name": SPACE, "labels": {CALLED_BY: LABEL}}
    make_namespaces(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def withdraw(cluster: Cluster, nodes: list[str]) -> None:
    """Remove what `publish` created, and the nodes."""
    cluster.kubectl("delete", "namespace", SPACE, "--wait=false")
    cluster.kubectl("delete", "deviceclass", "gpu.dra.test", "rdma.dra.test")
    slices = [f"{node}-{device}" for node in nodes for device in ("gpu", "rdma")]
    cluster.kubectl("delete", "resourceslice", *slices, "--ignore-not-found")
    cluster.kubectl("delete", "node", *nodes)


def _devices(nodes: list[str]) -> Iterator[Document]:
    """Yield the classes, and the slices of two drivers on each node."""
    for device in ("gpu", "rdma"):
        selector = {"cel": {"expression": f'device.driver == "{device}.dra.test"'}}
        extended = {"extendedResourceName": RESOURCE} if device == "rdma" else {}
        yield _object(
            "DeviceClass", {"name": f"{device}.dra.test"}, selectors=[selector], **extended
        )
        for node in nodes:
            prefix = "gpu" if device == "gpu" else "nic"
            listed = [
                {"name": name, "attributes": {PCIE_ROOT: {"string": root}}}
                for name, root in ROOTS.items()
                if name.startswith(prefix)
            ]
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
            yield _object(
                "ResourceSlice",
                {"name": f"{node}-{device}"},
                driver=f"{device}.dra.test",
                nodeName=node,
                pool=pool,
                devices=listed,
            )
