"""The chart renders the objects that kustomize builds, with Helm 3 and with Helm 4.

A site that changes from one to the other, or compares them, gets the same installation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from tests.integration.helm import (
    CHART,
    MANIFESTS,
    RELEASE,
    VERSIONS,
    Document,
    Objects,
    helm,
    kustomized,
    labels_of,
    refusal,
    rendered,
)
from webhook import __version__

#: The labels that the chart adds to each object and to the pods, if the manifests have no such.
_ADDED = {
    "app.kubernetes.io/name": RELEASE,
    "app.kubernetes.io/instance": RELEASE,
    "app.kubernetes.io/version": __version__,
    "app.kubernetes.io/part-of": RELEASE,
    "app.kubernetes.io/managed-by": "Helm",
    "helm.sh/chart": f"{RELEASE}-{__version__}",
}
#: kustomize gives these kinds a namespace, which the API server ignores.
_CLUSTER_SCOPED = {"FlowSchema", "PriorityLevelConfiguration"}
_KEEP = "helm.sh/resource-policy"
#: Both versions evaluate templates alike, so one is enough for most values.
LATEST = VERSIONS[-1]
_DEPLOYMENT = ("Deployment", RELEASE, RELEASE)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """Return each version of Helm in turn."""
    return str(request.param)


@cache  # both versions of Helm are compared with it
def site(
    overlay: str = "self-managed",
    resources: tuple[str, ...] = (),
    components: tuple[str, ...] = (),
    fields: str = "{}",
) -> Objects:
    """Return what a site's kustomization builds, without its namespace, which Helm makes.

    `fields` are further fields of the kustomization, in YAML.
    """
    with TemporaryDirectory(prefix="site-") as scratch:
        folder = Path(scratch).resolve()
        up = os.path.relpath(MANIFESTS, folder)
        kustomization = {
            "resources": [f"{up}/{path}" for path in (f"overlays/{overlay}", *resources)],
            "components": [f"{up}/components/{component}" for component in components],
            **yaml.safe_load(fields),
        }
        if "namespace" in kustomization:
            kustomization["transformers"] = [f"{up}/namespace"]
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
        built = {**kustomized(folder), **kustomized(MANIFESTS / "crd")}
    objects = {key: value for key, value in built.items() if key[0] != "Namespace"}
    assert len(objects) == len(built) - 1
    return {_key(key, value): value for key, value in objects.items()}


def _key(key: tuple[str, str, str], document: Document) -> tuple[str, str, str]:
    kind, namespace, name = key
    if kind in _CLUSTER_SCOPED:
        document["metadata"].pop("namespace", None)
        namespace = ""
    return kind, namespace, name


def assert_same(chart: Objects, manifests: Objects) -> None:
    """Assert that both are the same but for the labels that the chart adds."""
    assert chart.keys() == manifests.keys()
    for key, document in manifests.items():
        assert _plain(chart[key], document) == _folded(document), key


def _plain(ours: Document, theirs: Document) -> Document:
    """Return the chart's object without what Helm needs and kustomize does not."""
    ours = _folded(ours)
    _drop_labels(ours, labels_of(theirs))
    if ours["kind"] == "Deployment":
        _drop_labels(ours["spec"]["template"], labels_of(theirs["spec"]["template"]))
    if ours["kind"] == "ClusterRole" and _KEEP in ours["metadata"].get("annotations", {}):
        del ours["metadata"]["annotations"]  # kustomize never removes the folder crd
    return ours


def _drop_labels(document: Document, kept: Mapping[str, str]) -> None:
    """Remove the labels that the chart adds, after checking their values."""
    labels = document["metadata"]["labels"]
    for label, value in _ADDED.items():
        assert labels[label] == value
        if label not in kept:
            del labels[label]
    if not labels:
        del document["metadata"]["labels"]


