"""`rdma-webhook preview --live` with an API server over HTTP; tests/e2e has a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fabrics_file import single_fabric
from tests.integration.command_runner import CommandRunner, command_runner
from tests.integration.kubeconfig import KUBECONFIG
from webhook.admission.registration import SHIPPED
from webhook.config import EXAMPLE

LAB = "/api/v1/namespaces/lab"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
NODES = "/api/v1/nodes"
SITE = "/apis/rdma.lab/v1alpha1/fabricconfigurations/default"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train, annotations: {rdma.lab/enable: "true"}}
spec:
  containers:
  - name: main
    resources: {limits: {nvidia.com/h100: 8}}
"""
#: The site's fabrics, whose GPUs no example has.
FABRICS = EXAMPLE.read_text().replace("nvidia.com/v100", "nvidia.com/h100")
MINE = FABRICS.replace("v100-ib", "mine")


def nodes(gpus: str, rdma: str = "63") -> dict[str, Any]:
    """List one node of the first fabric, with these amounts of GPUs and RDMA resources."""
    labels = {"nvidia.com/gpu.product": "Tesla-V100-SXM2"}
    offered = {"nvidia.com/h100": gpus, "rdma/rdma_v100": rdma}
    item = {"metadata": {"name": "n1", "labels": labels}, "status": {"allocatable": offered}}
    return {"metadata": {"resourceVersion": "1"}, "items": [item]}


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[CommandRunner]:
    """Serve a cluster with the webhook, a labeled namespace and a node; its context is current."""
    webhook = {**SHIPPED.webhook, "clientConfig": {"caBundle": "Q0E="}}
    configuration = {"metadata": {"name": "zz-rdma-webhook"}, "webhooks": [webhook]}
    answers = {
        HOOKS: {"items": [configuration]},
        SITE: yaml.safe_load(FABRICS),
        LAB: {"metadata": {"name": "lab", "labels": {"rdma.lab/enable": "true"}}},
        f"{LAB}/limitranges": {"items": []},
        f"{LAB}/resourcequotas": {"items": []},
        NODES: nodes("8"),
    }
    pod = tmp_path / "pod.yaml"
    pod.write_text(POD)
    with command_runner(tmp_path, answers, "preview", str(pod), namespace="lab") as runner:
        yield runner


def test_without_an_option_no_request_is_made(runner: CommandRunner) -> None:
    """A current kubeconfig does not change that, whatever the output."""
    assert runner.run().code == 0
    assert runner.run("-o", "yaml", "-c", runner.file("mine.yaml", MINE)).code == 0
    assert runner.api.asked == []


@pytest.mark.parametrize(
    "options",
    [["--live"], ["--kubeconfig", "{config}"], ["--context", "x"], ["--request-timeout", "5s"]],
    ids=lambda options: options[0],
)
def test_the_options_that_read_a_cluster(runner: CommandRunner, options: list[str]) -> None:
    """The namespace is the context's, the fabrics are the cluster's, and the labels are known."""
    config = str(runner.folder / "config")
    answer = runner.form(*(option.replace("{config}", config) for option in options))
    (decision,) = answer["decisions"]
    assert (decision["namespace"], decision["called"]) == ("lab", True)
    assert (decision["rdma"], decision["fabric"]) == ("yes", "v100-ib")
    assert answer["example"] is False
    assert answer["notes"] == [
        ("fabrics from the cluster (fabricconfigurations.rdma.lab/default): v100-ib, a100-ib")
    ]
    assert all(
        path.startswith(("/api/v1/namespaces/", "/apis/admission", SITE, NODES))
        for path in runner.api.asked
    )
    assert len(runner.api.asked) == 6


def test_each_namespace_is_read_once(runner: CommandRunner) -> None:
    """The number of its pods does not matter."""
    pods = runner.file("many.yaml", "---\n".join([POD] * 20))
    assert len(runner.form("--live", pods)["decisions"]) == 21
    assert len(runner.api.asked) == 6


def test_another_namespace(runner: CommandRunner) -> None:
    """-n overrides the context's namespace."""
    (decision,) = runner.form("--live", "-n", "web")["decisions"]
    assert decision["namespace"] == "web"
    assert "/api/v1/namespaces/web" in runner.api.asked
    assert LAB not in runner.api.asked


def test_an_output_that_is_applied(runner: CommandRunner) -> None:
    """The fabrics of the cluster are as good as a file's; notes go to standard error."""
    answer = runner.run("--live", "-o", "yaml")
    assert answer.code == 0
    assert "rdma/rdma_v100" in answer.out
    assert answer.err.startswith("rdma-webhook: note: fabrics from the cluster")


def test_fabrics_of_a_file_go_before_the_clusters(runner: CommandRunner) -> None:
    """The object is then not read."""
    (decision,) = runner.form("--live", "-c", runner.file("mine.yaml", MINE))["decisions"]
    assert decision["fabric"] == "mine"
    assert SITE not in runner.api.asked


