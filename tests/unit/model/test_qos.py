"""Tests of the QoS class, and of the sum of what containers request."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, pod, quantities
from tests.case_names import case_name
from webhook.errors import ShapeError
from webhook.model.pod import Pod
from webhook.model.pod.qos import is_guaranteed, summed_request

CPU_AND_MEMORY = {"cpu": "1", "memory": "1Gi"}


def guaranteed(*containers: dict[str, Any], **spec: Any) -> bool:
    """Return whether a pod's QoS class is Guaranteed."""
    return is_guaranteed(Pod(pod(*containers, **spec)))


def sized(limits: Any = None, requests: Any = None) -> dict[str, Any]:
    """Make a container with these quantities."""
    return container(resources=quantities(limits, requests))


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
    assert guaranteed(sized(), resources=quantities(CPU_AND_MEMORY))
    assert not guaranteed(sized(CPU_AND_MEMORY), resources=quantities({"memory": "1Gi"}))
    assert guaranteed(sized(CPU_AND_MEMORY), resources={})


def test_a_pod_level_request_counts_or_else_the_containers_do() -> None:
    """Without a request of the pod, it is the sum of theirs; without that, the limit."""
    half = {"memory": "512Mi"}
    assert guaranteed(sized(None, half), resources=quantities(CPU_AND_MEMORY, CPU_AND_MEMORY))
    assert guaranteed(sized(None, half), resources=quantities(CPU_AND_MEMORY, {"memory": "1Gi"}))
    assert guaranteed(sized(None, half), sized(None, half), resources=quantities(CPU_AND_MEMORY))
    assert not guaranteed(sized(None, half), resources=quantities(CPU_AND_MEMORY))
    assert not guaranteed(resources=quantities(CPU_AND_MEMORY, half))


def test_what_containers_ask_for_is_summed() -> None:
    """Sum each container's request, or else its limit; without either, there is no sum."""
    ask, limit = sized(None, {"memory": "1Gi"}), sized({"memory": "2Gi"})
    manifest = pod(ask, limit, sized({"memory": "8Gi"}, {"memory": "3Gi"}), sized())
    assert summed_request("memory", Pod(manifest).containers) == "6Gi"
    assert summed_request("cpu", Pod(manifest).containers) is None


def test_ephemeral_containers_ask_for_nothing() -> None:
    """They run in what the pod has already."""
    level = {"resources": {"limits": CPU_AND_MEMORY}}
    debug = {"name": "debug", "resources": quantities(None, {"cpu": "5"})}
    assert guaranteed(sized(None, CPU_AND_MEMORY), ephemeralContainers=[debug], **level)


def test_a_request_that_is_no_quantity_is_refused_with_its_place() -> None:
    """The pod-level request cannot be made of it."""
    with pytest.raises(ShapeError) as raised:
        guaranteed(sized(None, {"memory": "much"}), resources={"limits": CPU_AND_MEMORY})
    assert str(raised.value).startswith("spec.containers[0].resources.requests.memory: 'much' is")


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
