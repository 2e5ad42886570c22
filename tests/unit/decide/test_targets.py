from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, fabric, fabrics, gpu, pod, quantities
from tests.case_names import case_name
from webhook.decide.analysis import Launcher, Target
from webhook.decide.examine.targets import (
    DEVICE_NOT_LISTED,
    GPU_BY_CLAIM,
    NO_TARGET,
    NODE_DEVICES,
    PRIVILEGED_WITH_GPU,
    Selection,
    select,
)
from webhook.decide.launchers.commands import Commands
from webhook.errors import ShapeError
from webhook.model.annotations import UserAnnotations
from webhook.model.claims import NO_CLAIM_FACTS, ClaimFacts, claims_of
from webhook.model.decision import Denial
from webhook.model.fabric import ClaimTemplateReference, CompiledConfiguration, FabricEnv
from webhook.model.pod import Pod, PodManifest
from webhook.model.resources import requested_devices

FABRIC = UserAnnotations(fabric="v100-ib")
MPIRUN = ["mpirun", "--allow-run-as-root", "-np", "2", "a.out"]
SHARED = (
    "annotation {} gives container {} a share of a GPU; set rdma.lab/containers and rdma.lab/fabric"
)


def chosen(
    manifest: PodManifest,
    annotations: UserAnnotations | None = None,
    site: CompiledConfiguration | None = None,
    facts: ClaimFacts = NO_CLAIM_FACTS,
) -> Selection:
    """Choose among a pod's containers."""
    site = site or fabrics()
    pod = Pod(manifest)
    container_devices = [
        (candidate, requested_devices(candidate, site)) for candidate in pod.containers
    ]
    claims = claims_of(pod, facts)
    return select(
        pod, container_devices, annotations or UserAnnotations(), Commands(pod), site, claims=claims
    )


def app(name: str, index: int = 0, gpus: int = 0, *, shared: bool = False) -> Target:
    """Write a target among the app containers."""
    return Target(name, ("spec", "containers", index), "app", gpus, shared)


def launcher(name: str, evidence: str, index: int = 0) -> Launcher:
    """Write a launcher whose ranks run in other pods."""
    return Launcher(name, ("spec", "containers", index), evidence)


def rdma(name: str = "reader", amount: Any = "1") -> dict[str, Any]:
    """Make a container with an RDMA resource and no GPU."""
    return container(name, resources=quantities({"rdma/v100": amount}))


@pytest.mark.parametrize(
    "manifest",
    [
        pod(container()),
        pod(container(), container("other")),
        pod(gpu(count="0")),
        pod(rdma(amount=0)),
        pod(container(), initContainers=[gpu("setup")]),
        {"metadata": {}, "spec": {}},
    ],
    ids=case_name,
)
def test_a_pod_may_have_no_target(manifest: PodManifest) -> None:
    """Neither a GPU nor an RDMA device in an app container, and none named."""
    selection = chosen(manifest)
    assert (selection.targets, selection.launchers, selection.reason) == ((), (), NO_TARGET)