def test_the_clusters_fabrics_go_before_the_variables(
    runner: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable's file is read only if the cluster's fabrics cannot be."""
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", str(runner.folder / "missing.yaml"))
    assert runner.form("--live")["decisions"][0]["fabric"] == "v100-ib"
    mine = runner.file("mine.yaml", MINE)
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", mine)
    del runner.api.answers[SITE]
    answer = runner.form("--live")
    assert answer["decisions"][0]["fabric"] == "mine"
    assert answer["notes"][0] == (
        "fabricconfigurations.rdma.lab/default: not read, as you lack the right to get "
        f"fabricconfigurations; using the fabrics of {mine}"
    )


def test_without_rights_and_fabrics(runner: CommandRunner) -> None:
    """Text uses an example and states that; output to apply is refused, with the reason."""
    runner.api.answers.clear()
    answer = runner.run("--live")
    assert answer.code == 0
    assert answer.out.startswith("! EXAMPLE: ")
    text = " ".join(answer.out.split())
    assert text.count("as you lack the right to ") == 6
    refused = runner.run("--live", "-o", "diff")
    assert (refused.code, refused.out) == (2, "")
    lines = refused.err.splitlines()
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == ["note"] * 6 + ["error"]
    assert "-o diff requires your fabrics, since its output is for a cluster" in lines[-1]


def test_an_api_server_that_does_not_answer(runner: CommandRunner) -> None:
    """One line reports it; the preview and its exit code are as without a cluster."""
    config = runner.file("gone", KUBECONFIG % 9)
    mine = runner.file("mine.yaml", MINE)
    answer = runner.run("--kubeconfig", config, "-c", mine)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.count("cannot reach the API server http://127.0.0.1:9") == 1
    assert runner.run("--kubeconfig", config, "-o", "yaml").code == 2


def test_a_cluster_without_the_webhook(runner: CommandRunner) -> None:
    """No pod has RDMA there, so --strict exits with 1."""
    runner.api.answers[HOOKS] = {"items": []}
    answer = runner.run("--live", "--strict")
    assert answer.code == 1
    text = " ".join(answer.out.split())
    assert (
        "the webhook would not be called, since this cluster has no webhook pods.rdma.lab" in text
    )


def test_fabrics_that_cannot_be_used(runner: CommandRunner) -> None:
    """They are an error, like invalid fabrics of a file."""
    runner.api.answers[SITE] = {"kind": "FabricConfiguration"}
    answer = runner.run("--live")
    assert (answer.code, answer.out) == (2, "")
    assert "fabricconfigurations.rdma.lab/default: " in answer.err


def test_no_kubeconfig(runner: CommandRunner) -> None:
    """A missing kubeconfig is wrong usage if an option names it."""
    answer = runner.run("--kubeconfig", "missing")
    assert (answer.code, answer.out) == (2, "")
    assert "the kubeconfig missing does not exist" in answer.err


def test_the_nodes_are_evidence(runner: CommandRunner) -> None:
    """The preview doubts what the webhook would doubt: a resource that no node offers."""
    runner.api.answers[NODES] = nodes("8", "0")
    (decision,) = runner.form("--live")["decisions"]
    assert (decision["rdma"], decision["because"]["reason"]) == ("unsure", "ResourceNotOffered")


def test_nodes_that_may_not_be_read(runner: CommandRunner) -> None:
    """A note names the right, and the decision is as without nodes."""
    del runner.api.answers[NODES]
    answer = runner.form("--live")
    assert answer["decisions"][0]["rdma"] == "yes"
    assert answer["notes"][1:] == [
        (
            "nodes: not read, as you lack the right to list nodes; the nodes' resources and "
            "fabrics remain unknown"
        )
    ]


def test_nodes_of_the_input_go_before_the_clusters(runner: CommandRunner) -> None:
    """A Node in the input, or in --facts, replaces the cluster's node of that name."""
    (item,) = nodes("8", "0")["items"]
    file = runner.file("node.yaml", yaml.safe_dump({"apiVersion": "v1", "kind": "Node", **item}))
    assert runner.form("--live", file)["decisions"][0]["rdma"] == "unsure"
    assert runner.form("--live", "--facts", file)["decisions"][0]["rdma"] == "unsure"
    assert runner.form("--live")["decisions"][0]["rdma"] == "yes"


def test_claims_are_read_for_the_fabrics_that_are_named(runner: CommandRunner) -> None:
    """Only fabrics with claims need them, and that of -c may be the only one."""
    claims = "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaimtemplates"
    runner.api.answers[claims] = {"metadata": {"resourceVersion": "1"}, "items": []}
    named = single_fabric("h100", "nvidia.com/h100", "rdma/h100").replace(
        "resources: [{name: rdma/h100}]", "claims: [{template: nics}]"
    )
    fabrics = runner.file("claims.yaml", named.replace("hcas: [mlx5_0]", "mode: dra"))
    (decision,) = runner.form("--live", "-c", fabrics)["decisions"]
    assert decision["because"]["reason"] == "ClaimTemplateMissing"
