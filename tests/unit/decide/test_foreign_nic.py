from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders import (
    V100,
    container,
    decide_on,
    decision_input,
    env,
    fabric,
    gpu,
    pod,
    quantities,
)
from tests.case_names import case_name
from webhook.decide.examine import FABRIC_NOT_NEEDED, examine
from webhook.decide.examine.foreign_nic import FOREIGN_NIC, FOREIGN_REMEDY
from webhook.model.annotations import UserAnnotations
from webhook.model.claims import ClaimFacts
from webhook.model.fabric import ClaimTemplateReference
from webhook.model.facts import NamespaceFacts
from webhook.model.pod import Pod, PodManifest

CLUSTER = decision_input(
    V100, foreign_resources=("site.lab/nic",), foreign_annotations=("site.lab/nics",)
)
INTERFACES = "networking.gke.io/interfaces"
DEFAULT = '{"interfaceName": "eth0", "network": "default"}'
ADDITIONAL = '{"interfaceName": "eth1", "network": "rdma-0"}'
MPIRUN = ["mpirun", "-H", "a,b"]

CLAIMED_BY_NONE = f"a NIC that no fabric lists; {FOREIGN_REMEDY}"


def evidence(manifest: PodManifest, annotations: UserAnnotations | None = None) -> str:
    """Return the evidence for a NIC that no fabric lists, with the verb; "" without any."""
    applicability = examine(Pod(manifest), annotations or UserAnnotations(), CLUSTER).applicability
    if not applicability.uses_foreign_nic:
        return ""
    assert applicability.skip_reason in (FOREIGN_NIC, FABRIC_NOT_NEEDED)
    nic, claimed, remedy = applicability.message.partition(" a NIC that no fabric lists")
    assert claimed
    assert remedy == (f"; {FOREIGN_REMEDY}" if applicability.skip_reason is FOREIGN_NIC else "")
    return nic


@pytest.mark.parametrize(
    ("limits", "nic"),
    [
        ({"rdma/v100": "1", "rdma/x": "1"}, ""),
        ({"vpc.amazonaws.com/efa": "4"}, "vpc.amazonaws.com/efa in container trainer is"),
        ({"vpc.amazonaws.com/efa": "0"}, ""),
        ({"nvidia.com/rdma-vf": "1"}, "nvidia.com/rdma-vf in container trainer is"),
        ({"site.lab/nic": "1"}, "site.lab/nic in container trainer is"),
    ],
    ids=case_name,
)
def test_resources(limits: dict[str, str], nic: str) -> None:
    """The table's and the site's resources count, unless a fabric claims the name."""
    assert evidence(pod(gpu(limits=limits))) == nic


PAIR = "example.com/gpu-nic-pair"


def test_a_resource_that_brings_a_gpu_with_its_nic() -> None:
    """Another injector may replace it by a claim for both, so listing it would request two NICs."""
    assert evidence(pod(gpu(limits={PAIR: "1"}))) == f"{PAIR} in container trainer is a GPU with"
    assert evidence(pod(gpu(limits={PAIR: "0"}))) == ""
    assert evidence(pod(gpu(limits={"example.com/gpu-niche": "1"}))) == ""
    decision = decide_on(pod(container(resources=quantities({PAIR: "1"}))), CLUSTER)
    assert decision.reason is FOREIGN_NIC
    assert decision.message == f"{PAIR} in container trainer is a GPU with {CLAIMED_BY_NONE}"


def test_a_pair_counts_only_where_it_may_be_used() -> None:
    """A sidecar's is its own, and a pair that a fabric lists is that fabric's GPU."""
    sidecar = container("proxy", resources=quantities({PAIR: "1"}))
    assert evidence(pod(gpu(), sidecar)) == ""
    listed = decision_input(replace(V100, gpu_resources=frozenset({PAIR})))
    trainer = pod(container(resources=quantities({PAIR: "1"})))
    assert decide_on(trainer, listed).fabric == "v100-ib"


