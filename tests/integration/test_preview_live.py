"""`rdma-webhook preview --live` with an API server over HTTP; tests/e2e has a real one."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.integration.answers_api import AnswersApi
from tests.integration.kubeconfig import KUBECONFIG
from webhook.admission.registration import SHIPPED
from webhook.cli import main
from webhook.config import EXAMPLE

LAB = "/api/v1/namespaces/lab"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
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


class Answer(NamedTuple):
    """What the command answered."""

    code: int
    out: str
    err: str


class Desk(NamedTuple):
    """A folder with a pod and a kubeconfig, whose context names the namespace lab."""

    api: AnswersApi
    folder: Path

    def preview(self, *arguments: str) -> Answer:
        """Preview the pod."""
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(["preview", str(self.folder / "pod.yaml"), *arguments])
        return Answer(code, out.buffer.getvalue().decode(), err.getvalue())

    def form(self, *arguments: str) -> dict[str, Any]:
        """Preview the pod with -o json."""
        found: dict[str, Any] = json.loads(self.preview("-o", "json", *arguments).out)
        return found

    def file(self, name: str, text: str) -> str:
        """Write a file, and return its name."""
        (self.folder / name).write_text(text)
        return str(self.folder / name)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """Serve a cluster with the webhook and a labeled namespace; its kubeconfig is the current."""
    webhook = {**SHIPPED.webhook, "clientConfig": {"caBundle": "Q0E="}}
    configuration = {"metadata": {"name": "zz-rdma-webhook"}, "webhooks": [webhook]}
    answers = {
        HOOKS: {"items": [configuration]},
        SITE: yaml.safe_load(FABRICS),
        LAB: {"metadata": {"name": "lab", "labels": {"rdma.lab/enable": "true"}}},
        f"{LAB}/limitranges": {"items": []},
        f"{LAB}/resourcequotas": {"items": []},
    }
    with AnswersApi(answers) as api:
        text = KUBECONFIG % api.port
        config = tmp_path / "config"
        config.write_text(text.replace("user: u}", "user: u, namespace: lab}"))
        monkeypatch.setenv("KUBECONFIG", str(config))
        monkeypatch.delenv("RDMA_WEBHOOK_CONFIG", raising=False)
        monkeypatch.setenv("COLUMNS", "100")
        made = Desk(api, tmp_path)
        made.file("pod.yaml", POD)
        yield made


def test_without_an_option_nothing_is_asked(desk: Desk) -> None:
    """Not even with a current kubeconfig, whatever the output."""
    assert desk.preview().code == 0
    assert desk.preview("-o", "yaml", "-c", desk.file("mine.yaml", MINE)).code == 0
    assert desk.api.asked == []


@pytest.mark.parametrize(
    "options",
    [["--live"], ["--kubeconfig", "{config}"], ["--context", "x"], ["--request-timeout", "5s"]],
    ids=lambda options: options[0],
)
def test_the_options_that_ask_a_cluster(desk: Desk, options: list[str]) -> None:
    """The namespace is the context's, the fabrics are the cluster's, and the labels are known."""
    config = str(desk.folder / "config")
    found = desk.form(*(one.replace("{config}", config) for one in options))
    (decision,) = found["decisions"]
    assert (decision["namespace"], decision["called"]) == ("lab", True)
    assert (decision["rdma"], decision["fabric"]) == ("yes", "v100-ib")
    assert found["example"] is False
    assert found["notes"] == [
        ("fabrics: those of the cluster, fabricconfigurations.rdma.lab/default: v100-ib, a100-ib")
    ]
    assert all(
        one.startswith(("/api/v1/namespaces/", "/apis/admission", SITE)) for one in desk.api.asked
    )
    assert len(desk.api.asked) == 5


def test_each_namespace_is_read_once(desk: Desk) -> None:
    """However many pods are in it."""
    many = desk.file("many.yaml", "---\n".join([POD] * 20))
    assert len(desk.form("--live", many)["decisions"]) == 21
    assert len(desk.api.asked) == 5


def test_another_namespace(desk: Desk) -> None:
    """-n goes before the context's."""
    (decision,) = desk.form("--live", "-n", "web")["decisions"]
    assert decision["namespace"] == "web"
    assert "/api/v1/namespaces/web" in desk.api.asked
    assert LAB not in desk.api.asked


