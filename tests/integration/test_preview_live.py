"""`rdma-webhook preview --live` with an API server over HTTP; tests/e2e has a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fabrics_file import single_fabric
from tests.integration.command_desk import Desk, command_desk
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
def desk(tmp_path: Path) -> Iterator[Desk]:
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
    with command_desk(tmp_path, answers, "preview", str(pod), namespace="lab") as desk:
        yield desk


def test_without_an_option_no_request_is_made(desk: Desk) -> None:
    """A current kubeconfig does not change that, whatever the output."""
    assert desk.run().code == 0
    assert desk.run("-o", "yaml", "-c", desk.file("mine.yaml", MINE)).code == 0
    assert desk.api.asked == []


@pytest.mark.parametrize(
    "options",
    [["--live"], ["--kubeconfig", "{config}"], ["--context", "x"], ["--request-timeout", "5s"]],
    ids=lambda options: options[0],
)
def test_the_options_that_read_a_cluster(desk: Desk, options: list[str]) -> None:
    """The namespace is the context's, the fabrics are the cluster's, and the labels are known."""
    config = str(desk.folder / "config")
    answer = desk.form(*(option.replace("{config}", config) for option in options))
    (decision,) = answer["decisions"]
    assert (decision["namespace"], decision["called"]) == ("lab", True)
    assert (decision["rdma"], decision["fabric"]) == ("yes", "v100-ib")
    assert answer["example"] is False
    assert answer["notes"] == [
        ("fabrics from the cluster (fabricconfigurations.rdma.lab/default): v100-ib, a100-ib")
    ]
    assert all(
        path.startswith(("/api/v1/namespaces/", "/apis/admission", SITE, NODES))
        for path in desk.api.asked
    )
    assert len(desk.api.asked) == 6


def test_each_namespace_is_read_once(desk: Desk) -> None:
    """The number of its pods does not matter."""
    pods = desk.file("many.yaml", "---\n".join([POD] * 20))
    assert len(desk.form("--live", pods)["decisions"]) == 21
    assert len(desk.api.asked) == 6


def test_another_namespace(desk: Desk) -> None:
    """-n overrides the context's namespace."""
    (decision,) = desk.form("--live", "-n", "web")["decisions"]
    assert decision["namespace"] == "web"
    assert "/api/v1/namespaces/web" in desk.api.asked
    assert LAB not in desk.api.asked


def test_an_output_that_is_applied(desk: Desk) -> None:
    """The fabrics of the cluster are as good as a file's; notes go to standard error."""
    answer = desk.run("--live", "-o", "yaml")
    assert answer.code == 0
    assert "rdma/rdma_v100" in answer.out
    assert answer.err.startswith("rdma-webhook: note: fabrics from the cluster")


def test_fabrics_of_a_file_go_before_the_clusters(desk: Desk) -> None:
    """The object is then not read."""
    (decision,) = desk.form("--live", "-c", desk.file("mine.yaml", MINE))["decisions"]
    assert decision["fabric"] == "mine"
    assert SITE not in desk.api.asked


