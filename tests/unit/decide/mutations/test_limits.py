from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, pod, quantities
from tests.case_names import case_name
from webhook.decide.draft import Draft
from webhook.decide.limits import MAX_ENTRIES, too_many
from webhook.decide.mutations.memory_limit import (
    containers_without_limit,
    first_mounted_volume,
    is_limited,
    limit_reader,
    unbounded_memory_volumes,
)
from webhook.errors import ShapeError
from webhook.model.decision import Denial
from webhook.model.pod import Path, Pod

PATH = ("spec", "containers", 0)
CPU_AND_MEMORY = {"cpu": "1", "memory": "1Gi"}
READER = {"resourceFieldRef": {"resource": "limits.memory"}}


def sized(limits: Any = None, requests: Any = None) -> dict[str, Any]:
    """Make a container with these quantities."""
    return container(resources=quantities(limits, requests))


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
    assert limit_reader(Pod(manifest)) == reader


def test_what_volumes_project_is_bounded() -> None:
    """All volumes count together, with projected sources; the message has the number."""
    files = [{"path": "a"}] * (MAX_ENTRIES - 3)
    sources = [{"downwardAPI": {"items": files}}, {"secret": {}}]
    first = {"name": "v", "projected": {"sources": sources}}
    last = {"name": "w", "downwardAPI": {"items": [{"path": "b"}]}}
    largest_pod = pod(volumes=[first, last])
    assert limit_reader(Pod(largest_pod)) == ""
    larger_pod = pod(volumes=[first, last, last])
    with pytest.raises(Denial) as raised:
        limit_reader(Pod(larger_pod))
    assert str(raised.value) == str(too_many({"projected volume items": MAX_ENTRIES + 1}))
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
    assert first_mounted_volume(view.containers[0], unbounded_memory_volumes(view)) == name


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
    assert first_mounted_volume(view.containers[0], indexes) == "b"


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
    assert containers_without_limit(Pod(manifest).containers, without) == ["setup", "b"]
    with pytest.raises(ShapeError) as raised:
        containers_without_limit(Pod(pod(container(resources={"limits": 1}))).containers, set())
    assert str(raised.value) == (
        "spec.containers[0].resources.limits must be a mapping, but is a number (1)"
    )


def test_a_volume_of_another_field_reads_no_limit() -> None:
    """The downward API hands out labels, names, and other resources as well."""
    files = [{"path": "cpu", "resourceFieldRef": {"resource": "limits.cpu"}}, {"path": "labels"}]
    secret = {"secret": {"name": "token"}}
    volumes = [
        {"name": "pod", "downwardAPI": {"items": files}},
        {"name": "all", "projected": {"sources": [secret, {"downwardAPI": {"items": files}}]}},
    ]
    manifest = pod(container(), volumes=volumes)
    assert limit_reader(Pod(manifest)) == ""