def _folded(node: Any) -> Any:
    """Copy a document, with a space for each white space: kustomize adds empty lines to CEL."""
    if isinstance(node, dict):
        return {key: _folded(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_folded(value) for value in node]
    return " ".join(node.split()) if isinstance(node, str) else deepcopy(node)


def test_the_default_values_are_the_usual_installation(version: str) -> None:
    """The overlay self-managed, with the definition."""
    assert_same(rendered(version), site())


def test_cert_manager(version: str) -> None:
    """The overlay cert-manager: with its certificates, without the rights to issue one."""
    chart = rendered(version, "--set=certificates.issuer=cert-manager")
    assert_same(chart, site("cert-manager"))


@pytest.mark.parametrize(
    ("value", "component"),
    [("failOpen", "fail-open"), ("denyRemoval", "deny-removal"), ("mtls", "mtls")],
)
def test_components(version: str, value: str, component: str) -> None:
    """Each component is a value."""
    chart = rendered(version, f"--set={value}=true")
    assert_same(chart, site(components=(component,)))


def test_mtls_with_cert_manager(version: str) -> None:
    """Both mount files."""
    chart = rendered(version, "--set=certificates.issuer=cert-manager,mtls=true")
    assert_same(chart, site("cert-manager", components=("mtls",)))


def test_monitoring(version: str) -> None:
    """The folder monitoring; its rules contain templates of Prometheus, which Helm leaves alone."""
    chart = rendered(version, "--set=monitoring.enabled=true")
    assert_same(chart, site(resources=("monitoring",)))


@pytest.mark.parametrize("overlay", ["self-managed", "cert-manager"])
def test_another_namespace(version: str, overlay: str) -> None:
    """The release's namespace is everywhere where kustomize's transformer sets it."""
    options = (f"--set=certificates.issuer={overlay}", "--set=monitoring.enabled=true")
    chart = rendered(version, *options, namespace="elsewhere")
    assert_same(chart, site(overlay, ("monitoring",), fields="namespace: elsewhere"))


def test_a_namespace_that_looks_like_a_number(version: str) -> None:
    """It is quoted everywhere: as many texts have it as those of an ordinary namespace."""
    options = ("--set=certificates.issuer=cert-manager", "--set=monitoring.enabled=true")
    numbered, ordinary = (
        [text for text in texts(rendered(version, *options, namespace=name)) if name in text]
        for name in ("1234", "qwer")
    )
    assert len(numbered) == len(ordinary) > 20


def texts(node: Any) -> Iterator[str]:
    """Yield every string of a document, except keys."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, (dict, list)):
        for value in node.values() if isinstance(node, dict) else node:
            yield from texts(value)


def test_the_network_of_a_site(version: str) -> None:
    """The values for the API server's addresses are the patch of docs/installation.md."""
    page = (MANIFESTS.parent / "docs/installation.md").read_text(encoding="utf-8")
    _, _, block = page.partition("<!-- network -->\n```yaml\n")
    addresses = "192.0.2.10/32,192.0.2.11/32,192.0.2.12/32"
    chart = rendered(version, f"--set=networkPolicy.apiServer={{{addresses}}}")
    assert_same(chart, site(fields=block.partition("```")[0]))


def test_no_ca_bundle_is_ever_rendered(version: str) -> None:
    """Helm would own it, and overwrite the issuer's at each upgrade."""
    for issuer in ("self-managed", "cert-manager"):
        chart = rendered(version, f"--set=certificates.issuer={issuer}")
        for (kind, _, _), document in chart.items():
            if kind.endswith("WebhookConfiguration"):
                clients = [webhook["clientConfig"] for webhook in document["webhooks"]]
                assert [set(client) for client in clients] == [{"service"}]


def test_what_may_be_removed() -> None:
    """Helm keeps the definition and its roles, unless `crds.keep` is false; or has neither."""
    kept = {key for key, value in rendered(LATEST).items() if _is_kept(value)}
    assert kept == {
        ("CustomResourceDefinition", "", "fabricconfigurations.rdma.lab"),
        ("ClusterRole", "", "rdma-webhook-viewer"),
        ("ClusterRole", "", "rdma-webhook-editor"),
    }
    removable = rendered(LATEST, "--set=crds.keep=false")
    assert kept <= removable.keys()
    assert not any(map(_is_kept, removable.values()))
    assert rendered(LATEST).keys() - rendered(LATEST, "--set=crds.enabled=false").keys() == kept


def _is_kept(document: Document) -> bool:
    return _KEEP in (document["metadata"].get("annotations") or {})


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
    deployment = chart[_DEPLOYMENT]["spec"]
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
    assert template["metadata"]["labels"] == {**_ADDED, "team": "network"}
    assert template["metadata"]["annotations"] == {"a": "b"}
    assert container["args"][-1] == "--log-level=debug"
    assert container["env"][-1] == {"name": "TZ", "value": "UTC"}
    assert deployment["selector"] == {"matchLabels": {"app.kubernetes.io/name": RELEASE}}


def _file(folder: Path, values: Document) -> str:
    """Write a values file, and return the option that names it."""
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return f"--values={path}"


def test_the_tag() -> None:
    """A tag replaces the version of the chart."""
    deployment = rendered(LATEST, "--set=image.tag=1.2.3")[_DEPLOYMENT]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "rdma-webhook:1.2.3"


def test_labels_and_annotations_of_all_objects(tmp_path: Path) -> None:
    """They are added, and replace neither the chart's labels nor its annotations."""
    values = {"labels": {"team": "network"}, "annotations": {"owner": "network"}}
    values["podLabels"] = {"team": "pods"}
    chart = rendered(LATEST, _file(tmp_path, values), "--set=monitoring.enabled=true")
    for document in chart.values():
        assert labels_of(document).items() >= {**_ADDED, "team": "network"}.items()
        assert document["metadata"]["annotations"]["owner"] == "network"
    template = chart[_DEPLOYMENT]["spec"]["template"]["metadata"]
    assert template == {"labels": {**_ADDED, "team": "pods"}}
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


def test_what_is_turned_off() -> None:
    """A PodDisruptionBudget and a NetworkPolicy of the site's own may replace the chart's."""
    turned_off = "--set=podDisruptionBudget.enabled=false,networkPolicy.enabled=false"
    assert rendered(LATEST).keys() - rendered(LATEST, turned_off).keys() == {
        ("PodDisruptionBudget", RELEASE, RELEASE),
        ("NetworkPolicy", RELEASE, RELEASE),
    }


def test_values_of_traffic_and_monitoring() -> None:
    """The namespace of Prometheus, ports of the API server, and the fields of the PodMonitor."""
    monitoring = "enabled=true,namespace=prometheus,interval=15s,labels.release=stack"
    options = [f"monitoring.{option}" for option in monitoring.split(",")]
    options += ["networkPolicy.apiServerPorts={8443}", "podDisruptionBudget.maxUnavailable=2"]
    chart = rendered(LATEST, *(f"--set={option}" for option in options))
    policy = chart["NetworkPolicy", RELEASE, RELEASE]["spec"]
    ((source,),) = [rule["from"] for rule in policy["ingress"][1:2]]
    labels = source["namespaceSelector"]["matchLabels"]
    assert labels == {"kubernetes.io/metadata.name": "prometheus"}
    assert policy["egress"][0]["ports"] == [{"port": 8443, "protocol": "TCP"}]
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
        ("extraEnv[0].name=POD_NAME", "at '/extraEnv/0/name': 'not' failed"),
        ("extraArgs={debug}", "at '/extraArgs/0': 'debug' does not match pattern '^-'"),
    ],
)
def test_wrong_values(version: str, option: str, message: str) -> None:
    """The message names the value's path and what it must be."""
    assert message in refusal(version, f"--set={option}")


def test_a_values_file_of_a_chart_around_this_one(version: str) -> None:
    """Helm gives each chart in another one its global values, which may be anything."""
    assert rendered(version, "--set=global.registry=registry.example")


def test_lint(version: str) -> None:
    """Helm's own checks find nothing that matters."""
    ran = helm(version, "lint", "--strict", CHART)
    assert ran.returncode == 0, ran.stdout
    assert "[WARNING]" not in ran.stdout


def test_an_old_cluster_is_refused(version: str) -> None:
    """The chart names the oldest Kubernetes; a managed cluster's suffix is not older."""
    assert "kubeVersion: >=1.34.0-0" in refusal(version, "--kube-version=1.33.9")
    assert rendered(version, "--kube-version=v1.34.1-gke.5")
