"""Additions of KubeRay to heads and workers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.preview.workloads.controllers.workloads import (
    created_pods,
    env,
    labels,
    main_container,
    mounts,
    template,
    workload,
)
from webhook.preview.workloads.controllers.kuberay import ray_start
from webhook.preview.workloads.controllers.workload import Resources

KIND = "ray.io/v1 RayCluster"
HEAD = "job-head-svc.lab.svc.cluster.local"
PORTS = " --dashboard-agent-listen-port=52365 {}--metrics-export-port=8080 "
STARTED = "ray start --head  --block " + PORTS.format(" --dashboard-host=0.0.0.0  ")


def head(pod_template: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Make a cluster with a head."""
    return workload(KIND, {"headGroupSpec": {"template": pod_template or template()}, **spec})


def worker(pod_template: dict[str, Any] | None = None, **group: Any) -> dict[str, Any]:
    """Make a cluster with a group of workers."""
    groups = [{"groupName": "gpus", "template": pod_template or template(), **group}]
    return workload(KIND, {"workerGroupSpecs": groups})


def test_a_head() -> None:
    """It has labels, variables, the command that starts Ray, and shared memory."""
    (pod,) = created_pods(head())
    container = pod["spec"]["containers"][0]
    assert labels(pod) == {
        "ray.io/node-type": "head",
        "ray.io/group": "headgroup",
        "ray.io/cluster": "job",
        "ray.io/is-ray-node": "yes",
        "ray.io/identifier": "job-head",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    assert container["command"] == ["/bin/bash", "-c", "--"]
    assert container["args"] == [f"ulimit -n 65536; {STARTED}"]
    assert mounts(container) == ["/dev/shm"]
    assert pod["spec"]["volumes"] == [{"name": "shared-mem", "emptyDir": {"medium": "Memory"}}]
    assert env(container)["RAY_ADDRESS"] == "127.0.0.1:6379"
    assert "FQ_RAY_IP" not in env(container)
    assert "RAY_USAGE_STATS_EXTRA_TAGS" in env(container)
    assert "initContainers" not in pod["spec"]


def test_a_worker() -> None:
    """It has the head's address, and an init container with its variables waits for the head."""
    pod_template = template(
        env=[{"name": "A", "value": "1"}], volumeMounts=[{"mountPath": "/data"}]
    )
    (pod,) = created_pods(worker(pod_template, rayStartParams={"num-gpus": "8"}))
    container, (wait,) = pod["spec"]["containers"][0], pod["spec"]["initContainers"]
    flags = f" --address={HEAD}:6379  --block {PORTS.format(' ')} --num-gpus=8 "
    assert container["args"] == [f"ulimit -n 65536; ray start {flags}"]
    assert list(env(container)) == [
        "A",
        "FQ_RAY_IP",
        "RAY_IP",
        "RAY_CLUSTER_NAME",
        "RAY_CLOUD_INSTANCE_ID",
        "RAY_NODE_TYPE_NAME",
        "KUBERAY_GEN_RAY_START_CMD",
        "RAY_PORT",
        "RAY_ADDRESS",
        "RAY_USAGE_STATS_KUBERAY_IN_USE",
        "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE",
    ]
    assert env(container)["FQ_RAY_IP"] == HEAD
    assert labels(pod)["ray.io/node-type"] == "worker"
    assert labels(pod)["ray.io/group"] == "gpus"
    assert wait["name"] == "wait-gcs-ready"
    assert env(wait) == {"A": "1", "FQ_RAY_IP": HEAD, "RAY_IP": "job-head-svc"}
    assert mounts(wait) == ["/data"]
    assert wait["resources"]["limits"] == {"cpu": "200m", "memory": "256Mi"}


@pytest.mark.parametrize(
    ("resources", "flags"),
    [
        ({"limits": {"cpu": "1500m", "nvidia.com/gpu": 2}}, " --num-cpus=2  --num-gpus=2 "),
        ({"requests": {"cpu": 4}, "limits": {"memory": "1Ki"}}, " --memory=1024  --num-cpus=4 "),
        ({"limits": {"nvidia.com/mig-1g.5gb": 1, "a/gpu": "0"}}, " --num-gpus=1 "),
        ({"limits": {"cpu": "many", "nvidia.com/v100": 8}}, ""),
    ],
)
def test_ray_gets_the_resources_of_the_container(resources: Any, flags: str) -> None:
    """Numbers are rounded up; what is not a quantity is not a number."""
    command = ray_start({}, Resources.model_validate(resources), head_address="")
    assert sorted(command.split()) == sorted([*STARTED.split(), *flags.split()])


def test_parameters_of_the_user() -> None:
    """They take precedence; true and false are switches, except where they are values."""
    given = {
        "block": "false",
        "num-cpus": "0",
        "no-monitor": "True",
        "log-color": "false",
        "x": "false",
    }
    words = ray_start(given, Resources(limits={"cpu": 8}), head_address="h:1").split()
    assert {"--block", "--num-cpus=0", "--no-monitor", "--log-color=false"} < set(words)
    assert "--x" not in words


def test_the_users_command_comes_first() -> None:
    """Bash runs its words, joined by spaces, and then Ray."""
    container = main_container(head(template(command=["echo", "a"], args=["b"])))
    assert container["command"] == ["/bin/bash", "-c", "--"]
    assert container["args"] == [f" echo  a  b  && ulimit -n 65536; {STARTED}"]


def test_a_command_that_starts_ray_stays() -> None:
    """So does every command of a cluster with the annotation for that."""
    starts = main_container(head(template(command=["sh", "-c", "ray start --head"])))
    assert starts["command"] == ["sh", "-c", "ray start --head"]
    value = head(template(command=["mine"]))
    value["metadata"]["annotations"] = {"ray.io/overwrite-container-cmd": "true"}
    (pod,) = created_pods(value)
    assert pod["spec"]["containers"][0]["command"] == ["mine"]
    assert pod["metadata"]["annotations"]["ray.io/overwrite-container-cmd"] == "true"


def test_labels_and_variables_of_the_user() -> None:
    """KubeRay keeps the user's, except the labels that it selects pods by."""
    pod_template = template(env=[{"name": "RAY_PORT", "value": "1"}])
    pod_template["metadata"]["labels"] = {"ray.io/node-type": "x", "app.kubernetes.io/name": "mine"}
    (pod,) = created_pods(head(pod_template))
    assert labels(pod)["ray.io/node-type"] == "head"
    assert labels(pod)["app.kubernetes.io/name"] == "mine"
    names = [variable["name"] for variable in pod["spec"]["containers"][0]["env"]]
    assert names.count("RAY_PORT") == 1


@pytest.mark.parametrize(
    ("resources", "size"),
    [
        ({"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}, "2Gi"),
        ({"requests": {"memory": "1Gi"}}, "1Gi"),
    ],
)
def test_shared_memory_is_as_large_as_the_container(resources: Any, size: str) -> None:
    """Its size is the limit, else the request."""
    (pod,) = created_pods(head(template(resources=resources)))
    (volume,) = pod["spec"]["volumes"]
    assert volume["emptyDir"]["sizeLimit"] == size


def test_a_mount_at_dev_shm_stays() -> None:
    """No volume is added in that case."""
    (pod,) = created_pods(head(template(volumeMounts=[{"name": "own", "mountPath": "/dev/shm"}])))
    assert "volumes" not in pod["spec"]


def test_a_head_that_autoscales_has_a_second_container() -> None:
    """The init container has its own limits."""
    (pod,) = created_pods(head(enableInTreeAutoscaling=True))
    main, scaler = pod["spec"]["containers"]
    assert (main["name"], scaler["name"]) == ("main", "autoscaler")
    assert scaler["resources"]["limits"] == {"cpu": "500m", "memory": "512Mi"}


@pytest.mark.parametrize(
    "value",
    [
        workload("ray.io/v1 RayJob", {"rayClusterSpec": head()["spec"]}),
        workload("ray.io/v1 RayService", {"rayClusterConfig": head()["spec"]}),
        workload(
            "orchestration.aibrix.ai/v1alpha1 RayClusterFleet",
            {"template": {"spec": head()["spec"]}},
        ),
    ],
    ids=["job", "service", "fleet"],
)
def test_kinds_that_make_clusters(value: dict[str, Any]) -> None:
    """The heads of their clusters are treated as heads."""
    (pod,) = created_pods(value)
    assert labels(pod)["ray.io/node-type"] == "head"


@pytest.mark.parametrize(
    "value",
    [
        workload("ray.io/v1 RayJob", {"submitterPodTemplate": template()}),
        head({"spec": {"containers": []}}),
    ],
    ids=["submitter", "no container"],
)
def test_nothing_is_added_elsewhere(value: dict[str, Any]) -> None:
    """The pod that submits a job is not a Ray node."""
    (pod,) = created_pods(value)
    assert "labels" not in pod.get("metadata", {})
