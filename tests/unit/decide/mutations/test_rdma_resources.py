from __future__ import annotations

from typing import Any

import pytest

from tests.builders import (
    V100,
    container,
    decide_on,
    decision_input,
    defaulted,
    fabric,
    gpu,
    ops,
    outcomes_of,
    pod,
    quantities,
)
from tests.case_names import case_name
from webhook.decide.analysis import DecisionInput
from webhook.model.fabric import RdmaResource
from webhook.model.pod import PodManifest

NAME = "rdma-resources"
GPU = frozenset({"nvidia.com/v100"})
RAILS = fabric(
    gpu_resources=GPU,
    resources=(
        RdmaResource(name="nvidia.com/rail0", count=None, gpus_per_device=2, maximum=4),
        RdmaResource(name="nvidia.com/rail1", count=2),
    ),
)


def resources(manifest: PodManifest, cluster: DecisionInput | None = None, index: int = 0) -> Any:
    """Return the resources of a container after the decision."""
    return decide_on(manifest, cluster).pod["spec"]["containers"][index]["resources"]


def asking(devices: str, *containers: dict[str, Any]) -> PodManifest:
    """Make a pod that requests this number of devices."""
    return pod(*containers, annotations={"rdma.lab/devices": devices})


@pytest.mark.parametrize("requested", [True, False], ids=("requested", "limit only"))
@pytest.mark.parametrize("amount", ["1", "0", 0, None, "8"], ids=repr)
def test_an_rdma_resource_that_is_there_stays(amount: Any, *, requested: bool) -> None:
    """The user's value stays, even 0, whether it is in both sections or in the limits alone."""
    written = gpu(resources={"limits": {"nvidia.com/v100": "1", "rdma/v100": amount}})
    if requested:
        written["resources"]["requests"] = {"rdma/v100": amount}
    decision = decide_on(pod(written))
    assert outcomes_of(decision, NAME) == [
        ("trainer", "already", "Present", "already requests rdma/v100")
    ]
    assert decision.pod["spec"]["containers"][0]["resources"] == written["resources"]


def test_another_rdma_resource_stays_with_a_warning() -> None:
    """It may be one that an administrator forgot to list, so there is only a warning."""
    decision = decide_on(pod(gpu(limits={"rdma/other": "1"})))
    assert outcomes_of(decision, NAME) == [
        ("trainer", "already", "Present", "already requests rdma/other"),
        (
            "trainer",
            "warned",
            "OtherResource",
            "rdma/other stays unchanged, since it is not a resource of fabric v100-ib",
        ),
    ]
    assert ops(decision, NAME) == []


@pytest.mark.parametrize(
    ("member", "annotations", "code", "message"),
    [
        (
            V100,
            {"rdma.lab/devices": "0"},
            "NoDevices",
            'rdma.lab/devices is "0"',
        ),
        (
            fabric(gpu_resources=GPU),
            {},
            "NotConfigured",
            "fabric plain has no resources",
        ),
        (
            fabric(gpu_resources=GPU, resources=V100.resources, inject_resources=False),
            {},
            "InjectedElsewhere",
            "another injector adds the resource",
        ),
    ],
    ids=case_name,
)
def test_there_may_be_nothing_to_add(
    member: Any, annotations: dict[str, str], code: str, message: str
) -> None:
    """The pod, the fabric or another injector rules it out; the status mentions none of these."""
    decision = decide_on(pod(annotations=annotations), decision_input(member))
    assert outcomes_of(decision, NAME) == [("trainer", "skipped", code, message)]
    assert ops(decision, NAME) == []
    assert NAME not in decision.pod["metadata"]["annotations"]["rdma.lab/status"]


def test_it_is_added_to_limits_and_requests() -> None:
    """Extended resources cannot be overcommitted, so limits and requests are the same."""
    decision = decide_on(pod(gpu("a", 8), container("b")))
    assert outcomes_of(decision, NAME) == [("a", "applied", "Added", "requested rdma/v100: 1")]
    assert ops(decision, NAME) == [
        {"op": "add", "path": "/spec/containers/0/resources/limits/rdma~1v100", "value": "1"},
        {
            "op": "add",
            "path": "/spec/containers/0/resources/requests",
            "value": {"rdma/v100": "1"},
        },
    ]
    assert "resources" not in decision.pod["spec"]["containers"][1]


def test_it_is_added_where_there_were_no_resources() -> None:
    """A container that the pod names needs neither a GPU nor limits."""
    annotations = {"rdma.lab/fabric": "v100-ib"}
    expected = quantities({"rdma/v100": "1"}, {"rdma/v100": "1"})
    assert resources(pod(container(), annotations=annotations)) == expected
    assert resources(pod(container(resources=None), annotations=annotations)) == expected


