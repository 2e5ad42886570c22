"""What Kubernetes' own controllers add that a decision might read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.preview.workloads.controllers.workloads import env, lives, template, workload

INDEX = "batch.kubernetes.io/job-completion-index"


def job(mode: str | None, made: dict[str, Any] | None = None) -> dict[str, Any]:
    """Make a Job."""
    given = {} if mode is None else {"completionMode": mode}
    return workload("batch/v1 Job", {**given, "template": made or template()})


def test_the_containers_of_an_indexed_job_know_their_index() -> None:
    """So do the init containers; a variable that is there already stays."""
    made = template()
    own = {"name": "own", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "7"}]}
    made["spec"]["containers"].append(own)
    made["spec"]["initContainers"] = [{"name": "init"}]
    (pod,) = lives(job("Indexed", made))
    one, two = pod["spec"]["containers"]
    (init,) = pod["spec"]["initContainers"]
    reference = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    assert one["env"] == [{"name": "JOB_COMPLETION_INDEX", "valueFrom": reference}]
    assert init["env"] == one["env"]
    assert env(two) == {"JOB_COMPLETION_INDEX": "7"}
    assert pod["metadata"]["annotations"] == {"rdma.lab/enable": "true", INDEX: "0"}
    assert pod["metadata"]["labels"] == {INDEX: "0"}


def test_so_do_those_of_a_cron_jobs_indexed_job() -> None:
    """The completion mode is in the Job's template."""
    inner = {"completionMode": "Indexed", "template": template()}
    (pod,) = lives(workload("batch/v1 CronJob", {"jobTemplate": {"spec": inner}}))
    assert INDEX in pod["metadata"]["annotations"]


@pytest.mark.parametrize(
    "value",
    [
        job(None),
        job("NonIndexed"),
        workload("apps/v1 Deployment", {"template": template()}),
        workload("v1 Pod", template()["spec"]),
    ],
    ids=["job", "not indexed", "deployment", "pod"],
)
def test_other_pods_are_made_as_they_are_written(value: dict[str, Any]) -> None:
    """They are the templates themselves."""
    (pod,) = lives(value)
    assert "env" not in pod["spec"]["containers"][0]