def test_the_clusters_fabrics_go_before_the_variables(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable's file is read only if the cluster's fabrics cannot be."""
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", str(desk.folder / "missing.yaml"))
    assert desk.form("--live")["decisions"][0]["fabric"] == "v100-ib"
    mine = desk.file("mine.yaml", MINE)
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", mine)
    del desk.api.answers[SITE]
    answer = desk.form("--live")
    assert answer["decisions"][0]["fabric"] == "mine"
    assert answer["notes"][0] == (
        "fabricconfigurations.rdma.lab/default: not read, as you lack the right to get "
        f"fabricconfigurations; using the fabrics of {mine}"
    )


def test_without_rights_and_fabrics(desk: Desk) -> None:
    """Text uses an example and states that; output to apply is refused, with the reason."""
    desk.api.answers.clear()
    answer = desk.run("--live")
    assert answer.code == 0
    assert answer.out.startswith("! EXAMPLE: ")
    text = " ".join(answer.out.split())
    assert text.count("as you lack the right to ") == 6
    refused = desk.run("--live", "-o", "diff")
    assert (refused.code, refused.out) == (2, "")
    lines = refused.err.splitlines()
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == ["note"] * 6 + ["error"]
    assert "-o diff requires your fabrics, since its output is for a cluster" in lines[-1]


def test_an_api_server_that_does_not_answer(desk: Desk) -> None:
    """One line reports it; the preview and its exit code are as without a cluster."""
    config = desk.file("gone", KUBECONFIG % 9)
    mine = desk.file("mine.yaml", MINE)
    answer = desk.run("--kubeconfig", config, "-c", mine)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.count("cannot reach the API server http://127.0.0.1:9") == 1
    assert desk.run("--kubeconfig", config, "-o", "yaml").code == 2


def test_a_cluster_without_the_webhook(desk: Desk) -> None:
    """No pod has RDMA there, so --strict exits with 1."""
    desk.api.answers[HOOKS] = {"items": []}
    answer = desk.run("--live", "--strict")
    assert answer.code == 1
    text = " ".join(answer.out.split())
    assert "the webhook would not be called: this cluster has no webhook pods.rdma.lab" in text


def test_fabrics_that_cannot_be_used(desk: Desk) -> None:
    """They are an error, like invalid fabrics of a file."""
    desk.api.answers[SITE] = {"kind": "FabricConfiguration"}
    answer = desk.run("--live")
    assert (answer.code, answer.out) == (2, "")
    assert "fabricconfigurations.rdma.lab/default: " in answer.err


def test_no_kubeconfig(desk: Desk) -> None:
    """A missing kubeconfig is wrong usage if an option names it."""
    answer = desk.run("--kubeconfig", "missing")
    assert (answer.code, answer.out) == (2, "")
    assert "the kubeconfig missing does not exist" in answer.err


def test_the_nodes_are_evidence(desk: Desk) -> None:
    """The preview doubts what the webhook would doubt: a resource that no node offers."""
    desk.api.answers[NODES] = nodes("8", "0")
    (decision,) = desk.form("--live")["decisions"]
    assert (decision["rdma"], decision["because"]["reason"]) == ("unsure", "ResourceNotOffered")


def test_nodes_that_may_not_be_read(desk: Desk) -> None:
    """A note names the right, and the decision is as without nodes."""
    del desk.api.answers[NODES]
    answer = desk.form("--live")
    assert answer["decisions"][0]["rdma"] == "yes"
    assert answer["notes"][1:] == [
        (
            "nodes: not read, as you lack the right to list nodes; the nodes' resources and "
            "fabrics remain unknown"
        )
    ]


def test_nodes_of_the_input_go_before_the_clusters(desk: Desk) -> None:
    """A Node in the input, or in --facts, replaces the cluster's node of that name."""
    (item,) = nodes("8", "0")["items"]
    file = desk.file("node.yaml", yaml.safe_dump({"apiVersion": "v1", "kind": "Node", **item}))
    assert desk.form("--live", file)["decisions"][0]["rdma"] == "unsure"
    assert desk.form("--live", "--facts", file)["decisions"][0]["rdma"] == "unsure"
    assert desk.form("--live")["decisions"][0]["rdma"] == "yes"


def test_claims_are_read_for_the_fabrics_that_are_named(desk: Desk) -> None:
    """Only fabrics with claims need them, and that of -c may be the only one."""
    claims = "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaimtemplates"
    desk.api.answers[claims] = {"metadata": {"resourceVersion": "1"}, "items": []}
    named = single_fabric("h100", "nvidia.com/h100", "rdma/h100").replace(
        "resources: [{name: rdma/h100}]", "claims: [{template: nics}]"
    )
    fabrics = desk.file("claims.yaml", named.replace("hcas: [mlx5_0]", "mode: dra"))
    (decision,) = desk.form("--live", "-c", fabrics)["decisions"]
    assert decision["because"]["reason"] == "ClaimTemplateMissing"
