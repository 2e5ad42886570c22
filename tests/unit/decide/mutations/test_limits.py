from __future__ import annotations

from typing import Any

import pytest

from tests.builders import amounts, container, pod
from tests.case_names import case_name
from webhook.decide.draft import Draft
from webhook.decide.limits import MOST_ENTRIES, too_many
from webhook.decide.mutations.memory_limit import (
    first_mounted,
    is_guaranteed,
    is_limited,
    reads_limit,
    summed_request,
    unbounded_memory_volumes,
    unlimited,
)
from webhook.errors import ShapeError
from webhook.model.decision import Denial
from webhook.model.pod import Path, Pod

PATH = ("spec", "containers", 0)
CPU_AND_MEMORY = {"cpu": "1", "memory": "1Gi"}
READER = {"resourceFieldRef": {"resource": "limits.memory"}}


def guaranteed(*containers: dict[str, Any], **spec: Any) -> bool:
    """Return whether a pod's QoS class is Guaranteed."""
    return is_guaranteed(Pod(pod(*containers, **spec)))


def sized(limits: Any = None, requests: Any = None) -> dict[str, Any]:
    """Make a container with these amounts."""
    return container(resources=amounts(limits, requests))


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        (CPU_AND_MEMORY, None, True),
        (CPU_AND_MEMORY, CPU_AND_MEMORY, True),
        (CPU_AND_MEMORY, {"cpu": "1000m", "memory": "1024Mi"}, True),
        (CPU_AND_MEMORY, {"cpu": "1"}, True),
        ({**CPU_AND_MEMORY, "nvidia.com/gpu": "1"}, None, True),
        (None, None, False),
        (None, CPU_AND_MEMORY, False),
        ({"cpu": "1"}, None, False),
        ({"memory": "1Gi"}, None, False),
        (CPU_AND_MEMORY, {"memory": "512Mi"}, False),
        ({"cpu": "0", "memory": "1Gi"}, None, False),
        ({"cpu": "1", "memory": None}, None, False),
        ({"cpu": "1", "memory": "much"}, None, False),
        (CPU_AND_MEMORY, {"memory": "much"}, False),
    ],
    ids=case_name,
)
def test_a_pod_is_guaranteed_by_equal_limits_and_requests(
    limits: Any, requests: Any, expected: bool
) -> None:
    """Of CPU and memory in every container; a missing request counts as its limit."""
    assert guaranteed(sized(limits, requests)) is expected


def test_every_container_counts() -> None:
    """Init containers and sidecars too."""
    assert guaranteed(sized(CPU_AND_MEMORY), sized(CPU_AND_MEMORY))
    assert not guaranteed(sized(CPU_AND_MEMORY), sized())
    assert not guaranteed(sized(CPU_AND_MEMORY), initContainers=[sized()])


def test_pod_level_resources_count_alone() -> None:
    """With them the containers' do not matter (Kubernetes 1.34)."""
    assert guaranteed(sized(), resources=amounts(CPU_AND_MEMORY))
    assert not guaranteed(sized(CPU_AND_MEMORY), resources=amounts({"memory": "1Gi"}))
    assert guaranteed(sized(CPU_AND_MEMORY), resources={})


def test_a_pod_level_request_counts_or_else_the_containers_do() -> None:
    """Without a request of the pod, it is the sum of theirs; without that, the limit."""
    half = {"memory": "512Mi"}
    assert guaranteed(sized(None, half), resources=amounts(CPU_AND_MEMORY, CPU_AND_MEMORY))
    assert guaranteed(sized(None, half), resources=amounts(CPU_AND_MEMORY, {"memory": "1Gi"}))
    assert guaranteed(sized(None, half), sized(None, half), resources=amounts(CPU_AND_MEMORY))
    assert not guaranteed(sized(None, half), resources=amounts(CPU_AND_MEMORY))
    assert not guaranteed(resources=amounts(CPU_AND_MEMORY, half))


