"""`rdma-webhook diff-config` with an API server over HTTP; tests/e2e has a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fabrics_file import single_fabric
from tests.integration.command_desk import Desk, command_desk

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
def desk(tmp_path: Path) -> Iterator[Desk]:
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
    with command_desk(tmp_path, answers, "diff-config") as desk:
        yield desk


def test_what_the_new_file_needs_is_read(desk: Desk) -> None:
    """Claims in the pod's namespace and nodes are read, although no old fabric has claims."""
    new, old, pod = (
        desk.file(f"{name}.yaml", text) for name, text in (("new", NEW), ("old", OLD), ("pod", POD))
    )
    cluster = ("--kubeconfig", desk.kubeconfig)
    (change,) = desk.form(new, "-c", old, "-f", pod, *cluster)["changes"]
    assert change["after"]["because"] == "FabricWithoutNodes"
    desk.api.answers[f"{CLAIMS}/web/resourceclaimtemplates"] = page()
    (change,) = desk.form(new, "-c", old, "-f", pod, *cluster)["changes"]
    assert change["after"]["because"] == "ClaimTemplateMissing"


#: A pod whose list of devices is in a ConfigMap.
FROM_CONFIG_MAP = f"""\
{POD}\
    env:
    - {{name: NCCL_IB_HCA, valueFrom: {{configMapKeyRef: {{name: tuning, key: hcas}}}}}}
"""


def test_config_maps_are_read(desk: Desk) -> None:
    """Those that give variables to a pod in a file, or to a workload of the cluster."""
    new = desk.file("new.yaml", OLD.replace("mlx5_0", "mlx5_7"))
    old, pod = desk.file("old.yaml", OLD), desk.file("pod.yaml", FROM_CONFIG_MAP)
    job = {"metadata": {"name": "train", "namespace": "web"}}
    desk.api.answers |= {
        f"{SPACES}/web/configmaps/tuning": {
            "metadata": {"name": "tuning", "namespace": "web"},
            "data": {"hcas": "=mlx5_0"},
        },
        f"{SPACES}/web/pods": page(),
        "/apis/batch/v1/namespaces/web/jobs": page(
            {**job, "spec": {"template": yaml.safe_load(FROM_CONFIG_MAP)}}
        ),
    }
    cluster = (new, "-c", old, "--kubeconfig", desk.kubeconfig, "-n", "web")
    for workloads in (("-f", pod), ()):
        (change,) = desk.form(*cluster, *workloads)["changes"]
        reasons = [change[side]["because"] for side in ("before", "after")]
        assert reasons == ["FabricWithoutNodes", "NcclIbHcaElsewhere"]


def test_without_a_cluster_no_request_is_made(desk: Desk) -> None:
    """Both configurations and the workloads are files."""
    new, old, pod = (
        desk.file(f"{name}.yaml", text) for name, text in (("new", NEW), ("old", OLD), ("pod", POD))
    )
    assert desk.run(new, "-c", old, "-f", pod).code == 1
    assert desk.api.asked == []
