"""What the values of the chart decide, and which ones Helm rejects."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.helm import (
    ADDED,
    CHART,
    DEPLOYMENT,
    LATEST,
    MANIFESTS,
    RELEASE,
    Document,
    each_version,
    helm,
    labels_of,
    refusal,
    rendered,
)
from webhook import __version__


def test_values_of_the_pods(tmp_path: Path) -> None:
    """Each value reaches its field."""
    values = {
        "image": {
            "repository": "registry.example/rdma-webhook",
            "digest": f"sha256:{'0' * 64}",
            "pullPolicy": "Always",
            "pullSecrets": ["registry"],
        },
        "replicas": 3,
        "resources": {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}},
        "nodeSelector": {"node-role": "infra"},
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "priorityClassName": "infra",
        "topologySpreadConstraints": [],
        "podLabels": {"team": "network"},
        "podAnnotations": {"a": "b"},
        "extraArgs": ["--log-level=debug"],
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
    }
    chart = rendered(LATEST, _file(tmp_path, values))
    deployment = chart[DEPLOYMENT]["spec"]
    template = deployment["template"]
    pod, (container,) = template["spec"], template["spec"]["containers"]
    assert deployment["replicas"] == 3
    assert container["image"] == f"registry.example/rdma-webhook@sha256:{'0' * 64}"
    assert container["imagePullPolicy"] == "Always"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert container["resources"]["requests"] == {"cpu": "2", "memory": "128Mi"}
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "node-role": "infra"}
    assert pod["affinity"] == values["affinity"]
    assert pod["tolerations"] == values["tolerations"]
    assert pod["priorityClassName"] == "infra"
    assert "topologySpreadConstraints" not in pod
    assert template["metadata"]["labels"] == {**ADDED, "team": "network"}
    assert template["metadata"]["annotations"] == {"a": "b"}
    assert container["args"][-1] == "--log-level=debug"
    assert container["env"][-1] == {"name": "TZ", "value": "UTC"}
    assert deployment["selector"] == {"matchLabels": {"app.kubernetes.io/name": RELEASE}}


def test_values_of_the_preview_s_pods(tmp_path: Path) -> None:
    """Its own replicas and resources; the image and the placement of the replicas."""
    values = {
        "preview": {
            "separate": True,
            "replicas": 2,
            "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
        },
        "image": {
            "repository": "registry.example/webhook",
            "tag": "1",
            "pullSecrets": ["registry"],
        },
        "nodeSelector": {"node-role": "infra"},
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "annotations": {"owner": "network"},
        "podLabels": {"team": "network"},
        "podAnnotations": {"a": "b"},
        "extraArgs": ["--log-level=debug"],
    }
    chart = rendered(LATEST, _file(tmp_path, values))
    ours = {key: value for key, value in chart.items() if key[2] == f"{RELEASE}-preview"}
    deployment = ours["Deployment", RELEASE, f"{RELEASE}-preview"]
    assert all(value["metadata"]["annotations"]["owner"] == "network" for value in ours.values())
    spec = deployment["spec"]
    template = spec["template"]
    pod, (container,) = template["spec"], template["spec"]["containers"]
    replicas_pod = chart[DEPLOYMENT]["spec"]["template"]["spec"]
    for field in ("imagePullSecrets", "nodeSelector", "affinity", "tolerations"):
        assert pod[field] == replicas_pod[field]
    for field in ("image", "imagePullPolicy"):
        assert container[field] == replicas_pod["containers"][0][field]
    assert spec["replicas"] == 2
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "128Mi"}
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    name = {"app.kubernetes.io/name": f"{RELEASE}-preview"}
    assert spec["selector"] == {"matchLabels": name}
    assert template["metadata"] == {
        "labels": {**ADDED, **name, "team": "network"},
        "annotations": {"a": "b"},
    }
    assert "--log-level=debug" not in container["args"]
    assert replicas_pod["containers"][0]["args"][-2:] == ["--preview=off", "--log-level=debug"]


def _file(folder: Path, values: Document) -> str:
    """Write a values file, and return the option that names it."""
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return f"--values={path}"


def test_the_tag() -> None:
    """A tag replaces the version of the chart."""
    deployment = rendered(LATEST, "--set=image.tag=1.2.3")[DEPLOYMENT]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "rdma-webhook:1.2.3"


def test_labels_and_annotations_of_all_objects(tmp_path: Path) -> None:
    """They are added, and replace neither the chart's labels nor its annotations."""
    values = {"labels": {"team": "network"}, "annotations": {"owner": "network"}}
    values["podLabels"] = {"team": "pods"}
    chart = rendered(LATEST, _file(tmp_path, values), "--set=monitoring.enabled=true")
    for document in chart.values():
        assert labels_of(document).items() >= {**ADDED, "team": "network"}.items()
        assert document["metadata"]["annotations"]["owner"] == "network"
    template = chart[DEPLOYMENT]["spec"]["template"]["metadata"]
    assert template == {"labels": {**ADDED, "team": "pods"}}
    definition = chart["CustomResourceDefinition", "", "fabricconfigurations.rdma.lab"]
    assert len(definition["metadata"]["annotations"]) == 4


