"""Fabrics of mode dra: the cluster's API server, controller of claims and scheduler are real."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.node import NAME as REAL
from tests.cluster.versions import DEFAULT_MINOR
from tests.command_line import run_command
from tests.e2e.admission.by_url import Webhook, register
from tests.e2e.admission.made_up_devices import (
    FABRICS,
    LABEL,
    RESOURCE,
    ROOTS,
    SPACE,
    Place,
    publish,
    withdraw,
)
from tests.e2e.admission.pods import Answer, create
from tests.e2e.documents import Document
from tests.e2e.wire import send
from tests.waiting import until

MINOR = os.environ.get("K8S") or DEFAULT_MINOR


@pytest.fixture(scope="module")
def place(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Publish devices on fake nodes, and call a webhook of this checkout for a namespace."""
    with ExitStack() as stack:
        nodes = cluster.fake_nodes(1, {}, {"dra.test/plugin-gpu": "8"})
        publish(cluster, nodes)
        stack.callback(withdraw, cluster, nodes)
        folder = tmp_path_factory.mktemp("dra") / "webhook"
        started = Webhook(cluster, LABEL, folder, "--kubeconfig", str(cluster.kubeconfig))
        stack.callback(started.stop)
        started.wait_for_ports()
        # The fabrics come later, so that the templates are watched from then on.
        started.config.write_text(yaml.safe_dump(FABRICS))
        name = register(cluster, LABEL, started)
        stack.callback(
            cluster.kubectl, "delete", "mutatingwebhookconfiguration", name, "--wait=false"
        )
        place = Place(cluster, nodes)
        place.template(
            "gpu-with-nic", ("gpu", "gpu.dra.test"), ("nic", "rdma.dra.test"), aligned=True
        )
        until(lambda: _dry_run(place).get("because") == "Equipped")
        yield place


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


def explained(place: Place, answer: Answer) -> dict[str, str]:
    """Return the texts of `rdma-webhook why` about a pod, by their codes."""
    pod = answer.object["metadata"]["name"]
    access = ("--kubeconfig", place.cluster.kubeconfig, "-n", SPACE)
    (report,) = run_command("why", *access, "-o", "json", pod).form["pods"]
    findings = (finding for chapter in report["chapters"] for finding in chapter["findings"])
    return {finding["code"]: finding["text"] for finding in findings}


def sentence(place: Place, answer: Answer, code: str) -> str:
    """Wait until `why` has a sentence of this code for the pod, and return it."""
    sentences: dict[str, str] = {}

    def is_reported() -> bool:
        sentences.update(explained(place, answer))
        return code in sentences

    until(is_reported)
    assert not place.read("pods", answer.object["metadata"]["name"])["spec"].get("nodeName")
    return sentences[code]


def test_a_pod_gets_its_gpu_and_the_nic_next_to_it(place: Place) -> None:
    """One claim with `matchAttribute` brings both, from one PCIe root."""
    answer = place.create(fabric="pairs")
    assert (answer.status["rdma"], answer.status["fabric"]) == ("yes", "pairs")
    bound = place.bound(answer)
    assert bound["spec"]["nodeName"] in place.nodes
    (status,) = bound["status"]["resourceClaimStatuses"]
    assert status["name"] == "rdma-lab-pairs-0"
    got = place.devices(status["resourceClaimName"])
    assert got.keys() == {"gpu", "nic"}
    assert ROOTS[got["gpu"]] == ROOTS[got["nic"]]


def test_a_template_that_is_missing_keeps_the_pod_pending_until_it_comes(place: Place) -> None:
    """The verdict is no at creation; with the template, the pod starts, unchanged."""
    limits = {"dra.test/plugin-gpu": "1"}
    answer = place.create(limits=limits)
    assert (answer.status["rdma"], answer.status["because"]) == ("no", "ClaimTemplateMissing")
    (warning,) = answer.warnings
    assert warning.startswith(
        "no RDMA: namespace admission-dra has no ResourceClaimTemplate rdma-n"
    )
    text = sentence(place, answer, "ClaimTemplateMissing")
    assert "ResourceClaimTemplate rdma-nics, which the namespace does not have" in text
    place.template("rdma-nics", ("nic", "rdma.dra.test"))
    bound = place.bound(answer)
    assert bound["spec"]["containers"][0]["resources"]["claims"] == [
        {"name": "rdma-lab-nics-0", "request": "nic"}
    ]
    (status,) = bound["status"]["resourceClaimStatuses"]
    assert place.devices(status["resourceClaimName"]).keys() == {"nic"}