@pytest.mark.parametrize(
    ("annotations", "nic"),
    [
        ({"site.lab/nics": ""}, "annotation site.lab/nics attaches"),
        ({INTERFACES: f"[{DEFAULT}, {ADDITIONAL}]"}, f"annotation {INTERFACES} attaches"),
        ({INTERFACES: "${INTERFACES}"}, f"annotation {INTERFACES} attaches"),
        ({INTERFACES: "{}"}, f"annotation {INTERFACES} attaches"),
        ({INTERFACES: '["default"]'}, f"annotation {INTERFACES} attaches"),
        ({INTERFACES: f"[{DEFAULT}]"}, ""),
        ({INTERFACES: "[]"}, ""),
        ({INTERFACES: ""}, ""),
        ({INTERFACES: None}, ""),
        ({"networking.gke.io/default-interface": "eth0"}, ""),
    ],
    ids=case_name,
)
def test_annotations(annotations: dict[str, Any], nic: str) -> None:
    """GKE's list counts if it has more than the default interface, which every pod has."""
    assert evidence(pod(annotations=annotations)) == nic


@pytest.mark.parametrize(
    ("used", "nic"),
    [
        ([{"name": "my-RDMA-nic"}], "resource claim my-RDMA-nic in container trainer is for"),
        ([], "resource claim my-RDMA-nic of the pod is for"),
        ([{"name": "other"}], "resource claim my-RDMA-nic of the pod is for"),
    ],
    ids=case_name,
)
def test_claims(used: list[dict[str, str]], nic: str) -> None:
    """They are a container's, or the pod's, as with most DRA networks."""
    trainer = gpu()
    trainer["resources"]["claims"] = used
    assert evidence(pod(trainer, resourceClaims=[{"name": "my-RDMA-nic"}])) == nic


@pytest.mark.parametrize("name", ["gpu", "default", "compute-domain-channel"])
def test_other_claims_are_no_nic(name: str) -> None:
    """A GPU, a channel, and a claim whose name does not identify its device."""
    trainer = gpu()
    trainer["resources"]["claims"] = [{"name": name}]
    assert evidence(pod(trainer, resourceClaims=[{"name": name}])) == ""


def test_a_claim_of_a_container_that_is_no_target_does_not_count() -> None:
    """It is the sidecar's own NIC."""
    proxy = container("proxy", resources={"claims": [{"name": "nic"}]})
    assert evidence(pod(gpu(), proxy, resourceClaims=[{"name": "nic"}])) == ""


@pytest.mark.parametrize(
    ("fields", "sign"),
    [
        ({"env": env(FI_PROVIDER="efa")}, "FI_PROVIDER=efa"),
        ({"env": env(FI_PROVIDER="cxi")}, "FI_PROVIDER=cxi"),
        ({"env": env(FI_PROVIDER="verbs")}, ""),
        ({"env": [{"name": "FI_PROVIDER", "valueFrom": {}}]}, ""),
        ({"env": env(NCCL_FASTRAK_CTRL_DEV="eth0")}, "NCCL_FASTRAK_*"),
        ({"command": ["sh", "-c", 'export FI_PROVIDER="efa"; x']}, "FI_PROVIDER=efa"),
        ({"command": ["mpirun", "-genv", "FI_PROVIDER", "efa", "x"]}, "FI_PROVIDER=efa"),
        ({"command": ["sh", "-c", "export FI_PROVIDER=$P MY_FI_PROVIDER=efa"]}, ""),
        ({"command": ["sh", "-c", "export NCCL_FASTRAK_NUM_FLOWS=2"]}, "NCCL_FASTRAK_*"),
        ({"env": env(NCCL_GPUDIRECTTCPX_CTRL_DEV="eth0")}, "NCCL_GPUDIRECTTCPX_*"),
        ({"env": env(NCCL_NET="GPUDirectTCPX_v7")}, "NCCL_NET=GPUDirectTCPX_v7"),
        ({"env": env(NCCL_NET="gpudirecttcpx")}, "NCCL_NET=gpudirecttcpx"),
        ({"env": env(NCCL_NET="IB")}, ""),
        (
            {"command": ["sh", "-c", 'export NCCL_NET="GPUDirectTCPX_v7"']},
            "NCCL_NET=GPUDirectTCPX_v7",
        ),
        (
            {"command": ["mpirun", "-genv", "NCCL_NET", "GPUDirectTCPX", "x"]},
            "NCCL_NET=GPUDirectTCPX",
        ),
        ({"command": ["sh", "-c", "export NCCL_NET=IB MY_NCCL_NET=GPUDirectTCPX"]}, ""),
        ({"env": env(LD_LIBRARY_PATH="/opt/amazon/efa/lib", FI_EFA_FORK_SAFE="1")}, ""),
    ],
    ids=case_name,
)
def test_variables(fields: dict[str, Any], sign: str) -> None:
    """A choice of a network counts, in env and in a command; a library alone does not."""
    assert evidence(pod(gpu(**fields))) == (sign and f"{sign} in container trainer implies")


