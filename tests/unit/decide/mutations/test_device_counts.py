from __future__ import annotations

import pytest

from tests.builders import fabric
from tests.case_names import case_name
from webhook.decide.analysis import Target
from webhook.decide.mutations.rdma_resources import devices_for
from webhook.model.fabric import RdmaResource


def target(gpus: int = 0) -> Target:
    """Make a target with this number of whole GPUs."""
    return Target("trainer", ("spec", "containers", 0), "app", gpus, partial_gpu=False)


def test_a_fabric_without_resources_gives_none() -> None:
    """Nothing is added, for any number in the pod's request."""
    assert devices_for(target(8), fabric(), None) == []
    assert devices_for(target(8), fabric(), 2) == []


def test_a_fixed_count_does_not_depend_on_gpus() -> None:
    """All GPUs of a container use the same shared device."""
    shared = fabric(resources=(RdmaResource(name="rdma/a"), RdmaResource(name="rdma/b", count=2)))
    assert devices_for(target(0), shared, None) == [("rdma/a", 1), ("rdma/b", 2)]
    assert devices_for(target(8), shared, None) == [("rdma/a", 1), ("rdma/b", 2)]


@pytest.mark.parametrize(
    ("gpus", "per_device", "maximum", "count"),
    [
        (0, 1, None, 1),
        (1, 1, None, 1),
        (8, 1, None, 8),
        (8, 2, None, 4),
        (3, 2, None, 2),
        (8, 1, 4, 4),
        (2, 1, 4, 2),
        (0, 4, 1, 1),
    ],
)
def test_devices_per_gpu_are_rounded_up(
    gpus: int, per_device: int, maximum: int | None, count: int
) -> None:
    """The result is at least one, even for slices of a GPU, and at most the maximum."""
    resource = RdmaResource(
        name="nvidia.com/rail", count=None, gpus_per_device=per_device, maximum=maximum
    )
    assert devices_for(target(gpus), fabric(resources=(resource,)), None) == [
        ("nvidia.com/rail", count)
    ]


@pytest.mark.parametrize(
    ("gpus", "maximum", "count"), [(0, None, 1), (1, None, 2), (4, None, 8), (8, 8, 8)]
)
def test_a_gpu_may_have_several_devices(gpus: int, maximum: int | None, count: int) -> None:
    """Two NICs near each GPU are two devices per GPU, at least one and at most the maximum."""
    resource = RdmaResource(name="nvidia.com/rail", count=None, devices_per_gpu=2, maximum=maximum)
    assert devices_for(target(gpus), fabric(resources=(resource,)), None) == [
        ("nvidia.com/rail", count)
    ]


@pytest.mark.parametrize(
    ("requested", "shares"),
    [
        (0, []),
        (1, [("rdma/a", 1)]),
        (2, [("rdma/a", 1), ("rdma/b", 1)]),
        (3, [("rdma/a", 2), ("rdma/b", 1)]),
        (8, [("rdma/a", 4), ("rdma/b", 4)]),
    ],
    ids=case_name,
)
def test_the_requested_devices_are_spread(requested: int, shares: list[tuple[str, int]]) -> None:
    """The number is spread over the fabric's resources in their order; none is requested with 0."""
    rails = fabric(resources=(RdmaResource(name="rdma/a", count=5), RdmaResource(name="rdma/b")))
    assert devices_for(target(8), rails, requested) == shares
