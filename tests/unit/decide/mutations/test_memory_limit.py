from __future__ import annotations

from typing import Any

import pytest

from tests.builders import (
    container,
    decide_on,
    decision_input,
    defaulted,
    ops,
    outcomes_of,
    pod,
    quantities,
)
from tests.case_names import case_name
from webhook.decide.analysis import DecisionInput
from webhook.decide.limits import MAX_ENTRIES
from webhook.model.decision import Decision
from webhook.model.facts import NamespaceFacts
from webhook.model.pod import PodManifest

NAME = "memory-limit"
GPU = {"nvidia.com/v100": "1"}
KEEP = {"rdma.lab/memory-limit": "keep"}
CPU_AND_MEMORY = {"cpu": "8", "memory": "64Gi"}
REMOVED = "removed limits.memory 64Gi; requests.memory is now 64Gi"
LOST = "without a memory limit, the pod is not Guaranteed and gets no exclusive CPUs"


def limited(memory: Any = "64Gi", name: str = "trainer", **fields: Any) -> dict[str, Any]:
    """Make a container with a GPU and a memory limit."""
    return container(name, resources=quantities({**GPU, "memory": memory}), **fields)


def guaranteed() -> dict[str, Any]:
    """Make a container whose pod is Guaranteed."""
    return container(resources=quantities({**GPU, **CPU_AND_MEMORY}))


def outcomes(
    manifest: PodManifest, cluster: DecisionInput | None = None
) -> list[tuple[str, str, str, str]]:
    """List the outcomes of the mutation."""
    return outcomes_of(decide_on(manifest, cluster), NAME)


def resources(decision: Decision, index: int = 0) -> Any:
    """Return a container's resources after the decision, without RDMA."""
    sections = decision.pod["spec"]["containers"][index]["resources"]
    return {
        section: {name: amount for name, amount in part.items() if not name.startswith("rdma/")}
        for section, part in sections.items()
    }


@pytest.mark.parametrize("annotations", [{}, KEEP], ids=("drop", "keep"))
def test_there_may_be_no_limit(annotations: dict[str, str]) -> None:
    """Nothing to drop, nothing to keep."""
    requested = container(resources=quantities(GPU, {"memory": "64Gi"}))
    assert outcomes(pod(requested, annotations=annotations)) == [
        ("trainer", "already", "NoLimit", "there is no memory limit")
    ]


def test_the_limit_is_dropped_and_the_request_stays() -> None:
    """Only limits.memory is removed; the scheduler reserves the same amount."""
    trainer = container(
        resources=quantities({**GPU, **CPU_AND_MEMORY}, {"memory": "32Gi", "cpu": "4"}),
    )
    decision = decide_on(pod(trainer))
    message = "removed limits.memory 64Gi; requests.memory stays 32Gi"
    assert outcomes_of(decision, NAME) == [("trainer", "applied", "Dropped", message)]
    assert ops(decision, NAME) == [
        {"op": "remove", "path": "/spec/containers/0/resources/limits/memory"}
    ]
    assert resources(decision) == quantities({**GPU, "cpu": "8"}, {"memory": "32Gi", "cpu": "4"})


def test_a_missing_request_is_made_of_the_limit() -> None:
    """As the API server would have defaulted it."""
    decision = decide_on(pod(limited()))
    assert ops(decision, NAME) == [
        {"op": "add", "path": "/spec/containers/0/resources/requests/memory", "value": "64Gi"},
        {"op": "remove", "path": "/spec/containers/0/resources/limits/memory"},
    ]
    assert resources(decision) == quantities(GPU, {"memory": "64Gi"})


def test_only_targets_lose_theirs() -> None:
    """A sidecar registers no memory; named init containers do."""
    manifest = pod(
        limited("1Gi", "a"),
        container("proxy", resources=quantities({"memory": "1Gi"})),
        initContainers=[container("setup", resources=quantities({"memory": "2Gi"}))],
        annotations={"rdma.lab/containers": "a,setup"},
    )
    decision = decide_on(manifest)
    assert [outcome[:3] for outcome in outcomes_of(decision, NAME) if outcome[1] == "applied"] == [
        ("a", "applied", "Dropped"),
        ("setup", "applied", "Dropped"),
    ]
    assert resources(decision, 1) == quantities({"memory": "1Gi"})


@pytest.mark.parametrize(
    ("annotations", "defaults", "message"),
    [
        (KEEP, {}, "kept, as set by the pod"),
        ({}, {"memory_limit": "keep"}, "kept, as set by the configuration"),
    ],
    ids=("pod", "file"),
)
def test_it_is_kept_on_request(
    annotations: dict[str, str], defaults: dict[str, str], message: str
) -> None:
    """The status does not list the reason."""
    decision = decide_on(pod(limited(), annotations=annotations), decision_input(defaults=defaults))
    assert outcomes_of(decision, NAME) == [("trainer", "skipped", "Kept", message)]
    assert NAME not in decision.pod["metadata"]["annotations"]["rdma.lab/status"]