def test_containers_with_gpus_are_the_targets() -> None:
    """All of them are targets, even if others have an RDMA resource or launch ranks."""
    manifest = pod(
        rdma(),
        gpu("a", 2),
        container("b", resources=quantities({"nvidia.com/gpu": "1"})),
        container("c", command=MPIRUN),
        container("d", resources=quantities({"nvidia.com/mig-1g.5gb": "1"})),
        container("e", resources=quantities({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1"})),
    )
    expected = (
        app("a", 1, 2),
        app("b", 2, 1),
        app("d", 4, 0, shared=True),
        app("e", 5, 0, shared=True),
    )
    assert chosen(manifest) == Selection(expected)
    assert chosen(manifest, FABRIC) == Selection(expected)


def test_without_gpus_those_with_rdma_devices_are() -> None:
    """A storage server over RDMA needs no GPU."""
    manifest = pod(container("a"), rdma("b"), container("c", command=MPIRUN), rdma("d", "0"))
    assert chosen(manifest) == Selection((app("b", 1)._replace(rdma=("rdma/v100",)),))


def test_without_either_it_may_be_a_launcher() -> None:
    """It starts ranks elsewhere: no resource and no capability for it, on any fabric."""
    remote = [*MPIRUN[:1], "-H", "a,b", *MPIRUN[1:]]
    manifest = pod(container("a"), container("b", command=remote))
    expected = Selection(launchers=(launcher("b", "mpirun -H in its command", 1),))
    assert chosen(manifest) == expected
    assert chosen(manifest, FABRIC) == expected


def test_ranks_that_a_container_starts_for_itself_make_it_a_target() -> None:
    """The pod names the fabric; a sidecar does not matter."""
    manifest = pod(container("proxy"), container("b", command=MPIRUN))
    assert chosen(manifest, FABRIC) == Selection((app("b", 1),))
    here = launcher("b", "mpirun in its command", 1)._replace(ranks_in_other_pods=False)
    assert chosen(manifest) == Selection(launchers=(here,))


def test_ranks_without_a_device_are_left_out_if_there_are_others() -> None:
    """A second call sees the others' device, and must choose the same targets."""
    without_device = container("a", command=MPIRUN, resources=quantities({"rdma/v100": "0"}))
    manifest = pod(without_device, container("b", command=MPIRUN))
    assert chosen(manifest, FABRIC) == Selection((app("b", 1),))
    assert chosen(pod(without_device), FABRIC) == Selection(
        (app("a")._replace(rdma=("rdma/v100",)),)
    )


def test_a_launcher_of_other_pods_makes_all_of_a_pods_launchers_such() -> None:
    """As far as the pod shows, its ranks are in other pods."""
    manifest = pod(
        container("a", command=MPIRUN), container("b", command=["ray", "start", "--head"])
    )
    first = launcher("a", "mpirun in its command")._replace(ranks_in_other_pods=False)
    expected = Selection(launchers=(first, launcher("b", "ray start --head in its command", 1)))
    assert chosen(manifest, FABRIC) == expected


@pytest.mark.parametrize("labels", [None, {"mpi-job-role": "launcher"}], ids=case_name)
def test_a_container_with_a_claim_is_no_launcher(labels: Any) -> None:
    """It has a device, so it runs ranks itself, regardless of its name and env."""
    resources = {"claims": [{"name": "device"}]}
    env = [{"name": "OMPI_MCA_orte_default_hostfile", "value": "/h"}]
    manifest = pod(
        container(env=env, resources=resources), labels=labels, resourceClaims=[{"name": "device"}]
    )
    assert chosen(manifest) == Selection(reason=GPU_BY_CLAIM, message=GPU_BY_CLAIM.clause)
    assert chosen(manifest, FABRIC) == Selection((app("trainer"),))


@pytest.mark.parametrize("name", ["gpu", "rdma-nic", "gpu-and-nic"])
def test_a_gpu_or_a_nic_by_claim_makes_a_target(name: str) -> None:
    """The claim's or the template's name identifies it; a launcher elsewhere does not count."""
    user = container("b", resources={"claims": [{"name": "device"}]})
    template = [{"name": "device", "resourceClaimTemplateName": name}]
    manifest = pod(container("a", command=MPIRUN), user, rdma("c"), resourceClaims=template)
    expected = (app("b", 1), app("c", 2)._replace(rdma=("rdma/v100",)))
    assert chosen(manifest) == Selection(expected)


@pytest.mark.parametrize("names", [("gpu", "other"), ("other", "gpu")], ids=case_name)
def test_a_single_claim_of_a_gpu_suffices(names: tuple[str, str]) -> None:
    """Further claims of the container do not matter, before it or after it."""
    claims = [{"name": f"claim-{name}"} for name in names]
    template = [{"name": f"claim-{name}", "resourceClaimTemplateName": name} for name in names]
    manifest = pod(container(resources={"claims": claims}), resourceClaims=template)
    assert chosen(manifest) == Selection((app("trainer"),))


def test_a_compute_domain_is_no_device_of_a_container() -> None:
    """Its channel comes in addition to GPUs."""
    user = container(command=MPIRUN, resources={"claims": [{"name": "compute-domain-channel"}]})
    manifest = pod(user, resourceClaims=[{"name": "compute-domain-channel"}])
    assert [starter.name for starter in chosen(manifest).launchers] == ["trainer"]
    del manifest["spec"]["containers"][0]["command"]
    assert chosen(manifest).reason is NO_TARGET


def test_the_pods_own_fabric_makes_its_only_container_the_target() -> None:
    """There is nothing to choose; init containers do not count."""
    manifest = pod(container("a"), initContainers=[container("setup")])
    assert chosen(manifest, FABRIC) == Selection((app("a"),))


def test_the_pods_own_fabric_with_several_containers_is_denied() -> None:
    """It is unknown which of them needs it."""
    with pytest.raises(Denial) as raised:
        chosen(pod(container("a"), container("b")), FABRIC)
    assert (raised.value.reason.code, str(raised.value)) == (
        "ContainersRequired",
        (
            "annotation rdma.lab/fabric is set, but no container requests a GPU or an RDMA "
            "resource; set rdma.lab/containers to one or more of: a, b"
        ),
    )


def test_the_pods_own_fabric_without_containers_chooses_nothing() -> None:
    """The API server has a better message for such a pod."""
    assert chosen({"spec": {"containers": []}}, FABRIC) == Selection(
        reason=NO_TARGET, message=NO_TARGET.clause
    )


def test_named_containers_are_the_targets_in_any_case() -> None:
    """Init containers and sidecars too, in the order of the names."""
    manifest = pod(
        gpu("a"),
        container("b", command=MPIRUN),
        initContainers=[container("setup"), container("proxy", restartPolicy="Always")],
    )
    assert chosen(manifest, UserAnnotations(containers=("proxy", "b", "setup"))) == Selection(
        (
            Target("proxy", ("spec", "initContainers", 1), "sidecar", 0, partial_gpu=False),
            app("b", 1),
            Target("setup", ("spec", "initContainers", 0), "init", 0, partial_gpu=False),
        )
    )


@pytest.mark.parametrize(
    ("claims", "resources", "reason"),
    [
        (None, {"claims": [{"name": "gpu"}]}, NO_TARGET),
        ([{"name": "gpu"}], {}, NO_TARGET),
        ([{"name": "fast"}], {"claims": [{"name": "fast"}]}, GPU_BY_CLAIM),
    ],
    ids=case_name,
)
def test_a_claim_that_a_container_uses_may_be_a_gpu(
    claims: Any, resources: Any, reason: Any
) -> None:
    """It may be a GPU even without a GPU's name."""
    manifest = pod(container(resources=resources), resourceClaims=claims)
    assert chosen(manifest) == Selection(reason=reason, message=reason.clause)


def test_claims_that_are_no_list_are_refused_with_their_place() -> None:
    """The message names the container to repair."""
    manifest = pod(
        container("a"),
        container("b", resources={"claims": "gpu"}),
        resourceClaims=[{"name": "gpu"}],
    )
    with pytest.raises(ShapeError) as raised:
        chosen(manifest)
    assert str(raised.value) == (
        "spec.containers[1].resources.claims must be a list, but is a string ('gpu')"
    )


def test_a_device_that_no_fabric_claims_is_named() -> None:
    """It may be a GPU missing in the configuration; the message names it, not another's claims."""
    with_claim = container("a", resources={"claims": [{"name": "x"}]})
    with_device = container("b", resources=quantities({"example.com/npu": "1"}))
    manifest = pod(with_claim, with_device, resourceClaims=[{"name": "x"}])
    message = (
        "container b requests example.com/npu, which no fabric lists; if example.com/npu is a GPU, "
        "add it to gpuResources of the fabric that has it"
    )
    assert chosen(manifest) == Selection(reason=DEVICE_NOT_LISTED, message=message)


def test_accelerators_of_other_vendors() -> None:
    """They are GPUs for sure, or certainly none."""
    amd = pod(container(resources=quantities({"amd.com/gpu": "1"})))
    assert chosen(amd) == Selection(
        reason=DEVICE_NOT_LISTED,
        message=(
            "container trainer requests amd.com/gpu, which no fabric lists; add amd.com/gpu to "
            "gpuResources of the fabric that has it"
        ),
    )
    tpu = privileged("google.com/tpu")
    message = "container trainer requests google.com/tpu, but TPUs do not use RDMA NICs"
    assert chosen(tpu) == Selection(reason=NO_TARGET, message=message)


def privileged(resource: str, **context: Any) -> PodManifest:
    """Make a pod with a privileged container that requests a resource."""
    context = {"privileged": True, **context}
    return pod(container(resources=quantities({resource: "1"}), securityContext=context))


def test_a_privileged_container_with_a_gpu_of_no_fabric_may_have_rdma() -> None:
    """It can open the node's devices; as another user, or with another device, no."""
    assert chosen(privileged("amd.com/gpu")) == Selection(
        reason=PRIVILEGED_WITH_GPU,
        message=(
            "privileged container trainer requests amd.com/gpu, which no fabric lists; add that "
            "GPU to gpuResources of its fabric"
        ),
    )
    for other in (privileged("amd.com/gpu", runAsUser=1000), privileged("example.com/npu")):
        assert chosen(other).reason is DEVICE_NOT_LISTED


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("nvidia.com/V100", " (did you mean nvidia.com/v100?)"),
        ("nvidia.com/v10", " (did you mean nvidia.com/v100?)"),
        ("example.com/npu", ""),
    ],
)
def test_a_device_whose_name_is_misspelled(name: str, hint: str) -> None:
    """The nearest GPU of a fabric is named."""
    message = chosen(pod(container(resources=quantities({name: "1"})))).message
    assert message.startswith(f"container trainer requests {name}, which no fabric lists{hint}; ")


def test_a_device_beside_a_claim_is_not_to_be_listed() -> None:
    """Another injector may pair a GPU and a NIC by the claim: both would be requested twice."""
    limits = quantities({"example.com/npu": "1"})
    paired = container("b", resources={**limits, "claims": [{"name": "x"}]})
    manifest = pod(container("a"), paired, resourceClaims=[{"name": "x"}])
    message = (
        "container b requests example.com/npu, which no fabric lists, and has resource claims; set "
        'rdma.lab/containers and rdma.lab/fabric; also set rdma.lab/devices to "0" if a claim '
        "provides the NIC"
    )
    assert chosen(manifest) == Selection(reason=GPU_BY_CLAIM, message=message)


def test_a_variable_that_the_site_sets_is_no_evidence_of_a_launcher() -> None:
    """Every target has it after the first call."""
    manifest = pod(container(env=[{"name": "OMPI_MCA_btl", "value": "tcp,self"}]))
    here = launcher("trainer", "OMPI_MCA_btl in env")._replace(ranks_in_other_pods=False)
    assert chosen(manifest).launchers == (here,)
    site = fabrics(fabric(env=FabricEnv(site_variables=(("OMPI_MCA_btl", "tcp,self"),))))
    assert chosen(manifest, site=site).launchers == ()


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"gpu-fraction": "0.5"}, SHARED.format("gpu-fraction", "a")),
        ({"gpu-memory": "2000"}, SHARED.format("gpu-memory", "a")),
        (
            {"gpu-fraction": "0.5", "gpu-fraction-container-name": "b"},
            SHARED.format("gpu-fraction", "b"),
        ),
        ({"gpu-fraction": "0.5", "gpu-fraction-container-name": "init"}, NO_TARGET.clause),
        ({"gpu-fraction-container-name": "a"}, NO_TARGET.clause),
    ],
    ids=("fraction", "memory", "named", "init container", "no share"),
)
def test_a_share_of_a_gpu_by_annotation_is_no_target(
    annotations: dict[str, str], message: str
) -> None:
    """Its fabric cannot be known, so the message names the annotations to set."""
    manifest = pod(
        container("a"), container("b"), initContainers=[container("init")], annotations=annotations
    )
    assert chosen(manifest) == Selection(reason=NO_TARGET, message=message)


