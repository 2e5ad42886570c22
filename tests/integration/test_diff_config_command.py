"""`rdma-webhook diff-config` with an API server over HTTP; tests/e2e has a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fabrics_file import single_fabric
from tests.integration.command_runner import CommandRunner, command_runner

SPACES, CLAIMS = "/api/v1/namespaces", "/apis/resource.k8s.io/v1/namespaces"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: web, annotations: {rdma.lab/enable: "true"}}
spec:
  containers:
  - name: main
    resources: {limits: {nvidia.com/h100: 8}}
"""
OLD = single_fabric("h100", "nvidia.com/h100", "rdma/rdma_h100")
#: Now the NICs come by claim.
NEW = OLD.replace("resources: [{name: rdma/rdma_h100}]", "claims: [{template: nics}]").replace(
    "hcas: [mlx5_0]", "mode: dra"
)


def page(*items: Any) -> dict[str, Any]:
    """Make a list of one page."""
    return {"metadata": {"resourceVersion": "1"}, "items": [*items]}


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[CommandRunner]:
    """Serve a cluster whose namespace `web`, which the pod is in, has the template."""
    template = {"metadata": {"name": "nics", "namespace": "web"}, "spec": {"spec": {}}}
    labels = {"rdma.lab/enable": "true"}
    answers = {
        f"{SPACES}/web": {"metadata": {"name": "web", "labels": labels}},
        f"{SPACES}/web/limitranges": page(),
        f"{SPACES}/web/resourcequotas": page(),
        f"{CLAIMS}/web/resourceclaimtemplates": page(template),
        f"{CLAIMS}/web/resourceclaims": page(),
        "/api/v1/nodes": page({"metadata": {"name": "n1"}, "status": {}}),
    }
    with command_runner(tmp_path, answers, "diff-config") as runner:
        yield runner


def test_what_the_new_file_needs_is_read(runner: CommandRunner) -> None:
    """Claims in the pod's namespace and nodes are read, although no old fabric has claims."""
    new, old, pod = (
        runner.file(f"{name}.yaml", text)
        for name, text in (("new", NEW), ("old", OLD), ("pod", POD))
    )
    cluster = ("--kubeconfig", runner.kubeconfig)
    (change,) = runner.form(new, "-c", old, "-f", pod, *cluster)["changes"]
    assert change["after"]["because"] == "FabricWithoutNodes"
    runner.api.answers[f"{CLAIMS}/web/resourceclaimtemplates"] = page()
    (change,) = runner.form(new, "-c", old, "-f", pod, *cluster)["changes"]
    assert change["after"]["because"] == "ClaimTemplateMissing"


#: A pod whose list of devices is in a ConfigMap.
FROM_CONFIG_MAP = f"""\
{POD}\
    env:
    - {{name: NCCL_IB_HCA, valueFrom: {{configMapKeyRef: {{name: tuning, key: hcas}}}}}}
"""


def test_config_maps_are_read(runner: CommandRunner) -> None:
    """Those that give variables to a pod in a file, or to a workload of the cluster."""
    new = runner.file("new.yaml", OLD.replace("mlx5_0", "mlx5_7"))
    old, pod = runner.file("old.yaml", OLD), runner.file("pod.yaml", FROM_CONFIG_MAP)
    job = {"metadata": {"name": "train", "namespace": "web"}}
    runner.api.answers |= {
        f"{SPACES}/web/configmaps/tuning": {
            "metadata": {"name": "tuning", "namespace": "web"},
            "data": {"hcas": "=mlx5_0"},
        },
        f"{SPACES}/web/pods": page(),
        "/apis/batch/v1/namespaces/web/jobs": page(
            {**job, "spec": {"template": yaml.safe_load(FROM_CONFIG_MAP)}}
        ),
    }
    cluster = (new, "-c", old, "--kubeconfig", runner.kubeconfig, "-n", "web")
    for workloads in (("-f", pod), ()):
        (change,) = runner.form(*cluster, *workloads)["changes"]
        reasons = [change[side]["because"] for side in ("before", "after")]
        assert reasons == ["FabricWithoutNodes", "NcclIbHcaElsewhere"]


def test_without_a_cluster_no_request_is_made(runner: CommandRunner) -> None:
    """Both configurations and the workloads are files."""
    new, old, pod = (
        runner.file(f"{name}.yaml", text)
        for name, text in (("new", NEW), ("old", OLD), ("pod", POD))
    )
    assert runner.run(new, "-c", old, "-f", pod).code == 1
    assert runner.api.asked == []
