"""The pods of runs are deleted, until all are gone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.diagnose.verify.runs.fake_pods import FakePods
from tests.unit.diagnose.verify.runs.plans import plan_of
from webhook.diagnose.verify.results import NodePair
from webhook.diagnose.verify.runs.pods import DELETE_TIMEOUT, remove_pods, run_selector, server_pod
from webhook.errors import ClusterError


class SlowPods(FakePods):
    """Pods that remain for some polls after they were deleted."""

    polls = 3
    deletions = 0

    def delete(self, pod: dict[str, Any]) -> None:
        """Mark a pod as deleted."""
        self.deletions += 1
        self.pods[pod["metadata"]["name"]]["metadata"]["deletionTimestamp"] = "now"

    def list(self, selector: str) -> list[dict[str, Any]]:
        """Remove the pods after enough polls, and return the others."""
        if self.deletions:
            self.polls -= 1
        if not self.polls:
            self.pods.clear()
        return super().list(selector)


def filled(pods: FakePods) -> FakePods:
    """Add a pod of each of two runs."""
    for name in ("verify-one", "verify-two"):
        pods.create(server_pod(plan_of(name=name), 0, NodePair("a", "b")))
    return pods


def clean(pods: FakePods, selector: str) -> list[str]:
    """Remove pods, with a clock that advances by each sleep."""
    time = [0.0]

    def sleep(seconds: float) -> None:
        time[0] += seconds

    removed = remove_pods(pods, selector, sleep, lambda: time[0])
    return [pod.metadata.name for pod in removed]


def test_of_a_run_or_of_all_runs() -> None:
    """The pods with the labels are deleted, and returned."""
    pods = filled(FakePods())
    assert clean(pods, run_selector("verify-one")) == ["verify-one-0-server"]
    assert clean(pods, run_selector()) == ["verify-two-0-server"]
    assert clean(pods, run_selector()) == []


def test_pods_that_take_their_time() -> None:
    """Each pod is deleted once, and the function waits until all are gone."""
    pods = SlowPods()
    filled(pods)
    assert len(clean(pods, run_selector())) == 2
    assert pods.deletions == 2
    assert not pods.pods


@pytest.mark.parametrize(("node", "named"), [("gpu-1", "gpu-1"), (None, "no node")])
def test_pods_that_do_not_go(node: str | None, named: str) -> None:
    """The error names the pods, and their nodes."""
    pods = SlowPods()
    pods.polls = 10_000
    filled(pods)
    for pod in pods.pods.values():
        pod["spec"]["nodeName"] = node
    with pytest.raises(ClusterError) as error:
        clean(pods, run_selector("verify-one"))
    assert str(error.value) == (
        f"not deleted within {DELETE_TIMEOUT:g} s: "
        f"verify-one-0-server; check whether the kubelet answers on {named}"
    )
