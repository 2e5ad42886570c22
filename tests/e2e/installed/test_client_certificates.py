"""With components/mtls only API servers get answers; other clients of the port learn nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.install import NAME, Webhook, end_replicas, install
from tests.cluster.node import NAME as REAL
from tests.cluster.pki import Authority
from tests.e2e.certs.command import certs
from tests.e2e.documents import Document, ask
from tests.e2e.installed.space import Space
from tests.faults.replicas import settled
from tests.waiting import until

SERVICE = f"{NAME}.{NAME}.svc"
#: How Python and the API server report the end of a connection.
ENDS = ("SSLEOFError", "RemoteDisconnected", "ConnectionResetError", "EOF", "reset by peer")
#: Calls the Service as any program in a pod can, without verifying the server.
ASK = """
import http.client, json, ssl, sys
given = json.load(sys.stdin)
context = ssl._create_unverified_context()
if given["pair"]:
    with open("/tmp/pair.pem", "w") as file:
        file.write(given["pair"])
    context.load_cert_chain("/tmp/pair.pem")
connection = http.client.HTTPSConnection(given["host"], 443, context=context, timeout=60)
try:
    connection.request("POST", "/mutate", given["review"], {"Content-Type": "application/json"})
    answer = connection.getresponse()
    print(answer.status, answer.read().decode())
except (OSError, http.client.HTTPException) as error:
    print("no answer:", repr(error))
"""


@pytest.fixture(scope="module")
def api_server(webhook: Webhook) -> Iterator[Path]:
    """Return the folder with the API server's client certificate, and restore it afterwards."""
    folder = webhook.cluster.directory / "pki" / "webhooks"
    files = {file: file.read_bytes() for file in folder.iterdir()}
    yield folder
    for file, content in files.items():
        file.write_bytes(content)


@pytest.fixture(scope="module")
def closed(webhook: Webhook, api_server: Path) -> Iterator[Webhook]:
    """Install with the component, as docs/installation.md shows, and without it afterwards."""
    _admit(webhook, (api_server / "ca.crt").read_text())
    _replace(webhook, "mtls")
    yield webhook
    _replace(webhook)
    webhook.kubectl("delete", "configmap", f"{NAME}-client-ca")


def _admit(webhook: Webhook, authorities: str) -> None:
    metadata = {"name": f"{NAME}-client-ca", "namespace": NAME}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    text = json.dumps({**config_map, "data": {"ca.crt": authorities}})
    webhook.kubectl("apply", "--filename=-", input=text)


def _replace(webhook: Webhook, *components: str) -> None:
    """Replace the installation; there are no calls, so nothing has to wait for a drain."""
    end_replicas(webhook.cluster)
    install(webhook.cluster, webhook.fabrics, components=components)


@pytest.fixture(scope="module")
def stranger(space: Space) -> Iterator[str]:
    """Run a pod that has not opted in; return its name."""
    space.create(space.pod("stranger", annotations={}, nodeName=REAL))
    space.wait_until_started("stranger")
    yield "stranger"
    space.delete("stranger")


def _answer(space: Space, pod: str, pair: str) -> str:
    """Return the answer to a program in the pod that asks about a namespace.

    Ask again if the name was not resolved: on a busy machine, DNS may take longer than the pod
    waits for it.
    """
    request = {
        "uid": "0",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "kube-system",
        "object": space.pod("asked", "nvidia.com/v100"),
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    given = {"host": SERVICE, "pair": pair, "review": json.dumps(review)}
    command = ("exec", "--stdin", pod, "--", "python3", "-c", ASK)
    printed = [""]

    def resolved() -> bool:
        printed[0] = space.kubectl(*command, input=json.dumps(given))
        return "gaierror" not in printed[0]

    until(resolved)
    return printed[0]


def _pair(authority: Authority) -> str:
    signed = authority.client("kube-apiserver")
    return (signed.key + signed.certificate).decode()


def test_without_the_component_everybody_who_reaches_the_port_is_answered(
    webhook: Webhook, space: Space, stranger: str
) -> None:
    """Without the component, the request of the tests below gets an answer."""
    assert webhook.replicas()
    assert _answer(space, stranger, "").startswith('200 {"')


def test_pods_that_ask_are_patched_as_before(closed: Webhook, space: Space) -> None:
    """The API server presents the certificate that its AdmissionConfiguration names."""
    document = space.pod("asks", "nvidia.com/v100")
    assert "rdma.lab/status" in space.proposed(document)["metadata"]["annotations"]
    assert len(closed.replicas()) == 2


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize("pair", ["", _pair(Authority())], ids=["none", "of another CA"])
def test_a_pod_without_the_certificate_gets_no_answer(
    space: Space, stranger: str, pair: str
) -> None:
    """It gets not one byte of HTTP: the replica ends the connection during the handshake."""
    printed = _answer(space, stranger, pair)
    assert printed.startswith("no answer: "), printed
    assert any(end in printed for end in ENDS), printed


@pytest.mark.usefixtures("closed")
def test_the_certificate_is_enough(api_server: Path, space: Space, stranger: str) -> None:
    """With the API server's certificate and key, the same pod gets an answer."""
    pair = "".join((api_server / name).read_text() for name in ("client.key", "client.crt"))
    assert _answer(space, stranger, pair).startswith('200 {"')


def test_certs_status_works_as_before(closed: Webhook) -> None:
    """`certs status` does handshakes without a client certificate, and needs none."""
    code, report = certs("status", "--kubeconfig", str(closed.cluster.kubeconfig))
    assert (code, report["healthy"]) == (0, True), report


def test_another_client_ca(closed: Webhook, api_server: Path, space: Space) -> None:
    """If the API server's certificate is not accepted, opted-in pods are rejected with the reason.

    The same happens once it has expired. A new pair in its files is used without a restart.
    """
    asks = space.pod("asks", "nvidia.com/v100")
    following = Authority()
    _admit(closed, following.certificate.decode())
    closed.kubectl("delete", "pods", "--all", "--now")
    settled(closed)
    until(lambda: any(end in _refusal(space, asks) for end in ENDS))
    assert 'failed calling webhook "pods.rdma.lab"' in _refusal(space, asks)
    assert not _refusal(space, space.pod("silent", annotations={}))

    following.client("kube-apiserver").write(api_server, "client")
    until(lambda: not _refusal(space, asks))
    assert "rdma.lab/status" in space.proposed(asks)["metadata"]["annotations"]


def _refusal(space: Space, document: Document) -> str:
    return ask(space.cluster, document).refusal
