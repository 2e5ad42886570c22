"""The chart renders the objects that kustomize builds, with Helm 3 and with Helm 4.

A site that changes from one to the other, or compares them, gets the same installation.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from tests.integration.helm import (
    ADDED,
    LATEST,
    MANIFESTS,
    Document,
    Objects,
    each_version,
    kustomized,
    labels_of,
    rendered,
)
from tests.integration.promtool import promtool, rule_file

#: kustomize gives these kinds a namespace, which the API server ignores.
_CLUSTER_SCOPED = {"FlowSchema", "PriorityLevelConfiguration"}
_KEEP = "helm.sh/resource-policy"


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
    for label, value in ADDED.items():
        assert labels[label] == kept.get(label, value)
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


@each_version
def test_the_default_values_are_the_usual_installation(version: str) -> None:
    """The overlay self-managed, with the definition."""
    assert_same(rendered(version), site())


@each_version
def test_cert_manager(version: str) -> None:
    """The overlay cert-manager: with its certificates, without the rights to issue one."""
    chart = rendered(version, "--set=certificates.issuer=cert-manager")
    assert_same(chart, site("cert-manager"))


@pytest.mark.parametrize(
    ("value", "component"),
    [("failOpen", "fail-open"), ("denyRemoval", "deny-removal"), ("mtls", "mtls")],
)
@each_version
def test_components(version: str, value: str, component: str) -> None:
    """Each component is a value."""
    chart = rendered(version, f"--set={value}=true")
    assert_same(chart, site(components=(component,)))


@pytest.mark.parametrize("overlay", ["self-managed", "cert-manager"])
@each_version
def test_separate_previews(version: str, overlay: str) -> None:
    """A component as well, next to others, and in a namespace of another name."""
    values = f"preview.separate=true,mtls=true,certificates.issuer={overlay}"
    chart = rendered(version, f"--set={values}", namespace="elsewhere")
    components = ("mtls", "separate-preview")
    assert_same(chart, site(overlay, components=components, fields="namespace: elsewhere"))


@each_version
def test_openshift(version: str) -> None:
    """The value does what the patch on docs/compatibility.md does."""
    page = (MANIFESTS.parent / "docs/compatibility.md").read_text(encoding="utf-8")
    _, _, block = page.partition("<!-- openshift -->\n```yaml\n")
    patches, _, _ = block.partition("```")
    assert_same(rendered(version, "--set=openshift=true"), site(fields=patches))
    separate = rendered(version, "--set=openshift=true,preview.separate=true")
    assert_same(separate, site(components=("separate-preview",), fields=patches))


@each_version
def test_mtls_with_cert_manager(version: str) -> None:
    """Both mount files."""
    chart = rendered(version, "--set=certificates.issuer=cert-manager,mtls=true")
    assert_same(chart, site("cert-manager", components=("mtls",)))


@each_version
def test_monitoring(version: str) -> None:
    """The folder monitoring; its rules contain templates of Prometheus, which Helm leaves alone."""
    chart = rendered(version, "--set=monitoring.enabled=true")
    assert_same(chart, site(resources=("monitoring",)))


@each_version
def test_the_address_of_the_runbook(version: str, tmp_path: Path) -> None:
    """Alerts link to their sections there, by the value and by the fields of the page.

    The page also has a command for rules without the operator, whose file then has the same links.
    """
    page = (MANIFESTS.parent / "docs/installation.md").read_text(encoding="utf-8")
    _, _, block = page.partition("<!-- runbook -->\n```yaml\n")
    text, after = block.split("```", 1)
    fields = yaml.safe_load(text)
    assert fields.pop("components") == ["rdma-webhook/manifests/components/runbook-url"]
    address = "https://git.example/rdma-webhook/blob/main/docs/alerts.md"
    chart = rendered(version, f"--set=monitoring.enabled=true,monitoring.runbookUrl={address}")
    links_added = site(
        resources=("monitoring",), components=("runbook-url",), fields=yaml.safe_dump(fields)
    )
    assert_same(chart, links_added)
    spec = chart["PrometheusRule", "rdma-webhook", "rdma-webhook"]["spec"]
    links = links_of(spec)
    assert links == {alert: f"{address}#{alert.lower()}" for alert in links}
    assert len(links) > 15

    file = rule_file(tmp_path)
    command = after.partition("```console\n$ ")[2].partition("\n```")[0]
    subprocess.run(["sh", "-c", command.replace("alert-rules.yaml", str(file))], check=True)
    assert links_of(yaml.safe_load(file.read_text(encoding="utf-8"))) == links
    for rules in (spec, yaml.safe_load(file.read_text(encoding="utf-8"))):
        file.write_text(yaml.safe_dump(rules), encoding="utf-8")
        checked = promtool("check", "rules", file)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def links_of(spec: Document) -> dict[str, str]:
    """Return alert -> the address of its section."""
    (group,) = spec["groups"]
    return {rule["alert"]: rule["annotations"].get("runbook_url", "") for rule in group["rules"]}


@pytest.mark.parametrize("overlay", ["self-managed", "cert-manager"])
@each_version
def test_another_namespace(version: str, overlay: str) -> None:
    """The release's namespace is everywhere where kustomize's transformer sets it."""
    options = (f"--set=certificates.issuer={overlay}", "--set=monitoring.enabled=true")
    chart = rendered(version, *options, namespace="elsewhere")
    assert_same(chart, site(overlay, ("monitoring",), fields="namespace: elsewhere"))


@each_version
def test_a_namespace_that_looks_like_a_number(version: str) -> None:
    """It is quoted everywhere: as many texts have it as have an ordinary namespace."""
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


@each_version
def test_the_network_of_a_site(version: str) -> None:
    """The values for the API server's addresses are the patch of docs/installation.md."""
    page = (MANIFESTS.parent / "docs/installation.md").read_text(encoding="utf-8")
    _, _, block = page.partition("<!-- network -->\n```yaml\n")
    addresses = "192.0.2.10/32,192.0.2.11/32,192.0.2.12/32"
    patches, _, _ = block.partition("```")
    option = f"--set=networkPolicy.apiServer={{{addresses}}}"
    assert_same(rendered(version, option), site(fields=patches))
    separate = rendered(version, option, "--set=preview.separate=true")
    assert_same(separate, site(components=("separate-preview",), fields=patches))


@each_version
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
