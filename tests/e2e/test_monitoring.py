"""The kustomizations of docs/installation.md that adapt manifests/monitoring to a Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.cluster.cluster import Cluster
from tests.e2e.renderings import MANIFESTS, wrapped
from tests.e2e.test_manifests import Documents, build, documents_of

PAGE = MANIFESTS.parent / "docs/installation.md"


def documented(name: str) -> dict[str, Any]:
    """Return the kustomization of the page between the markers with this name."""
    text = PAGE.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n```yaml\n")[2]
    kustomization: dict[str, Any] = yaml.safe_load(text.partition("```")[0])
    return kustomization


def adapted(cluster: Cluster, folder: Path, *names: str) -> Documents:
    """Render an installation with its monitoring, and with these kustomizations of the page."""
    file = wrapped("overlays/self-managed", folder) / "kustomization.yaml"
    site = yaml.safe_load(file.read_text(encoding="utf-8"))
    for name in names:
        site |= {**documented(name), "resources": site["resources"]}
    file.write_text(yaml.safe_dump(site), encoding="utf-8")
    return build(cluster, folder)


def test_a_label_selects_the_objects(cluster: Cluster, tmp_path: Path) -> None:
    """Prometheus finds the PodMonitor and the rules by it; no selector of pods changes."""
    assert documented("monitoring")["resources"] == ["rdma-webhook/manifests/monitoring"]
    documents = adapted(cluster, tmp_path, "monitoring")
    for kind in ("PodMonitor", "PrometheusRule"):
        (selected,) = documents_of(kind, documents)
        assert selected["metadata"]["labels"]["release"] == "kube-prometheus-stack"
    (monitor,) = documents_of("PodMonitor", documents)
    (deployment,) = documents_of("Deployment", documents)
    selector = {"app.kubernetes.io/name": "rdma-webhook"}
    assert monitor["spec"]["selector"]["matchLabels"] == selector
    assert deployment["spec"]["selector"]["matchLabels"] == selector


def test_the_objects_may_be_in_the_namespace_of_prometheus(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The PodMonitor still selects the pods of the webhook."""
    documents = adapted(cluster, tmp_path, "monitoring", "monitoring-elsewhere")
    (monitor,) = documents_of("PodMonitor", documents)
    assert monitor["metadata"]["namespace"] == "monitoring"
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["rdma-webhook"]}


def test_the_network_policy_admits_another_namespace(cluster: Cluster, tmp_path: Path) -> None:
    """The patch changes only who reaches the port of the metrics."""
    (before,) = documents_of("NetworkPolicy", adapted(cluster, tmp_path))
    (after,) = documents_of("NetworkPolicy", adapted(cluster, tmp_path, "prometheus"))
    (peer,) = before["spec"]["ingress"][1]["from"]
    assert before["spec"]["ingress"][1]["ports"] == [{"port": "health", "protocol": "TCP"}]
    peer["namespaceSelector"]["matchLabels"] = {"kubernetes.io/metadata.name": "observability"}
    assert after == before


def test_the_dashboard_is_a_config_map(cluster: Cluster) -> None:
    """Grafana's sidecar reads the file as it is, and the name stays the same at each change."""
    (dashboard,) = documents_of("ConfigMap", build(cluster, MANIFESTS / "monitoring"))
    assert dashboard["metadata"]["name"] == "rdma-webhook-dashboard"
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    file = MANIFESTS / "monitoring/dashboard.json"
    assert dashboard["data"] == {"rdma-webhook.json": file.read_text(encoding="utf-8")}