@pytest.mark.parametrize(
    ("manifest", "reader"),
    [
        (pod(), ""),
        (pod(container(env=None), volumes=None), ""),
        (pod(container(env=[{"name": "A", "value": "limits.memory"}])), ""),
        (pod(container(env=[{"name": "A", "valueFrom": None}])), ""),
        (
            pod(
                container(
                    env=[
                        {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
                    ]
                )
            ),
            "",
        ),
        (
            pod(container(env=[{"name": "A", "valueFrom": READER}])),
            "env A of container trainer",
        ),
        (
            pod(initContainers=[container("setup", env=[{"name": "A", "valueFrom": READER}])]),
            "env A of container setup",
        ),
        (pod(volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "downwardAPI": None}]), ""),
        (pod(volumes=[{"name": "v", "downwardAPI": {"items": [READER]}}]), "volume v"),
        (
            pod(
                volumes=[
                    {
                        "name": "v",
                        "projected": {
                            "sources": [{"secret": {}}, {"downwardAPI": {"items": [READER]}}]
                        },
                    }
                ]
            ),
            "volume v",
        ),
    ],
    ids=case_name,
)
def test_readers_of_the_limit_are_named(manifest: dict[str, Any], reader: str) -> None:
    """In env or in any volume: without a limit the reader would get the node's memory."""
    assert reads_limit(Pod(manifest)) == reader


def test_what_volumes_project_is_bounded() -> None:
    """All volumes count together, with projected sources; the message has the number."""
    files = [{"path": "a"}] * (MOST_ENTRIES - 3)
    sources = [{"downwardAPI": {"items": files}}, {"secret": {}}]
    first = {"name": "v", "projected": {"sources": sources}}
    last = {"name": "w", "downwardAPI": {"items": [{"path": "b"}]}}
    largest_pod = pod(volumes=[first, last])
    assert reads_limit(Pod(largest_pod)) == ""
    larger_pod = pod(volumes=[first, last, last])
    with pytest.raises(Denial) as raised:
        reads_limit(Pod(larger_pod))
    assert str(raised.value) == str(too_many({"projected volume items": MOST_ENTRIES + 1}))
    assert "projected volume items" in str(raised.value)


@pytest.mark.parametrize(
    ("amount", "limited"), [("1n", True), ("0", False), (None, False)], ids=case_name
)
def test_the_least_amount_is_a_limit(amount: Any, *, limited: bool) -> None:
    """Zero is not a limit."""
    assert is_limited(Draft(pod(sized({"memory": amount}))), PATH) is limited


def volumes(source: Any, mounted: Any = "v") -> dict[str, Any]:
    """Make a pod that mounts a volume."""
    mounts = [{"name": "other", "mountPath": "/a"}, {"name": mounted, "mountPath": "/b"}]
    return pod(container(volumeMounts=mounts), volumes=[{"name": "v", "emptyDir": source}])


@pytest.mark.parametrize(
    ("manifest", "name"),
    [
        (pod(), ""),
        (volumes({"medium": "Memory"}), "v"),
        (volumes({"medium": "Memory", "sizeLimit": None}), "v"),
        (volumes({"medium": "Memory", "sizeLimit": "1Gi"}), ""),
        (volumes({}), ""),
        (volumes(None), ""),
        (volumes({"medium": ""}), ""),
        (volumes({"medium": "Memory"}, mounted="w"), ""),
        (volumes({"medium": "Memory"}, mounted=["v"]), ""),
    ],
    ids=case_name,
)
def test_an_unbounded_memory_volume_is_named(manifest: dict[str, Any], name: str) -> None:
    """An emptyDir of medium Memory without sizeLimit, which the container mounts."""
    view = Pod(manifest)
    assert first_mounted(view.containers[0], unbounded_memory_volumes(view)) == name


def test_the_first_unbounded_volume_is_named() -> None:
    """The order is the pod's list of volumes, not the mounts."""
    unbounded = {"medium": "Memory"}
    manifest = pod(
        container(volumeMounts=[{"name": "a"}, {"name": "b"}]),
        volumes=[{"name": name, "emptyDir": unbounded} for name in ("x", "b", "a", "b")],
    )
    view = Pod(manifest)
    indexes = unbounded_memory_volumes(view)
    assert indexes == {"x": 0, "b": 1, "a": 2}
    assert first_mounted(view.containers[0], indexes) == "b"