def test_a_claim_that_few_programs_read_hides_no_other(place: Place) -> None:
    """The API server accepts 4,000 levels, and half a character; later claims still count."""
    place.deep_claim("deep", 4_000)
    place.odd_claim("odd", "\ud800")
    place.claim("later", ("any", "rdma.dra.test"))
    limits = {"dra.test/plugin-gpu": "1"}
    until(lambda: "warned" not in place.create(limits=limits, claim="later", stored=False).status)


def test_a_claim_that_exists_is_the_pods_nic(place: Place) -> None:
    """Nothing is claimed twice; until the watch has brought the claim, the webhook warns."""
    limits = {"dra.test/plugin-gpu": "1"}
    answer = place.create(limits=limits, claim="absent", stored=False)
    assert "ClaimUnknown" in answer.status["warned"]
    place.claim("mine", ("any", "rdma.dra.test"))
    until(lambda: "warned" not in place.create(limits=limits, claim="mine", stored=False).status)
    answer = place.create(limits=limits, claim="mine")
    assert (answer.status["rdma"], answer.status["fabric"]) == ("yes", "nics")
    bound = place.bound(answer)
    assert bound["spec"]["resourceClaims"] == [{"name": "own", "resourceClaimName": "mine"}]
    assert bound["spec"]["containers"][0]["resources"]["claims"] == [{"name": "own"}]
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
    bound = place.bound(answer)
    assert bound["spec"]["containers"][0]["resources"]["limits"] == {RESOURCE: "1"}
    claim = bound["status"]["extendedResourceClaimStatus"]["resourceClaimName"]
    (device,) = place.devices(claim).values()
    assert device.startswith("nic-")


def test_why_names_a_claim_that_is_missing(place: Place) -> None:
    """The scheduler does not mention it, so `why` looks for the claim itself."""
    text = sentence(place, place.create(claim="never-made"), "ClaimMissing")
    assert "its ResourceClaim never-made does not exist" in text


def test_why_names_a_device_class_that_is_missing(place: Place) -> None:
    """A misspelled class is named with its request.

    `why` recognizes the scheduler's words, as in the next tests: they may change.
    """
    place.claim("misspelled", ("nic", "rmda.dra.test"))
    text = sentence(place, place.create(claim="misspelled"), "DeviceClassMissing")
    assert "the request nic in its claim refers to the DeviceClass rmda.dra.test, which" in text


def test_why_reports_that_devices_are_lacking(place: Place) -> None:
    """No node has that many."""
    place.claim("many", *((f"nic-{number}", "rdma.dra.test") for number in range(len(ROOTS))))
    text = sentence(place, place.create(claim="many"), "ClaimsNotAllocated")
    assert "no node has enough free devices that match the pod's claims (own)" in text


def test_why_explains_what_keeps_a_pod_from_a_claim_that_others_use(place: Place) -> None:
    """The claim's device is on another node, or too many pods use it."""
    place.claim("shared", ("gpu", "gpu.dra.test"))
    place.bound(place.create(claim="shared"))
    text = sentence(place, place.create(claim="shared", node=REAL), "ClaimElsewhere")
    assert "one of its claims (own) is already allocated on nodes that cannot run the pod" in text
    place.reserve("shared")
    text = sentence(place, place.create(claim="shared"), "ClaimInUse")
    assert "one of its claims (own) is already in use by the maximum number of pods" in text


def test_why_explains_why_kubernetes_could_not_make_a_claim(place: Place) -> None:
    """A quota forbids it; this is the last test of the file."""
    place.forbid_claims()
    text = sentence(place, place.create(fabric="pairs"), "ClaimNotCreated")
    assert "could not create one of its claims: " in text
    assert "exceeded quota: no-claims" in text
