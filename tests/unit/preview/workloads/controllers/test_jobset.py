"""Additions of JobSet and its Jobs to the pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.preview.workloads.controllers.workloads import (
    created_pods,
    env,
    labels,
    template,
    workload,
)

KIND = "jobset.x-k8s.io/v1alpha2 JobSet"
PREFIX = "jobset.sigs.k8s.io"
EXCLUSIVE = {
    "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack",
    "alpha.jobset.sigs.k8s.io/node-selector": "true",
}


def jobs(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Make a set with one replicated Job, whose template has this `metadata`."""
    job_template = {"spec": {"template": template(), **spec}, "metadata": metadata or {}}
    return workload(
        KIND, {"replicatedJobs": [{"name": "w", "replicas": 2, "template": job_template}]}
    )


def test_pods_have_their_set_and_their_job() -> None:
    """Labels and annotations are equal, and the Job is indexed."""
    (pod,) = created_pods(jobs())
    marks = {
        f"{PREFIX}/jobset-name": "job",
        f"{PREFIX}/replicatedjob-name": "w",
        f"{PREFIX}/replicatedjob-replicas": "2",
        f"{PREFIX}/job-index": "0",
        f"{PREFIX}/restart-attempt": "0",
    }
    assert labels(pod) == {**marks, "batch.kubernetes.io/job-completion-index": "0"}
    assert marks.items() <= pod["metadata"]["annotations"].items()
    assert list(env(pod["spec"]["containers"][0])) == ["JOB_COMPLETION_INDEX"]
    assert "nodeSelector" not in pod["spec"]


def test_a_job_that_is_not_indexed() -> None:
    """Its pods have no index."""
    (pod,) = created_pods(jobs(completionMode="NonIndexed"))
    assert "env" not in pod["spec"]["containers"][0]


@pytest.mark.parametrize("place", ["set", "job"])
def test_exclusive_placement_by_node_selector(place: str) -> None:
    """Either the set or one of its Jobs may request it."""
    value = jobs({"annotations": EXCLUSIVE} if place == "job" else None)
    if place == "set":
        value["metadata"]["annotations"] = EXCLUSIVE
    (pod,) = created_pods(value)
    selected = {"alpha.jobset.sigs.k8s.io/namespaced-job": "lab_job-w-0"}
    assert pod["spec"]["nodeSelector"] == selected


def test_nothing_is_added_elsewhere() -> None:
    """Only replicated Jobs have pods."""
    (pod,) = created_pods(workload(KIND, {"other": {"template": template()}}))
    assert "labels" not in pod["metadata"]
