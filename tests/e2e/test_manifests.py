"""Everything in manifests/ can be built, matches the API server's schemas, and can be applied."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.binaries import binary, module_dir
from tests.cluster.cluster import Cluster
from tests.cluster.kinds import install_kinds
from tests.e2e.openapi_schemas import LOCATION, write_schemas
from tests.e2e.renderings import MANIFESTS, elsewhere, with_namespace, wrapped
from tests.waiting import until

SHIPPED = ("overlays/self-managed", "overlays/cert-manager", "overlays/url", "monitoring", "crd")
EXAMPLES = sorted((MANIFESTS / "examples").glob("*.yaml"))
each_shipped = pytest.mark.parametrize("folder", SHIPPED)

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _list(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": _object(**properties)}


def _monitoring(kind: str, **spec: Any) -> dict[str, Any]:
    """Return a kind of Prometheus' operator with the fields that ours use.

    No Go module ships the operator's definitions.
    """
    plural, singular = f"{kind.lower()}s", kind.lower()
    schema = {"openAPIV3Schema": _object(spec=_object(**spec))}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": singular},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


POD_MONITOR = _monitoring(
    "PodMonitor",
    selector=_object(matchLabels=_TEXTS),
    namespaceSelector=_object(matchNames={"type": "array", "items": _TEXT}),
    podMetricsEndpoints=_list(
        port=_TEXT, path=_TEXT, interval=_TEXT, relabelings=_list(action=_TEXT, regex=_TEXT)
    ),
)
_RULES = _list(alert=_TEXT, expr=_TEXT, labels=_TEXTS, annotations=_TEXTS, **{"for": _TEXT})
PROMETHEUS_RULE = _monitoring("PrometheusRule", groups=_list(name=_TEXT, rules=_RULES))


@pytest.fixture(scope="module")
def foreign(cluster: Cluster) -> Iterator[Cluster]:
    """Give a cluster that knows the foreign kinds that we use, and remove them afterwards."""
    cluster.skip_if_existing("the kinds of other projects, as Go fetches them")
    files = [*(module_dir("cert-manager") / "deploy/crds").glob("cert-manager.io_*.yaml")]
    files.append(module_dir("mpi-operator") / "manifests/base/kubeflow.org_mpijobs.yaml")
    texts = (file.read_text(encoding="utf-8") for file in files)
    crds = [crd for text in texts for crd in yaml.safe_load_all(text) if crd]
    crds += [POD_MONITOR, PROMETHEUS_RULE]
    existing = cluster.kubectl("get", "crd", "--output=name").split()
    manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": crds})
    names = install_kinds(cluster, "-", manifest)
    yield cluster
    cluster.kubectl("delete", "--wait=false", *(name for name in names if name not in existing))


def build(cluster: Cluster, folder: Path) -> list[dict[str, Any]]:
    """Return what `kubectl apply -k` would apply."""
    return list(yaml.safe_load_all(cluster.kubectl("kustomize", str(folder))))


def texts(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every string of a document with its path."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from texts(value, (*path, key))
    elif isinstance(node, list):
        for place, item in enumerate(node):
            yield from texts(item, (*path, str(place)))
    elif isinstance(node, str):
        yield path, node


#: Keys whose values may be `rdma-webhook` as the name of an object, an image or a file.
NAMES = {
    *("name", "app.kubernetes.io/name", "app.kubernetes.io/part-of", "image", "serviceAccountName"),
    *("policyName", "resourceNames", "secretName", "commonName", "mountPath", "args"),
    *("message", "messageExpression", "rdma-webhook.json"),
}
#: Names that may stay: the name of our account in any namespace, names of objects together with
#: the new namespace, the names of our webhook configurations and Secret, and our field manager.
NAMED = re.compile(
    r"':rdma-webhook'|rdma-webhook\.elsewhere\.svc"
    r"|elsewhere/rdma-webhook|zz-rdma-webhook|'rdma-webhook-ca'|metadata\.name == 'rdma-webhook'"
    r"|manager\.orValue\(''\) [!=]= 'rdma-webhook'|\^rdma-webhook\[\.\]"
)


Documents = list[dict[str, Any]]


@pytest.fixture(scope="module")
def shipped(foreign: Cluster) -> dict[str, Documents]:
    """Build the shipped folders, and read the examples; return the documents by folder or file."""
    built = {folder: build(foreign, MANIFESTS / folder) for folder in SHIPPED}
    return built | {
        file.name: list(yaml.safe_load_all(file.read_text(encoding="utf-8"))) for file in EXAMPLES
    }


@pytest.fixture(scope="module")
def schemas(
    foreign: Cluster, shipped: dict[str, Documents], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Write the running API server's schemas for all these documents."""
    folder = tmp_path_factory.mktemp("schemas")
    documents = [document for documents in shipped.values() for document in documents]
    until(
        lambda: write_schemas(lambda path: foreign.kubectl("get", "--raw", path), documents, folder)
    )
    return folder


