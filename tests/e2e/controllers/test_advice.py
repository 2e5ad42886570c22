"""The advice policy finds the pod templates in kinds of other projects: nothing is stored."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.cluster.binaries import module_dir
from tests.cluster.cluster import Cluster
from tests.cluster.kinds import install_kinds
from tests.e2e.controllers.lab import WORKLOADS, WorkloadNamespace
from tests.e2e.documents import ENABLE, Document, ask
from webhook.preview.workloads.templates import templates_of

#: Where each project's module has its kinds.
DEFINITIONS = {
    "mpi-operator": "manifests/base/kubeflow.org_mpijobs.yaml",
    "kuberay": "config/crd/bases",
    "lws": "config/crd/bases",
    "jobset": "config/components/crd/bases",
}
DENIES = f'annotation {ENABLE}: "yes" makes the webhook deny the pod: it must be "true" or "false"'


@pytest.fixture(scope="module")
def kinds(cluster: Cluster, lab: WorkloadNamespace) -> WorkloadNamespace:
    """Install the kinds without their controllers and webhooks."""
    for module, path in DEFINITIONS.items():
        install_kinds(cluster, str(module_dir(module) / path))
    return lab


def _misspelled(manifest: str, lab: WorkloadNamespace) -> Document:
    """Return a workload whose last template alone opts in, with an invalid value."""
    (value,) = yaml.safe_load_all((WORKLOADS / f"{manifest}.yaml").read_text())
    value["metadata"]["namespace"] = lab.namespace
    *earlier, last = templates_of(value)
    for template in earlier:
        del template.pod["metadata"]["annotations"]
    last.pod["metadata"]["annotations"] = {ENABLE: "yes"}
    document: Document = value
    return document


def _within(kind: str, field: str, cluster: Document, **spec: Any) -> Document:
    """Return an object that makes a RayCluster."""
    return {**cluster, "kind": kind, "spec": {field: cluster["spec"], **spec}}


@pytest.mark.parametrize("manifest", ["mpijob", "raycluster", "leaderworkerset", "jobset"])
def test_a_value_that_denies_the_pods_is_reported(kinds: WorkloadNamespace, manifest: str) -> None:
    """The author of the workload gets the advice, since nobody reads a controller's warnings."""
    assert ask(kinds.cluster, _misspelled(manifest, kinds)).advice == [DENIES]


def test_so_are_templates_of_ray_jobs_and_services(kinds: WorkloadNamespace) -> None:
    """RayJob and RayService hold the whole cluster."""
    cluster = _misspelled("raycluster", kinds)
    job = _within("RayJob", "rayClusterSpec", cluster, entrypoint="x")
    service = _within("RayService", "rayClusterConfig", cluster)
    assert ask(kinds.cluster, job).advice == [DENIES]
    assert ask(kinds.cluster, service).advice == [DENIES]


@pytest.mark.parametrize(("count", "advice"), [(32, [DENIES]), (33, [])])
@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        ("mpijob", "mpiReplicaSpecs"),
        ("raycluster", "workerGroupSpecs"),
        ("jobset", "replicatedJobs"),
    ],
)
def test_a_list_of_many_templates_is_not_read(
    kinds: WorkloadNamespace, manifest: str, field: str, count: int, advice: list[str]
) -> None:
    """Thousands of templates cost the API server seconds, also where nobody opted in."""
    workload = _misspelled(manifest, kinds)
    templates = workload["spec"][field]
    last = list(templates.values() if isinstance(templates, dict) else templates)[-1]
    for number in range(count - len(templates)):
        if isinstance(templates, dict):
            templates[f"Worker{number}"] = last
        else:
            name = "groupName" if manifest == "raycluster" else "name"
            templates.append({**last, name: f"worker-{number}"})
    assert ask(kinds.cluster, workload).advice == advice