def test_an_output_that_is_applied(desk: Desk) -> None:
    """The fabrics of the cluster are as good as a file's; notes go to standard error."""
    answer = desk.preview("--live", "-o", "yaml")
    assert answer.code == 0
    assert "rdma/rdma_v100" in answer.out
    assert answer.err.startswith("rdma-webhook: note: fabrics: those of the cluster")


def test_fabrics_of_a_file_go_before_the_clusters(desk: Desk) -> None:
    """The object is then not read."""
    (decision,) = desk.form("--live", "-c", desk.file("mine.yaml", MINE))["decisions"]
    assert decision["fabric"] == "mine"
    assert SITE not in desk.api.asked


def test_the_clusters_fabrics_go_before_the_variables(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable's file is not even read, unless the cluster has none that may be read."""
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", str(desk.folder / "missing.yaml"))
    assert desk.form("--live")["decisions"][0]["fabric"] == "v100-ib"
    mine = desk.file("mine.yaml", MINE)
    monkeypatch.setenv("RDMA_WEBHOOK_CONFIG", mine)
    del desk.api.answers[SITE]
    found = desk.form("--live")
    assert found["decisions"][0]["fabric"] == "mine"
    assert found["notes"][0] == (
        "fabricconfigurations.rdma.lab/default: not read, as you lack the right to get "
        f"fabricconfigurations; used: the fabrics of {mine}"
    )


def test_without_rights_and_fabrics(desk: Desk) -> None:
    """Text is on an example and says so; what would be applied is refused, and why is told."""
    desk.api.answers.clear()
    answer = desk.preview("--live")
    assert answer.code == 0
    assert answer.out.startswith("! EXAMPLE: ")
    told = " ".join(answer.out.split())
    assert told.count("as you lack the right to ") == 5
    refused = desk.preview("--live", "-o", "diff")
    assert (refused.code, refused.out) == (2, "")
    lines = refused.err.splitlines()
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == ["note"] * 5 + ["error"]
    assert "-o diff needs your fabrics, since it is applied to a cluster" in lines[-1]


def test_an_api_server_that_does_not_answer(desk: Desk) -> None:
    """One line says so; the preview is as without it, and so is the exit code."""
    config = desk.file("gone", KUBECONFIG % 9)
    mine = desk.file("mine.yaml", MINE)
    answer = desk.preview("--kubeconfig", config, "-c", mine)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.count("cannot reach the API server http://127.0.0.1:9") == 1
    assert desk.preview("--kubeconfig", config, "-o", "yaml").code == 2


def test_a_cluster_without_the_webhook(desk: Desk) -> None:
    """No pod has RDMA there, which --strict tells by the exit code."""
    desk.api.answers[HOOKS] = {"items": []}
    answer = desk.preview("--live", "--strict")
    assert answer.code == 1
    told = " ".join(answer.out.split())
    assert "the webhook would not be called: this cluster has no webhook pods.rdma.lab" in told


def test_fabrics_that_cannot_be_used(desk: Desk) -> None:
    """They are an error, as those of a file are."""
    desk.api.answers[SITE] = {"kind": "FabricConfiguration"}
    answer = desk.preview("--live")
    assert (answer.code, answer.out) == (2, "")
    assert "fabricconfigurations.rdma.lab/default: " in answer.err


def test_no_kubeconfig(desk: Desk) -> None:
    """That is wrong usage; a cluster was asked for."""
    answer = desk.preview("--kubeconfig", "missing")
    assert (answer.code, answer.out) == (2, "")
    assert "the kubeconfig missing does not exist" in answer.err
