"""The facts that a preview reads: with all rights, with few, in a pod, and through kubectl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.binaries import binary
from tests.cluster.existing import ExistingCluster
from tests.cluster.install import Webhook
from tests.command_line import Answer, run_command
from tests.e2e.documents import ENABLE, Document
from tests.e2e.installed.identity import allow, kubeconfig_of
from tests.e2e.installed.space import Space
from tests.waiting import until

V100 = "nvidia.com/v100"
#: The rights with which a preview reads all facts of a namespace.
NAMESPACE_RIGHTS = (("get", "namespaces"), ("list", "limitranges"), ("list", "resourcequotas"))
LIMITS: Document = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "site-limits"},
    "spec": {"limits": [{"type": "Container", "max": {"memory": "512Gi"}}]},
}


@pytest.fixture(scope="module")
def pod(space: Space, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a pod that names no namespace, and let a LimitRange require a memory limit of it."""
    space.kubectl("create", "--filename=-", input=json.dumps(LIMITS))
    document = space.pod("train", V100)
    del document["metadata"]["namespace"]
    file = tmp_path_factory.mktemp("manifests") / "pod.json"
    file.write_text(json.dumps(document))
    return file


@pytest.fixture(scope="module")
def researcher(space: Space, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the kubeconfig of an account that may read the facts of its own namespace."""
    file = kubeconfig_of(space, "researcher", tmp_path_factory.mktemp("researcher"))
    for verb, resource in NAMESPACE_RIGHTS:
        allow(space, "researcher", verb, resource)
    return file


@pytest.fixture(scope="module")
def nobody(space: Space, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the kubeconfig of an account without any right."""
    return kubeconfig_of(space, "nobody", tmp_path_factory.mktemp("nobody"))


def preview(*arguments: str | Path) -> Answer:
    """Run the command, and join the lines of its output, which are as wide as the terminal."""
    answer = run_command("preview", *arguments)
    return answer._replace(out=" ".join(answer.out.split()))


def form(*arguments: str | Path) -> Document:
    """Run the command with -o json."""
    return run_command("preview", "-o", "json", *arguments).form


def lacking(notes: list[str]) -> list[str]:
    """Return the rights that were lacking."""
    words = "as you lack the right to "
    return [note.partition(words)[2].partition(";")[0] for note in notes if words in note]


def test_with_all_rights(space: Space, pod: Path) -> None:
    """The verdict needs no file: labels, LimitRange, registration and fabrics are the cluster's."""
    access = ("--kubeconfig", space.cluster.kubeconfig, "-n", space.name)
    report = form(*access, pod)
    (decision,) = report["decisions"]
    assert (decision["called"], decision["rdma"], decision["fabric"]) == (True, "yes", "v100-ib")
    memory_limits = [
        outcome for outcome in decision["outcomes"] if outcome["mutation"] == "memory-limit"
    ]
    assert "LimitRange site-limits sets max.memory" in memory_limits[0]["message"]
    assert report["example"] is False
    assert report["notes"] == [
        ("fabrics from the cluster (fabricconfigurations.rdma.lab/default): v100-ib, a100-ib")
    ]
    answer = preview(*access, "-o", "yaml", pod)
    assert answer.code == 0
    assert "rdma/rdma_v100" in answer.out


def test_the_live_pod_matches_the_preview(space: Space, pod: Path) -> None:
    """The pod in the API server would have the resources and variables of the preview."""
    (decision,) = form("--kubeconfig", space.cluster.kubeconfig, "-n", space.name, pod)["decisions"]
    stored = space.proposed(space.pod("train", V100))
    (before,), (after,) = (
        document["spec"]["containers"] for document in (decision["object"], stored)
    )
    assert before["env"] == after["env"]
    assert before["securityContext"] == after["securityContext"]
    assert before["resources"]["limits"] == after["resources"]["limits"]


def test_a_namespace_without_the_label(space: Space, pod: Path) -> None:
    """The webhook is not called there, and --strict reports it by its exit code."""
    answer = preview("--kubeconfig", space.cluster.kubeconfig, "-n", "default", "--strict", pod)
    assert answer.code == 1
    assert (
        "the webhook would not be called, since namespace default lacks the label rdma.lab/enable"
        in answer.out
    )


def test_with_the_rights_of_a_namespace(
    webhook: Webhook, space: Space, pod: Path, researcher: Path
) -> None:
    """The namespace counts; cluster-wide facts are lacking, with a note; -c has the fabrics."""
    report = form("--kubeconfig", researcher, "-c", webhook.fabrics, pod)
    (decision,) = report["decisions"]
    assert decision["namespace"] == space.name
    assert (decision["called"], decision["rdma"]) == (True, "yes")
    assert "LimitRange site-limits sets max.memory" in json.dumps(decision["outcomes"])
    assert lacking(report["notes"]) == ["list mutatingwebhookconfigurations", "list nodes"]
    report = form("--kubeconfig", researcher, pod)
    assert report["example"] is True
    assert lacking(report["notes"]) == [
        "list mutatingwebhookconfigurations",
        "get fabricconfigurations",
        "list nodes",
    ]


def test_with_no_right(webhook: Webhook, pod: Path, nobody: Path) -> None:
    """Each missing right has a line, with what is assumed instead; the exit code is 0."""
    answer = preview("--kubeconfig", nobody, "-c", webhook.fabrics, pod)
    assert (answer.code, answer.err) == (0, "")
    assert "equipped for RDMA over v100-ib" in answer.out
    assert "is assumed to have the label" in answer.out
    for verb, resource in (*NAMESPACE_RIGHTS, ("list", "mutatingwebhookconfigurations")):
        assert f"as you lack the right to {verb} {resource}; assumed to " in answer.out
    assert "as you lack the right to list nodes; the nodes' resources and fabrics" in answer.out
    refused = preview("--kubeconfig", nobody, "-o", "yaml", pod)
    assert (refused.code, refused.out) == (2, "")
    lacking_right = "as you lack the right to get fabricconfigurations"
    assert f"{lacking_right}; using example fabrics" in refused.err


def test_an_invalid_token(space: Space, pod: Path, tmp_path: Path) -> None:
    """One line reports it, and nothing more is requested."""
    config = space.cluster.kubectl("config", "view", "--minify", "--output=json")
    url = json.loads(config)["clusters"][0]["cluster"]["server"]
    access = ("--kubeconfig", tmp_path / "none", "--server", url, "--insecure-skip-tls-verify")
    answer = preview(*access, "--token", "hunter2", pod)
    assert answer.code == 0
    assert answer.out.count("answered 401: Unauthorized; everything else is treated") == 1


def in_pod(webhook: Webhook, space: Space, name: str, *arguments: str) -> str:
    """Run the command in a pod, by the account `insider`, and return its output."""
    mount = {"name": "manifests", "mountPath": "/manifests"}
    container = {
        "name": "main",
        "image": webhook.image,
        "args": list(arguments),
        "resources": {"limits": {"memory": "256Mi"}},
    }
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "serviceAccountName": "insider",
            "restartPolicy": "Never",
            "containers": [{**container, "volumeMounts": [mount]}],
            "volumes": [{"name": "manifests", "configMap": {"name": "manifests"}}],
        },
    }
    space.create(document)
    phases = ("Succeeded", "Failed")
    until(lambda: space.get(name).get("status", {}).get("phase") in phases)
    return " ".join(space.kubectl("logs", name).split())


