"""LeaderWorkerSet: its own webhook changes the pods, and ours runs after it."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.controllers import start_lws
from tests.cluster.install import NAME, Webhook
from tests.e2e.controllers.compared import check_preview, previews_of
from tests.e2e.controllers.lab import (
    TARGET,
    Document,
    WorkloadNamespace,
    check_target,
    environment,
)

GROUP = ["group-0", "group-0-1"]


@pytest.fixture(scope="module")
def pods(cluster: Cluster, lab: WorkloadNamespace) -> list[Document]:
    """Run a group of two pods."""
    start_lws(cluster)
    lab.create("leaderworkerset")
    lab.wait("wait", "--for=condition=Available", "lws/group")
    return lab.pods()


def test_leader_and_worker_have_the_set(lab: WorkloadNamespace, pods: list[Document]) -> None:
    """Both get all mutations, and keep what their controller's webhook wrote."""
    assert [pod["metadata"]["name"] for pod in pods] == GROUP
    for index, pod in enumerate(pods):
        check_target(lab, pod)
        assert environment(pod)["LWS_WORKER_INDEX"] == str(index)
        assert environment(pod)["LWS_LEADER_ADDRESS"] == f"group-0.group.{lab.namespace}"


def test_ours_comes_last(lab: WorkloadNamespace, webhook: Webhook, pods: list[Document]) -> None:
    """Every call is the first one: another webhook that changes a pod after ours costs a second.

    Nothing is left to do for a second call. A controller may try again to create a pod that exists;
    that is a first call, too.
    """
    log = webhook.kubectl("logs", f"--selector=app.kubernetes.io/name={NAME}", "--tail=-1")
    decisions = lab.decisions(log)

    assert {line["name"] for line in decisions} == {pod["metadata"]["name"] for pod in pods}
    assert [line["applied"] for line in decisions] == [TARGET] * len(decisions)


def test_preview_matches_the_pods(lab: WorkloadNamespace, pods: list[Document]) -> None:
    """The preview shows a worker; a leader from the same template differs in its index."""
    (preview,) = previews_of(lab, "leaderworkerset").values()

    check_preview(preview, pods[1])