@pytest.mark.parametrize("name", [*SHIPPED, *(file.name for file in EXAMPLES)])
def test_shipped_files_are_valid(shipped: dict[str, Documents], schemas: Path, name: str) -> None:
    """Kubeconform finds no unknown or wrong field, not even in the examples."""
    assert conform(shipped[name], schemas)["invalid"] == 0


def test_a_wrong_field_is_reported(foreign: Cluster, schemas: Path) -> None:
    """The check above can fail: a misspelled field deep inside is found."""
    documents = build(foreign, MANIFESTS / "overlays/self-managed")
    (deployment,) = (document for document in documents if document["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Never"
    summary = conform(documents, schemas)
    assert (summary["invalid"], summary["valid"]) == (1, len(documents) - 1)


def conform(documents: Documents, schemas: Path) -> dict[str, int]:
    """Run kubeconform on all documents, and return its counts; none is skipped."""
    ran = subprocess.run(
        [
            *(binary("kubeconform"), "-strict", "-summary", "-output=json"),
            *("-schema-location", f"{schemas}/{LOCATION}", "-"),
        ],
        input=yaml.safe_dump_all(documents),
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(ran.stdout)
    summary: dict[str, int] = report["summary"]
    invalid = [
        resource
        for resource in report.get("resources") or []
        if resource["status"] != "statusValid"
    ]
    assert summary["skipped"] == summary["errors"] == 0, invalid
    assert summary["valid"] + summary["invalid"] == len(documents)
    return summary


@each_shipped
def test_the_api_server_takes_it(foreign: Cluster, folder: str) -> None:
    """A server-side dry run of the installation succeeds, without a warning."""
    foreign.kubectl("apply", "--filename", str(MANIFESTS / "base/namespace.yaml"))
    printed = foreign.kubectl(
        "apply", "--dry-run=server", "-k", str(MANIFESTS / folder), check=False
    ).splitlines()
    assert printed
    assert [line for line in printed if not line.endswith("(server dry run)")] == []


@pytest.mark.parametrize("folder", ["overlays/self-managed", "overlays/cert-manager"])
def test_the_namespace_has_a_single_source(cluster: Cluster, tmp_path: Path, folder: str) -> None:
    """If a site sets another namespace, the old name appears nowhere."""
    documents = build(cluster, elsewhere(folder, tmp_path))
    leftovers = [
        (document["kind"], path, text)
        for document in documents
        for path, text in texts(document)
        if "rdma-webhook" in NAMED.sub("", text) and not NAMES & set(path[-2:])
    ]
    assert leftovers == []
    spaces = {document["metadata"].get("namespace") for document in documents}
    assert spaces == {None, "elsewhere"}
    names = {(document["kind"], document["metadata"]["name"]) for document in documents}
    assert ("Namespace", "elsewhere") in names


def test_a_name_left_behind_is_detected(cluster: Cluster, tmp_path: Path) -> None:
    """The check above can fail: without the transformer the policies keep the old namespace."""
    folder = wrapped("overlays/self-managed", tmp_path)
    values = [
        text
        for document in build(cluster, folder)
        for path, text in texts(document)
        if "values" in path
    ]
    assert "rdma-webhook" in values


@pytest.mark.parametrize("how", [elsewhere, wrapped, with_namespace])
@pytest.mark.parametrize("folder", ["overlays/self-managed", "overlays/cert-manager"])
def test_the_guards_hold_in_another_namespace(
    cluster: Cluster, tmp_path: Path, how: Callable[[str, Path], Path], folder: str
) -> None:
    """However a site sets the namespace, the guards are the shipped ones, and name no namespace.

    The account has its rights there, and the API server calls the Service there.
    """
    rendered = by_name(build(cluster, how(folder, tmp_path)))
    shipped = by_name(build(cluster, MANIFESTS / folder))
    guards = {key for key in shipped if key[1].startswith("rdma-webhook-guard")}
    assert len(guards) == 10  # five policies, each with its binding
    for key in guards:
        assert rendered[key]["spec"] == shipped[key]["spec"]
        assert "namespace" not in json.dumps(rendered[key]["spec"].get("matchConditions", []))
    assert rendered["ServiceAccount", "rdma-webhook"]["metadata"]["namespace"] == "elsewhere"
    bound = [
        document["subjects"]
        for document in rendered.values()
        if document["kind"].endswith("RoleBinding")
    ]
    account = {"kind": "ServiceAccount", "name": "rdma-webhook", "namespace": "elsewhere"}
    assert bound == [[account]] * len(bound)
    for (kind, _), document in rendered.items():
        if kind.endswith("WebhookConfiguration"):
            (hook,) = document["webhooks"]
            assert hook["clientConfig"]["service"]["namespace"] == "elsewhere"


def by_name(documents: Documents) -> dict[tuple[str, str], dict[str, Any]]:
    """Return documents by kind and name."""
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def test_the_network_can_be_narrowed_to_the_api_server(cluster: Cluster, tmp_path: Path) -> None:
    """The patch of docs/installation.md bounds both directions; other traffic stays as shipped."""
    page = (MANIFESTS.parent / "docs/installation.md").read_text(encoding="utf-8")
    text = page.partition("<!-- network -->\n```yaml\n")[2].partition("```")[0]
    folder = wrapped("overlays/self-managed", tmp_path)
    file = folder / "kustomization.yaml"
    patched = {**yaml.safe_load(file.read_text(encoding="utf-8")), **yaml.safe_load(text)}
    file.write_text(yaml.safe_dump(patched), encoding="utf-8")
    (before,) = documents_of("NetworkPolicy", build(cluster, MANIFESTS / "overlays/self-managed"))
    (after,) = documents_of("NetworkPolicy", build(cluster, folder))
    addresses = [{"ipBlock": {"cidr": f"192.0.2.{number}/32"}} for number in (10, 11, 12)]
    before["metadata"]["namespace"] = "elsewhere"
    before["spec"]["ingress"][0]["from"] = before["spec"]["egress"][0]["to"] = addresses
    assert after == before
    assert [port["port"] for port in after["spec"]["ingress"][0]["ports"]] == ["https", "preview"]
    assert [port["port"] for port in after["spec"]["egress"][0]["ports"]] == [443, 6443]
    dry_run = ("apply", "--dry-run=server", "--namespace=default", "--filename=-")
    del after["metadata"]["namespace"]
    assert "(server dry run)" in cluster.kubectl(*dry_run, input=json.dumps(after))


def documents_of(kind: str, documents: Documents) -> Documents:
    """Return the documents of a kind."""
    return [document for document in documents if document["kind"] == kind]


def test_policies_have_no_namespace(cluster: Cluster, tmp_path: Path) -> None:
    """Cluster-scoped objects have no namespace, which some GitOps tools cannot handle."""
    scoped = {
        *("Namespace", "ClusterRole", "ClusterRoleBinding"),
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    }
    for folder in (MANIFESTS / "overlays/self-managed", elsewhere(SHIPPED[0], tmp_path)):
        cluster_scoped = [
            document for document in build(cluster, folder) if document["kind"] in scoped
        ]
        assert {document["kind"] for document in cluster_scoped} == scoped
        assert all("namespace" not in document["metadata"] for document in cluster_scoped)