def test_in_a_pod(webhook: Webhook, space: Space, pod: Path) -> None:
    """Without a kubeconfig, its service account and namespace are used, by both commands."""
    space.kubectl("create", "serviceaccount", "insider")
    for verb, resource in (*NAMESPACE_RIGHTS, ("get", "pods")):
        allow(space, "insider", verb, resource)
    space.kubectl("create", "configmap", "manifests", f"--from-file=pod.json={pod}")
    printed = in_pod(webhook, space, "previewing", "preview", "--live", "/manifests/pod.json")
    assert f"Pod {space.name}/train" in printed
    assert "equipped for RDMA over v100-ib" in printed
    assert "kept, since LimitRange site-limits sets max.memory" in printed
    printed = in_pod(webhook, space, "asking", "why", "previewing")
    assert f"Pod {space.name}/previewing" in printed
    assert f"the pod has no annotation {ENABLE}" in printed


def kubectl(space: Space, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real kubectl, which finds this project's plugin on the PATH."""
    existing = isinstance(space.cluster, ExistingCluster)
    program = shutil.which("kubectl") if existing else binary("kubectl", space.cluster.minor)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return subprocess.run(
        [str(program), *arguments],
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("words", "offered", "directive"),
    [
        (["pre"], ["preview"], 4),
        (["preview", "--li"], ["--live"], 4),
        (["preview", "-o", "y"], ["yaml"], 4),
        (["preview", ""], [], 0),
        (["certs", "ro"], ["rotate"], 4),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_completion(space: Space, words: list[str], offered: list[str], directive: int) -> None:
    """The real kubectl finds kubectl_complete-rdma, and takes its answer."""
    answer = kubectl(space, "__complete", "rdma", *words)
    assert answer.returncode == 0
    *lines, last = answer.stdout.splitlines()
    assert [line.partition("\t")[0] for line in lines] == offered
    assert last == f":{directive}"


def test_options_of_kubectl(space: Space, pod: Path, nobody: Path) -> None:
    """They follow the plugin's name: a kubeconfig, a context, a namespace, another user."""
    assert nobody.is_file()  # made, so that the account is there
    access = (f"--kubeconfig={space.cluster.kubeconfig}", f"--namespace={space.name}")
    answer = kubectl(space, "rdma", "preview", str(pod), *access)
    assert answer.returncode == 0, answer.stderr
    assert "equipped for RDMA over v100-ib" in answer.stdout
    account = f"system:serviceaccount:{space.name}:nobody"
    answer = kubectl(space, "rdma", "preview", str(pod), *access, "--as", account)
    assert "as you lack the right to get namespaces" in " ".join(answer.stdout.split())
    answer = kubectl(space, "rdma", "why", "missing", *access)
    assert f"there is no pod missing in namespace {space.name}" in answer.stderr
    answer = kubectl(space, "rdma", "why", "missing", f"--kubeconfig={nobody}", "--context=c")
    refused = f"you do not have the right to read pod missing in namespace {space.name}"
    assert refused in answer.stderr