def test_excluded_namespaces() -> None:
    """The webhook, the detector and the advice exclude the same ones, the release's first."""
    chart = rendered(LATEST, "--set=excludedNamespaces={kube-system,elsewhere}", namespace="rdma")
    (webhook,) = chart["MutatingWebhookConfiguration", "", "zz-rdma-webhook"]["webhooks"]
    policies = (
        chart["ValidatingAdmissionPolicy", "", f"rdma-webhook-{name}"]["spec"]["matchConstraints"]
        for name in ("detector", "advice")
    )
    for selector in (webhook, *policies):
        (expression,) = selector["namespaceSelector"]["matchExpressions"]
        assert expression["values"] == ["rdma", "kube-system", "elsewhere"]
    chart = rendered(LATEST, namespace="kube-system")
    (webhook,) = chart["MutatingWebhookConfiguration", "", "zz-rdma-webhook"]["webhooks"]
    (expression,) = webhook["namespaceSelector"]["matchExpressions"]
    assert expression["values"] == ["kube-system", "kube-public", "kube-node-lease"]


def test_what_is_turned_off() -> None:
    """A PodDisruptionBudget and a NetworkPolicy of the site's own may replace the chart's."""
    turned_off = "--set=podDisruptionBudget.enabled=false,networkPolicy.enabled=false"
    assert rendered(LATEST).keys() - rendered(LATEST, turned_off).keys() == {
        ("PodDisruptionBudget", RELEASE, RELEASE),
        ("NetworkPolicy", RELEASE, RELEASE),
    }
    separate = "--set=preview.separate=true"
    assert rendered(LATEST, separate).keys() - rendered(LATEST, separate, turned_off).keys() == {
        ("PodDisruptionBudget", RELEASE, RELEASE),
        ("NetworkPolicy", RELEASE, RELEASE),
        ("NetworkPolicy", RELEASE, f"{RELEASE}-preview"),
    }


