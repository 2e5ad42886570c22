from __future__ import annotations

from typing import Any

import pytest

from tests.builders import V100, container, decision_input, fabric, gpu, pod, quantities
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.model.fabric import RdmaResource
from webhook.model.pod import PodManifest

EQUIPPED = ("yes", "Equipped")
PRIVILEGED: dict[str, Any] = {"securityContext": {"privileged": True}}
#: A fabric without a device plugin.
BARE = fabric("bare", gpu_resources=V100.gpu_resources)


def test_the_fabrics_resource_is_a_device() -> None:
    """It counts whether it was added or the user requests it, also under its alias."""
    assert judged(pod()) == EQUIPPED
    for name in ("rdma/v100", "rdma/hca"):
        assert judged(pod(gpu(limits={name: "1"}))) == EQUIPPED


def test_a_resource_of_no_fabric_is_unknown() -> None:
    """A device plugin outside the configuration may provide any device."""
    verdict = verdict_on(pod(gpu(limits={"rdma/other": "1"})))
    assert (verdict.rdma, verdict.because.code) == ("unsure", "ResourceUnknown")
    assert verdict.message == (
        "container trainer requests rdma/other, which fabric v100-ib does not have; "
        "remove that resource"
    )
    alone = pod(container(resources=quantities({"rdma/other": "1"})))
    assert verdict_on(alone).message == (
        "container trainer requests rdma/other, which no fabric lists; rename it to the "
        "fabric's resource, or remove it and set rdma.lab/fabric and rdma.lab/containers"
    )
    alone["metadata"]["annotations"]["rdma.lab/fabric"] = "v100-ib"
    assert verdict_on(alone).because.code == "ResourceUnknown"  # a fabric's name changes nothing


def test_the_alias_of_two_fabrics_is_ambiguous() -> None:
    """Fabrics list it, so the remedy is to name one of them; an unlisted resource comes first."""
    resources = (
        RdmaResource(name="rdma/one", aliases=("rdma/hca",)),
        RdmaResource(name="rdma/two", aliases=("rdma/hca",)),
    )
    members = [fabric(item.name[5:], resources=(item,)) for item in resources]
    manifest = pod(container(resources=quantities({"rdma/hca": "1"})))
    verdict = verdict_on(manifest, decision_input(*members))
    assert (verdict.rdma, verdict.because.code) == ("no", "FabricAmbiguous")
    assert (
        verdict.message == "rdma/hca in container trainer matches one and two; set rdma.lab/fabric"
    )
    two_resources = pod(container(resources=quantities({"rdma/hca": "1", "rdma/other": "1"})))
    assert "requests rdma/other" in verdict_on(two_resources, decision_input(*members)).message


def test_a_resource_of_quantity_zero_is_no_device() -> None:
    """The user has requested none."""
    verdict = verdict_on(pod(gpu(limits={"rdma/v100": "0"})))
    assert (verdict.rdma, verdict.because.code) == ("no", "DeviceMissing")
    assert (
        verdict.message
        == "container trainer gets no RDMA device, since it requests rdma/v100 with quantity 0"
    )


def test_a_privileged_container_sees_all_devices() -> None:
    """Unless they are virtual functions, which only the device plugin provides."""
    skipping = {"rdma.lab/skip": "rdma-resources"}
    assert judged(pod(gpu(**PRIVILEGED), annotations=skipping)) == EQUIPPED
    assert judged(pod(gpu(**PRIVILEGED)), decision_input(BARE)) == EQUIPPED
    virtual = fabric("vf", mode="sr-iov", gpu_resources=V100.gpu_resources)
    assert judged(pod(gpu(**PRIVILEGED)), decision_input(virtual)) == ("no", "DeviceMissing")


@pytest.mark.parametrize(
    ("annotations", "member", "obstacle"),
    [
        ({"rdma.lab/skip": "rdma-resources"}, V100, "rdma.lab/skip lists rdma-resources"),
        ({}, BARE, "it is not privileged, and fabric bare has no resources"),
    ],
    ids=("skipped", "no resources"),
)
def test_without_a_device_there_is_no_rdma(
    annotations: dict[str, str], member: Any, obstacle: str
) -> None:
    """The message has the obstacle to a device."""
    verdict = verdict_on(pod(annotations=annotations), decision_input(member))
    assert (verdict.rdma, verdict.because.code) == ("no", "DeviceMissing")
    assert verdict.message == f"container trainer gets no RDMA device, since {obstacle}"


def test_another_injector_is_trusted() -> None:
    """The configuration promises that it adds the resource."""
    injected = fabric(
        "injected",
        gpu_resources=V100.gpu_resources,
        resources=(RdmaResource(name="rdma/x"),),
        inject_resources=False,
    )
    assert judged(pod(), decision_input(injected)) == EQUIPPED


def test_no_devices_on_purpose_is_not_certain() -> None:
    """The user declares that the device comes in another way."""
    assert judged(pod(annotations={"rdma.lab/devices": "0"})) == ("unsure", "DevicesElsewhere")