@pytest.mark.parametrize(
    ("name", "image", "daemon"),
    [
        ("tcpx-daemon", "lab/daemon", True),
        ("tcpxo-daemon", "lab/daemon", True),
        ("rxdm", "lab/gpudirect-tcpx/tcpgpudmarxd-dev:v2", True),
        ("proxy", "lab/proxy", False),
    ],
    ids=case_name,
)
def test_daemons_of_gpudirect_tcpx(name: str, image: str, *, daemon: bool) -> None:
    """TCPX and TCPXO need one in the pod, as a container or as a sidecar."""
    sign = f"container {name}, a daemon of GPUDirect-TCPX, implies" if daemon else ""
    sidecar = container(name, image=image, restartPolicy="Always")
    assert evidence(pod(gpu(), container(name, image=image))) == sign
    assert evidence(pod(gpu(), initContainers=[sidecar])) == sign


@pytest.mark.parametrize(
    ("fields", "sign"),
    [
        ({"command": [*MPIRUN, "-x", "FI_EFA_USE_DEVICE_RDMA=1", "x"]}, "FI_EFA_USE_DEVICE_RDMA"),
        ({"command": ["/opt/amazon/openmpi/bin/mpirun", "-H", "a", "x"]}, "/opt/amazon/openmpi"),
        ({"env": env(LD_LIBRARY_PATH="/opt/amazon/efa/lib:/lib")}, "/opt/amazon/efa"),
        ({"env": env(LD_LIBRARY_PATH="/opt/aws-ofi-nccl/lib")}, "aws-ofi-nccl"),
        ({"env": env(FI_PROVIDER="efa")}, "FI_PROVIDER=efa"),
        ({"env": env(PATH="/opt/openmpi/bin")}, ""),
    ],
    ids=case_name,
)
def test_launchers_show_what_their_ranks_use(fields: dict[str, Any], sign: str) -> None:
    """A launcher has no NIC itself, so more signs of EFA count than in a target."""
    launcher = pod(container(**{"command": [*MPIRUN, "x"], **fields}))
    assert evidence(launcher) == (sign and f"{sign} in container trainer implies")
    assert decide_on(launcher, CLUSTER).warnings == ()


def test_a_launchers_own_fabric_outweighs_its_libraries() -> None:
    """An image made for EFA may run on another fabric; a variable that chooses EFA may not."""
    library = container(command=["/opt/amazon/openmpi/bin/mpirun", "-H", "a", "x"])
    assert evidence(pod(library), UserAnnotations(fabric="v100-ib")) == ""
    chosen = container(command=[*MPIRUN, "-x", "FI_PROVIDER=efa", "x"])
    assert evidence(pod(chosen), UserAnnotations(fabric="v100-ib")) != ""


def test_the_user_may_declare_the_nic_a_fabrics() -> None:
    """A fabric's name and no devices declare the NIC that fabric's; either alone does not."""
    manifest = pod(gpu(limits={"vpc.amazonaws.com/efa": "1"}))
    assert evidence(manifest, UserAnnotations(fabric="v100-ib", devices=0)) == ""
    for declared in (UserAnnotations(fabric="v100-ib"), UserAnnotations(devices=0)):
        assert evidence(manifest, declared) == "vpc.amazonaws.com/efa in container trainer is"