def test_the_pod_goes_before_the_configuration() -> None:
    """`drop` drops where the configuration keeps."""
    cluster = decision_input(defaults={"memory_limit": "keep"})
    manifest = pod(limited(), annotations={"rdma.lab/memory-limit": "drop"})
    assert outcomes(manifest, cluster) == [("trainer", "applied", "Dropped", REMOVED)]


def test_it_is_kept_where_the_namespace_is_not_known_yet() -> None:
    """An unread LimitRange might reject the pod."""
    cluster = decision_input(namespace=NamespaceFacts(name="lab", is_loaded=False))
    message = "kept, since the namespace's LimitRanges and quotas are unknown"
    assert outcomes(pod(limited()), cluster) == [
        ("trainer", "skipped", "NamespaceUnknown", message)
    ]


def test_it_is_kept_where_the_namespace_requires_it() -> None:
    """The pod would be rejected without a limit; there is a warning."""
    requirement = "LimitRange sizes sets max.memory"
    cluster = decision_input(
        namespace=NamespaceFacts(name="lab", memory_limit_rejection=requirement)
    )
    assert outcomes(pod(limited()), cluster) == [
        ("trainer", "skipped", "LimitRequired", f"kept, since {requirement}"),
        ("trainer", "warned", "LimitRequired", f"memory limit kept, since {requirement}"),
    ]


def test_it_is_kept_where_something_reads_it() -> None:
    """The downward API would give the node's memory instead."""
    reader = {"resourceFieldRef": {"resource": "limits.memory"}}
    manifest = pod(limited(), container("b", env=[{"name": "HEAP", "valueFrom": reader}]))
    message = "kept, since env HEAP of container b reads limits.memory"
    assert outcomes(manifest) == [("trainer", "skipped", "LimitRead", message)]