def test_a_pod_without_containers_has_no_share() -> None:
    """The API server rejects it."""
    manifest = pod(annotations={"gpu-fraction": "0.5"})
    manifest["spec"]["containers"] = []
    assert chosen(manifest).message == NO_TARGET.clause


@pytest.mark.parametrize(
    ("template", "classes", "is_target"),
    [("nameless", (), False), ("own", (), True), ("nameless", ("h100.lab",), True)],
    ids=("unknown", "template", "device class"),
)
def test_what_fabrics_list_makes_a_target(
    template: str, classes: tuple[str, ...], is_target: bool
) -> None:
    """A fabric's template or device class is stronger evidence than names."""
    h100 = fabric(
        "h100",
        device_classes=frozenset({"h100.lab"}),
        claim_templates=(ClaimTemplateReference(template="own"),),
    )
    user = container(resources={"claims": [{"name": "x"}]})
    manifest = pod(user, resourceClaims=[{"name": "x", "resourceClaimTemplateName": template}])
    facts = ClaimFacts(templates={template: {"all": classes}})
    selection = chosen(manifest, site=fabrics(h100), facts=facts)
    assert selection.targets == ((app("trainer"),) if is_target else ())
    assert selection.reason is (None if is_target else GPU_BY_CLAIM)


def node_tool(*, network: bool = True, mounted: bool = True, **fields: Any) -> PodManifest:
    """Make a pod without GPUs that has the node's RDMA devices, with `fields` of its container."""
    mounts = [{"name": "ib", "mountPath": "/dev/infiniband"}] if mounted else []
    context = {"privileged": True, **fields.pop("securityContext", {})}
    tool = container("tool", volumeMounts=mounts, securityContext=context, **fields)
    volumes = [{"name": "ib", "hostPath": {"path": "/dev/infiniband"}}]
    return pod(container("log"), tool, hostNetwork=network, volumes=volumes)


