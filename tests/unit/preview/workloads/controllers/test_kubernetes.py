"""Additions of Kubernetes' own controllers that a decision might read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.preview.workloads.controllers.workloads import created_pods, env, template, workload

INDEX = "batch.kubernetes.io/job-completion-index"


def job(mode: str | None, pod_template: dict[str, Any] | None = None) -> dict[str, Any]:
    """Make a Job."""
    given = {} if mode is None else {"completionMode": mode}
    return workload("batch/v1 Job", {**given, "template": pod_template or template()})


def test_the_containers_of_an_indexed_job_have_their_index() -> None:
    """So do the init containers; a variable that is there already stays."""
    pod_template = template()
    with_index = {"name": "own", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "7"}]}
    pod_template["spec"]["containers"].append(with_index)
    pod_template["spec"]["initContainers"] = [{"name": "init"}]
    (pod,) = created_pods(job("Indexed", pod_template))
    main, other = pod["spec"]["containers"]
    (init,) = pod["spec"]["initContainers"]
    reference = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    assert main["env"] == [{"name": "JOB_COMPLETION_INDEX", "valueFrom": reference}]
    assert init["env"] == main["env"]
    assert env(other) == {"JOB_COMPLETION_INDEX": "7"}
    assert pod["metadata"]["annotations"] == {"rdma.lab/enable": "true", INDEX: "0"}
    assert pod["metadata"]["labels"] == {INDEX: "0"}


def test_so_do_those_of_a_cron_jobs_indexed_job() -> None:
    """The completion mode is in the Job's template."""
    inner = {"completionMode": "Indexed", "template": template()}
    (pod,) = created_pods(workload("batch/v1 CronJob", {"jobTemplate": {"spec": inner}}))
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
def test_other_pods_are_created_as_written(value: dict[str, Any]) -> None:
    """They are the templates themselves."""
    (pod,) = created_pods(value)
    assert "env" not in pod["spec"]["containers"][0]
