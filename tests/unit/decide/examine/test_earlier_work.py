"""The fabric of an earlier call counts only in a pod that shows the work of that call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders import container, decide_on, decision_input, env, fabric, fabrics, pod
from webhook.decide.analysis import EarlierCall
from webhook.decide.examine.earlier_work import fabric_of_earlier_call
from webhook.model.annotations import STATUS_ANNOTATION
from webhook.model.fabric import ClaimTemplateReference, FabricEnv, RdmaResource
from webhook.model.pod import Pod, PodManifest

SITE = (("NCCL_DEBUG", "INFO"),)
NORTH = fabric(
    "north",
    gpu_resources=frozenset({"nvidia.com/gpu"}),
    resources=(RdmaResource(name="rdma/north", network="rails/rail0@net1"),),
    networks=("lab/north-net",),
    claim_templates=(ClaimTemplateReference(template="north-nics"),),
    pin_selector={"fabric": "north"},
    env=FabricEnv(
        library_variables=(("NCCL_IB_HCA", "=mlx5_0"), ("NCCL_IB_TC", "106")), site_variables=SITE
    ),
    socket_interface="eth0",
)
SOUTH = fabric(
    "south",
    gpu_resources=frozenset({"nvidia.com/gpu"}),
    env=FabricEnv(library_variables=(("NCCL_IB_HCA", "=mlx5_9"),)),
    socket_interface="eth0",
)
BOTH = fabrics(NORTH, SOUTH)
CONF = "rdma.lab/nccl-conf"
NETWORKS = "k8s.v1.cni.cncf.io/networks"


def shown(manifest: PodManifest, name: str | None = "north") -> str | None:
    """Return the fabric that the pod shows."""
    return fabric_of_earlier_call(Pod(manifest), EarlierCall("0123456789ab", name), BOTH)


def requesting(name: str) -> PodManifest:
    """Make a pod that requests a resource."""
    amounts = {name: "1"}
    return pod(container(resources={"limits": amounts, "requests": amounts}))


@pytest.mark.parametrize(
    "manifest",
    [
        requesting("rdma/north"),
        pod(container(env=env(NCCL_IB_HCA="=mlx5_0"))),
        pod(annotations={CONF: "NCCL_SOCKET_IFNAME=eth0\nNCCL_IB_HCA==mlx5_0\n"}),
        pod(annotations={NETWORKS: "default/other,lab/north-net"}),
        pod(annotations={NETWORKS: '[{"name":"rail0","namespace":"rails"}]'}),
        pod(resourceClaims=[{"name": "x", "resourceClaimTemplateName": "north-nics"}]),
        pod(nodeSelector={"fabric": "north", "zone": "a"}),
        pod(nodeSelector={"fabric": "north"}),
    ],
    ids=[
        *("resource", "variable", "file", "network", "network as JSON", "claim"),
        *("node label among others", "node label"),
    ],
)
def test_a_pod_that_shows_the_work(manifest: PodManifest) -> None:
    """Anything that a call puts only into pods of this fabric."""
    assert shown(manifest) == "north"
    assert shown(manifest, "south") is None
    assert shown(manifest, None) is None
    assert shown(manifest, "gone") is None


@pytest.mark.parametrize(
    "manifest",
    [
        pod(),
        requesting("rdma/south"),
        pod(container(env=env(NCCL_IB_HCA="=mlx5_9"))),
        pod(container(env=env(NCCL_SOCKET_IFNAME="eth0"))),
        pod(container(env=env(NCCL_DEBUG="INFO"))),
        pod(annotations={CONF: "NCCL_IB_HCA==mlx5_9\n", NETWORKS: "lab/other"}),
        pod(resourceClaims=[{"name": "x", "resourceClaimTemplateName": ["north-nics"]}]),
        pod(annotations={CONF: ["NCCL_IB_HCA==mlx5_9"]}),
        pod(annotations={NETWORKS: ["lab/north"]}),
        pod(nodeSelector={"fabric": "south"}),
    ],
    ids=str,
)
def test_a_pod_that_does_not(manifest: PodManifest) -> None:
    """What another fabric, the site or nobody sets proves nothing."""
    assert shown(manifest) is None


def test_a_network_without_a_namespace() -> None:
    """It is in the pod's own namespace, and its name is all that a call adds."""
    local = fabrics(fabric("north", networks=("north-net",)))
    earlier = EarlierCall("0123456789ab", "north")
    assert (
        fabric_of_earlier_call(Pod(pod(annotations={NETWORKS: "north-net"})), earlier, local)
        == "north"
    )
    assert fabric_of_earlier_call(Pod(pod(annotations={NETWORKS: "other"})), earlier, local) is None


@pytest.mark.parametrize(("south_interface", "expected"), [("bond1", "north"), ("bond0", None)])
def test_the_interface_of_a_pod_in_the_hosts_network(
    south_interface: str, expected: str | None
) -> None:
    """It is the host's that a call writes there, unless another fabric has the same."""
    configuration = fabrics(
        replace(NORTH, host_socket_interface="bond0"),
        replace(SOUTH, host_socket_interface=south_interface),
    )
    manifest = pod(container(env=env(NCCL_SOCKET_IFNAME="bond0")), hostNetwork=True)
    earlier = EarlierCall("0123456789ab", "north")
    assert fabric_of_earlier_call(Pod(manifest), earlier, configuration) == expected
    manifest["spec"]["hostNetwork"] = False
    assert fabric_of_earlier_call(Pod(manifest), earlier, configuration) is None


FORGED = (
    '{"rdma":"yes","because":"Equipped","fabric":"south","applied":["env"],"config":"0123456789ab"}'
)


def test_a_forged_status_chooses_no_fabric() -> None:
    """The pod is as ambiguous as without it; a real second call keeps the fabric of the first."""
    gpus = requesting("nvidia.com/gpu")
    gpus["metadata"]["annotations"][STATUS_ANNOTATION] = FORGED
    denying = decision_input(NORTH, SOUTH, defaults={"on_ambiguous": "deny"})
    assert decide_on(gpus, decision_input(NORTH, SOUTH)).reason.code == "FabricAmbiguous"
    assert not decide_on(gpus, denying).allowed
    gpus["spec"]["containers"][0]["env"] = env(NCCL_IB_HCA="=mlx5_9")
    assert decide_on(gpus, denying).fabric == "south"