def test_a_pod_without_targets_may_have_a_nic_all_the_same() -> None:
    """Then a lack of RDMA is not certain; an init container's NIC is not evidence."""
    nic = container(resources=quantities({"nvidia.com/mlnxnics": "1"}))
    decision = decide_on(pod(nic))
    assert (decision.reason.code, decision.fabric) == ("ForeignNIC", None)
    assert decision.verdict is not None
    assert (decision.verdict.rdma, decision.verdict.message) == (
        "unsure",
        f"nvidia.com/mlnxnics in container trainer is {CLAIMED_BY_NONE}",
    )
    assert decide_on(pod(container("a"), initContainers=[nic])).reason.code == "NoTarget"


@pytest.mark.parametrize(
    ("template", "use", "foreign"),
    [
        ("own", True, False),
        ("own", False, False),
        ("roce-other", True, True),
        ("by-class", True, False),
        ("gpu-nic", True, True),
    ],
)
def test_a_claim_that_a_fabric_lists_is_its_nic(template: str, use: bool, foreign: bool) -> None:
    """Its template or a NIC's device class counts; the class of a GPU does not."""
    h100 = fabric(
        "h100",
        device_classes=frozenset({"nic.lab", "h100.lab"}),
        claim_templates=(ClaimTemplateReference(template="own"),),
    )
    facts = ClaimFacts(
        templates={"by-class": {"a": ("nic.lab",)}, "gpu-nic": {"a": ("h100.lab", "rdma.other")}}
    )
    cluster = decision_input(h100, namespace=NamespaceFacts(name="lab", claim_facts=facts))
    user = container(resources={"claims": [{"name": "rdma"}] if use else []})
    manifest = pod(
        user,
        annotations={"rdma.lab/fabric": "h100"},
        resourceClaims=[{"name": "rdma", "resourceClaimTemplateName": template}],
    )
    assert (decide_on(manifest, cluster).reason is FOREIGN_NIC) is foreign


LISTED = {INTERFACES: f"[{DEFAULT}, {ADDITIONAL}]"}


def test_an_annotation_that_a_fabric_lists() -> None:
    """It is that fabric's, and foreign on another fabric."""
    lists = replace(V100, annotations={INTERFACES: "[]", "site.lab/nics": "x"})
    other = fabric("other", gpu_resources=frozenset({"nvidia.com/a100"}))
    cluster = decision_input(lists, other, foreign_annotations=("site.lab/nics",))
    for written in (LISTED, {"site.lab/nics": "mine"}):
        assert decide_on(pod(annotations=written), cluster).fabric == "v100-ib"
    on_other = pod(gpu(limits={"nvidia.com/a100": "1"}), annotations=LISTED)
    on_other["spec"]["containers"][0]["resources"]["limits"].pop("nvidia.com/v100", None)
    assert decide_on(on_other, cluster).reason is FOREIGN_NIC
    unknown = pod(container(resources=quantities({"rdma/x": "1"})), annotations=LISTED)
    assert decide_on(unknown, cluster).reason is not FOREIGN_NIC


@pytest.mark.parametrize(
    "chosen",
    [{"env": env(FI_PROVIDER="efa")}, {"command": ["sh", "-c", "FI_PROVIDER=efa train"]}],
    ids=["env", "command"],
)
def test_the_provider_of_a_fabric_over_libfabric(chosen: dict[str, Any]) -> None:
    """It is how that fabric is reached; GPUDirect-TCPX is another network."""
    cluster = decision_input(replace(V100, transport="libfabric"))
    assert decide_on(pod(gpu(**chosen)), cluster).fabric == "v100-ib"
    assert decide_on(pod(gpu(**chosen)), CLUSTER).reason is FOREIGN_NIC
    tcpx = pod(gpu(env=env(FI_PROVIDER="efa", NCCL_FASTRAK_IFNAME="eth1")))
    assert decide_on(tcpx, cluster).reason is FOREIGN_NIC


def test_a_launcher_on_a_fabric_over_libfabric() -> None:
    """Its libraries of EFA are the fabric's."""
    launcher = pod(container(command=[*MPIRUN, "-x", "LD_LIBRARY_PATH=/opt/amazon/efa/lib", "a"]))
    cluster = decision_input(replace(V100, transport="libfabric"))
    assert "EFA" not in decide_on(launcher, cluster).message
    examined = examine(Pod(launcher), UserAnnotations(), cluster).applicability
    assert not examined.uses_foreign_nic
