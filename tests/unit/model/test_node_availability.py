from __future__ import annotations

from typing import Any

import pytest

from tests.builders import READY
from webhook.model.node_availability import (
    CORDON,
    CORDONED,
    NOT_READY,
    UNREADINESS,
    Availability,
    availability_of,
)
from webhook.model.objects import ClusterNode
from webhook.model.pod.tolerations import Taint

KUBERNETES = "node.kubernetes.io"


def taint(key: str, effect: str = "NoSchedule") -> dict[str, str]:
    """Make a taint."""
    return {"key": key, "effect": effect}


def availability(*taints: dict[str, str], conditions: Any = READY, **spec: Any) -> tuple[Any, Any]:
    """Return the obstacles of a node, and the keys of its other taints."""
    status = {"conditions": conditions}
    return described({"spec": {"taints": [*taints], **spec}, "status": status})


def described(manifest: dict[str, Any]) -> tuple[Any, Any]:
    """Return the obstacles of a node, and the keys of its other taints."""
    read = availability_of(ClusterNode(manifest))
    return read.obstacles, read.taint_keys


def test_a_ready_node_takes_pods() -> None:
    """A taint without an effect on the scheduler's choice of nodes is not reported."""
    assert availability() == ((), ())
    assert availability(taint("slow", "PreferNoSchedule"), unschedulable=False) == ((), ())


@pytest.mark.parametrize("status", ["False", "Unknown", None])
def test_a_node_that_is_not_ready(status: str | None) -> None:
    """Another condition that is true does not make it ready."""
    conditions = [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": status}]
    assert availability(conditions=conditions) == ((NOT_READY,), ())


def test_a_node_whose_kubelet_never_reported() -> None:
    """It has no conditions, or no status at all."""
    assert availability(conditions=None) == ((NOT_READY,), ())
    assert described({}) == ((NOT_READY,), ())


def test_a_cordoned_node() -> None:
    """Kubernetes adds a taint to the cordon, with the same meaning."""
    cordon = taint(f"{KUBERNETES}/unschedulable")
    assert availability(unschedulable=True) == ((CORDONED,), ())
    assert availability(cordon, unschedulable=True) == ((CORDONED,), ())
    assert availability(cordon) == ((CORDONED,), ())


def test_taints_of_kubernetes_keep_pods_away() -> None:
    """Some repeat a state of the node; the others stand for themselves, in a stable order."""
    for name in ("not-ready", "unreachable"):
        assert availability(taint(f"{KUBERNETES}/{name}", "NoExecute")) == ((NOT_READY,), ())
    pressure, new = f"{KUBERNETES}/disk-pressure", "node.cloudprovider.kubernetes.io/uninitialized"
    taints = [taint(pressure), taint(new), taint(pressure, "NoExecute")]
    assert availability(*taints) == ((new, pressure), ())
    assert availability(*reversed(taints), unschedulable=True) == ((CORDONED, new, pressure), ())
    states = (NOT_READY, new, pressure)
    assert availability(*taints, conditions=[{"type": "Ready"}]) == (states, ())


def test_what_the_scheduler_sees() -> None:
    """A cordon and a failing condition count as their taints, before Kubernetes adds these."""
    status = {"conditions": [{"type": "Ready", "status": "False"}]}
    taints = [{"key": "pool", "value": "ml", "effect": "NoExecute"}, {"key": "a", "value": None}]
    spec = {"unschedulable": True, "taints": taints}
    read = availability_of(ClusterNode({"spec": spec, "status": status}))
    assert read == Availability((UNREADINESS, CORDON, Taint("pool", "ml", "NoExecute")))
    assert availability_of(ClusterNode({"spec": spec})).taints == (CORDON, read.taints[-1])
    assert not availability_of(ClusterNode({})).reported


def test_other_taints_admit_pods_with_tolerations() -> None:
    """Their order and number do not matter; a key of another domain is not Kubernetes' own."""
    taints = [taint("pool"), taint("dedicated", "NoExecute"), taint("pool", "NoExecute")]
    assert availability(*taints) == ((), ("dedicated", "pool"))
    assert availability(taint("example.org/node.kubernetes.io")) == (
        (),
        ("example.org/node.kubernetes.io",),
    )
