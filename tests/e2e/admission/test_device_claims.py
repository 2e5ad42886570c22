"""Fabrics of mode dra on a real cluster: its API server, its controller of claims, its scheduler.

The devices are made up: ResourceSlices as a DRA driver would publish them, on fake nodes. No driver
runs, so no container starts; what is shown is that the scheduler allocates what we claim.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.kwok import FAKE
from tests.cluster.versions import DEFAULT_MINOR
from tests.e2e.admission.by_url import Webhook, register
from tests.e2e.admission.places import CALLED_BY
from tests.e2e.admission.pods import Answer, create
from tests.e2e.asking import Document, apply
from tests.e2e.wire import send
from tests.waiting import until

MINOR = os.environ.get("K8S") or DEFAULT_MINOR
SPACE, LABEL = "admission-dra", "dra"
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
_NUMBERS = count()


@dataclass(frozen=True)
class Place:
    """A namespace whose pods a webhook with these fabrics is called for."""

    cluster: Cluster
    nodes: list[str]

    def create(
        self,
        *,
        fabric: str = "",
        limits: Document | None = None,
        claim: str = "",
        stored: bool = True,
    ) -> Answer:
        """Create a pod that tolerates fake nodes; `claim`: a ResourceClaim for its container."""
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
                },
            },
            stored=stored,
        )

    def read(self, resource: str, name: str, group: str = "api/v1") -> Document:
        """Return an object of the namespace."""
        path = f"/{group}/namespaces/{SPACE}/{resource}/{name}"
        return send(self.cluster, "GET", path).object

    def events(self, name: str) -> list[str]:
        """Return the reasons of the Events about a pod."""
        path = f"/api/v1/namespaces/{SPACE}/events?fieldSelector=involvedObject.name%3D{name}"
        return [one["reason"] for one in send(self.cluster, "GET", path).object["items"]]

    def bound(self, answer: Answer) -> Document:
        """Return a pod once it is bound to a node."""
        name = answer.object["metadata"]["name"]
        until(lambda: "nodeName" in self.read("pods", name)["spec"])
        return self.read("pods", name)

    def devices(self, claim: str) -> dict[str, str]:
        """Return what was allocated to a claim: request → device."""
        found = self.read("resourceclaims", claim, "apis/resource.k8s.io/v1")
        results = found["status"]["allocation"]["devices"]["results"]
        return {one["request"]: one["device"] for one in results}

    def claim(self, name: str, *requests: tuple[str, str]) -> None:
        """Create a ResourceClaim whose requests have these names and device classes."""
        metadata = {"name": name, "namespace": SPACE}
        devices = {"requests": _requests(requests)}
        apply(self.cluster, _object("ResourceClaim", metadata, devices=devices))

    def template(self, name: str, *requests: tuple[str, str], aligned: bool = False) -> None:
        """Create a template whose requests have these names and device classes."""
        listed = _requests(requests)
        constraint = {"requests": [one for one, _ in requests], "matchAttribute": PCIE_ROOT}
        devices = {"requests": listed, **({"constraints": [constraint]} if aligned else {})}
        metadata = {"name": name, "namespace": SPACE}
        apply(self.cluster, _object("ResourceClaimTemplate", metadata, spec={"devices": devices}))


@pytest.fixture(scope="module")
def place(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Publish devices on fake nodes, and call a webhook of this checkout for a namespace."""
    with ExitStack() as stack:
        nodes = cluster.fake_nodes(1, {}, {"dra.test/plugin-gpu": "8"})
        for one in _devices(nodes):
            apply(cluster, one)
        labels = {CALLED_BY: LABEL}
        namespace = {"metadata": {"name": SPACE, "labels": labels}}
        apply(cluster, {"apiVersion": "v1", "kind": "Namespace", **namespace})
        account = {"metadata": {"name": "default", "namespace": SPACE}}
        apply(cluster, {"apiVersion": "v1", "kind": "ServiceAccount", **account})
        stack.callback(_remove, cluster, nodes)
        folder = tmp_path_factory.mktemp("dra") / "webhook"
        started = Webhook(cluster, LABEL, folder, "--kubeconfig", str(cluster.kubeconfig))
        stack.callback(started.stop)
        started.listening()
        # The fabrics come later, so that the templates are watched from then on.
        started.config.write_text(yaml.safe_dump(FABRICS))
        name = register(cluster, LABEL, started)
        stack.callback(
            cluster.kubectl, "delete", "mutatingwebhookconfiguration", name, "--wait=false"
        )
        made = Place(cluster, nodes)
        made.template(
            "gpu-with-nic", ("gpu", "gpu.dra.test"), ("nic", "rdma.dra.test"), aligned=True
        )
        until(lambda: _dry_run(made).get("because") == "Equipped")
        yield made


def _dry_run(place: Place) -> Document:
    container = {"name": "trainer", "image": "example.com/none"}
    annotations = {"rdma.lab/enable": "true", "rdma.lab/fabric": "pairs"}
    metadata = {"name": "asks", "namespace": SPACE, "annotations": annotations}
    answer = create(
        place.cluster,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [container]},
        },
    )
    return answer.status if "rdma.lab/status" in str(answer.object) else {}


