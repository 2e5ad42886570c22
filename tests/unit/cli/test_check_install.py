"""`check-install` reads a cluster, and its certificates as `certs` inspects them."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Answer, run_command
from tests.unit.diagnose.install.installation import Installation
from webhook.errors import ClusterError
from webhook.kube.access import Overrides

SECRET = "/api/v1/namespaces/rdma-webhook/secrets/rdma-webhook-ca"


class Client(Installation):
    """An installation behind the client of the command, whose version its replicas have."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[Path | None] = []
        self.failure = ""

    def connect(self, kubeconfig: Path | None, _overrides: Overrides) -> Client:
        """Record the kubeconfig."""
        self.given.append(kubeconfig)
        return self

    def read(self, path: str) -> dict[str, Any] | None:
        """Return an object as `certs` reads it."""
        status, answer = self.send("GET", path.partition("?")[0])
        if status not in (200, 404):
            raise ClusterError(f"the API server answered {status}: no")
        return answer if status == 200 else None

    def create(self, *_: object) -> bool:
        """Refuse: the command only reads."""
        raise AssertionError

    replace = apply = create

    def send(self, *request: Any, **options: Any) -> tuple[int, dict[str, Any]]:
        """Answer, or fail."""
        if self.failure:
            raise ClusterError(self.failure)
        return super().send(*request, **options)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    """Return the installation that the command connects to."""
    client = Client()
    monkeypatch.setattr("webhook.kube.client.Client", client.connect)
    return client


@pytest.fixture
def address() -> str:
    """Return an address of this machine that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def run(address: str, *words: str) -> Answer:
    """Run the command."""
    return run_command("check-install", "--kubeconfig", "config", "--address", address, *words)


def certificates(answer: Answer) -> list[tuple[str, str, str]]:
    """Return level, code and text of the findings on certificates."""
    parts = {part["part"]: part["findings"] for part in answer.form["parts"]}
    return [(form["level"], form["code"], form["text"]) for form in parts["certificates"]]


def test_a_ca_that_does_not_exist(client: Client, address: str) -> None:
    """The Secret is an error, and a refused connection is not checked; exit code 1."""
    answer = run(address, "-o", "json")
    assert (answer.code, answer.err) == (1, "")
    assert client.given == [Path("config")]
    assert answer.form["passed"] is False
    findings = certificates(answer)
    assert findings[0] == (
        "error",
        "CaSecretUnusable",
        "there is no CA in Secret rdma-webhook/rdma-webhook-ca",
    ), findings
    assert [code for _, code, _ in findings[1:]] == ["OtherCaBundle"] * 2, findings


def test_a_secret_that_may_not_be_read(client: Client, address: str) -> None:
    """The handshakes are tried all the same; exit code 0, as nothing is known to be wrong."""
    client.refused[SECRET] = 403
    answer = run(address, "-o", "json")
    assert answer.code == 0, answer
    assert answer.form["level"] == "unsure"
    refused = "cannot connect: Connection refused"
    assert certificates(answer) == [
        (
            "unsure",
            "NotChecked",
            "the Secret with the CA: not checked, since the API server answered 403: no",
        ),
        ("unsure", "NotChecked", f"{address}: the certificate was not checked ({refused})"),
    ]
    assert run(address, "--strict").code == 1


def test_webhook_configurations_that_may_not_be_read(client: Client, address: str) -> None:
    """Then no handshake can be made either."""
    client.refuse("MutatingWebhookConfiguration", "zz-rdma-webhook")
    findings = certificates(run(address, "-o", "json"))
    assert findings[-1][:2] == ("unsure", "NotChecked")
    assert findings[-1][2].startswith("the served certificates: not checked, since ")


def test_certificates_in_files(client: Client, address: str) -> None:
    """The Secret is not read, and nothing is said about it."""
    deployment = client["Deployment", "rdma-webhook"]
    deployment["spec"]["template"]["spec"]["containers"][0]["args"].append("--tls-cert=/tls.crt")
    client.refused[SECRET] = 403
    (finding,) = certificates(run(address, "-o", "json"))
    assert finding[2].startswith(f"{address}: the certificate was not checked")


def test_text(client: Client, address: str) -> None:
    """The default output is text, with the counts in the last line."""
    client.refused[SECRET] = 403
    answer = run(address, "--try", "lab")
    assert answer.out.startswith("Objects\n  ✔ CustomResourceDefinition ")
    assert answer.out.splitlines()[-1].startswith("? ")
    assert "Dry run\n  ✔ a pod that opts in is patched in namespace lab" in answer.out
    assert [path for path, _ in client.created] == ["/api/v1/namespaces/lab/pods"] * 2


def test_no_answer(client: Client, address: str) -> None:
    """An unreachable API server is no finding; exit code 2."""
    client.failure = "cannot reach the API server"
    expected = (2, "", "rdma-webhook: error: cannot reach the API server\n")
    assert run(address) == expected


def test_the_schema() -> None:
    """`schema check-install` prints it."""
    schema = json.loads(run_command("schema", "check-install").out)
    assert schema["title"] == "The output of rdma-webhook check-install -o json"