def test_a_volume_that_has_no_shape_is_refused_with_its_place() -> None:
    """Its place is one of the pod's volumes."""
    with pytest.raises(ShapeError) as raised:
        unbounded_memory_volumes(
            Pod(pod(volumes=[{"name": "v"}, {"name": "w", "emptyDir": "Memory"}]))
        )
    assert str(raised.value) == (
        "spec.volumes[1].emptyDir must be a mapping, but is a string ('Memory')"
    )


def test_containers_without_a_limit_live_under_the_pods() -> None:
    """Excluded and ephemeral containers do not count; the latter request nothing."""
    manifest = pod(
        *(
            {**sized(limit), "name": name}
            for name, limit in (("a", CPU_AND_MEMORY), ("b", None), ("c", {}))
        ),
        initContainers=[container("setup")],
        ephemeralContainers=[container("debug")],
    )
    without: set[Path] = {("spec", "containers", 2)}
    assert unlimited(Pod(manifest).containers, without) == ["setup", "b"]
    with pytest.raises(ShapeError) as raised:
        unlimited(Pod(pod(container(resources={"limits": 1}))).containers, set())
    assert str(raised.value) == (
        "spec.containers[0].resources.limits must be a mapping, but is a number (1)"
    )


def test_what_containers_ask_for_is_summed() -> None:
    """Sum each container's request, or else its limit; without either, there is no sum."""
    ask, limit = sized(None, {"memory": "1Gi"}), sized({"memory": "2Gi"})
    manifest = pod(ask, limit, sized({"memory": "8Gi"}, {"memory": "3Gi"}), sized())
    assert summed_request("memory", Pod(manifest).containers) == "6Gi"
    assert summed_request("cpu", Pod(manifest).containers) is None


def test_ephemeral_containers_ask_for_nothing() -> None:
    """They run in what the pod has already."""
    level = {"resources": {"limits": CPU_AND_MEMORY}}
    debug = {"name": "debug", "resources": amounts(None, {"cpu": "5"})}
    assert guaranteed(sized(None, CPU_AND_MEMORY), ephemeralContainers=[debug], **level)


def test_a_request_that_is_no_quantity_is_refused_with_its_place() -> None:
    """The pod-level request cannot be made of it."""
    with pytest.raises(ShapeError) as raised:
        guaranteed(sized(None, {"memory": "much"}), resources={"limits": CPU_AND_MEMORY})
    assert str(raised.value).startswith("spec.containers[0].resources.requests.memory: 'much' is")


def test_a_volume_of_another_field_reads_no_limit() -> None:
    """The downward API hands out labels, names, and other resources as well."""
    files = [{"path": "cpu", "resourceFieldRef": {"resource": "limits.cpu"}}, {"path": "labels"}]
    secret = {"secret": {"name": "token"}}
    volumes = [
        {"name": "pod", "downwardAPI": {"items": files}},
        {"name": "all", "projected": {"sources": [secret, {"downwardAPI": {"items": files}}]}},
    ]
    manifest = pod(container(), volumes=volumes)
    assert reads_limit(Pod(manifest)) == ""


def test_an_init_container_needs_its_memory_besides_the_earlier_sidecars() -> None:
    """Sidecars keep running; the pod requests the largest sum at any time."""
    sidecar = {**sized(None, {"memory": "2Gi"}), "name": "proxy", "restartPolicy": "Always"}
    setup = {**sized(None, {"memory": "3Gi"}), "name": "setup"}
    for first, total in (([sidecar, setup], "5Gi"), ([setup, sidecar], "3Gi"), ([setup], "3Gi")):
        main = sized(None, {"memory": "1Gi"})
        manifest = pod(main, initContainers=first)
        assert summed_request("memory", Pod(manifest).containers) == total


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (
            pod(container(resources={"requests": 1}), resources={"limits": CPU_AND_MEMORY}),
            "spec.containers[0].resources.requests must be a mapping, but is a number (1)",
        ),
        (
            pod(container(resources={"limits": 1}), resources={"limits": CPU_AND_MEMORY}),
            "spec.containers[0].resources.limits must be a mapping, but is a number (1)",
        ),
    ],
    ids=["requests", "limits"],
)
def test_what_has_no_shape_of_resources_is_refused_with_its_place(
    manifest: dict[str, Any], says: str
) -> None:
    """The message names the field to repair."""
    with pytest.raises(ShapeError) as raised:
        is_guaranteed(Pod(manifest))
    assert str(raised.value) == says
