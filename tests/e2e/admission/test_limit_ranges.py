"""LimitRange: how it treats a limit that the webhook removes, and the pod that results."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import Cluster
from tests.e2e.admission.conftest import Webhooks
from tests.e2e.admission.pods import Answer, create, pod, trainer
from tests.e2e.documents import Document

LARGE = {"memory": "64Gi"}
NO_LIMIT = "memory usage per {} is 100Gi.  No limit is specified"
NO_RATIO = "memory max limit to request ratio per Container is 2, but no limit is specified"


def _counted(
    cluster: Cluster, webhooks: Webhooks, place: str, limits: Document | None
) -> tuple[Answer, int]:
    """Create a pod; return the answer, and how many times the webhook was called."""
    answers: list[Answer] = []
    manifest = pod(place, trainer(limits))
    calls = webhooks["informed"].during(lambda: answers.append(create(cluster, manifest)))
    return answers[0], calls


def test_without_a_limit_range_a_single_call_suffices(cluster: Cluster, webhooks: Webhooks) -> None:
    """The limit is removed; the request that the API server had defaulted from it stays."""
    answer, calls = _counted(cluster, webhooks, "plain", LARGE)
    assert answer.memory() == ("64Gi", None)
    assert calls == 1


def test_a_default_limit_does_not_come_back(cluster: Cluster, webhooks: Webhooks) -> None:
    """LimitRanger adds its 1Gi after the webhook, so the webhook is called again and removes it."""
    answer, calls = _counted(cluster, webhooks, "default", LARGE)
    assert answer.memory() == ("64Gi", None)
    assert calls == 2
    assert "memory-limit" in answer.status["applied"]
    assert answer.warnings == []
    # LimitRanger recorded its earlier change, and nothing removes that annotation.
    recorded = answer.object["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    assert recorded == "LimitRanger plugin set: memory limit for container trainer"


def test_a_pod_without_a_limit_keeps_only_the_default_request(
    cluster: Cluster, webhooks: Webhooks
) -> None:
    """The default limit is removed, its request stays: scheduled as small, and free to grow."""
    answer, calls = _counted(cluster, webhooks, "default", None)
    assert answer.memory() == ("1Gi", None)
    assert calls == 2


def test_a_request_of_its_own_outlives_the_default_limit(
    cluster: Cluster, webhooks: Webhooks
) -> None:
    """A request above the default limit, which the API server would reject, becomes possible."""
    manifest = pod("default", trainer(requests=LARGE))
    calls = webhooks["informed"].during(lambda: create(cluster, manifest))
    assert create(cluster, manifest).memory() == ("64Gi", None)
    assert calls == 2


def test_without_reinvocation_the_pod_is_refused(cluster: Cluster, webhooks: Webhooks) -> None:
    """With the policy Never instead of IfNeeded, the request conflicts with the default limit."""
    answer, calls = _counted(cluster, webhooks, "default-once", LARGE)
    assert "must be less than or equal to memory limit of 1Gi" in answer.refusal
    assert calls == 1


def test_without_reinvocation_the_default_limit_stays(cluster: Cluster, webhooks: Webhooks) -> None:
    """With Never, a pod without its own limit ends up with the default one."""
    answer, calls = _counted(cluster, webhooks, "default-once", None)
    assert answer.memory() == ("1Gi", "1Gi")
    assert calls == 1


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("maximum", "LimitRange lab sets max.memory"),
        ("ratio", "LimitRange lab sets maxLimitRequestRatio.memory"),
        ("whole-pod", "LimitRange lab sets max.memory"),
    ],
)
def test_a_limit_that_is_required_is_kept(
    cluster: Cluster, webhooks: Webhooks, place: str, says: str
) -> None:
    """If LimitRanger rejects pods without a limit, it stays, and a warning names the LimitRange."""
    answer, calls = _counted(cluster, webhooks, place, LARGE)
    assert answer.memory() == ("64Gi", "64Gi")
    assert answer.warnings == [f"memory-limit trainer: memory limit kept, since {says}"]
    assert answer.status["skipped"] == ["LimitRequired"]
    assert calls == 1


def test_a_maximum_is_a_default_too(cluster: Cluster, webhooks: Webhooks) -> None:
    """A pod without a limit gets the maximum as its limit, which the webhook then keeps."""
    answer, _ = _counted(cluster, webhooks, "maximum", None)
    assert answer.memory() == ("100Gi", "100Gi")
    assert answer.status["skipped"] == ["LimitRequired"]
    assert answer.status["because"] == "DefaultMemoryLimit"
    assert "container trainer keeps its default limit of 100Gi" in answer.warnings[0]


@pytest.mark.parametrize(
    ("place", "limits", "refusal"),
    [
        ("maximum-uninformed", LARGE, NO_LIMIT.format("Container")),
        ("maximum-uninformed", None, NO_LIMIT.format("Container")),
        ("ratio-uninformed", LARGE, NO_RATIO),
        ("whole-pod-uninformed", LARGE, NO_LIMIT.format("Pod")),
    ],
)
def test_without_facts_of_it_the_pod_is_refused(
    cluster: Cluster, webhooks: Webhooks, place: str, limits: Document | None, refusal: str
) -> None:
    """Without facts, the webhook drops a required limit, and LimitRanger rejects the pod."""
    assert webhooks
    assert refusal in create(cluster, pod(place, trainer(limits))).refusal


@pytest.mark.parametrize(
    ("place", "refusal"),
    [
        ("ratio", "per Container is 2, but no request is specified"),
        ("whole-pod", NO_LIMIT.format("Pod")),
    ],
)
def test_a_pod_that_never_had_the_limit_is_refused_anyway(
    cluster: Cluster, webhooks: Webhooks, place: str, refusal: str
) -> None:
    """The author set no limit, and no webhook adds one, so the pod is rejected."""
    assert webhooks
    assert refusal in create(cluster, pod(place, trainer())).refusal


def test_the_maximum_of_a_pod_counts_declared_limits_only(
    cluster: Cluster, webhooks: Webhooks
) -> None:
    """One container that keeps its limit satisfies it for all; requests still count."""
    assert webhooks
    place = "whole-pod-uninformed"
    sidecar = {"name": "sidecar", "image": "example.com/sidecar"}
    sidecar |= {"resources": {"limits": {"memory": "1Gi"}}}  # type: ignore[dict-item]
    answer = create(cluster, pod(place, trainer(LARGE), sidecar))
    assert answer.memory(0) == ("64Gi", None)
    assert answer.memory(1) == ("1Gi", "1Gi")
    too_much = create(cluster, pod(place, trainer({"memory": "100Gi"}), sidecar))
    assert "maximum memory usage per Pod is 100Gi, but request is" in too_much.refusal


@pytest.mark.parametrize("place", ["default", "maximum", "quota"])
def test_a_limit_of_zero_is_left_alone(cluster: Cluster, webhooks: Webhooks, place: str) -> None:
    """Zero means no limit, passes defaults, maxima and quotas, and is the author's to write.

    The webhook never writes it, as that would evade an administrator's rules. A ratio rejects it.
    """
    assert webhooks
    answer = create(cluster, pod(place, trainer({"memory": "0"})))
    assert answer.memory() == ("0", "0")
    assert answer.warnings == []
    refused = create(cluster, pod("ratio", trainer({"memory": "0"})))
    assert "no request is specified or request is 0" in refused.refusal