@pytest.mark.parametrize(
    ("gpus", "rails"),
    [("1", ("1", "2")), ("4", ("2", "2")), ("16", ("4", "2"))],
)
def test_every_resource_of_the_fabric_is_requested(gpus: str, rails: tuple[str, str]) -> None:
    """One has a fixed number; the number of another depends on the GPUs."""
    expected = dict(zip(("nvidia.com/rail0", "nvidia.com/rail1"), rails, strict=True))
    assert resources(pod(gpu(count=gpus)), decision_input(RAILS)) == quantities(
        {"nvidia.com/v100": gpus, **expected}, expected
    )


def test_the_pod_may_ask_for_a_number() -> None:
    """The number holds for each target, spread over the fabric's resources."""
    decision = decide_on(asking("3", gpu("a"), gpu("b", 8)), decision_input(RAILS))
    message = "requested nvidia.com/rail0: 2, nvidia.com/rail1: 1"
    assert outcomes_of(decision, NAME) == [
        ("a", "applied", "Added", message),
        ("b", "applied", "Added", message),
    ]
    assert resources(asking("1"), decision_input(RAILS))["requests"] == {"nvidia.com/rail0": "1"}


def test_slices_of_a_gpu_get_a_single_device() -> None:
    """There is a single device in total, not one for each slice."""
    manifest = pod(
        container(resources=quantities({"nvidia.com/mig-1g.5gb": "7"})),
        annotations={"rdma.lab/fabric": "plain"},
    )
    assert resources(manifest, decision_input(RAILS))["requests"] == {
        "nvidia.com/rail0": "1",
        "nvidia.com/rail1": "2",
    }


def test_init_containers_and_sidecars_never_get_it() -> None:
    """They would hold the device while the other containers need it."""
    manifest = pod(
        gpu("a"),
        initContainers=[container("setup"), container("proxy", restartPolicy="Always")],
        annotations={"rdma.lab/containers": "setup,proxy,a"},
    )
    decision = decide_on(manifest)
    message = "only app containers get the RDMA resource"
    assert outcomes_of(decision, NAME) == [
        ("setup", "skipped", "NotAppContainer", message),
        ("proxy", "skipped", "NotAppContainer", message),
        ("a", "applied", "Added", "requested rdma/v100: 1"),
    ]
    assert all("resources" not in init for init in decision.pod["spec"]["initContainers"])


def test_an_alias_is_renamed_with_its_quantity() -> None:
    """A tool writes `rdma/hca`, while the nodes here offer another name."""
    written = gpu(resources=quantities(*[{"nvidia.com/v100": "1", "rdma/hca": "2"}] * 2))
    decision = decide_on(pod(written))
    message = "renamed rdma/hca to rdma/v100, the name of the resource in this cluster"
    assert outcomes_of(decision, NAME) == [("trainer", "applied", "Renamed", message)]
    expected = {"nvidia.com/v100": "1", "rdma/v100": "2"}
    assert decision.pod["spec"]["containers"][0]["resources"] == quantities(expected, expected)
    assert decision.fabric_evidence == "rdma/hca in container trainer"


def test_an_alias_is_renamed_for_any_request() -> None:
    """The alias could not be scheduled; it is also renamed where another injector adds it."""
    injected = fabric(gpu_resources=GPU, resources=V100.resources, inject_resources=False)
    manifest = asking("0", gpu(limits={"rdma/hca": "1"}))
    assert resources(manifest, decision_input(injected)) == quantities(
        {"nvidia.com/v100": "1", "rdma/v100": "1"}
    )


@pytest.mark.parametrize("name", ["nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared"])
def test_a_slice_of_a_gpu_gets_a_warning_about_gpudirect(name: str) -> None:
    """The driver decides."""
    slices = fabric(gpu_resources=frozenset({name}), resources=(RdmaResource(name="rdma/x"),))
    asking = pod(container(resources=quantities({name: "1"})))
    outcomes = outcomes_of(decide_on(asking, decision_input(slices)), "rdma-resources")
    message = f"whether {name} has GPUDirect RDMA depends on the driver"
    assert outcomes[1:] == [("trainer", "warned", "GPUSlice", message)]