def test_a_tool_of_the_node_has_rdma_as_it_stands() -> None:
    """It may open the node's devices, and its network is the node's."""
    assert chosen(node_tool()) == Selection(
        reason=NODE_DEVICES,
        message=(
            "container tool has RDMA as it stands, since it is privileged, with hostNetwork and "
            "/dev/infiniband by hostPath"
        ),
    )


@pytest.mark.parametrize(
    "manifest",
    [
        node_tool(network=False),
        node_tool(mounted=False),
        node_tool(securityContext={"privileged": False}),
        node_tool(securityContext={"runAsUser": 1000}),
        node_tool(image="rayproject/ray"),
    ],
    ids=("pod network", "not mounted", "unprivileged", "another user", "image of another user"),
)
def test_a_tool_that_lacks_any_of_it_has_no_target(manifest: PodManifest) -> None:
    """It is asked for a GPU or a resource, as any other pod."""
    assert chosen(manifest).reason is NO_TARGET


def test_a_tool_with_a_device_that_no_fabric_lists() -> None:
    """The device may be a GPU."""
    manifest = node_tool(resources=quantities({"example.com/device": "1"}))
    assert chosen(manifest).reason is DEVICE_NOT_LISTED


def test_a_claim_of_unknown_kind_comes_before_the_nodes_devices() -> None:
    """It may be a GPU."""
    manifest = node_tool(resources={"claims": [{"name": "x"}]})
    manifest["spec"]["resourceClaims"] = [{"name": "x"}]
    assert chosen(manifest).reason is GPU_BY_CLAIM
