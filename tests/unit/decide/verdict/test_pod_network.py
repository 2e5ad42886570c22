from __future__ import annotations

import pytest

from tests.builders import V100, decision_input, fabric, gpu, pod
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.model.annotations import NETWORKS_ANNOTATION
from webhook.model.fabric import ClaimTemplateReference, Fabric, RdmaResource

EQUIPPED = ("yes", "Equipped")
RESOURCES = (RdmaResource(name="rdma/x"),)


def on(mode: str = "shared-device", link_layer: str = "InfiniBand", **fields: object) -> Fabric:
    """Make a fabric of the GPU, with a device."""
    given = {"gpu_resources": V100.gpu_resources, "resources": RESOURCES, **fields}
    return fabric("here", mode=mode, link_layer=link_layer, **given)


def test_a_mode_that_needs_the_hosts_network_needs_it() -> None:
    """This comes before its consequences."""
    verdict = verdict_on(pod(), decision_input(on("host-network", resources=())))
    assert (verdict.rdma, verdict.because.code) == ("no", "HostNetworkMissing")
    assert verdict.message == "fabric here needs hostNetwork: true, which the pod lacks"
    assert judged(pod(hostNetwork=True), decision_input(on("host-network"))) == EQUIPPED


@pytest.mark.parametrize("mode", ["sr-iov", "host-device"])
def test_a_device_is_not_moved_into_the_hosts_network(mode: str) -> None:
    """In these modes the device belongs to the pod's own network namespace."""
    verdict = verdict_on(pod(hostNetwork=True), decision_input(on(mode, "Ethernet")))
    assert (verdict.rdma, verdict.because.code) == ("no", "HostNetworkWrong")
    assert verdict.message == (
        f"fabric here ({mode}) does not work in the host network; remove hostNetwork from the pod"
    )
    for link_layer in ("InfiniBand", "Ethernet"):
        assert judged(pod(), decision_input(on(mode, link_layer))) == EQUIPPED


@pytest.mark.parametrize("mode", ["sr-iov", "host-device"])
def test_a_device_that_no_network_moves_works_in_the_hosts_network(mode: str) -> None:
    """So it is with InfiniBand and EFA, whose devices the plugin alone brings."""
    for reached in ({"link_layer": "InfiniBand"}, {"transport": "libfabric"}):
        given = {"link_layer": "Ethernet", **reached}
        assert judged(pod(hostNetwork=True), decision_input(on(mode, **given))) == EQUIPPED
    moved = (
        {"networks": ("lab/net",)},
        {"annotations": {"a/b": "c"}},
        {"resources": (RdmaResource(name="rdma/x", network="lab/net"),)},
    )
    for moving in moved:
        verdict = judged(pod(hostNetwork=True), decision_input(on(mode, **moving)))
        assert verdict == ("no", "HostNetworkWrong")


def test_a_driver_moves_the_device_of_a_claim() -> None:
    """With mode dra, the host's network lacks the device, on any link layer."""
    claiming = on("dra", resources=(), claim_templates=(ClaimTemplateReference(template="nics"),))
    assert judged(pod(hostNetwork=True), decision_input(claiming)) == ("no", "HostNetworkWrong")


def test_shared_roce_needs_networks() -> None:
    """Without them the driver decides whether the pod can use the host's GIDs."""
    roce = on(link_layer="Ethernet")
    verdict = verdict_on(pod(), decision_input(roce))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "RoceWithoutNetworks")
    assert verdict.message == (
        "RoCE fabric here has no networks; whether pods see GIDs depends on the driver"
    )
    assert judged(pod(hostNetwork=True), decision_input(roce)) == EQUIPPED
    assert (
        judged(pod(), decision_input(on(link_layer="Ethernet", networks=("lab/net",)))) == EQUIPPED
    )
    for reached in ({"annotations": {"a/b": "c"}}, {"transport": "libfabric"}):
        assert judged(pod(), decision_input(on(link_layer="Ethernet", **reached))) == EQUIPPED
    device = (RdmaResource(name="rdma/x", network="lab/net"),)
    assert judged(pod(), decision_input(on(link_layer="Ethernet", resources=device))) == EQUIPPED


def test_networks_that_could_not_be_added_are_missed() -> None:
    """The pod's own annotation is unreadable, or the pod leaves the mutation out."""
    cluster = decision_input(on(networks=("lab/net",)))
    unreadable = verdict_on(pod(annotations={NETWORKS_ANNOTATION: "[{"}), cluster)
    assert (unreadable.rdma, unreadable.because.code) == ("unsure", "NetworksNotAdded")
    assert unreadable.message == (
        "the fabric's networks were not added, because annotation k8s.v1.cni.cncf.io/networks is "
        "neither a comma-separated list nor JSON"
    )
    skipped = pod(annotations={"rdma.lab/skip": "networks"})
    assert judged(skipped, cluster) == ("unsure", "NetworksNotAdded")
    assert judged(pod(gpu(), annotations={NETWORKS_ANNOTATION: "lab/net"}), cluster) == EQUIPPED
    other = pod(annotations={"rdma.lab/skip": "shared-memory"})
    assert judged(other, decision_input(on(networks=("lab/net",), shared_memory="8Gi"))) == EQUIPPED


def test_networks_of_a_resource_that_the_pod_does_not_use() -> None:
    """They are not missed."""
    resources = (RdmaResource(name="rdma/x"), RdmaResource(name="rdma/y", network="lab/net"))
    trainer = pod(gpu(limits={"rdma/x": "1"}))
    assert judged(trainer, decision_input(on(resources=resources))) == EQUIPPED


def test_istios_proxy_may_separate_ranks() -> None:
    """It takes over TCP, which ranks use to connect; a certain problem comes first."""
    label = {"sidecar.istio.io/inject": "true"}
    verdict = verdict_on(pod(labels=label))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "IstioSidecar")
    assert verdict.message == (
        'Istio (label sidecar.istio.io/inject) proxies TCP; set sidecar.istio.io/inject: "false"'
    )
    assert judged(pod(labels=label), decision_input(on("host-network")))[1] == "HostNetworkMissing"
