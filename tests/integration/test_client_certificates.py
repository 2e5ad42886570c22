"""`--client-ca`: the API server must present a certificate; previews need none."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.issue import issue_ca
from certs.pem import KeyPair
from tests.integration.serving import Certificates, Reply, Running, fabrics, pod, review, send

CLIENTS = issue_ca("clients")
_ROOT = Path(__file__).parents[2]


def client_pair(
    folder: Path, issuer: KeyPair, lasts: timedelta = timedelta(hours=1)
) -> tuple[Path, Path]:
    """Issue a client certificate, as an administrator does for the API server."""
    authority = x509.load_pem_x509_certificate(issuer.certificate)
    signer = load_pem_private_key(issuer.key, password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    leaf = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + lasts)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    certificate, private = folder / "client.crt", folder / "client.key"
    certificate.write_bytes(leaf.public_bytes(Encoding.PEM))
    private.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    return certificate, private


@pytest.fixture(scope="module")
def strict(tls: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a server that checks client certificates."""
    folder = tmp_path_factory.mktemp("strict")
    (folder / "clients.crt").write_bytes(CLIENTS.certificate)
    with Running(tls, fabrics(folder), client_ca=folder / "clients.crt") as running:
        yield running


def test_without_a_certificate_there_is_no_answer(strict: Running) -> None:
    """Without a certificate the handshake fails, or the connection ends at once (TLS 1.3)."""
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        strict.post(review())


def ask(server: Running, pair: tuple[Path, Path]) -> Reply:
    """Send a review with a client certificate."""
    context = server.tls.client
    context.load_cert_chain(*pair)
    port = server.ports["mutate"]
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
    try:
        return send(connection, review(), "/mutate")
    finally:
        connection.close()


def test_no_session_is_resumed(strict: Running, tmp_path: Path) -> None:
    """Otherwise a client could go on for hours after its certificate has expired."""
    context = strict.tls.client
    context.load_cert_chain(*client_pair(tmp_path, CLIENTS))

    def is_resumed(session: ssl.SSLSession | None) -> tuple[bool | None, ssl.SSLSession | None]:
        raw = socket.create_connection(("127.0.0.1", strict.ports["mutate"]), timeout=60)
        with context.wrap_socket(raw, server_hostname="127.0.0.1", session=session) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert connection.recv(1)  # a ticket of TLS 1.3 would come before it
            return connection.session_reused, connection.session

    first, session = is_resumed(None)
    second, _ = is_resumed(session)
    assert not first
    assert not second


def test_a_certificate_of_another_ca_does_not_count(strict: Running, tmp_path: Path) -> None:
    """A certificate from another CA is not accepted."""
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        ask(strict, client_pair(tmp_path, issue_ca("strangers")))


def test_an_expired_certificate_does_not_count(strict: Running, tmp_path: Path) -> None:
    """An expired certificate is not accepted."""
    with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
        ask(strict, client_pair(tmp_path, CLIENTS, timedelta(minutes=-1)))


@pytest.mark.skipif(
    shutil.which("openssl") is None and not os.environ.get("CI"), reason="openssl is missing"
)
def test_what_the_docs_issue_is_accepted(tls: Certificates, tmp_path: Path) -> None:
    """The openssl commands of docs/installation.md work as pasted, and their pair is accepted."""
    page = (_ROOT / "docs/installation.md").read_text(encoding="utf-8")
    for block in ("client-ca", "client-pair"):
        text = page.partition(f"<!-- {block} -->\n```sh\n")[2].partition("```\n")[0]
        assert text
        subprocess.run(["sh", "-e", "-c", text], cwd=tmp_path, check=True, capture_output=True)
    with Running(tls, fabrics(tmp_path), client_ca=tmp_path / "clients.crt") as server:
        answer = ask(server, (tmp_path / "client.crt", tmp_path / "client.key"))
    assert (answer.status, answer.response["allowed"]) == (200, True)


def test_with_a_certificate_the_review_is_answered(strict: Running, tmp_path: Path) -> None:
    """An API server whose AdmissionConfiguration names the pair gets an answer."""
    answer = ask(strict, client_pair(tmp_path, CLIENTS))
    assert (answer.status, answer.response["allowed"]) == (200, True)


def test_the_preview_requires_no_certificate(strict: Running) -> None:
    """The preview requires no certificate: the API server's service proxy has none for its user."""
    assert strict.post(json.dumps(pod()), "/preview").status == 200
