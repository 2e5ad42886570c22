"""A release, installed from its own files in a cluster that pulls nothing (docs/air-gap.md)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.fabrics import apply_fabrics, wait_until_in_use
from tests.cluster.install import (
    CONFIGURATION,
    DEPLOYMENT,
    LAB,
    NAME,
    VALIDATION,
    Webhook,
    called,
    end_replicas,
    uncalled,
)
from tests.e2e.helm_release import Release
from tests.waiting import until
from webhook import __version__
from webhook.config import EXAMPLE

_LAB = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": LAB, "labels": {"rdma.lab/enable": "true"}},
}


@pytest.fixture(scope="module")
def node_with_image(cluster: Cluster, a100_node: str, release: Path) -> Cluster:
    """Import the image, without a registry, as the page does; `a100_node` has the fabrics' GPUs."""
    assert a100_node
    (archive,) = release.glob("*.oci.tar")
    name = ("--base-name", "docker.io/library/rdma-webhook")
    cluster.exec("ctr", "--namespace", "k8s.io", "images", "import", *name, archive)
    cluster.kubectl("apply", "--filename=-", input=json.dumps(_LAB))
    return cluster


@pytest.fixture
def _from_manifests(node_with_image: Cluster, release: Path) -> Iterator[None]:
    for file in ("crds.yaml", "install.yaml"):
        node_with_image.kubectl("apply", "-f", str(release / file))
    yield
    node_with_image.kubectl("delete", CONFIGURATION, VALIDATION)
    uncalled(node_with_image)
    end_replicas(node_with_image)
    for file in ("install.yaml", "crds.yaml"):
        node_with_image.kubectl("delete", "--ignore-not-found", "-f", str(release / file))


@pytest.fixture
def _from_chart(node_with_image: Cluster, release: Path) -> Iterator[None]:
    chart = release / f"{NAME}-{__version__}.tgz"
    helm = Release(node_with_image, "helm-4", f"{NAME}:{__version__}")
    helm.helm("install", NAME, str(chart), "--create-namespace")
    yield
    helm.helm("uninstall", NAME)


@pytest.mark.parametrize("way", ["_from_manifests", "_from_chart"])
def test_it_works(
    node_with_image: Cluster, commands: Path, way: str, request: pytest.FixtureRequest
) -> None:
    """A pod that opts in is equipped, and the wheel's own check-install has no findings."""
    request.getfixturevalue(way)
    webhook = Webhook(node_with_image, f"{NAME}:{__version__}")
    webhook.kubectl("rollout", "status", DEPLOYMENT, "--timeout=300s")
    wait_until_in_use(webhook, apply_fabrics(node_with_image, EXAMPLE.read_text(encoding="utf-8")))
    called(node_with_image)
    access = ("--kubeconfig", str(node_with_image.kubeconfig))
    command = [str(commands / NAME), "check-install", "--try", LAB, *access, "--output=json"]
    codes: set[str] = set()

    def is_well() -> bool:
        """Check the installation, whose replicas take a moment to write their status."""
        answer = subprocess.run(command, check=False, stdout=subprocess.PIPE).stdout
        findings = [finding for part in json.loads(answer)["parts"] for finding in part["findings"]]
        codes.clear()
        codes.update(finding["code"] for finding in findings if finding["level"] != "ok")
        return codes == {"NoPrometheusOperator"}

    until(is_well, lambda: sorted(codes))