def test_values_of_traffic_and_monitoring() -> None:
    """The namespace of Prometheus, ports of the API server, and the fields of the PodMonitor."""
    monitoring = "enabled=true,namespace=prometheus,interval=15s,labels.release=stack"
    options = [f"monitoring.{option}" for option in monitoring.split(",")]
    options += ["networkPolicy.apiServerPorts={8443}", "podDisruptionBudget.maxUnavailable=2"]
    options += ["preview.separate=true"]
    chart = rendered(LATEST, *(f"--set={option}" for option in options))
    policy = chart["NetworkPolicy", RELEASE, RELEASE]["spec"]
    ((source,),) = [rule["from"] for rule in policy["ingress"][1:2]]
    labels = source["namespaceSelector"]["matchLabels"]
    assert labels == {"kubernetes.io/metadata.name": "prometheus"}
    of_previews = chart["NetworkPolicy", RELEASE, f"{RELEASE}-preview"]["spec"]
    for limited in (policy, of_previews):
        assert limited["egress"][0]["ports"] == [{"port": 8443, "protocol": "TCP"}]
    assert chart["PodDisruptionBudget", RELEASE, RELEASE]["spec"]["maxUnavailable"] == 2
    monitor = chart["PodMonitor", RELEASE, RELEASE]
    assert monitor["spec"]["podMetricsEndpoints"][0]["interval"] == "15s"
    for document in (monitor, chart["PrometheusRule", RELEASE, RELEASE]):
        assert labels_of(document)["release"] == "stack"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("replica=3", "additional properties 'replica' not allowed"),
        ("replicas=none", "at '/replicas': got string, want integer"),
        ("image.digest=sha256:1", "at '/image/digest': 'sha256:1' does not match pattern"),
        (
            "certificates.issuer=vault",
            "at '/certificates/issuer': value must be one of 'self-managed', 'cert-manager'",
        ),
        ("labels.helm\\.sh/chart=a", "at '/labels/helm.sh~1chart': false schema"),
        ("networkPolicy.apiServer={10.0.0.1}", "at '/networkPolicy/apiServer/0': '10.0.0.1' does"),
        (
            "monitoring.runbookUrl=docs/alerts.md",
            "at '/monitoring/runbookUrl': 'docs/alerts.md' does not match pattern",
        ),
        ("extraEnv[0].name=POD_NAME", "at '/extraEnv/0/name': 'not' failed"),
        ("extraArgs={debug}", "at '/extraArgs/0': 'debug' does not match pattern '^-'"),
    ],
)
@each_version
def test_wrong_values(version: str, option: str, message: str) -> None:
    """The message names the value's path and what it must be."""
    assert message in refusal(version, f"--set={option}")


@each_version
def test_a_values_file_of_a_chart_around_this_one(version: str) -> None:
    """Helm gives each chart in another one its global values, which may be anything."""
    assert rendered(version, "--set=global.registry=registry.example")


@pytest.mark.parametrize(("tool", "values"), [("argo-cd", "valuesObject"), ("flux", "values")])
def test_values_of_gitops_tools(tool: str, values: str, tmp_path: Path) -> None:
    """The page's manifests for these tools have a path to the chart, and values that it accepts."""
    page = (MANIFESTS.parent / "docs/helm.md").read_text(encoding="utf-8")
    _, _, block = page.partition(f"<!-- {tool} -->\n```yaml\n")
    assert "manifests/chart" in block
    (given,) = _values_of(list(yaml.safe_load_all(block.partition("```")[0])), values)
    deployment = rendered(LATEST, _file(tmp_path, given))[DEPLOYMENT]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"registry.example/rdma-webhook:{__version__}"


def _values_of(node: Any, key: str) -> Iterator[Any]:
    """Yield what a key has, at any depth."""
    if isinstance(node, dict):
        yield from (value for name, value in node.items() if name == key)
    if isinstance(node, (dict, list)):
        for value in node.values() if isinstance(node, dict) else node:
            yield from _values_of(value, key)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("Fail", "Other"), 'does not contain "failurePolicy: Fail"'),
        (lambda _: "", "the chart lacks files/base/admission/webhook.yaml"),
    ],
    ids=["another text", "no text"],
)
def test_a_copy_that_does_not_fit(
    change: Callable[[str], str], message: str, tmp_path: Path
) -> None:
    """A value whose text is not in its file, or a file that is missing, would do nothing."""
    copy = shutil.copytree(CHART, tmp_path / "chart")
    file = copy / "files/base/admission/webhook.yaml"
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")
    ran = helm(LATEST, "template", RELEASE, copy, "--set=failOpen=true")
    assert ran.returncode == 1
    assert message in ran.stderr


@each_version
def test_lint(version: str) -> None:
    """Helm's own checks find nothing that matters."""
    ran = helm(version, "lint", "--strict", CHART)
    assert ran.returncode == 0, ran.stdout
    assert "[WARNING]" not in ran.stdout


@each_version
def test_an_old_cluster_is_refused(version: str) -> None:
    """The chart names the oldest Kubernetes; a managed cluster's suffix is not older."""
    assert "kubeVersion: >=1.34.0-0" in refusal(version, "--kube-version=1.33.9")
    assert rendered(version, "--kube-version=v1.34.1-gke.5")