def _requests(requests: Iterable[tuple[str, str]]) -> list[Document]:
    return [{"name": one, "exactly": {"deviceClassName": of}} for one, of in requests]


def _object(kind: str, metadata: Document, **fields: Any) -> Document:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": fields}


def _devices(nodes: list[str]) -> Iterator[Document]:
    """Yield the classes, and the slices of two drivers on each node."""
    for device in ("gpu", "rdma"):
        selector = {"cel": {"expression": f'device.driver == "{device}.dra.test"'}}
        more = {"extendedResourceName": RESOURCE} if device == "rdma" else {}
        yield _object("DeviceClass", {"name": f"{device}.dra.test"}, selectors=[selector], **more)
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


def _remove(cluster: Cluster, nodes: list[str]) -> None:
    cluster.kubectl("delete", "namespace", SPACE, "--wait=false")
    cluster.kubectl("delete", "deviceclass", "gpu.dra.test", "rdma.dra.test")
    slices = [f"{node}-{device}" for node in nodes for device in ("gpu", "rdma")]
    cluster.kubectl("delete", "resourceslice", *slices, "--ignore-not-found")
    cluster.kubectl("delete", "node", *nodes)


def test_a_pod_gets_its_gpu_and_the_nic_beside_it(place: Place) -> None:
    """One claim with `matchAttribute` brings both, from one PCIe root."""
    answer = place.create(fabric="pairs")
    assert (answer.status["rdma"], answer.status["fabric"]) == ("yes", "pairs")
    found = place.bound(answer)
    assert found["spec"]["nodeName"] in place.nodes
    (status,) = found["status"]["resourceClaimStatuses"]
    assert status["name"] == "rdma-lab-pairs-0"
    got = place.devices(status["resourceClaimName"])
    assert got.keys() == {"gpu", "nic"}
    assert ROOTS[got["gpu"]] == ROOTS[got["nic"]]


def test_a_template_that_is_missing_keeps_the_pod_pending_until_it_comes(place: Place) -> None:
    """The verdict says so at creation; with the template, the pod starts, unchanged."""
    limits = {"dra.test/plugin-gpu": "1"}
    answer = place.create(limits=limits)
    assert (answer.status["rdma"], answer.status["because"]) == ("no", "ClaimTemplateMissing")
    (warning,) = answer.warnings
    assert warning.startswith(
        "no RDMA: namespace admission-dra has no ResourceClaimTemplate rdma-n"
    )
    name = answer.object["metadata"]["name"]
    until(lambda: "FailedResourceClaimCreation" in place.events(name))
    assert "nodeName" not in place.read("pods", name)["spec"]
    place.template("rdma-nics", ("nic", "rdma.dra.test"))
    found = place.bound(answer)
    assert found["spec"]["containers"][0]["resources"]["claims"] == [
        {"name": "rdma-lab-nics-0", "request": "nic"}
    ]
    (status,) = found["status"]["resourceClaimStatuses"]
    assert place.devices(status["resourceClaimName"]).keys() == {"nic"}


def test_a_claim_that_exists_is_the_pods_nic(place: Place) -> None:
    """Nothing is claimed twice; until the watch has brought the claim, the webhook says so."""
    limits = {"dra.test/plugin-gpu": "1"}
    answer = place.create(limits=limits, claim="absent", stored=False)
    assert "ClaimUnknown" in answer.status["warned"]
    place.claim("mine", ("any", "rdma.dra.test"))
    until(lambda: "warned" not in place.create(limits=limits, claim="mine", stored=False).status)
    answer = place.create(limits=limits, claim="mine")
    assert (answer.status["rdma"], answer.status["fabric"]) == ("yes", "nics")
    found = place.bound(answer)
    assert found["spec"]["resourceClaims"] == [{"name": "own", "resourceClaimName": "mine"}]
    assert found["spec"]["containers"][0]["resources"]["claims"] == [{"name": "own"}]
    assert place.devices("mine").keys() == {"any"}


def test_a_driver_may_offer_an_extended_resource(place: Place) -> None:
    """KEP-5004: the pod requests it as any other, and the scheduler makes the claim."""
    path = "/apis/resource.k8s.io/v1/deviceclasses/rdma.dra.test"
    spec = send(place.cluster, "GET", path).object["spec"]
    if MINOR == "1.34":  # the feature gate DRAExtendedResource is off there
        assert "extendedResourceName" not in spec
        return
    assert spec["extendedResourceName"] == RESOURCE
    answer = place.create(fabric="by-resource")
    assert "resourceClaims" not in answer.object["spec"]
    found = place.bound(answer)
    assert found["spec"]["containers"][0]["resources"]["limits"] == {RESOURCE: "1"}
    claim = found["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    (device,) = place.devices(claim).values()
    assert device.startswith("nic-")
