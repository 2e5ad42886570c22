"""`kubectl patch --subresource=resize`: LimitRanger is called again, the webhook is not."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.admission.conftest import Webhooks
from tests.e2e.admission.pods import Answer, create, pod, resize, trainer
from tests.e2e.documents import Document

LARGE = {"memory": "64Gi"}
KEEP = {"rdma.lab/memory-limit": "keep"}
MORE_CPU: Document = {"requests": {"cpu": "3"}}


def _stored(
    cluster: Cluster, place: str, limits: Document, annotations: Document | None = None
) -> Answer:
    """Create a pod for real; no node accepts it, which does not prevent a resize."""
    container = trainer({"cpu": "4"} | limits, {"cpu": "2"})
    nowhere = {"example.com/nowhere": "true"}
    manifest = pod(place, container, annotations=annotations, nodeSelector=nowhere)
    manifest["metadata"]["generateName"] = f"{manifest['metadata'].pop('name')}-"
    answer = create(cluster, manifest, stored=True)
    assert answer.object, answer.refusal
    return answer


def test_a_pod_is_resized_as_ever(cluster: Cluster, webhooks: Webhooks) -> None:
    """Without a default limit, only the requested change happens, without a call of the webhook."""
    before = _stored(cluster, "plain", LARGE)
    assert before.memory() == ("64Gi", None)
    answers: list[Answer] = []
    calls = webhooks["informed"].during(
        lambda: answers.append(resize(cluster, before.object, MORE_CPU))
    )
    assert answers[0].containers[0]["resources"]["requests"]["cpu"] == "3"
    assert answers[0].memory() == ("64Gi", None)
    assert calls == 0


def test_the_default_limit_refuses_a_request_above_it(cluster: Cluster, webhooks: Webhooks) -> None:
    """A resize of CPU alone adds the default memory limit, which is below the request."""
    assert webhooks
    before = _stored(cluster, "default", LARGE)
    assert before.memory() == ("64Gi", None)
    refusal = resize(cluster, before.object, MORE_CPU).refusal
    assert "is invalid: spec.containers[0].resources.requests" in refusal
    assert 'Invalid value: "64Gi": must be less than or equal to memory limit of 1Gi' in refusal


@pytest.mark.parametrize("limits", [{}, {"memory": "512Mi"}])
def test_the_default_limit_comes_silently_over_a_request_below_it(
    cluster: Cluster, webhooks: Webhooks, limits: Document
) -> None:
    """A resize of CPU alone adds a memory limit that the pod did not have, without a warning."""
    assert webhooks
    before = _stored(cluster, "default", limits)
    assert before.memory().limit is None
    answer = resize(cluster, before.object, MORE_CPU)
    assert answer.memory().limit == "1Gi"
    # The webhook's status still shows it as removed, and nothing removes it again.
    assert "memory-limit" in answer.status["applied"]
    second = resize(cluster, before.object, {"limits": {"memory": None}})
    assert second.memory().limit == "1Gi"


def test_a_kept_limit_is_resized_as_ever(cluster: Cluster, webhooks: Webhooks) -> None:
    """The remedy: a pod that keeps its limit has no gap for a default to fill."""
    assert webhooks
    before = _stored(cluster, "default", LARGE, KEEP)
    assert before.memory() == ("64Gi", "64Gi")
    answer = resize(cluster, before.object, MORE_CPU)
    assert answer.memory() == ("64Gi", "64Gi")
    assert answer.containers[0]["resources"]["requests"]["cpu"] == "3"


def test_a_limit_cannot_be_taken_off_by_resizing(cluster: Cluster, webhooks: Webhooks) -> None:
    """So nobody can remove the default limit again, not even after the LimitRange is deleted."""
    assert webhooks
    before = _stored(cluster, "plain", LARGE, KEEP)
    refusal = resize(cluster, before.object, {"limits": {"memory": None}}).refusal
    assert "resource limits cannot be removed" in refusal
