from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, quantities
from webhook.errors import ShapeError
from webhook.model.pod import Pod
from webhook.model.resources import scheduler_requests


def using(count: Any, name: str = "main", **fields: Any) -> dict[str, Any]:
    """Make a container that requests `count` NICs."""
    return container(name, resources=quantities({"rdma/nic": count}), **fields)


def sidecar(count: Any) -> dict[str, Any]:
    """Make a sidecar that requests `count` NICs."""
    return using(count, "sidecar", restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "total"),
    [
        ({"containers": [using(2), using(3)]}, 5),
        ({"containers": [using(2)], "initContainers": [using(4), using(1)]}, 4),
        ({"containers": [using(5)], "initContainers": [using(4)]}, 5),
        ({"containers": [using(2)], "initContainers": [sidecar(3)]}, 5),
        ({"containers": [using(2)], "initContainers": [sidecar(3), using(4)]}, 7),
        ({"containers": [using(2)], "initContainers": [using(4), sidecar(3)]}, 5),
        ({"containers": [using(2)], "ephemeralContainers": [using(9)]}, 2),
        ({"containers": [using(2)], "overhead": {"rdma/nic": "1", "cpu": "1"}}, 3),
    ],
    ids=[
        "app containers side by side",
        "init containers one after the other",
        "init containers before the app",
        "a sidecar beside the app",
        "an init container beside a sidecar",
        "an init container before a sidecar",
        "ephemeral containers have none",
        "the runtime's overhead",
    ],
)
def test_what_is_reserved(spec: dict[str, Any], total: int) -> None:
    """It is the maximum that the pod has at once."""
    assert scheduler_requests(Pod({"spec": spec})) == {"rdma/nic": total}


def test_only_extended_resources_count() -> None:
    """They are whole numbers, and a limit without a request is a request."""
    written = quantities({"a.io/x": "2k", "cpu": "500m"}, {"a.io/y": 1, "memory": "1Gi"})
    assert scheduler_requests(Pod({"spec": {"containers": [container(resources=written)]}})) == {
        "a.io/x": 2000,
        "a.io/y": 1,
    }
    assert scheduler_requests(Pod({"spec": {"containers": [container()]}})) == {}


def test_an_amount_that_is_no_quantity_is_named() -> None:
    """The message contains its place."""
    with pytest.raises(ShapeError) as raised:
        scheduler_requests(Pod({"spec": {"containers": [using("many")]}}))
    assert str(raised.value).startswith("spec.containers[0].resources.limits[\"rdma/nic\"]: 'many'")
