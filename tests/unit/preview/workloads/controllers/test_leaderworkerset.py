"""Additions of LeaderWorkerSet and its webhook to the pods of a group."""

from __future__ import annotations

from typing import Any

from tests.unit.preview.workloads.controllers.workloads import (
    created_pods,
    env,
    labels,
    template,
    workload,
)

KIND = "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet"
PREFIX = "leaderworkerset.sigs.k8s.io"


def group(**templates: Any) -> dict[str, Any]:
    """Make a set of groups of four pods."""
    return workload(KIND, {"leaderWorkerTemplate": {"size": 4, **templates}})


def test_leader_and_worker_have_their_group() -> None:
    """The variables come first, in all containers."""
    variables = [{"name": "A", "value": "1"}, {"name": "LWS_GROUP_SIZE", "value": "9"}]
    pod_template = template(env=variables)
    pod_template["spec"]["initContainers"] = [{"name": "init"}]
    leader, worker = created_pods(group(leaderTemplate=pod_template, workerTemplate=template()))
    ours = {
        "LWS_LEADER_ADDRESS": "job-0.job.lab",
        "LWS_GROUP_SIZE": "4",
        "LWS_WORKER_INDEX": "0",
    }
    assert list(env(leader["spec"]["containers"][0]).items()) == [*ours.items(), ("A", "1")]
    assert env(leader["spec"]["initContainers"][0]) == ours
    assert env(worker["spec"]["containers"][0])["LWS_WORKER_INDEX"] == "1"
    assert labels(leader) == {
        f"{PREFIX}/name": "job",
        f"{PREFIX}/group-index": "0",
        f"{PREFIX}/worker-index": "0",
    }
    assert leader["metadata"]["annotations"][f"{PREFIX}/size"] == "4"


def test_nothing_is_added_elsewhere() -> None:
    """The set has two templates."""
    (pod,) = created_pods(workload(KIND, {"other": {"template": template()}}))
    assert "labels" not in pod["metadata"]
