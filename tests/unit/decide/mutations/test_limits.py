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
BOTH = {"cpu": "1", "memory": "1Gi"}
READER = {"resourceFieldRef": {"resource": "limits.memory"}}


def guaranteed(*containers: dict[str, Any], **spec: Any) -> bool:
    """Ask for the QoS class of a pod."""
    return is_guaranteed(Pod(pod(*containers, **spec)))


def sized(limits: Any = None, requests: Any = None) -> dict[str, Any]:
    """Make a container with these amounts."""
    return container(resources=amounts(limits, requests))


@pytest.mark.parametrize(
    ("limits", "requests", "expected"),
    [
        (BOTH, None, True),
        (BOTH, BOTH, True),
        (BOTH, {"cpu": "1000m", "memory": "1024Mi"}, True),
        (BOTH, {"cpu": "1"}, True),
        ({**BOTH, "nvidia.com/gpu": "1"}, None, True),
        (None, None, False),
        (None, BOTH, False),
        ({"cpu": "1"}, None, False),
        ({"memory": "1Gi"}, None, False),
        (BOTH, {"memory": "512Mi"}, False),
        ({"cpu": "0", "memory": "1Gi"}, None, False),
        ({"cpu": "1", "memory": None}, None, False),
        ({"cpu": "1", "memory": "much"}, None, False),
        (BOTH, {"memory": "much"}, False),
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
    assert guaranteed(sized(BOTH), sized(BOTH))
    assert not guaranteed(sized(BOTH), sized())
    assert not guaranteed(sized(BOTH), initContainers=[sized()])


def test_pod_level_resources_count_alone() -> None:
    """With them the containers' do not matter (Kubernetes 1.34)."""
    assert guaranteed(sized(), resources=amounts(BOTH))
    assert not guaranteed(sized(BOTH), resources=amounts({"memory": "1Gi"}))
    assert guaranteed(sized(BOTH), resources={})


def test_a_pod_level_request_counts_or_else_the_containers_do() -> None:
    """Without a request of the pod, it is the sum of theirs; without that, the limit."""
    half = {"memory": "512Mi"}
    assert guaranteed(sized(None, half), resources=amounts(BOTH, BOTH))
    assert guaranteed(sized(None, half), resources=amounts(BOTH, {"memory": "1Gi"}))
    assert guaranteed(sized(None, half), sized(None, half), resources=amounts(BOTH))
    assert not guaranteed(sized(None, half), resources=amounts(BOTH))
    assert not guaranteed(resources=amounts(BOTH, half))


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
def test_what_reads_the_limit_is_found(manifest: dict[str, Any], reader: str) -> None:
    """In env or in a volume, wherever: without a limit it would read the node's memory."""
    assert reads_limit(Pod(manifest)) == reader


def test_what_volumes_project_is_bounded() -> None:
    """In all volumes together, with the sources of projected ones; the message says how many."""
    files = [{"path": "a"}] * (MOST_ENTRIES - 3)
    sources = [{"downwardAPI": {"items": files}}, {"secret": {}}]
    first = {"name": "v", "projected": {"sources": sources}}
    last = {"name": "w", "downwardAPI": {"items": [{"path": "b"}]}}
    most = pod(volumes=[first, last])
    assert reads_limit(Pod(most)) == ""
    more = pod(volumes=[first, last, last])
    with pytest.raises(Denial) as raised:
        reads_limit(Pod(more))
    assert str(raised.value) == str(too_many({"what volumes project": MOST_ENTRIES + 1}))
    assert "what volumes project" in str(raised.value)


@pytest.mark.parametrize(
    ("amount", "limited"), [("1n", True), ("0", False), (None, False)], ids=case_name
)
def test_the_least_amount_is_a_limit(amount: Any, *, limited: bool) -> None:
    """Zero is none."""
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
def test_an_unbounded_memory_volume_is_found(manifest: dict[str, Any], name: str) -> None:
    """An emptyDir of medium Memory without sizeLimit, which the container mounts."""
    one = Pod(manifest)
    assert first_mounted(one.containers[0], unbounded_memory_volumes(one)) == name


def test_the_first_unbounded_volume_is_named() -> None:
    """In the order of the volumes, as the pod lists them, not of the mounts."""
    unbounded = {"medium": "Memory"}
    manifest = pod(
        container(volumeMounts=[{"name": "a"}, {"name": "b"}]),
        volumes=[{"name": name, "emptyDir": unbounded} for name in ("x", "b", "a", "b")],
    )
    one = Pod(manifest)
    found = unbounded_memory_volumes(one)
    assert found == {"x": 0, "b": 1, "a": 2}
    assert first_mounted(one.containers[0], found) == "b"


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
    """Except those that are left out, and ephemeral ones, which ask for nothing."""
    manifest = pod(
        *({**sized(limit), "name": name} for name, limit in (("a", BOTH), ("b", None), ("c", {}))),
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
    level = {"resources": {"limits": BOTH}}
    debug = {"name": "debug", "resources": amounts(None, {"cpu": "5"})}
    assert guaranteed(sized(None, BOTH), ephemeralContainers=[debug], **level)


def test_a_request_that_is_no_quantity_is_refused_with_its_place() -> None:
    """The pod-level request cannot be made of it."""
    with pytest.raises(ShapeError) as raised:
        guaranteed(sized(None, {"memory": "much"}), resources={"limits": BOTH})
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


def test_an_init_container_needs_its_memory_beside_the_sidecars_before_it() -> None:
    """Sidecars go on running; the pod asks for the most that runs at once."""
    sidecar = {**sized(None, {"memory": "2Gi"}), "name": "proxy", "restartPolicy": "Always"}
    setup = {**sized(None, {"memory": "3Gi"}), "name": "setup"}
    for first, asked in (([sidecar, setup], "5Gi"), ([setup, sidecar], "3Gi"), ([setup], "3Gi")):
        main = sized(None, {"memory": "1Gi"})
        manifest = pod(main, initContainers=first)
        assert summed_request("memory", Pod(manifest).containers) == asked


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (
            pod(container(resources={"requests": 1}), resources={"limits": BOTH}),
            "spec.containers[0].resources.requests must be a mapping, but is a number (1)",
        ),
        (
            pod(container(resources={"limits": 1}), resources={"limits": BOTH}),
            "spec.containers[0].resources.limits must be a mapping, but is a number (1)",
        ),
    ],
    ids=["requests", "limits"],
)
def test_what_has_no_shape_of_resources_is_refused_with_its_place(
    manifest: dict[str, Any], says: str
) -> None:
    """Whoever wrote the pod finds what to repair."""
    with pytest.raises(ShapeError) as raised:
        is_guaranteed(Pod(manifest))
    assert str(raised.value) == says
