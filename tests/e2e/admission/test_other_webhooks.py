"""Another team's mutating webhook next to ours, and which change is the last."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.admission.conftest import Webhooks
from tests.e2e.admission.neighbor import (
    AFTER,
    BEFORE,
    Neighbor,
    limits_memory,
    opts_in,
    running,
    sets_hca,
)
from tests.e2e.admission.pods import Answer, create, pod, trainer
from tests.e2e.documents import Document
from tests.waiting import until

both_policies = pytest.mark.parametrize("reinvocation", ["Never", "IfNeeded"])


@pytest.fixture(scope="module")
def neighbor(
    cluster: Cluster, webhooks: Webhooks, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Neighbor]:
    """Run another team's webhook."""
    assert webhooks
    with running(cluster, tmp_path_factory.mktemp("neighbor")) as neighbor:
        yield neighbor


def _created(cluster: Cluster, neighbor: Neighbor, document: Document) -> Answer:
    """Create the pod, once the API server calls the neighbor."""
    until(lambda: create(cluster, document) is not None and bool(neighbor.answered))
    neighbor.answered.clear()
    return create(cluster, document)


@both_policies
def test_a_limit_added_before_us_goes(
    cluster: Cluster, neighbor: Neighbor, reinvocation: str
) -> None:
    """The limit is removed. If a second call of the neighbor adds it again, ours comes after it."""
    with neighbor.moved_in(BEFORE, limits_memory, reinvocation):
        answer = _created(cluster, neighbor, pod("neighbor", trainer()))
        assert answer.memory() == ("64Gi", None)
        assert neighbor.answered == ([1] if reinvocation == "Never" else [1, 1])


def test_a_limit_added_after_us_goes_if_that_webhook_is_called_once(
    cluster: Cluster, neighbor: Neighbor
) -> None:
    """We are called again because it changed the pod, and it is not called after that."""
    with neighbor.moved_in(AFTER, limits_memory, "Never"):
        answer = _created(cluster, neighbor, pod("neighbor", trainer()))
        assert answer.memory() == ("64Gi", None)
        assert neighbor.answered == [1]


def test_a_limit_that_is_added_again_after_us_stays(cluster: Cluster, neighbor: Neighbor) -> None:
    """There is no third round: the last webhook of the second one wins, and our status is wrong."""
    with neighbor.moved_in(AFTER, limits_memory, "IfNeeded"):
        answer = _created(cluster, neighbor, pod("neighbor", trainer()))
        assert answer.memory() == ("64Gi", "64Gi")
        assert neighbor.answered == [1, 1]
        assert "memory-limit" in answer.status["applied"]


@both_policies
def test_a_variable_set_before_us_stays(
    cluster: Cluster, neighbor: Neighbor, reinvocation: str
) -> None:
    """The variable counts as the author's: it is kept, reported, and set only once."""
    with neighbor.moved_in(BEFORE, sets_hca, reinvocation):
        answer = _created(cluster, neighbor, pod("neighbor", trainer()))
        assert answer.env()["NCCL_IB_HCA"] == "mlx5_7"
        assert len(answer.containers[0]["env"]) == len(answer.env())
        assert answer.env()["NCCL_SOCKET_IFNAME"] == "eth0"
        says = (
            'no RDMA: container trainer sets NCCL_IB_HCA="mlx5_7", '
            'but the fabric\'s value is "=mlx5_0"'
        )
        assert answer.warnings == [says]
        assert answer.status["because"] == "NcclIbHcaElsewhere"


@both_policies
def test_webhooks_after_us_see_our_values(
    cluster: Cluster, neighbor: Neighbor, reinvocation: str
) -> None:
    """A webhook after ours that checks first finds the fabric's value and keeps it."""
    with neighbor.moved_in(AFTER, sets_hca, reinvocation):
        answer = _created(cluster, neighbor, pod("neighbor", trainer()))
        assert answer.env()["NCCL_IB_HCA"] == "=mlx5_0"
        assert neighbor.answered == [0]


def test_a_webhook_before_us_may_opt_a_pod_in(cluster: Cluster, neighbor: Neighbor) -> None:
    """The match conditions apply to the pod at the time of our turn."""
    with neighbor.moved_in(BEFORE, opts_in, "Never"):
        answer = _created(cluster, neighbor, _unasked())
        assert answer.added_capabilities() == ["IPC_LOCK"]


def test_a_webhook_after_us_may_not(cluster: Cluster, neighbor: Neighbor) -> None:
    """A webhook that was skipped in the first round is not called in the second."""
    with neighbor.moved_in(AFTER, opts_in, "Never"):
        answer = _created(cluster, neighbor, _unasked())
        assert answer.object["metadata"]["annotations"]["rdma.lab/enable"] == "true"
        assert answer.added_capabilities() == []


def _unasked() -> Document:
    document = pod("neighbor", trainer())
    document["metadata"]["annotations"] = {"example.com/team": "vision"}
    return document