def test_of_readers_with_the_same_name_the_last_counts() -> None:
    """As in Kubernetes, whatever other variables the container has."""
    reader = {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}
    literal = {"name": "A", "value": "1"}
    other = {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    for env, kept in (
        ([reader, literal], False),
        ([reader, literal, other], False),
        ([literal, reader], True),
    ):
        ((_, _, reason, _),) = outcomes(pod(limited(env=env)))
        assert (reason == "LimitRead") is kept


def test_it_is_kept_where_a_volume_reads_it() -> None:
    """A file of the downward API is a reader, like a variable."""
    reader = {"resourceFieldRef": {"resource": "limits.memory"}}
    manifest = pod(limited(), volumes=[{"name": "v", "downwardAPI": {"items": [reader]}}])
    message = "kept, since volume v reads limits.memory"
    assert outcomes(manifest) == [("trainer", "skipped", "LimitRead", message)]


def test_nothing_is_searched_where_there_is_no_limit() -> None:
    """Neither the possibly many readers of it, nor volumes that it would bound."""
    files = [{"path": "a"}] * (MAX_ENTRIES + 1)
    for volume in ({"downwardAPI": {"items": files}}, {"emptyDir": "Memory"}):
        manifest = pod(container(resources=quantities(GPU)), volumes=[{"name": "v", **volume}])
        assert outcomes(manifest) == [("trainer", "already", "NoLimit", "there is no memory limit")]


def test_keep_guaranteed_keeps_it_on_guaranteed_pods_only() -> None:
    """Others have no exclusive CPUs to lose."""
    cluster = decision_input(defaults={"memory_limit": "keep-guaranteed"})
    assert outcomes(pod(guaranteed()), cluster) == [
        ("trainer", "skipped", "Guaranteed", "kept, since the pod is Guaranteed")
    ]
    assert outcomes(pod(limited()), cluster) == [("trainer", "applied", "Dropped", REMOVED)]


def test_resources_of_the_pod_make_it_guaranteed() -> None:
    """If the pod has resources itself, they alone determine the QoS class."""
    cluster = decision_input(defaults={"memory_limit": "keep-guaranteed"})
    level = {"limits": {"cpu": "8", "memory": "64Gi"}}
    outcomes_of_pod = outcomes(pod(limited(), resources=level), cluster)
    assert [outcome[2] for outcome in outcomes_of_pod if outcome[0] == "trainer"] == ["Guaranteed"]


def test_it_warns_where_the_pod_was_guaranteed() -> None:
    """The price of dropping it is the QoS class."""
    decision = decide_on(pod(guaranteed()))
    assert outcomes_of(decision, NAME) == [
        ("trainer", "applied", "Dropped", REMOVED),
        ("trainer", "warned", "GuaranteedLost", LOST),
    ]
    assert decision.warnings == (f"rdma.lab: memory-limit trainer: {LOST}",)


def test_it_warns_of_an_unbounded_memory_volume() -> None:
    """Only the limit bounded it; the targets that mount it get a warning."""
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    manifest = pod(limited(name="a", volumeMounts=mounts), limited(name="b"), volumes=volumes)
    message = "memory-backed volume shm has no sizeLimit, so it may fill the node's memory"
    assert outcomes(manifest) == [
        ("a", "applied", "Dropped", REMOVED),
        ("a", "warned", "UnboundedMemory", message),
        ("b", "applied", "Dropped", REMOVED),
    ]


def test_it_warns_where_no_gpu_is_at_work() -> None:
    """A database, for example, sizes its pool by the limit."""
    database = container(resources=quantities({"rdma/v100": "1", "memory": "64Gi"}))
    message = "if a memory pool is sized by the limit, set rdma.lab/memory-limit: keep"
    assert outcomes(pod(database)) == [
        ("trainer", "applied", "Dropped", REMOVED),
        ("trainer", "warned", "NoGPU", message),
    ]


@pytest.mark.parametrize(
    "shared", ["nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared", "volcano.sh/vgpu-number"]
)
def test_it_is_kept_where_the_gpu_is_shared(shared: str) -> None:
    """Other pods use the node. The pod may still request drop; the status omits the reason."""
    sharing = container(resources=quantities({shared: "1", "rdma/v100": "1", "memory": "64Gi"}))
    message = "kept, since other pods share the GPU, and so the node's memory"
    decision = decide_on(pod(sharing))
    assert outcomes_of(decision, NAME) == [("trainer", "skipped", "SharedGPU", message)]
    assert NAME not in decision.pod["metadata"]["annotations"]["rdma.lab/status"]
    manifest = pod(sharing, annotations={"rdma.lab/memory-limit": "drop"})
    assert outcomes(manifest) == [("trainer", "applied", "Dropped", REMOVED)]


def test_a_shared_gpu_keeps_the_pods_own_limit_too() -> None:
    """The pod's limit bounds the shared container, regardless of other targets."""
    shared = container("b", resources=quantities({"nvidia.com/mig-1g.5gb": "1"}))
    message = "kept, since other pods share the GPU, and so the node's memory"
    outcomes_of_pod = outcomes(level(container("a", resources=quantities(GPU)), shared))
    assert outcomes_of_pod[-1] == ("", "skipped", "SharedGPU", message)


def test_the_sentence_names_the_request_that_the_scheduler_counts() -> None:
    """A container's request counts, unless the pod has one itself."""
    trainer = container(resources=quantities({**GPU, "memory": "64Gi"}, {"memory": "16Gi"}))
    start = "removed limits.memory 64Gi; requests.memory stays 16Gi"
    for resources in ({"requests": {"memory": "32Gi"}}, {"limits": {"memory": "99Gi"}}):
        (message,) = (
            line for name, _, _, line in outcomes(pod(trainer, resources=resources)) if name
        )
        assert message == f"{start}; the scheduler counts the pod's"
    (outcome,) = outcomes(pod(trainer, resources={"requests": {"cpu": "1"}}))
    assert outcome[3] == start


def level(*containers: dict[str, Any], **fields: Any) -> PodManifest:
    """Make a pod with its own memory limit."""
    resources = {"limits": {"memory": "1Ti", "cpu": "8"}, **fields.pop("resources", {})}
    return pod(*containers, resources=resources, **fields)


def test_the_pods_own_limit_is_dropped_where_only_targets_live_under_it() -> None:
    """A container with its own limit does not."""
    manifest = level(
        container("a", resources=quantities(GPU)),
        container("proxy", resources=quantities({"memory": "1Gi"})),
    )
    decision = decide_on(manifest)
    assert outcomes_of(decision, NAME) == [
        ("a", "already", "NoLimit", "there is no memory limit"),
        (
            "",
            "applied",
            "Dropped",
            "removed the pod's limits.memory 1Ti; its requests.memory is now 1Gi",
        ),
    ]
    assert ops(decision, NAME) == [
        {"op": "add", "path": "/spec/resources/requests", "value": {"memory": "1Gi"}},
        {"op": "remove", "path": "/spec/resources/limits/memory"},
    ]


def test_the_pods_own_limit_is_kept_on_request() -> None:
    """What keeps a container's limit keeps the pod's as well."""
    manifest = level(container(resources=quantities(GPU)), annotations=KEEP)
    assert outcomes(manifest)[1:] == [("", "skipped", "Kept", "kept, as set by the pod")]


def test_a_missing_pod_level_request_is_what_the_api_server_makes_of_it() -> None:
    """The containers' sum, init containers at their highest step; else the limit."""
    setup = container("setup", resources=quantities({}, {"memory": "20Gi"}))
    side = container("side", resources=quantities({}, {"memory": "1Gi"}), restartPolicy="Always")
    summed = level(container("a", resources=quantities(GPU, {"memory": "2Gi"})))
    assert decide_on(summed).pod["spec"]["resources"]["requests"] == {"memory": "2Gi"}
    summed["spec"]["initContainers"] = [side, setup]
    keeping = decide_on(summed).pod["spec"]["resources"]
    assert keeping == quantities({"cpu": "8", "memory": "1Ti"})  # others live under the limit
    alone = level(container("a", resources=quantities(GPU)))
    decision = decide_on(alone)
    assert decision.pod["spec"]["resources"]["requests"] == {"memory": "1Ti"}
    assert outcomes_of(decision, NAME)[1:] == [
        (
            "",
            "applied",
            "Dropped",
            "removed the pod's limits.memory 1Ti; its requests.memory is now 1Ti",
        ),
        ("", "warned", "GuaranteedLost", LOST),
    ]


def test_zero_and_null_are_no_limit() -> None:
    """Neither reaches the kernel, so there is nothing to take off."""
    for limit in ("0", None):
        limits = {**GPU, "memory": limit}
        decision = decide_on(pod(container(resources={"limits": limits})))
        assert outcomes_of(decision, NAME) == [
            ("trainer", "already", "NoLimit", "there is no memory limit")
        ]


def test_a_limit_that_is_no_quantity_is_refused_with_its_place() -> None:
    """The API server would refuse the pod as well; our changes would make it worse."""
    limits = {**GPU, "memory": "64GB"}
    decision = decide_on(pod(container(resources={"limits": limits})))
    assert not decision.allowed
    assert decision.message == (
        "spec.containers[0].resources.limits.memory: "
        "'64GB' is not a Kubernetes quantity (such as \"1\", 500m or 64Gi)"
    )


def test_a_pod_level_request_stays() -> None:
    """With a smaller request the pod was not Guaranteed."""
    decision = decide_on(level(resources={"requests": {"memory": "1Gi"}}))
    message = "removed the pod's limits.memory 1Ti; its requests.memory stays 1Gi"
    assert outcomes_of(decision, NAME)[1:] == [("", "applied", "Dropped", message)]
    assert decision.pod["spec"]["resources"] == quantities({"cpu": "8"}, {"memory": "1Gi"})


@pytest.mark.parametrize(
    ("manifest", "dependents"),
    [
        (level(limited(), container("b")), "b"),
        (level(limited(), initContainers=[container("setup")]), "setup"),
        (
            level(limited(), container("b"), initContainers=[container("setup")]),
            "setup, b",
        ),
    ],
    ids=case_name,
)
def test_the_pods_own_limit_stays_where_others_need_it(
    manifest: PodManifest, dependents: str
) -> None:
    """The container's limit is dropped; the pod's still bounds it, and this is reported."""
    assert outcomes(manifest)[-1] == (
        "",
        "skipped",
        "PodLimitShared",
        f"kept, since containers without their own limit depend on it ({dependents})",
    )


def test_the_pods_own_limit_is_kept_for_the_same_reasons() -> None:
    """What keeps a container's limit keeps the pod's."""
    manifest = level(container(resources=quantities(GPU)), annotations=KEEP)
    assert outcomes(manifest) == [
        ("trainer", "already", "NoLimit", "there is no memory limit"),
        ("", "skipped", "Kept", "kept, as set by the pod"),
    ]


def test_a_foreign_nic_registers_memory_too() -> None:
    """With an unknown fabric, however, the limit stays."""
    efa = container(resources=quantities({**GPU, "vpc.amazonaws.com/efa": "1", "memory": "64Gi"}))
    assert outcomes(pod(efa)) == [("trainer", "applied", "Dropped", REMOVED)]
    unknown = container(resources=quantities({"nvidia.com/gpu": "1", "memory": "64Gi"}))
    assert [outcome[:3] for outcome in outcomes(pod(unknown))] == [("", "skipped", "FabricUnknown")]


@pytest.mark.parametrize(
    "manifest",
    [
        pod(limited()),
        pod(guaranteed()),
        pod(limited(None)),
        pod(container(resources=quantities({"rdma/v100": "1", "memory": "64Gi"}))),
        level(container(resources=quantities(GPU))),
        level(limited(), container("b")),
        pod(limited(), annotations=KEEP),
    ],
    ids=case_name,
)
def test_deciding_again_changes_nothing(manifest: PodManifest) -> None:
    """A dropped limit stays removed, and its warnings stay in the status."""
    first = decide_on(defaulted(manifest))
    assert decide_on(defaulted(first.pod)).patch == ()
