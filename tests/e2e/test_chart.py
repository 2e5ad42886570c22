"""The chart in a cluster, with each version of Helm: install, upgrade, roll back, uninstall.

The order matters: each test of a version starts where the one before it ends. At the end, the
installation by kustomize is restored.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

import pytest
import yaml

from tests.cluster.fabrics import OBJECT, apply_fabrics, wait_until_in_use
from tests.cluster.images import ROOT
from tests.cluster.install import (
    CONFIGURATION,
    NAME,
    OVERLAY,
    OVERLAYS,
    VALIDATION,
    Webhook,
    called,
    end_replicas,
    install,
    uncalled,
)
from tests.e2e.certs.command import certs
from tests.e2e.helm_release import CHART, Release
from tests.e2e.wire import send
from tests.waiting import until

#: Helm 3 comes second, since it finds what Helm 4 left.
VERSIONS = ("helm-4", "helm-3")


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_refused_next_to_kustomize(webhook: Webhook, version: str) -> None:
    """Before anything is written; the message says what to do."""
    webhook.cluster.skip_if_existing("Helm, which Go builds")
    release = Release(webhook.cluster, version, webhook.image)
    message = release.refusal("install", NAME, str(CHART), *release.values)
    assert (
        "rdma-webhook is installed already, without Helm: remove that installation first"
        ' (docs/installation.md, "Removing"; the fabrics stay)'
    ) in message


@pytest.fixture(scope="module")
def without(webhook: Webhook) -> Iterator[Webhook]:
    """Remove the installation by kustomize, but not its definition; restore it at the end.

    Its namespace stays, too, since the deletion of a namespace takes up to a minute.
    """
    cluster = webhook.cluster
    cluster.skip_if_existing("Helm, which Go builds")
    cluster.kubectl("delete", CONFIGURATION, VALIDATION)
    uncalled(cluster)
    end_replicas(cluster)
    built = yaml.safe_load_all(cluster.kubectl("kustomize", str(OVERLAYS / OVERLAY)))
    objects = [document for document in built if document["kind"] != "Namespace"]
    delete = ("delete", "--ignore-not-found", "--filename=-")
    cluster.kubectl(*delete, input=yaml.safe_dump_all(objects))
    yield webhook
    webhook.kubectl("delete", "secret/rdma-webhook-ca", "--ignore-not-found")
    install(cluster)


@pytest.fixture(scope="module", params=VERSIONS)
def release(without: Webhook, request: pytest.FixtureRequest) -> Iterator[Release]:
    """Install the chart as docs/helm.md does.

    The first release takes over the definition that kubectl applied.
    """
    release = Release(without.cluster, request.param, without.image)
    over = ("--take-ownership",) if request.param == VERSIONS[0] else ()
    command = ("install", NAME, str(CHART), "--create-namespace", "--wait")
    release.helm(*command, *over, *release.values)
    yield release
    release.helm("uninstall", NAME, "--ignore-not-found")


def test_it_works(release: Release, webhook: Webhook) -> None:
    """Pods are equipped, with the fabrics that stayed."""
    text = webhook.fabrics.read_text(encoding="utf-8")
    wait_until_in_use(webhook, apply_fabrics(release.cluster, text))
    called(release.cluster)


def test_helm_test(release: Release) -> None:
    """A pod that opts in is decided on, in a dry run; afterwards nothing of the test is left."""
    release.helm("test", NAME)
    get = ("get", "namespace/rdma-webhook-test", "--ignore-not-found")
    assert release.cluster.kubectl(*get) == ""


def test_the_account_of_helm_test_may_only_try(release: Release) -> None:
    """What an interrupted test leaves behind creates a pod only as a dry run."""
    name, cluster = "rdma-webhook-test", release.cluster
    show = "--show-only=templates/tests/dry-run.yaml"
    rendered = yaml.safe_load_all(release.helm("template", NAME, str(CHART), show, *release.values))
    objects = yaml.safe_dump_all(document for document in rendered if document["kind"] != "Pod")
    cluster.kubectl("apply", "--filename=-", input=objects)
    privileged = {"securityContext": {"privileged": True}}
    containers = [{"name": "a", "image": "example.com/none", **privileged}]
    gates = [{"name": "example.com/never"}]  # a pod without a node is deleted at once
    spec = {"containers": containers, "schedulingGates": gates}
    pod = {"metadata": {"generateName": "a-"}, "spec": spec}
    path = f"/api/v1/namespaces/{name}/pods"
    user = f"system:serviceaccount:{NAME}:{name}"

    def is_refused() -> bool:
        response = send(cluster, "POST", path, pod, user=user)
        return "may create pods only as a dry run" in response.refusal

    try:
        until(is_refused)
        tried = send(cluster, "POST", f"{path}?dryRun=All", pod, user=user)
        assert tried.code == HTTPStatus.CREATED, tried.refusal
    finally:
        cluster.kubectl("delete", "--wait", "--filename=-", input=objects)


def test_a_new_ca(release: Release) -> None:
    """The API server trusts two CAs from here on; the second release finds both in the Secret."""
    before = release.written().bundles
    if len(before[0]) == 1:
        assert certs("rotate", "--kubeconfig", str(release.cluster.kubeconfig))[0] == 0
    until(lambda: set(map(len, release.written().bundles)) == {2})


def test_upgrades_and_rollbacks_keep_what_replicas_wrote(release: Release) -> None:
    """Helm renders no caBundle, and changes only what a value changes."""
    before, keys = release.written(), release.private_keys()
    release.helm("upgrade", NAME, str(CHART), "--reset-then-reuse-values", "--set=failOpen=true")
    assert (release.failure_policy(), release.written()) == ("Ignore", before)
    release.helm("rollback", NAME, "1")
    assert (release.failure_policy(), release.written()) == ("Fail", before)
    assert frozenset() < release.private_keys() <= keys
    called(release.cluster)


@pytest.mark.parametrize("manager", ["argocd-controller", "kustomize-controller"])
def test_gitops_sees_no_drift(release: Release, manager: str) -> None:
    """Argo CD and Flux, once they own the objects, apply them without conflicts or differences."""
    before, keys, objects = release.written(), release.private_keys(), release.rendered()
    options = ("--server-side", f"--field-manager={manager}", "--filename=-")
    release.cluster.kubectl("apply", "--force-conflicts", *options, input=objects)
    release.cluster.kubectl("apply", *options, input=objects)
    assert release.cluster.kubectl("diff", *options, input=objects) == ""
    assert release.written() == before
    assert frozenset() < release.private_keys() <= keys


def test_a_second_release_is_refused(release: Release) -> None:
    """The message names the first one, and the command that removes it."""
    message = release.refusal("install", "second", str(CHART), namespace="elsewhere")
    page = (ROOT / "docs" / "helm.md").read_text(encoding="utf-8")
    _, _, block = page.partition("## A second installation")
    quoted = block.partition("```text\n")[2].partition("```")[0]
    assert " ".join(quoted.split()) in message


def test_uninstalling(release: Release) -> None:
    """Only the definition, its roles, the fabrics and the CA are left, as the page says."""
    page = (ROOT / "docs" / "helm.md").read_text(encoding="utf-8")
    block = page.partition("## Uninstalling\n\n```console\n")[2].partition("```")[0]
    delete, uninstall, _ = (line.split()[2:] for line in block.splitlines())
    cluster, objects = release.cluster, release.rendered()
    cluster.kubectl(*delete)
    uncalled(cluster)
    end_replicas(cluster)  # which otherwise drain for a minute
    release.helm(*(word for word in uninstall if word not in ("--namespace", NAME)), NAME)
    get = ("get", "--ignore-not-found", "--output=name")
    assert set(cluster.kubectl(*get, "--filename=-", input=objects).split()) == {
        "customresourcedefinition.apiextensions.k8s.io/fabricconfigurations.rdma.lab",
        "clusterrole.rbac.authorization.k8s.io/rdma-webhook-viewer",
        "clusterrole.rbac.authorization.k8s.io/rdma-webhook-editor",
    }
    secrets = cluster.kubectl(f"--namespace={NAME}", "get", "secrets", "--output=name")
    assert secrets == "secret/rdma-webhook-ca\n"
    assert cluster.kubectl("get", OBJECT)