DECLARED = {"rdma.lab/fabric": "v100-ib", "rdma.lab/devices": "0"}
INTERFACES = {"networking.gke.io/interfaces": '[{"network": "rdma-0"}]'}
CLAIM = [{"name": "rdma-nic", "resourceClaimTemplateName": "rdma-nic"}]


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (pod(gpu(limits={"nvidia.com/rdma-vf": "1"}), annotations=DECLARED), EQUIPPED),
        (pod(gpu(limits={"example.com/gpu-nic-pair": "1"}), annotations=DECLARED), EQUIPPED),
        (pod(gpu(), annotations={**DECLARED, **INTERFACES}), EQUIPPED),
        (pod(gpu(), annotations=DECLARED, resourceClaims=CLAIM), EQUIPPED),
        (
            pod(gpu(env=[{"name": "FI_PROVIDER", "value": "efa"}]), annotations=DECLARED),
            ("unsure", "DevicesElsewhere"),
        ),
        (
            pod(gpu(), gpu("b", limits={"nvidia.com/rdma-vf": "0"}), annotations=DECLARED),
            ("unsure", "DevicesElsewhere"),
        ),
    ],
    ids=("resource", "GPU and NIC", "annotation", "claim", "variable", "quantity 0"),
)
def test_a_nic_that_is_declared_as_the_fabrics(
    manifest: PodManifest, expected: tuple[str, str]
) -> None:
    """`ForeignNIC` asks for these annotations, so they are believed where a NIC is visible."""
    assert judged(manifest) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"hostPath": {"path": "/dev/infiniband"}}, ("no", "DeviceByHostPath")),
        ({"emptyDir": {}}, ("no", "DeviceMissing")),
    ],
    ids=("hostPath", "emptyDir"),
)
def test_a_host_path_alone_is_no_device(source: dict[str, Any], expected: tuple[str, str]) -> None:
    """The files are there, but the cgroup of an unprivileged container refuses to open them."""
    mount = {"name": "ib", "mountPath": "/dev/infiniband"}
    volumes = [{"name": "other", "hostPath": {"path": "/"}}, {"name": "ib", **source}]
    assert judged(pod(gpu(volumeMounts=[mount]), volumes=volumes), decision_input(BARE)) == expected
    assert judged(pod(gpu(volumeMounts=[mount]), volumes=volumes)) == EQUIPPED
    assert judged(pod(gpu(volumeMounts=[mount], **PRIVILEGED), volumes=volumes)) == EQUIPPED


def test_the_path_of_a_host_path_is_in_the_message() -> None:
    """A volume's name may be anything."""
    mount = {"name": "x", "mountPath": "/ib"}
    volumes = [{"name": "x", "hostPath": {"path": "/dev/infiniband"}}]
    verdict = verdict_on(pod(gpu(volumeMounts=[mount]), volumes=volumes), decision_input(BARE))
    assert verdict.message == (
        "container trainer has /dev/infiniband only by hostPath; request the fabric's resource"
    )
    volumes[0]["hostPath"] = {"path": "/dev/infiniband/" + "x" * 1000}
    verdict = verdict_on(pod(gpu(volumeMounts=[mount]), volumes=volumes), decision_input(BARE))
    assert "/dev/infiniband/" + "x" * 44 + " only" in verdict.message


def test_another_vendors_nic_is_not_certain() -> None:
    """No fabric's settings are right for it; a certain problem is still reported.

    NCCL_IB_DISABLE is none: it turns off the transport that NCCL does not use for such a NIC.
    """
    efa = {"vpc.amazonaws.com/efa": "1"}
    assert judged(pod(gpu(limits=efa))) == ("unsure", "ForeignNIC")
    off = [{"name": "NCCL_IB_DISABLE", "value": "1"}]
    assert judged(pod(gpu(limits=efa, env=off))) == ("unsure", "ForeignNIC")
    sockets = [{"name": "NCCL_NET", "value": "Socket"}]
    assert judged(pod(gpu(limits=efa, env=sockets))) == ("no", "NcclNetSocket")


def test_an_unknown_resource_beside_another_vendors_nic() -> None:
    """The NIC may carry the traffic, so nothing is certain."""
    limits = {"vpc.amazonaws.com/efa": "1", "rdma/other": "1"}
    assert judged(pod(gpu(limits=limits))) == ("unsure", "ForeignNIC")


def test_without_a_fabric_there_is_no_rdma() -> None:
    """Both if no fabric matches and if several do."""
    unclaimed = pod(container(resources=quantities({"nvidia.com/gpu": "1"})))
    assert judged(unclaimed) == ("no", "FabricUnknown")
    twins = tuple(fabric(name, gpu_resources=frozenset({"nvidia.com/gpu"})) for name in "ab")
    assert judged(unclaimed, decision_input(*twins)) == ("no", "FabricAmbiguous")


def test_of_several_unknown_resources_the_first_by_name_is_reported() -> None:
    """A template and the API server list them in different orders."""
    two = {"limits": {"rdma/other": "1"}, "requests": {"rdma/b": "1", "rdma/other": "1"}}
    assert verdict_on(pod(container(resources=two))).message.startswith(
        "container trainer requests rdma/b,"
    )