def test_a_virtual_gpu_gets_a_warning_about_gpudirect() -> None:
    """The pod still gets the resource: NCCL copies through the host's memory."""
    decision = decide_on(pod(gpu(limits={"nvidia.com/gpumem": "3000"})))
    assert outcomes_of(decision, NAME) == [
        ("trainer", "applied", "Added", "requested rdma/v100: 1"),
        ("trainer", "warned", "VirtualGPU", "a virtual GPU has no GPUDirect RDMA"),
    ]
    whole = decide_on(pod())
    assert outcomes_of(whole, NAME) == [("trainer", "applied", "Added", "requested rdma/v100: 1")]


def test_what_is_no_quantity_denies_the_pod() -> None:
    """Requests are checked too, although nothing else reads them."""
    limits_and_requests = (
        {"nvidia.com/v100": "1", "rdma/hca": "1"},
        {"rdma/hca": "x", "rdma/v100": "1"},
    )
    decision = decide_on(pod(gpu(resources=quantities(*limits_and_requests))))
    assert (decision.allowed, decision.reason.code, decision.message) == (
        False,
        "InvalidPod",
        (
            'spec.containers[0].resources.requests["rdma/hca"]: '
            "'x' is not a Kubernetes quantity (such as \"1\", 500m or 64Gi)"
        ),
    )


@pytest.mark.parametrize(
    "manifest",
    [
        pod(gpu("a"), gpu("b", 8)),
        pod(gpu(limits={"rdma/hca": "2"})),
        pod(gpu(limits={"rdma/hca": "2", "rdma/v100": "1"})),
        pod(gpu(limits={"rdma/hca": "0", "rdma/other": "1"})),
        pod(gpu(limits={"nvidia.com/gpumem": "3000"})),
    ],
    ids=case_name,
)
def test_deciding_again_changes_nothing(manifest: PodManifest) -> None:
    """This holds whether the API server's defaults are set before or after the first call."""
    first = decide_on(defaulted(manifest))
    assert decide_on(defaulted(first.pod)).patch == ()
    early = decide_on(manifest)
    assert defaulted(early.pod)["spec"] == defaulted(first.pod)["spec"]


def test_an_alias_outside_the_targets_is_warned_of() -> None:
    """It is not renamed, and no node offers it: the pod would stay pending forever."""
    helper = container("helper", resources=quantities({"rdma/hca": "1"}))
    decision = decide_on(pod(gpu(), helper))
    message = (
        "the alias rdma/hca is replaced only in containers that need RDMA; remove the resource"
    )
    assert ("helper", "warned", "OtherResource", message) in outcomes_of(decision, NAME)


PER_GPU = fabric(
    "per-gpu",
    mode="sr-iov",
    gpu_resources=V100.gpu_resources,
    resources=(
        RdmaResource(name="nvidia.com/rail0", count=None),
        RdmaResource(name="nvidia.com/rail1", count=None),
    ),
)


@pytest.mark.parametrize(
    ("limits", "have"),
    [
        ({"nvidia.com/rail0": "1"}, "1 device"),
        ({"nvidia.com/rail0": "2", "nvidia.com/rail1": "1"}, "3 devices"),
        ({"nvidia.com/rail0": "2", "nvidia.com/rail1": "2"}, ""),
        ({"nvidia.com/rail0": "4"}, ""),
        ({"nvidia.com/rail0": "0"}, ""),
    ],
    ids=("one", "three", "all", "as many", "none"),
)
def test_fewer_devices_than_gpus_have_are_warned_of(limits: dict[str, str], have: str) -> None:
    """The traffic of all GPUs goes over them; a user who writes 0 has chosen that."""
    decision = decide_on(pod(gpu(count="2", limits=limits)), decision_input(PER_GPU))
    warnings = [outcome for outcome in outcomes_of(decision, NAME) if outcome[1] == "warned"]
    message = f"requests {have}, but the fabric has 4 for the container's GPUs"
    assert warnings == ([("trainer", "warned", "FewDevices", message)] if have else [])


def test_a_shared_device_counts_for_all() -> None:
    """One unit of the shared device plugin holds every card; and an annotation is meant."""
    shared = fabric(
        "shared",
        gpu_resources=V100.gpu_resources,
        resources=(RdmaResource(name="rdma/x", count=2),),
    )
    decision = decide_on(pod(gpu(limits={"rdma/x": "1"})), decision_input(shared))
    assert [outcome[1] for outcome in outcomes_of(decision, NAME)] == ["already"]
    decision = decide_on(asking("1", gpu(count="2")), decision_input(PER_GPU))
    assert [outcome[1] for outcome in outcomes_of(decision, NAME)] == ["applied"]
    assert decide_on(decision.pod, decision_input(PER_GPU)).patch == ()
