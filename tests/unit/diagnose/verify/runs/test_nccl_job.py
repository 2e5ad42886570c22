"""The MPIJob of a run: the requests of its pods, and their nodes."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from tests.unit.diagnose.verify.runs.fake_operator import PLAN
from tests.unit.diagnose.verify.runs.plans import FABRIC
from webhook.diagnose.verify.runs.nccl_job import NcclPlan, mpi_job

LABELS = {
    "app.kubernetes.io/name": "rdma-webhook-verify",
    "app.kubernetes.io/instance": "verify-0123abcd",
}


def templates(plan: NcclPlan = PLAN) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the templates of launcher and workers."""
    specs = mpi_job(plan)["spec"]["mpiReplicaSpecs"]
    return specs["Launcher"]["template"], specs["Worker"]["template"]


def test_the_job() -> None:
    """It has a worker for each node and a slot for each GPU, and ends and goes by itself."""
    job = mpi_job(PLAN)
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    assert job["metadata"] == {"name": "verify-0123abcd", "labels": LABELS}
    spec = job["spec"]
    assert (spec["slotsPerWorker"], spec["mpiReplicaSpecs"]["Worker"]["replicas"]) == (4, 2)
    assert spec["launcherCreationPolicy"] == "WaitForWorkersReady"
    assert spec["runPolicy"] == {
        "cleanPodPolicy": "Running",
        "backoffLimit": 0,
        "activeDeadlineSeconds": 720,
        "ttlSecondsAfterFinished": 600,
    }


def test_all_pods() -> None:
    """They have the labels of runs, and opt in to RDMA like other pods."""
    for template in templates(
        PLAN._replace(pull_secrets=("registry",), tolerations=({"key": "x"},))
    ):
        assert template["metadata"] == {
            "labels": LABELS,
            "annotations": {"rdma.lab/enable": "true", "rdma.lab/fabric": "v100-ib"},
        }
        spec = template["spec"]
        assert spec["imagePullSecrets"] == [{"name": "registry"}]
        assert spec["tolerations"] == [{"key": "x"}]
        assert spec["automountServiceAccountToken"] is False
        # Even if the run is killed before the launcher, with which the job's deadline begins.
        assert spec["activeDeadlineSeconds"] == 720
        nodes = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert [term["matchFields"][0]["values"] for term in nodes["nodeSelectorTerms"]] == [
            ["a"],
            ["b"],
        ]


def test_workers() -> None:
    """Each has the GPUs of its node, is ready when sshd listens, and has room in /dev/shm."""
    _, worker = templates()
    spec = worker["spec"]
    (container,) = spec["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/v100": "4"}}
    assert container["readinessProbe"]["tcpSocket"] == {"port": 2222}
    assert container["volumeMounts"] == [{"name": "shared-memory", "mountPath": "/dev/shm"}]
    (term,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    role = {"training.kubeflow.org/job-role": "worker"}
    assert term["labelSelector"] == {"matchLabels": {**LABELS, **role}}
    assert "hostNetwork" not in spec


def test_sshd_lets_in_nobody_else() -> None:
    """It listens on the pod's address only, and takes only the job's key, for its own user."""
    _, worker = templates()
    (container,) = worker["spec"]["containers"]
    assert container["env"] == [
        {"name": "SSHD_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    ]
    command = container["command"][2].replace("$$(", "$(").partition("exec ")[2]
    assert shlex.split(command.replace("\\\n", " ")) == [
        *("$sshd", "-De", "-p", "2222", "-o", "ListenAddress=$SSHD_ADDRESS"),
        *("-o", "StrictModes=no", "-o", "AuthenticationMethods=publickey"),
        *("-o", "AllowUsers=$(id -un)", "-o", "DisableForwarding=yes", "-o", "PermitTTY=no"),
    ]


def test_the_launcher() -> None:
    """It has no GPU; the script gets the number of ranks."""
    launcher, _ = templates()
    (container,) = launcher["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "100m"}}
    shell, option, script, *words = container["command"]
    assert (shell, option) == ("sh", "-c")
    assert words == ["rdma-verify", "8", "600", "all_reduce_perf", "1G"]
    assert "mpirun --allow-run-as-root" in script


def test_the_kubelet_leaves_scripts_alone() -> None:
    """The kubelet would replace $(NAME) in a command, so each $( is escaped."""
    for template in templates():
        (container,) = template["spec"]["containers"]
        assert "$(" not in container["command"][2].replace("$$(", "")


def test_the_network_of_the_node() -> None:
    """Workers use it if the fabric's pods do; without pull secrets no Secret is named."""
    fabric = replace(FABRIC, mode="host-network")
    launcher, worker = templates(PLAN._replace(fabric=fabric))
    assert worker["spec"]["hostNetwork"] is True
    assert worker["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert "hostNetwork" not in launcher["spec"]
    assert "imagePullSecrets" not in worker["spec"]
